package store

import (
	"bytes"
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
		bound := firstIDAt(b)
		if later, order := !a.Before(b), bytes.Compare(id[:], bound[:]) >= 0; later != order {
			t.Fatalf("%v is not before %v: %v; its id is not before the bound: %v", a, b, later, order)
		}
	})
}
