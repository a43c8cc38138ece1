package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestWhoeverRevisesATemplateAtTheSameTimeAddsAVersion(t *testing.T) {
	s := openStore(t)
	made, err := s.CreateTemplate(t.Context(), "reminder", notify.SMS, store.TemplateText{Body: "first", Params: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	const people = 16
	var g errgroup.Group
	for n := range people {
		g.Go(func() error {
			_, err := s.ReviseTemplate(t.Context(), made.ID, store.AnyRevision, store.TemplateRevision{Text: &store.TemplateText{Body: fmt.Sprint("by ", n), Params: []string{}}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	versions, err := s.TemplateVersions(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]bool{}
	for i, v := range versions {
		if bodies[v.Body] = true; v.Version != int32(i+1) {
			t.Errorf("version %d is number %d", i+1, v.Version)
		}
	}
	if len(bodies) != people+1 {
		t.Errorf("%d texts are kept, want %d", len(bodies), people+1)
	}
}

// meanwhile does something while another transaction has done as the SQL says and has not come to its end.
func meanwhile(t *testing.T, db *pgx.Conn, sql string, do func(context.Context) error) error {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- do(t.Context()) }()
	const waits = `SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var waiting int
		if err := tx.QueryRow(t.Context(), waits).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			break
		}
		select {
		case err := <-done:
			t.Errorf("it did not wait: error %v", err)
			return errors.Join(err, tx.Rollback(t.Context()))
		default:
		}
		if time.Now().After(end) {
			t.Fatal("it neither waits nor ends")
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return <-done
}

const (
	archiveLast = `UPDATE templates SET archived_at = now() WHERE id = (SELECT max(id) FROM templates)`
	deleteLast  = `WITH versions AS (DELETE FROM template_versions WHERE template_id = (SELECT max(id) FROM templates)) DELETE FROM templates WHERE id = (SELECT max(id) FROM templates)`
)

func TestWhatBeginsToSendWithATemplateThatIsBeingArchivedOrDeletedIsRefused(t *testing.T) {
	ofTemplate := func(terms store.ScheduleTerms) func(*store.NewBatch) {
		return func(n *store.NewBatch) {
			n.Message, n.TemplateID, n.TemplateVersion = nil, &terms.TemplateID, new(int32(1))
			recipients := n.Recipients
			n.Recipients = func() (store.BatchRecipient, bool, error) {
				r, more, err := recipients()
				r.Params = []byte(`{"name": "A"}`)
				return r, more, err
			}
		}
	}
	inactive := func(t *testing.T, s *store.Store, terms store.ScheduleTerms) store.Schedule {
		terms.Active = false
		return createSchedule(t, s, terms)
	}
	type beginning func(t *testing.T, s *store.Store, terms store.ScheduleTerms) func(context.Context) error
	made := func(t *testing.T, s *store.Store, terms store.ScheduleTerms) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.CreateSchedule(ctx, terms)
			return err
		}
	}
	resumed := func(t *testing.T, s *store.Store, terms store.ScheduleTerms) func(context.Context) error {
		made := inactive(t, s, terms)
		return func(ctx context.Context) error {
			_, err := s.ResumeSchedule(ctx, made.ID)
			return err
		}
	}
	switchedOn := func(t *testing.T, s *store.Store, terms store.ScheduleTerms) func(context.Context) error {
		made := inactive(t, s, terms)
		return func(ctx context.Context) error {
			_, err := s.ChangeSchedule(ctx, made.ID, made.Revision, terms)
			return err
		}
	}
	given := func(t *testing.T, s *store.Store, terms store.ScheduleTerms) func(context.Context) error {
		other := terms
		other.TemplateID = terms.TemplateID - 1
		made := createSchedule(t, s, other)
		return func(ctx context.Context) error {
			_, err := s.ChangeSchedule(ctx, made.ID, made.Revision, terms)
			return err
		}
	}
	batch := func(t *testing.T, s *store.Store, terms store.ScheduleTerms) func(context.Context) error {
		n := newBatch(t, s, 3, 1, ofTemplate(terms))
		return func(ctx context.Context) error {
			_, _, err := s.AcceptBatch(ctx, n)
			return err
		}
	}
	for name, test := range map[string]struct {
		sql   string
		begin beginning
		want  error
	}{
		"a schedule is made, archived":        {archiveLast, made, store.ErrArchived},
		"a schedule is made, deleted":         {deleteLast, made, store.ErrReferenceGone},
		"a schedule is resumed, archived":     {archiveLast, resumed, store.ErrArchived},
		"a schedule is switched on, archived": {archiveLast, switchedOn, store.ErrArchived},
		"a schedule gets it, archived":        {archiveLast, given, store.ErrArchived},
		"a schedule gets it, deleted":         {deleteLast, given, store.ErrReferenceGone},
		"a batch, archived":                   {archiveLast, batch, store.ErrArchived},
		"a batch, deleted":                    {deleteLast, batch, store.ErrReferenceGone},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := openLedger(t)
			daily(t, s) // another one
			if err := meanwhile(t, db, test.sql, test.begin(t, s, daily(t, s))); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			const sending = `SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM schedules s JOIN templates t ON t.id = s.template_id WHERE s.is_active AND t.archived_at IS NOT NULL)`
			if n := count(t, db, sending); n != 0 {
				t.Errorf("%d send with it", n)
			}
		})
	}
}

func TestATemplateIsKeptThatAScheduleBeginsToSendWithMeanwhile(t *testing.T) {
	for name, end := range map[string]func(*store.Store, int64) func(context.Context) error{
		"archived": func(s *store.Store, id int64) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.ReviseTemplate(ctx, id, store.AnyRevision, store.TemplateRevision{Archived: new(true)})
				return err
			}
		},
		"deleted": func(s *store.Store, id int64) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.DeleteTemplate(ctx, id)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, db := openLedger(t)
			terms := daily(t, s)
			terms.Active = false
			createSchedule(t, s, terms)
			const resume = `WITH kept AS (SELECT id FROM templates FOR SHARE) UPDATE schedules SET is_active = true WHERE template_id IN (SELECT id FROM kept)`
			if err := meanwhile(t, db, resume, end(s, terms.TemplateID)); !errors.Is(err, store.ErrInUse) {
				t.Errorf("error %v, want ErrInUse", err)
			}
			if kept, err := s.Template(t.Context(), terms.TemplateID); err != nil || kept.ArchivedAt != nil {
				t.Errorf("it is %+v, error %v", kept, err)
			}
		})
	}
}
