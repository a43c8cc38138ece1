package store_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// largeScan is a scan of the ledger, or of an index that has a row for every notification.
var largeScan = regexp.MustCompile(`Seq Scan on notifications\b|Scan (Backward )?(using|on) notifications_(pkey|twilio_sid|reference)\b`)

// wholeLedger is the scan by which a plan reads all of the ledger, however large, or nothing. Ids from one
// on, or before one, are nearly all, unless they are read for a page that takes all that come.
func wholeLedger(plan []string) string {
	for i, line := range plan {
		scan := largeScan.FindString(line)
		if scan == "" {
			continue
		}
		cond, filter := "", ""
		for _, detail := range plan[i+1 : min(i+3, len(plan))] {
			if strings.Contains(detail, "Index Cond:") {
				cond = detail
			} else if strings.Contains(detail, " Filter:") {
				filter = detail
			}
		}
		equals := regexp.MustCompile(`\w\)* = `).MatchString(cond)
		between := strings.Contains(cond, ">=") && strings.Contains(cond, "<=")
		page := strings.Contains(scan, "Backward") && filter == ""
		if !equals && !between && !page {
			return scan
		}
	}
	return ""
}

// openPlanned opens a store of one connection, whose statements can be looked at.
func openPlanned(t *testing.T) (*store.Store, *pgx.Conn) {
	t.Helper()
	_, db := openLedger(t)
	s, err := store.Open(t.Context(), addOption(db.Config().ConnString(), "pool_max_conns", "1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, db
}

// To plan a statement takes several times as long as to run it, and a plan is kept: the one that is
// made in an empty ledger must do when it is full.
func TestEveryStatementIsPlannedOnceForALedgerOfAnySize(t *testing.T) {
	s, _ := openPlanned(t)
	for range 10 {
		single(t, s)
	}
	work(t, s)
	readBatch(t, s)
	prepared, err := s.Prepared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prepared {
		if strings.HasPrefix(p.SQL, `select "id", "channel"`) {
			continue // never run: pgx learns from it the types of what it copies
		}
		if p.Custom > 0 {
			t.Errorf("planned %d times for its arguments:\n%s", p.Custom, p.SQL)
		}
		plan, err := s.Plan(t.Context(), p)
		if err != nil {
			t.Fatalf("%v:\n%s", err, p.SQL)
		}
		if scan := wholeLedger(plan); scan != "" {
			t.Errorf("%s reads the whole ledger:\n%s\n%s", scan, p.SQL, strings.Join(plan, "\n"))
		}
	}
}

// With the statistics of some moments the index of workflows looks as good as that of what is still to be
// sent, and is not: it has all of the shard that is not final.
func TestAClaimOfAShardReadsOnlyWhatIsStillToBeSent(t *testing.T) {
	s, db := openPlanned(t)
	for _, moment := range []string{"the ledger is empty", "a batch is accepted", "it was canceled"} {
		switch moment {
		case "a batch is accepted":
			acceptBatch(t, s, 500, 500)
		case "it was canceled":
			if _, err := db.Exec(t.Context(), `UPDATE notifications SET status = 'CANCELED', settled_at = now()`); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec(t.Context(), `VACUUM ANALYZE`); err != nil {
			t.Fatal(err)
		}
		noClaim(t, s, store.ClaimTerms{Owner: store.Owner{WorkflowID: notify.ShardWorkflowID(uuid.New(), 0)}, Limit: 64, Lease: time.Minute, Ahead: time.Second})
		prepared, err := s.Prepared(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range prepared {
			if !strings.Contains(p.SQL, "claim_token = gen_random_uuid()") {
				continue
			}
			plan, err := s.Plan(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.Contains(text, "notifications_outstanding") || !strings.Contains(text, "notifications_of_batch_accepted") {
				t.Errorf("when %s, it is planned as\n%s", moment, text)
			}
		}
	}
}

func single(t testing.TB, s *store.Store) {
	t.Helper()
	id := accept(t, s, notify.SMS, false)
	if err := s.MarkStarted(t.Context(), terms(id).Owner); err != nil {
		t.Fatal(err)
	}
	keyed := store.NewNotification{ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, To: recipient, ToHash: []byte("x"), Message: new("x"), SenderID: 1,
		Once: &store.Once{Key: id.String(), Answer: func(store.Notification) (store.Answer, error) { return store.Answer{}, nil }}}
	if _, err := s.Accept(t.Context(), keyed); err != nil {
		t.Fatal(err)
	}
	claim(t, s, id)
	for _, word := range []string{"queued", "delivered"} {
		settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: word, Source: notify.FromWebhook})
	}
	if _, err := s.Finished(t.Context(), []string{"notification/" + uuid.NewString()}); err != nil {
		t.Fatal(err)
	}
}

// work runs the statements of those who look after the ledger, and of shards.
func work(t testing.TB, s *store.Store) {
	t.Helper()
	shard := terms(uuid.New())
	shard.Owner = store.Owner{WorkflowID: "relay/1"}
	adopts := shard
	adopts.Adopt = -1 // no such sender
	part := shard
	part.Owner.WorkflowID = notify.ShardWorkflowID(uuid.New(), 0)
	for _, terms := range []store.ClaimTerms{shard, adopts, part} {
		noClaim(t, s, terms)
	}
	for what, err := range map[string]error{
		"waiting":   second(s.Waiting(t.Context(), 10)),
		"unstarted": second(s.Unstarted(t.Context(), nil, 10)),
		"idle":      second(s.Idle(t.Context(), time.Second, time.Second, nil, 10)),
		"bequeath":  second(s.Bequeath(t.Context(), "relay/1")),
		"senders":   second(s.Senders(t.Context())),
		"expire":    s.Expire(t.Context(), shard.Owner, time.Hour, store.Failure{}),
		"pending":   second(s.StillPending(t.Context(), []uuid.UUID{uuid.New()}, store.CheckTerms{})),
		"events":    second(s.Events(t.Context(), uuid.New())),
		"list":      listed(s.Notifications(t.Context(), store.Filter{}, nil, 10)),
		"calls":     listed(s.Notifications(t.Context(), store.Filter{Channel: notify.Call}, nil, 10)),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// readBatch runs the statements that read all of a batch, or a page of it.
func readBatch(t testing.TB, s *store.Store) {
	t.Helper()
	b := acceptBatch(t, s, 3, 2)
	rows := 0
	for _, err := range s.BatchResults(t.Context(), b.ID) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	for name, filter := range map[string]store.Filter{
		"of a batch":                {BatchID: &b.ID},
		"accepted ones of a batch":  {BatchID: &b.ID, Statuses: []notify.Status{notify.Accepted}},
		"delivered ones of a batch": {BatchID: &b.ID, Statuses: []notify.Status{notify.Success}},
		"of a schedule":             {ScheduleID: new(int64(1))},
		"of a number":               {ToHash: recipient.Hash(nil)},
		"failed ones of a number":   {ToHash: recipient.Hash(nil), Statuses: []notify.Status{notify.Failed}},
		"of a number in a batch":    {ToHash: recipient.Hash(nil), BatchID: &b.ID},
	} {
		for _, after := range []*store.Place{nil, {ID: uuid.Must(uuid.NewV7())}} {
			if _, _, err := s.Notifications(t.Context(), filter, after, 10); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if _, err := s.ChangeBatch(t.Context(), b.ID, store.BatchChange{SendAt: new(time.Now().Add(time.Hour))}); err != nil {
		t.Fatal(err)
	}
	check, err := s.RequestCarrierCheck(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.BeginComparison(t.Context(), check.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if rows != 3 {
		t.Errorf("%d results of 3", rows)
	}
}

func second[T any](_ T, err error) error { return err }

func listed(_ []store.Notification, _ *store.Place, err error) error { return err }

// An update that changes a column of any index, its condition included, adds an entry to every index of the table.
func TestACarriersWordThatMovesNoRowChangesNoIndex(t *testing.T) {
	t.Parallel()
	_, db := openLedger(t)
	rows, err := db.Query(t.Context(), `
		SELECT DISTINCT d.objid::regclass || ' on ' || a.attname
		FROM pg_depend d
		JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'i'
		JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
		WHERE d.classid = 'pg_class'::regclass AND d.refobjid = 'notifications'::regclass
			AND a.attname IN ('carrier_rank', 'twilio_status', 'ranked_code', 'segments', 'updated_at')
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	indexes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if len(indexes) > 0 {
		t.Errorf("a word that only moves the row's rank changes %s", strings.Join(indexes, ", "))
	}
}
