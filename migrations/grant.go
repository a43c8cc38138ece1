package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/todoku/todoku/store/postgres"
)

// ErrNoRole means that the role that is to be granted something does not exist.
var ErrNoRole = errors.New("the role does not exist: create it with CREATE ROLE … LOGIN PASSWORD …")

// Grant gives a role what API and workers need, and no more: it reads and writes rows and cannot change the schema. The
// schema is that in which the migrations of databaseURL made their tables. It may be repeated, as it must be after
// migrations that made tables. The error is ErrNoRole when there is no such role.
func Grant(ctx context.Context, databaseURL, role string) error {
	config, err := postgres.ConnConfig(databaseURL)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return postgres.Explain(err, config)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var schema string
	if err := conn.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return fmt.Errorf("grant %s its rights: %w", role, err)
	}
	to, in := pgx.Identifier{role}.Sanitize(), pgx.Identifier{schema}.Sanitize()
	database := pgx.Identifier{config.Database}.Sanitize()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`GRANT CONNECT, TEMPORARY ON DATABASE ` + database + ` TO ` + to,
			`GRANT USAGE ON SCHEMA ` + in + ` TO ` + to,
			`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ` + in + ` TO ` + to,
			`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ` + in + ` TO ` + to,
			`REVOKE INSERT, UPDATE, DELETE ON ` + in + `.goose_db_version FROM ` + to, // which version the schema has
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == "42704" {
		return fmt.Errorf("grant %s its rights: %w", role, ErrNoRole)
	}
	if err != nil {
		return fmt.Errorf("grant %s its rights: %w", role, err)
	}
	return nil
}
