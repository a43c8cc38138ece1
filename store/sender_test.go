package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// holdClaims lets every claim wait, with all of its locks, until release is called.
func holdClaims(t *testing.T, db *pgx.Conn) (release func()) {
	t.Helper()
	execute(t, db, `
		CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(42);
			RETURN NEW;
		END
		$$`)
	execute(t, db, `CREATE TRIGGER wait_for_the_test BEFORE UPDATE ON notifications FOR EACH ROW
		WHEN (NEW.status = 'SENDING') EXECUTE FUNCTION wait_for_the_test()`)
	execute(t, db, `SELECT pg_advisory_lock(42)`)
	return func() { execute(t, db, `SELECT pg_advisory_unlock(42)`) }
}

// awaitWaiting waits until so many statements of this database wait for a lock, or done is closed.
func awaitWaiting(t *testing.T, db *pgx.Conn, statements int, done <-chan struct{}) {
	t.Helper()
	for {
		var waiting int
		execute(t, db, `SELECT pg_stat_clear_snapshot()`) // a transaction sees the same activity again and again
		if err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if waiting >= statements {
			return
		}
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestAStopOfASenderWaitsForClaimsThatBeganBefore(t *testing.T) {
	for name, interval := range map[string]time.Duration{"without pacing": 0, "paced": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			s, db := openLedger(t)
			id := accept(t, s, notify.SMS, false)
			sender := claimable(t, s, id)
			release := holdClaims(t, db)
			claimed, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(claimed)
				of := terms(id)
				of.SMSInterval, of.Ahead = interval, time.Second
				if claims, err := s.Claim(context.WithoutCancel(t.Context()), of); err != nil || len(claims) != 1 {
					t.Errorf("%d claims, error %v: want the one that began before the stop", len(claims), err)
				}
			}()
			awaitWaiting(t, db, 1, claimed)
			go func() {
				defer close(stopped)
				if err := s.StopSender(context.WithoutCancel(t.Context()), sender, false, "21606", "stopped"); err != nil {
					t.Error(err)
				}
			}()
			awaitWaiting(t, db, 2, stopped)
			select {
			case <-stopped:
				t.Error("the stop was committed before a claim that had begun: its creates follow the stop")
			default:
			}
			release()
			<-claimed
			<-stopped
			noClaim(t, s, terms(accept(t, s, notify.SMS, false)))
		})
	}
}

func TestNoClaimIsCommittedAfterASenderWasStopped(t *testing.T) {
	s, db := openLedger(t)
	shards := make([]string, 4)
	var sender int64
	for i := range shards {
		shards[i] = shard(t, s, 50)
	}
	if err := db.QueryRow(t.Context(), `SELECT min(sender_id) FROM notifications`).Scan(&sender); err != nil {
		t.Fatal(err)
	}
	began, done := make(chan struct{}, len(shards)), make(chan struct{}, len(shards))
	for _, owner := range shards {
		go func() {
			defer func() { done <- struct{}{} }()
			for first := true; ; first = false {
				of := store.ClaimTerms{Owner: store.Owner{WorkflowID: owner}, Limit: 1, Lease: time.Minute}
				claims, err := s.Claim(context.WithoutCancel(t.Context()), of)
				if err != nil {
					t.Error(err)
				}
				if first {
					began <- struct{}{}
				}
				if err != nil || len(claims) == 0 {
					return
				}
			}
		}()
	}
	for range shards {
		<-began
	}
	if err := s.StopSender(t.Context(), sender, false, "21606", "stopped"); err != nil {
		t.Fatal(err)
	}
	const sending = `SELECT count(*) FROM notifications WHERE status = 'SENDING'`
	var atStop, atEnd int
	if err := db.QueryRow(t.Context(), sending).Scan(&atStop); err != nil {
		t.Fatal(err)
	}
	for range shards {
		<-done
	}
	if err := db.QueryRow(t.Context(), sending).Scan(&atEnd); err != nil {
		t.Fatal(err)
	}
	if atStop != atEnd {
		t.Errorf("%d rows were claimed after the stop", atEnd-atStop)
	}
}

// A claim locks its rows first and the sender last. A stop that is committed between the two lets a
// resume hold the sender's row while it waits for rows of the claim, if it locks the other way round.
func TestAResumeAndAClaimDoNotWaitForEachOther(t *testing.T) {
	s, db := openLedger(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if held, err := s.GiveBack(t.Context(), id, c.Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !held {
		t.Fatal(held, err)
	}
	stop, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stop.Exec(t.Context(), `
		UPDATE senders SET stopped_at = now(), stop_code = '21606', stop_reason = 'stopped' WHERE id = $1`, c.SenderID); err != nil {
		t.Fatal(err)
	}
	resumed, claimed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(resumed)
		if _, err := s.ResumeSender(context.WithoutCancel(t.Context()), c.SenderID); err != nil {
			t.Errorf("the resume: %v", err)
		}
	}()
	awaitWaiting(t, db, 1, resumed)
	go func() {
		defer close(claimed)
		of := terms(id)
		of.SMSInterval, of.Ahead = time.Millisecond, time.Second
		if _, err := s.Claim(context.WithoutCancel(t.Context()), of); err != nil {
			t.Errorf("the claim: %v", err)
		}
	}()
	awaitWaiting(t, db, 2, claimed)
	if err := stop.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-resumed
	<-claimed
}

func TestTwoResumesAtOnceCountTheStopOnce(t *testing.T) {
	s, db := openLedger(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if held, err := s.GiveBack(t.Context(), id, c.Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !held {
		t.Fatal(held, err)
	}
	if err := s.StopSender(t.Context(), c.SenderID, false, "21606", "stopped"); err != nil {
		t.Fatal(err)
	}
	execute(t, db, `UPDATE senders SET stopped_at = now() - interval '1 hour'`)
	execute(t, db, `UPDATE notifications SET first_claimed_at = now() - interval '2 hours'`)
	resumed := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.ResumeSender(context.WithoutCancel(t.Context()), c.SenderID)
			resumed <- err
		}()
	}
	for range 2 {
		if err := <-resumed; err != nil {
			t.Error(err)
		}
	}
	var hours float64
	if err := db.QueryRow(t.Context(), `
		SELECT extract(epoch FROM now() - first_claimed_at) / 3600 FROM notifications`).Scan(&hours); err != nil {
		t.Fatal(err)
	}
	if hours < 0.9 || hours > 1.1 {
		t.Errorf("%.1f hours count towards the deadline, want 1: the two without the hour of the stop", hours)
	}
}
