package store_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestOfProcessesThatStartTogetherOneBindsTheLedger(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	accounts := make([]store.Binding, 8)
	read := make([]store.Bound, len(accounts))
	var starting sync.WaitGroup
	for i := range accounts {
		accounts[i] = store.Binding{Kind: "twilio", Region: "us1", Account: []byte{byte(i)}}
		starting.Go(func() {
			var err error
			if read[i], err = s.BindAccount(t.Context(), accounts[i], true); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	for i := range read {
		if read[i].BoundAt == nil || !bytes.Equal(read[i].Account, read[0].Account) {
			t.Errorf("process %d reads that the ledger belongs to %v, process 0 to %v", i, read[i].Account, read[0].Account)
		}
	}
}

func TestALedgerWithSendsIsNotBoundAsAnUnusedOne(t *testing.T) {
	t.Parallel()
	s, db := openLedger(t)
	id := accept(t, s, notify.SMS, false)
	if _, err := db.Exec(t.Context(), `UPDATE notifications SET twilio_sid = 'SM' || repeat('0', 32) WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	bound, err := s.BindAccount(t.Context(), store.Binding{Kind: "twilio", Region: "us1", Account: []byte{1}}, true)
	if err != nil || bound.BoundAt != nil {
		t.Errorf("it is bound at %v, error %v", bound.BoundAt, err)
	}
}

func TestALedgerIsMovedOnlyWhenTheFormerAccountHasNothingToTell(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	former, other := store.Binding{Kind: "simulator", Account: []byte{1}}, store.Binding{Kind: "twilio", Region: "ie1", Account: []byte{2}}
	if _, err := s.BindAccount(t.Context(), former, true); err != nil {
		t.Fatal(err)
	}
	sending, waiting := accept(t, s, notify.SMS, false), accept(t, s, notify.SMS, false)
	claimed := claim(t, s, sending)
	open, err := s.StopForMove(t.Context())
	if err != nil || open != (store.Unfinished{Waiting: 1, Sending: 1}) {
		t.Fatalf("open: %+v, error %v", open, err)
	}
	noClaim(t, s, terms(waiting))
	if err := s.MoveLedger(t.Context(), other); !errors.Is(err, store.ErrStillOpen) {
		t.Errorf("it moves while a notification is being sent: error %v", err)
	}
	if _, err := s.Refuse(t.Context(), sending, claimed.Token, store.Failure{Kind: store.EventRefused}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.CancelWaiting(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("%d were canceled, error %v", n, err)
	}
	if err := s.MoveLedger(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	bound, err := s.Bound(t.Context())
	if err != nil || bound.Kind != other.Kind || bound.Region != other.Region || !bytes.Equal(bound.Account, other.Account) {
		t.Errorf("it belongs to %+v, error %v", bound.Binding, err)
	}
	if row, err := s.Notification(t.Context(), waiting); err != nil || row.Status != notify.Canceled {
		t.Errorf("what waited is %s, error %v", row.Status, err)
	}
}

func TestConnectionsCommitDurablyWhateverTheDatabaseAndItsURLSay(t *testing.T) {
	t.Parallel()
	_, db := openLedger(t)
	if _, err := db.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{db.Config().ConnString(), addOption(db.Config().ConnString(), "synchronous_commit", "off"),
		addOption(db.Config().ConnString(), "options", "-c%20synchronous_commit%3Dlocal")} {
		s, err := store.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if warnings, err := s.Durability(t.Context()); err != nil || len(warnings) != 0 {
			t.Errorf("warnings %q, error %v", warnings, err)
		}
		if value, err := s.Setting(t.Context(), "synchronous_commit"); err != nil || value != "on" {
			t.Errorf("synchronous_commit is %s, error %v", value, err)
		}
	}
}

func TestAServerThatMayForgetCommitsIsNamed(t *testing.T) {
	t.Parallel()
	_, db := openLedger(t) // on a server with fsync=off and full_page_writes=off, on purpose
	if _, err := db.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET todoku.volatile = off', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	warnings, err := s.Durability(t.Context())
	want := []string{
		"the database server runs with fsync=off: after a crash it may have forgotten sends, which are then sent again: set fsync=on",
		"the database server runs with full_page_writes=off: after a crash its data may be damaged: set full_page_writes=on",
	}
	if err != nil || !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestAnAsynchronousStandbyIsNamed(t *testing.T) {
	t.Parallel()
	_, db := openLedger(t)
	if _, err := db.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET todoku.volatile = off', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const warning = "the database server has an asynchronous standby and no synchronous one: " +
		"after a fail-over it may have forgotten sends; set synchronous_standby_names"
	named := func() bool {
		warnings, err := s.Durability(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(warnings, warning)
	}
	if named() {
		t.Fatal("there is none, and it is named")
	}
	standby := replicate(t, db.Config().ConnString())
	defer standby.Close(context.WithoutCancel(t.Context()))
	for end := time.Now().Add(30 * time.Second); !named(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not named")
		}
	}
}

// replicate streams the server's log, as a standby does.
func replicate(t *testing.T, url string) *pgconn.PgConn {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"] = "true"
	config.RuntimeParams["application_name"] = "standby"
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	results, err := conn.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	conn.Frontend().SendQuery(&pgproto3.Query{String: "START_REPLICATION PHYSICAL " + string(results[0].Rows[0][2])})
	if err := conn.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	return conn
}
