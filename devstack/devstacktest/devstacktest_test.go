package devstacktest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"
)

func TestMain(m *testing.M) { Main(m) }

func count(t *testing.T, databaseURL, sql string) (n int) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	one, two := Postgres(t), Postgres(t)
	if one == two {
		t.Fatal("two tests share", one)
	}
	const tables = `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`
	if err := execute(one, `CREATE TABLE mine (n int)`); err != nil {
		t.Fatal(err)
	}
	if a, b := count(t, one, tables), count(t, two, tables); a != 1 || b != 0 {
		t.Errorf("tables: %d and %d", a, b)
	}
}

func TestTemplateIsFilledOnceAndCopied(t *testing.T) {
	filled := 0
	fill := func(databaseURL string) error {
		filled++
		return execute(databaseURL, `CREATE TABLE numbers AS SELECT generate_series(1, 10) AS n`)
	}
	for range 3 {
		t.Run("a test that changes its copy", func(t *testing.T) {
			db := PostgresFromTemplate(t, "numbers", fill)
			if n := count(t, db, `SELECT count(*) FROM numbers`); n != 10 {
				t.Errorf("%d rows in a new copy", n)
			}
			if err := execute(db, `DELETE FROM numbers`); err != nil {
				t.Fatal(err)
			}
		})
	}
	if filled != 1 {
		t.Errorf("filled %d times", filled)
	}
	if left := count(t, serverURL(t), `SELECT count(*) FROM pg_database WHERE datname LIKE 'test\_%'`); left != 0 {
		t.Errorf("%d databases are left of tests that ended", left)
	}
}

func TestTemporalAnswers(t *testing.T) {
	c, err := client.DialContext(t.Context(), client.Options{HostPort: Temporal(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CheckHealth(t.Context(), &client.CheckHealthRequest{}); err != nil {
		t.Error(err)
	}
}
