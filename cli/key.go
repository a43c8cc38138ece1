package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/api/auth"
	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/store"
)

// keyStart is how many characters of a stored key are known.
const keyStart = 8

var scopes = []string{v1.ScopeSend, v1.ScopeRead, v1.ScopeManage, v1.ScopePII}

func newKeyCommand() *cobra.Command {
	group := newGroup("key", "Add, list and revoke API keys", newKeyAdd(), newKeyList(), newKeyRevoke())
	group.GroupID = groupManage
	group.Long = `Add, list and revoke API keys.

These commands work on the database of DATABASE_URL itself and need no key. A key may do what its
scopes say:

  send    send, cancel and reschedule notifications and batches; run a schedule by hand
  read    see everything; phone numbers are masked
  manage  change templates, lists, schedules and TaskRouter; resume senders
  pii     see whole phone numbers, with read`
	group.Example = "  todoku key add --name shop --scope send,read\n  todoku key list\n  todoku key revoke 3"
	return group
}

// shownKey is a key as these commands print it. Key itself is there only when it was just made.
type shownKey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	Key        string     `json:"key,omitempty"`
	Start      string     `json:"start"`
	Scopes     []string   `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
}

func showKey(k store.Key) shownKey {
	return shownKey{ID: k.ID, Name: k.Name, Start: k.Start, Scopes: k.Scopes, CreatedAt: k.CreatedAt, LastUsedAt: k.LastUsedAt, RevokedAt: k.RevokedAt, ExpiresAt: k.ExpiresAt}
}

func newKeyAdd() *cobra.Command {
	var name, expires string
	var wanted []string
	cmd := &cobra.Command{
		Use:   "add --name NAME --scope SCOPE,… [--expires WHEN]",
		Short: "Make a key and print it, this once",
		Long: `Make a key and print it, this once: only its hash is stored.

The key alone goes to standard output, so that it can be put where it belongs without being seen.`,
		Example: `  todoku key add --name shop --scope send,read
  todoku key add --name backoffice --scope read,pii > backoffice.key
  todoku key add --name audit --scope read --expires 90d`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name = strings.TrimSpace(name); name == "" {
				return usageErrorf("--name is empty: say who or what the key is for")
			}
			granted, err := orderScopes(wanted)
			if err != nil {
				return err
			}
			zone, err := timezone()
			if err != nil {
				return err
			}
			until, err := parseExpiry(expires, zone, time.Now())
			if err != nil {
				return err
			}
			ledger, err := openStore(cmd)
			if err != nil {
				return err
			}
			defer ledger.Close()
			key := auth.NewKey()
			hash := sha256.Sum256([]byte(key))
			added, err := ledger.AddKey(cmd.Context(), name, hash[:], key[:keyStart], granted, until)
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				shown := showKey(added)
				shown.Key = key
				return writeJSON(cmd.OutOrStdout(), shown)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "key %d for %s may: %s. It is shown only now:\n", added.ID, clean(added.Name), strings.Join(added.Scopes, ", "))
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "who or what the key is for")
	cmd.Flags().StringVar(&expires, "expires", "", "when it stops working: a duration such as 90d, or its last day (default never)")
	cmd.Flags().StringSliceVar(&wanted, "scope", nil, "what it may do: "+strings.Join(scopes, ", "))
	requireFlags(cmd, "name", "scope")
	return cmd
}

// parseExpiry reads the time after which a key is not valid, as a duration from now or as a date.
func parseExpiry(text string, zone *time.Location, now time.Time) (expires *time.Time, err error) {
	if text == "" {
		return nil, nil
	}
	var at time.Time
	days, inDays := strings.CutSuffix(text, "d")
	n, notNumber := strconv.Atoi(days)
	after, notDuration := time.ParseDuration(text)
	switch {
	case inDays && notNumber == nil && n <= 36_500:
		at = now.AddDate(0, 0, n)
	case notDuration == nil:
		at = now.Add(after)
	default:
		if at, err = time.ParseInLocation(time.DateOnly, text, zone); err == nil {
			at = at.AddDate(0, 0, 1) // its last day counts
		} else if at, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, usageErrorf("--expires cannot be read: write a duration such as 90d or 12h, the last day such as 2027-03-31, or a time such as 2027-03-31T18:00:00+09:00")
		}
	}
	if !at.After(now) {
		return nil, usageErrorf("--expires has passed already: choose a time to come")
	}
	return &at, nil
}

// orderScopes checks the scopes and gives each once, in their usual order.
func orderScopes(wanted []string) (ordered []string, err error) {
	for _, scope := range wanted {
		if !slices.Contains(scopes, scope) {
			return nil, usageErrorf("--scope %q is none of %s", scope, strings.Join(scopes, ", "))
		}
	}
	for _, scope := range scopes {
		if slices.Contains(wanted, scope) {
			ordered = append(ordered, scope)
		}
	}
	if len(ordered) == 0 {
		return nil, usageErrorf("--scope is empty: choose from %s", strings.Join(scopes, ", "))
	}
	return ordered, nil
}

func newKeyList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List all keys, revoked ones too",
		Long:    "List all keys, revoked ones too, by their first characters: the keys themselves are not stored.",
		Example: "  todoku key list\n  todoku key list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			zone, err := timezone()
			if err != nil {
				return err
			}
			ledger, err := openStore(cmd)
			if err != nil {
				return err
			}
			defer ledger.Close()
			keys, err := ledger.Keys(cmd.Context())
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				shown := make([]shownKey, len(keys))
				for i, k := range keys {
					shown[i] = showKey(k)
				}
				return writeJSON(cmd.OutOrStdout(), itemsOf(shown))
			}
			if len(keys) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "there are no keys: make one with `todoku key add`")
				return err
			}
			rows := newTable("ID", "NAME", "KEY", "SCOPES", "CREATED", "LAST USED", "EXPIRES", "REVOKED")
			for _, k := range keys {
				rows.add(strconv.FormatInt(k.ID, 10), k.Name, k.Start+"…", strings.Join(k.Scopes, ","),
					k.CreatedAt.In(zone).Format(timeLayout), timeOr(k.LastUsedAt, zone, "never"), timeOr(k.ExpiresAt, zone, "never"), timeOr(k.RevokedAt, zone, "no"))
			}
			return rows.print(cmd.OutOrStdout())
		},
	}
}

func newKeyRevoke() *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a key's use",
		Long:    "End a key's use. It stops working within 10 seconds. The ids are those of 'todoku key list'.",
		Example: "  todoku key revoke 3",
		Args:    oneArgument("the id of a key, as `todoku key list` shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			ledger, err := openStore(cmd)
			if err != nil {
				return err
			}
			defer ledger.Close()
			revoked, err := ledger.RevokeKey(cmd.Context(), id)
			switch {
			case errors.Is(err, store.ErrNotFound):
				return fmt.Errorf("there is no key %d: see `todoku key list`", id)
			case err != nil:
				return err
			case wantsJSON(cmd):
				return writeJSON(cmd.OutOrStdout(), showKey(revoked))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "revoked key %d (%s…) for %s: it stops working within 10 seconds\n", revoked.ID, revoked.Start, clean(revoked.Name))
			return err
		},
	}
}

// openStore opens the ledger for a command that works on it directly, once its schema fits.
func openStore(cmd *cobra.Command) (*store.Store, error) {
	database, err := databaseURL(cmd)
	if err != nil {
		return nil, err
	}
	if err := migrations.Check(cmd.Context(), database); err != nil {
		return nil, err
	}
	return store.Open(cmd.Context(), database)
}
