package v1

import (
	"crypto/sha256"
	"testing"
	"testing/synctest"
	"time"

	"github.com/todoku/todoku/settings"
)

func TestAKeyIsForgottenAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(&API{Settings: &settings.Settings{}})
		first, second := sha256.Sum256([]byte("first")), sha256.Sum256([]byte("second"))
		g.remember(first, caller{scopes: []string{ScopeRead}}, time.Now().Add(keyMemory))
		time.Sleep(keyMemory - time.Millisecond)
		if _, ok := g.remembered(first); !ok {
			t.Error("the key is forgotten too early")
		}
		time.Sleep(time.Millisecond)
		if _, ok := g.remembered(first); ok {
			t.Error("the key is remembered for longer than 10 s")
		}
		time.Sleep(time.Millisecond)
		if g.remember(second, caller{}, time.Now().Add(keyMemory)); len(g.found) != 1 {
			t.Errorf("%d keys are kept, want only the second", len(g.found))
		}
	})
}
