package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestEachErrorOfPostgresIsAnOutageOrNot(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]Trouble{
		"08006": Unreachable, "08P01": Unreachable, "25006": ReadOnly, "40001": Conflict, "40P01": Conflict, "55P03": Conflict,
		"53100": Exhausted, "53200": Exhausted, "53300": Exhausted, "57P01": Stopping, "57P03": Stopping, "57014": TimedOut,
		"58030": Damaged, "42P05": Pooled, "26000": Pooled, "28P01": Unreachable,
		"0A000": "", "22P02": "", "23505": "", "42601": "", "42703": "", "42704": "", "42883": "", "42P01": "", "P0001": "",
	} {
		if got := Find(fmt.Errorf("accept: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("%s is %q, want %q", code, got, want)
		}
	}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, pgconn.ErrReadOnlyConnection} {
		if Find(err) == "" {
			t.Errorf("%v is no outage", err)
		}
	}
	for _, err := range []error{nil, errors.New("a mistake of ours"), context.Canceled} {
		if got := Find(err); got != "" {
			t.Errorf("%v is %q", err, got)
		}
	}
}

func TestAFullDiskIsToldInPostgresOwnWords(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("accept: %w", &pgconn.PgError{
		Code: "53100", Message: "could not extend file: No space left on device", Detail: "a row to +12025550143",
	})
	const want = "the database lacks resources: could not extend file: No space left on device (SQLSTATE 53100)"
	if got := Describe(err); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestAnotherHostNeedsADecisionAboutTLS(t *testing.T) {
	for url, refused := range map[string]bool{
		"postgres://u:p@db.example.com/todoku":                     true,
		"postgres://u:p@10.0.0.5:5432/todoku":                      true,
		"postgres://u:p@[2001:db8::1]/todoku":                      true,
		"postgres://u:p@localhost,db.example.com/todoku":           true,
		"postgres://u:p@localhost.example.com/todoku":              true,
		"postgres://u:p@/todoku?host=db.example.com":               true,
		"postgres://u:p@db.example.com/todoku?sslmode=":            true,
		"host=db.example.com user=u dbname=todoku":                 true,
		"postgres://u:p@db.example.com/todoku?sslmode=verify-full": false,
		"postgres://u:p@db.example.com/todoku?sslmode=disable":     false,
		"host=db.example.com user=u dbname=todoku sslmode=require": false,
		"postgres://u:p@localhost/todoku":                          false,
		"postgres://u:p@127.0.0.1:5433/todoku":                     false,
		"postgres://u:p@[::1]/todoku":                              false,
		"postgres:///todoku?host=/var/run/postgresql":              false,
	} {
		for kind, parse := range map[string]func(string) error{
			"pool":       func(u string) error { _, err := PoolConfig(u); return err },
			"connection": func(u string) error { _, err := ConnConfig(u); return err },
		} {
			err := parse(url)
			if refused != errors.Is(err, ErrNoTLSMode) || !refused && err != nil {
				t.Errorf("%s, %s: %v", url, kind, err)
			}
			if err != nil && (strings.Contains(err.Error(), "u:p") || !strings.Contains(err.Error(), "sslmode")) {
				t.Errorf("%s: it says %q", url, err)
			}
		}
	}
}
