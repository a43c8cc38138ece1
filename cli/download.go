package cli

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// downloadTo leaves a file only when all of it has arrived. remark is what is to be said about a file
// with this first row below the names.
func downloadTo(cmd *cobra.Command, c *client, from, to string, remark func(first []string) string) error {
	partial := to + ".part"
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write --out: %w", err)
	}
	err = c.download(cmd.Context(), from, file)
	if closed := file.Close(); err == nil && closed != nil {
		err = fmt.Errorf("write --out: %w", closed)
	}
	if err == nil {
		if err = os.Rename(partial, to); err == nil {
			if wantsJSON(cmd) {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"file": to})
			}
			text := fmt.Sprintf("written to %s\n", clean(to))
			if first := firstRow(to); first != nil {
				text += remark(first)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		}
		err = fmt.Errorf("write --out: %w", err)
	}
	_ = os.Remove(partial) // what is half there is of no use
	return err
}

// firstRow is the one below the names; nil where there is none.
func firstRow(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	rows := csv.NewReader(file)
	if _, err := rows.Read(); err != nil {
		return nil
	}
	first, err := rows.Read()
	if err != nil {
		return nil
	}
	return first
}

// masked reports whether a number that the API gave is masked.
func masked(number string) bool { return strings.HasPrefix(number, "*") }
