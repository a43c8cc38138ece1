package store

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestAnIDNamesTheMomentThatItWasMade(t *testing.T) {
	before := time.Now().Truncate(time.Microsecond)
	id := uuid.Must(uuid.NewV7())
	if at := CreatedAt(id); at.Before(before) || at.After(time.Now()) {
		t.Errorf("made between %v and %v, and names %v", before, time.Now(), at)
	}
}

// google/uuid counts on where two ids fall into one unit of time, or the clock was set back, and then
// what follows the milliseconds may be more than one of them has.
func TestALaterIDNeverNamesAnEarlierMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any12 := rapid.Uint64Range(0, 1<<12-1)
		a, b := idOf(1_795_985_905_497, any12.Draw(t, "a")), idOf(1_795_985_905_497+rapid.Uint64Range(0, 1).Draw(t, "milliseconds between"), any12.Draw(t, "b"))
		if bytes.Compare(a[:], b[:]) > 0 {
			a, b = b, a
		}
		first, then := CreatedAt(a), CreatedAt(b)
		if then.Before(first) {
			t.Fatalf("%s names %v and %s, which follows it, %v", a, first, b, then)
		}
		if bound := firstIDAt(first); bytes.Compare(a[:], bound[:]) < 0 {
			t.Fatalf("%s names %v, and is not found from there on", a, first)
		}
		if bound := firstIDAt(first.Add(time.Microsecond)); bytes.Compare(a[:], bound[:]) >= 0 {
			t.Fatalf("%s names %v, and is found after it", a, first)
		}
	})
}

// idOf has the 12 bits behind the version.
func idOf(millis, beyond uint64) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:8], millis<<16|0x7000|beyond)
	id[8] = 0x80
	return id
}

func TestIDsAreInTheOrderOfTheMomentsThatTheyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.Int64Range(0, 4_000_000_000_000_000)
		a, b := time.UnixMicro(moment.Draw(t, "a")), time.UnixMicro(moment.Draw(t, "b"))
		id, err := newIDAt(a)
		if err != nil {
			t.Fatal(err)
		}
		if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is no UUID of version 7", id)
		}
		if off := CreatedAt(id).Sub(a); off < -time.Microsecond || off > time.Microsecond {
			t.Fatalf("an id of %v names %v", a, CreatedAt(id))
		}
		at := idsAt(a)
		grown := at
		if grown.add(id); grown != at {
			t.Fatalf("%s is outside of the ids that name %v, %v", id, a, at)
		}
		bound := firstIDAt(b)
		if later, order := !a.Before(b), bytes.Compare(id[:], bound[:]) >= 0; later != order {
			t.Fatalf("%v is not before %v: %v; its id is not before the bound: %v", a, b, later, order)
		}
	})
}
