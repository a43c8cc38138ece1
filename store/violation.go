package store

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// What Postgres calls rows that must not be (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	foreignKeyViolation = "23503"
	uniqueViolation     = "23505"
)

func hasCode(err error, code string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == code
}

// explain gives callers ErrNotFound and what a violation means, and all else with what was being done.
func explain(doing string, err error, meanings map[string]error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	for violation, meaning := range meanings {
		if hasCode(err, violation) {
			return meaning
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
