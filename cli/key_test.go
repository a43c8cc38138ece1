package cli

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/store"
)

// withLedger points DATABASE_URL at a migrated database and opens it.
func withLedger(t *testing.T) *store.Store {
	t.Helper()
	url := devstacktest.Ledger(t)
	t.Setenv("DATABASE_URL", url)
	ledger, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ledger.Close)
	return ledger
}

func TestKeyIsPrintedOnceAndStoredAsItsHash(t *testing.T) {
	term := newTerminal(t)
	ledger := withLedger(t)
	code, out, errOut := term.run("key", "add", "--name", "shop", "--scope", "read,send", "--scope", "read")
	if code != exitDone || !regexp.MustCompile(`^tdk_[A-Za-z0-9_-]{49}\n$`).MatchString(out) {
		t.Fatalf("it ends with %d and prints %q and %q", code, out, errOut)
	}
	if !strings.Contains(errOut, "key 1 for shop may: send, read") {
		t.Errorf("it says %q", errOut)
	}
	key := strings.TrimSpace(out)
	hash := sha256.Sum256([]byte(key))
	stored, err := ledger.KeyByHash(t.Context(), hash[:])
	if err != nil || stored.Name != "shop" || stored.Start != key[:8] || !slices.Equal(stored.Scopes, []string{"send", "read"}) {
		t.Errorf("stored is %+v, %v", stored, err)
	}
	listed := term.succeeds("key", "list") + term.succeeds("key", "list", "--json")
	if !strings.Contains(listed, key[:8]) || strings.Contains(listed, key) {
		t.Errorf("the list must show the key's start and no more:\n%s", listed)
	}
}

func TestKeyAsJSON(t *testing.T) {
	term := newTerminal(t)
	withLedger(t)
	var added shownKey
	if err := json.Unmarshal([]byte(term.succeeds("key", "add", "--name", "shop", "--scope", "pii", "--json")), &added); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(added.Key, added.Start) || added.ID != 1 || !slices.Equal(added.Scopes, []string{"pii"}) {
		t.Errorf("added %+v", added)
	}
}

func TestRevokedKeyIsFoundAsRevoked(t *testing.T) {
	term := newTerminal(t)
	ledger := withLedger(t)
	if out := term.succeeds("key", "list"); !strings.Contains(out, "todoku key add") {
		t.Errorf("an empty list says %q", out)
	}
	key := strings.TrimSpace(term.succeeds("key", "add", "--name", "shop", "--scope", "send"))
	if out := term.succeeds("key", "revoke", "1"); !strings.Contains(out, "revoked key 1") || !strings.Contains(out, "for shop") {
		t.Errorf("it prints %q", out)
	}
	hash := sha256.Sum256([]byte(key))
	if found, err := ledger.KeyByHash(t.Context(), hash[:]); err != nil || found.RevokedAt == nil {
		t.Errorf("the key is %+v, error %v: want it revoked", found, err)
	}
	if code, _, errOut := term.run("key", "revoke", "7"); code != exitFailed || !strings.Contains(errOut, "there is no key 7") {
		t.Errorf("revoking what is not there ends with %d and %q", code, errOut)
	}
}

func TestDatabaseOfARunningDevIsUsed(t *testing.T) {
	term := newTerminal(t)
	withLedger(t)
	url := os.Getenv("DATABASE_URL")
	os.Unsetenv("DATABASE_URL")
	if err := os.Mkdir(devFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	term.writeFile(filepath.Join(devFolder, devReady), `{"database_url":"`+url+`"}`)
	code, out, errOut := term.run("key", "list")
	if code != exitDone || !strings.Contains(errOut, "todoku dev") || !strings.Contains(out, "no keys") {
		t.Errorf("it ends with %d and prints %q and %q", code, out, errOut)
	}
}

func TestMigrateUpDownAndStatus(t *testing.T) {
	term := newTerminal(t)
	t.Setenv("DATABASE_URL", devstacktest.Postgres(t))
	if out := term.succeeds("migrate", "status"); !strings.Contains(out, "not yet: run `todoku migrate up`") {
		t.Errorf("before: %s", out)
	}
	if code, _, errOut := term.run("key", "list"); code != exitFailed || !strings.Contains(errOut, "run `todoku migrate up`") {
		t.Errorf("key list before ends with %d and %q", code, errOut)
	}
	if out := term.succeeds("migrate", "up"); !strings.Contains(out, "applied 00001_") {
		t.Errorf("up: %s", out)
	}
	if out := term.succeeds("migrate", "up"); out != "the schema is up to date already\n" {
		t.Errorf("up again: %s", out)
	}
	var status items[migrations.Migration]
	if err := json.Unmarshal([]byte(term.succeeds("migrate", "status", "--json")), &status); err != nil || len(status.Items) == 0 || status.Items[0].AppliedAt == nil {
		t.Errorf("status after: %+v, %v", status, err)
	}
	for range status.Items {
		if out := term.succeeds("migrate", "down"); !strings.HasPrefix(out, "took back ") {
			t.Errorf("down: %s", out)
		}
	}
	if out := term.succeeds("migrate", "down", "--json"); out != "{\n  \"items\": []\n}\n" {
		t.Errorf("down with nothing left: %s", out)
	}
}
