package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// A notification's id is a UUID of version 7, which begins with the time at which it was made: the
// milliseconds since 1970 in 48 bits, then, after the version, what is beyond them in units of 256 ns
// (https://www.rfc-editor.org/rfc/rfc9562#section-5.7; google/uuid fills rand_a so). That time is the
// row's created_at, so the order of ids is the order of acceptance, and no other index is needed to
// read the ledger in it.
const fraction = 256 * time.Nanosecond

// CreatedAt is the moment that an id names, to the microsecond. It stays within the id's millisecond:
// where google/uuid makes more ids than there are fractions, or the clock was set back, it counts on
// to fractions that no millisecond has.
func CreatedAt(id uuid.UUID) time.Time {
	millis := int64(binary.BigEndian.Uint64(id[:8]) >> 16)
	beyond := time.Duration(binary.BigEndian.Uint16(id[6:8])&0x0fff) * fraction
	return time.UnixMilli(millis).Add(min(beyond, time.Millisecond-1)).Truncate(time.Microsecond)
}

// newIDAt makes an id that names a moment of the past.
func newIDAt(at time.Time) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return id, fmt.Errorf("make an id: %w", err)
	}
	first := firstIDAt(at)
	copy(id[:6], first[:6])
	id[6], id[7] = 0x70|first[6], first[7]
	return id, nil
}

// idRange is from the lowest to the highest of some ids.
type idRange struct{ first, last uuid.UUID }

// add extends the range to an id. The zero value has none.
func (r *idRange) add(id uuid.UUID) {
	if r.first == uuid.Nil || bytes.Compare(id[:], r.first[:]) < 0 {
		r.first = id
	}
	if bytes.Compare(id[:], r.last[:]) > 0 {
		r.last = id
	}
}

// idsAt is the range of all ids that name the fraction of a moment.
func idsAt(at time.Time) idRange {
	r := idRange{first: firstIDAt(at), last: firstIDAt(at)}
	for i := 8; i < len(r.last); i++ {
		r.last[i] = 0xff
	}
	return r
}

// firstIDAt is the bound between the ids made before a moment and those made then or later.
func firstIDAt(at time.Time) (id uuid.UUID) {
	millis := max(at.UnixMilli(), 0)
	beyond := (at.Sub(time.UnixMilli(millis)) + fraction - 1) / fraction
	binary.BigEndian.PutUint64(id[:8], uint64(millis)<<16|uint64(max(beyond, 0)))
	if beyond >= 0 {
		id[6] |= 0x70
	}
	return id
}
