package store

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/devstack/devstacktest"
)

func TestIdsGoToPostgresAndBackUnchanged(t *testing.T) {
	s, err := Open(t.Context(), devstacktest.Ledger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	type ids struct {
		One  uuid.UUID
		Some *uuid.UUID
		None *uuid.UUID
		Many []*uuid.UUID
		Text string
	}
	one, other := uuid.New(), uuid.New()
	got, err := oneRow[ids](t, s, `SELECT $1::uuid, $2::uuid, $3::uuid, $4::uuid[], $1::uuid::text`, one, &other, (*uuid.UUID)(nil), []*uuid.UUID{&one, nil, &other})
	if err != nil {
		t.Fatal(err)
	}
	if got.One != one || got.Some == nil || *got.Some != other || got.None != nil || !reflect.DeepEqual(got.Many, []*uuid.UUID{&one, nil, &other}) || got.Text != one.String() {
		t.Errorf("%+v, want %s and %s", got, one, other)
	}
	if got, err := oneRow[struct{ ID uuid.UUID }](t, s, `SELECT $1::uuid`, (*uuid.UUID)(nil)); err == nil {
		t.Errorf("no id was read as %v", got)
	}
}

func oneRow[T any](t *testing.T, s *Store, sql string, args ...any) (T, error) {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[T])
}
