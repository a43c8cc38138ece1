package auth

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestMistypedKeyIsToldByItsChecksum(t *testing.T) {
	t.Parallel()
	key := NewKey()
	if Mistyped(key) || len(key) != length {
		t.Errorf("a key of %d characters is refused", len(key))
	}
	for i := len(prefix); i < len(key); i++ {
		other := byte('A')
		if key[i] == other {
			other = 'B'
		}
		if wrong := key[:i] + string(other) + key[i+1:]; !Mistyped(wrong) {
			t.Errorf("a change of character %d is not seen", i)
		}
	}
	if !Mistyped(key[:len(key)-1]) || !Mistyped(key+"A") || !Mistyped(prefix) {
		t.Error("a key that was cut off or prolonged is not seen")
	}
	if Mistyped(key[:unsummedLength]) {
		t.Error("a key without a checksum, as they were before, is refused")
	}
	if Mistyped("a key of TODOKU_API_KEY") {
		t.Error("a key of another form is refused")
	}
}

func TestSourceThatGuessesHasToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Guesses
		source, other := Source("192.0.2.1"), Source("192.0.2.2")
		for range guessBurst {
			if wait := g.Wait(source); wait != 0 {
				t.Fatalf("it has to wait %v before its burst is used up", wait)
			}
			g.Wrong(source)
		}
		if wait := g.Wait(source); wait != guessPause {
			t.Errorf("it has to wait %v, want %v", wait, guessPause)
		}
		if g.Wait(other) != 0 {
			t.Error("another source has to wait")
		}
		time.Sleep(guessPause)
		if g.Wait(source) != 0 {
			t.Error("after the pause it still has to wait")
		}
	})
}

func TestSourcesAreBounded(t *testing.T) {
	t.Parallel()
	var g Guesses
	for i := range uint32(3 * maxSources) {
		g.Wrong(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32))
	}
	if len(g.sources) > maxSources {
		t.Errorf("%d sources are kept", len(g.sources))
	}
}

func TestIPv6IsCountedByNetwork(t *testing.T) {
	t.Parallel()
	if Source("2001:db8::1") != Source("2001:db8::ffff") || Source("2001:db8::1") == Source("2001:db8:0:1::1") {
		t.Error("a source is not a /64")
	}
	if Source("::ffff:192.0.2.1") != Source("192.0.2.1") {
		t.Error("an IPv4 address in IPv6 form is another source")
	}
}
