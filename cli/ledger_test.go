package cli

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/carrier/carriertest"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const (
	testAccountA = "ACaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	testAccountB = "ACbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// accountSettings are the settings of a service with an account, at an address of the API; empty: Twilio's.
func accountSettings(databaseURL, account, apiURL string, more ...string) []string {
	return append([]string{"DATABASE_URL=" + databaseURL, testHashKey, "TWILIO_ACCOUNT_SID=" + account, "TWILIO_AUTH_TOKEN=notarealtoken",
		"TWILIO_PHONE_NUMBER=+15005550006", "TWILIO_API_URL=" + apiURL, "TODOKU_ADDR=127.0.0.1:0", "TODOKU_WORKER_ADDR=127.0.0.1:0"}, more...)
}

// bindTo binds a ledger as a process with the account would.
func bindTo(t *testing.T, databaseURL, account, apiURL, region string) {
	t.Helper()
	client, err := carrier.New(carrier.Options{AccountSID: account, AuthToken: "notarealtoken", APIURL: apiURL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	is, err := client.Account(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := openAt(t, databaseURL)
	b := bindingOf(is)
	if region != "" {
		b.Region = region
	}
	if _, err := s.BindAccount(t.Context(), b, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BindPhoneKey(t.Context(), phoneKeyFingerprint(strings.TrimPrefix(testHashKey, "PHONE_HASH_KEY="))); err != nil {
		t.Fatal(err)
	}
}

func openAt(t *testing.T, databaseURL string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// acceptWithSID writes a notification to the ledger, as sent under a SID where one is given.
func acceptWithSID(t *testing.T, databaseURL, sid string) uuid.UUID {
	t.Helper()
	s := openAt(t, databaseURL)
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	number := notify.PhoneNumber{E164: "+12025550143", National: "(202) 555-0143"}
	id, body := uuid.Must(uuid.NewV7()), "hello"
	if _, err := s.Accept(t.Context(), store.NewNotification{ID: id, Channel: notify.SMS, SenderID: sender, To: number,
		ToHash: number.Hash([]byte(strings.TrimPrefix(testHashKey, "PHONE_HASH_KEY="))), Message: &body}); err != nil {
		t.Fatal(err)
	}
	if sid != "" {
		execute(t, databaseURL, `UPDATE notifications SET status = 'SUCCESS', settled_at = now(), twilio_sid = $2 WHERE id = $1`, id, sid)
	}
	return id
}

func execute(t *testing.T, databaseURL, sql string, args ...any) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestAProcessOfAnotherAccountDoesNotStart(t *testing.T) {
	t.Parallel()
	simulator := carriertest.Start(t).URL
	otherKey := "PHONE_HASH_KEY=ffffffffffffffffffffffffffffffff"
	const phoneKey = "PHONE_HASH_KEY is not the one that this ledger was made with, so no number in it would be found: set the former key"

	for _, test := range []struct {
		name     string
		prepare  func(t *testing.T, databaseURL string)
		settings func(databaseURL string) []string
		line     string
	}{
		{"the real Twilio on a ledger of the simulator",
			func(t *testing.T, db string) { bindTo(t, db, testAccountA, simulator, "") },
			func(db string) []string { return accountSettings(db, testAccountA, "") },
			"this ledger belongs to the simulator, and the settings name the real Twilio, which would send to real people what waits in it: " +
				"use another database, or `todoku ledger move` where that is meant"},
		{"the simulator on a ledger of the real Twilio",
			func(t *testing.T, db string) { bindTo(t, db, testAccountA, "", "") },
			func(db string) []string { return accountSettings(db, testAccountA, simulator) },
			"this ledger belongs to a Twilio account, and the settings name the simulator, which would report sends that nobody gets: " +
				"use another database, or `todoku ledger move` where that is meant"},
		{"a subaccount",
			func(t *testing.T, db string) { bindTo(t, db, testAccountA, "", "") },
			func(db string) []string { return accountSettings(db, testAccountB, "") },
			"this ledger belongs to another account or subaccount than TWILIO_ACCOUNT_SID names: " +
				"set the former account, use another database, or `todoku ledger move` where that is meant"},
		{"another region",
			func(t *testing.T, db string) { bindTo(t, db, testAccountA, "", "us1") },
			func(db string) []string {
				return accountSettings(db, testAccountA, "", "TWILIO_REGION=ie1", "TWILIO_EDGE=dublin")
			},
			"this ledger belongs to the Twilio region us1, and TWILIO_REGION or TWILIO_API_URL names ie1: " +
				"set the former region, use another database, or `todoku ledger move` where that is meant"},
		{"another region by its address",
			func(t *testing.T, db string) { bindTo(t, db, testAccountA, "", "us1") },
			func(db string) []string {
				return accountSettings(db, testAccountA, "https://api.sydney.au1.twilio.com")
			},
			"this ledger belongs to the Twilio region us1, and TWILIO_REGION or TWILIO_API_URL names au1: " +
				"set the former region, use another database, or `todoku ledger move` where that is meant"},
		{"another PHONE_HASH_KEY",
			func(t *testing.T, db string) { bindTo(t, db, testAccountA, simulator, "") },
			func(db string) []string { return accountSettings(db, testAccountA, simulator, otherKey) }, phoneKey},
		{"another PHONE_HASH_KEY on a ledger that is not bound",
			func(t *testing.T, db string) { acceptWithSID(t, db, "") },
			func(db string) []string { return accountSettings(db, testAccountA, simulator, otherKey) }, phoneKey},
		{"an account that does not know the newest send",
			func(t *testing.T, db string) { acceptWithSID(t, db, "SM"+strings.Repeat("0", 32)) },
			func(db string) []string { return accountSettings(db, testAccountA, simulator) },
			"the simulator does not know the newest send of this ledger: set the account that it was used with, or use another database; " +
				"if it is the right account, `todoku ledger bind --yes` says so"},
		{"a short AMBIGUITY_WINDOW with the real Twilio", func(*testing.T, string) {},
			func(db string) []string { return accountSettings(db, testAccountA, "", "AMBIGUITY_WINDOW=29s") },
			"AMBIGUITY_WINDOW is too short to prove that Twilio has not accepted a send: choose from 30s to 1h (less is for the simulator)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			database := devstacktest.Ledger(t)
			test.prepare(t, database)
			for _, command := range []string{"api", "worker"} {
				cmd := program(t, test.settings(database), command)
				cmd.Dir = t.TempDir()
				var out, errOut bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errOut
				var exit *exec.ExitError
				if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
					t.Errorf("todoku %s ended with %v", command, err)
				}
				if want := "todoku " + command + ": " + test.line + "\n"; errOut.String() != want || out.Len() > 0 {
					t.Errorf("it says %q and %q, want %q", errOut.String(), out.String(), want)
				}
			}
		})
	}
}

func TestOfTwoProcessesWithTwoAccountsThatStartTogetherOneIsRefused(t *testing.T) {
	t.Parallel()
	simulator, database := carriertest.Start(t).URL, devstacktest.Ledger(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var mu sync.Mutex
	var refused []string
	var ended sync.WaitGroup
	for _, account := range []string{testAccountA, testAccountB} {
		executable := program(t, accountSettings(database, account, simulator), "api")
		cmd := exec.CommandContext(ctx, executable.Path, "api")
		cmd.Env, cmd.Dir = executable.Env, t.TempDir()
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended.Go(func() {
			err := cmd.Wait()
			if ctx.Err() != nil {
				return // the one that ran, until it was stopped
			}
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, errOut.String())
			if err == nil {
				t.Error("it ended without an error")
			}
			stop()
		})
	}
	ended.Wait()
	if len(refused) != 1 || !strings.Contains(refused[0], "this ledger belongs to another account or subaccount") {
		t.Errorf("refused: %q, want one of the two", refused)
	}
}

func TestDevWithRealCredentialsRefusesTheFolderOfTheSimulator(t *testing.T) {
	t.Parallel()
	database := devstacktest.Ledger(t)
	bindTo(t, database, testAccountA, carriertest.Start(t).URL, "")
	cmd := program(t, append(accountSettings(database, testAccountB, ""), "TEMPORAL_ADDRESS="+devstacktest.Temporal(t)), "dev", "--workers", "1")
	cmd.Dir = t.TempDir()
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("it ended with %v", err)
	}
	if said := errOut.String(); strings.Count(said, "\n") != 1 ||
		!strings.HasPrefix(said, "todoku dev: this ledger belongs to the simulator, and the settings name the real Twilio") {
		t.Errorf("it says %q", said)
	}
}

func TestTokenEdgeAndAddressDoNotCount(t *testing.T) {
	t.Parallel()
	database := devstacktest.Ledger(t)
	bindTo(t, database, testAccountA, "", "")
	for _, apiURL := range []string{"https://api.twilio.com", "https://api.dublin.us1.twilio.com"} {
		bindTo(t, database, testAccountA, apiURL, "")
		client, err := carrier.New(carrier.Options{AccountSID: testAccountA, AuthToken: "another", APIURL: apiURL})
		if err != nil {
			t.Fatal(err)
		}
		account, err := client.Account(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bound, err := openAt(t, database).Bound(t.Context())
		if err != nil || compare(bound, account) != nil {
			t.Errorf("%s: %v, error %v", apiURL, compare(bound, account), err)
		}
	}
}

func TestALedgerIsMovedByACommandThatHoldsWhatWaits(t *testing.T) {
	term := newTerminal(t)
	database := devstacktest.Ledger(t)
	simulator := carriertest.Start(t).URL
	bindTo(t, database, testAccountA, simulator, "")
	acceptWithSID(t, database, "")
	for _, line := range accountSettings(database, testAccountB, simulator) {
		name, value, _ := strings.Cut(line, "=")
		t.Setenv(name, value)
	}
	if code, _, errOut := term.run("ledger", "move"); code != exitUsage || !strings.Contains(errOut, "--yes confirms") {
		t.Errorf("without --yes it ends with %d and says %q", code, errOut)
	}
	if code, out, _ := term.run("ledger", "show"); code != exitFailed || !strings.Contains(out, "bound to the simulator") || !strings.Contains(out, "the settings do not fit") {
		t.Errorf("show ends with %d and prints %q", code, out)
	}
	if out := term.succeeds("ledger", "move", "--yes"); !strings.Contains(out, "1 notifications wait behind stopped senders") {
		t.Errorf("it prints %q", out)
	}
	if out := term.succeeds("ledger", "show"); strings.Contains(out, "AC") || !strings.Contains(out, "1 wait to be sent") {
		t.Errorf("show prints %q", out)
	}
	senders, err := openAt(t, database).Senders(t.Context())
	if err != nil || len(senders) != 1 || senders[0].StopCode == nil || *senders[0].StopCode != store.CodeLedgerMove {
		t.Errorf("senders %+v, error %v", senders, err)
	}
	if code, _, errOut := term.run("ledger", "move", "--yes"); code != exitFailed || !strings.Contains(errOut, "already") {
		t.Errorf("a second time it ends with %d and says %q", code, errOut)
	}
}
