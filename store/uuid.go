package store

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuidCodec passes ids to Postgres, and from it, as the 16 bytes that they are on both sides. By itself
// pgx knows a uuid.UUID only as a driver.Valuer and a sql.Scanner, and goes through its text.
type uuidCodec struct{ pgtype.UUIDCodec }

// registerUUID makes a connection use the codec.
func registerUUID(types *pgtype.Map) {
	id := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: uuidCodec{}}
	types.RegisterType(id)
	types.RegisterType(&pgtype.Type{Name: "_uuid", OID: pgtype.UUIDArrayOID, Codec: &pgtype.ArrayCodec{ElementType: id}})
}

// PlanEncode knows uuid.UUID, and a pointer to it, besides what pgx knows.
func (c uuidCodec) PlanEncode(types *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case uuid.UUID, *uuid.UUID:
			return uuidBytes{}
		}
	}
	return c.UUIDCodec.PlanEncode(types, oid, format, value)
}

// PlanScan knows *uuid.UUID besides what pgx knows.
func (c uuidCodec) PlanScan(types *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*uuid.UUID); ok && format == pgtype.BinaryFormatCode {
		return uuidBytes{}
	}
	return c.UUIDCodec.PlanScan(types, oid, format, target)
}

// uuidBytes is how.
type uuidBytes struct{}

// Encode appends an id. Without one it returns nil, which is NULL.
func (uuidBytes) Encode(value any, to []byte) ([]byte, error) {
	switch id := value.(type) {
	case uuid.UUID:
		return append(to, id[:]...), nil
	case *uuid.UUID:
		if id != nil {
			return append(to, id[:]...), nil
		}
	}
	return nil, nil
}

// Scan reads an id. One that may be NULL needs a *uuid.UUID to be read into.
func (uuidBytes) Scan(from []byte, target any) error {
	if len(from) != len(uuid.UUID{}) {
		return fmt.Errorf("read an id: %d bytes are no UUID", len(from))
	}
	copy(target.(*uuid.UUID)[:], from)
	return nil
}
