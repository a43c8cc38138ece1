package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// LoggedValues names the settings by which the server would write phone numbers and texts into its log: they are
// parameters of statements and values of rows. It is empty where sessions of ours could turn that off, which only a
// superuser may, or where somebody did.
func (s *Store) LoggedValues(ctx context.Context) (warning string, err error) {
	settings, err := many(ctx, s, pgx.RowTo[string], `
		SELECT setting
		FROM (VALUES
			('log_parameter_max_length=0', current_setting('log_parameter_max_length') <> '0' AND (
				current_setting('log_statement') <> 'none' OR current_setting('log_min_duration_statement') <> '-1'
				OR current_setting('log_min_duration_sample') <> '-1' OR current_setting('log_transaction_sample_rate') <> '0')),
			('log_parameter_max_length_on_error=0', current_setting('log_parameter_max_length_on_error') <> '0'),
			('log_error_verbosity=terse', current_setting('log_error_verbosity') <> 'terse'),
			('auto_explain.log_parameter_max_length=0', coalesce(current_setting('auto_explain.log_min_duration', true), '-1') <> '-1'
				AND coalesce(current_setting('auto_explain.log_parameter_max_length', true), '-1') <> '0')
		) AS s (setting, missing)
		WHERE missing`)
	if err != nil {
		return "", fmt.Errorf("ask the database what it logs: %w", err)
	}
	if len(settings) == 0 {
		return "", nil
	}
	return "the database server may write phone numbers and texts into its log: set " +
		strings.Join(settings, ", ") + " there", nil
}
