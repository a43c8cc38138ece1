package store_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/notify"
)

// migrateAndWatch makes a ledger that refuses every statement of ours which moves a row otherwise than
// the table of moves says. The carrier's words are known by what they bring: a rank, a duration, who answered.
func migrateAndWatch(url string) error {
	if _, err := migrations.Up(context.Background(), url); err != nil {
		return err
	}
	db, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	defer db.Close(context.Background())
	moves := make([]string, len(notify.Moves))
	for i, move := range notify.Moves {
		moves[i] = fmt.Sprintf("('%s', '%s')", move.From, move.To)
	}
	_, err = db.Exec(context.Background(), `
		CREATE FUNCTION refuse_other_moves() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			RAISE EXCEPTION 'a row is moved from % to %: our own moves have no such one', OLD.status, NEW.status;
		END
		$$;
		CREATE TRIGGER moves BEFORE UPDATE ON notifications FOR EACH ROW
		WHEN (OLD.status <> NEW.status
			AND (OLD.carrier_rank, OLD.duration_seconds, OLD.answered_by) IS NOT DISTINCT FROM (NEW.carrier_rank, NEW.duration_seconds, NEW.answered_by)
			AND (OLD.status, NEW.status) NOT IN (`+strings.Join(moves, ", ")+`))
		EXECUTE FUNCTION refuse_other_moves()`)
	return err
}
