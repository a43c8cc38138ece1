package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/store"
)

func newLedgerCommand() *cobra.Command {
	group := newGroup("ledger", "See which account the database belongs to, move it, and reconcile it after a fail-over or restore",
		newLedgerShow(), newLedgerBind(), newLedgerMove(), newLedgerReconcile())
	group.GroupID = groupManage
	group.Long = `See which account the database belongs to, move it, and reconcile it after a fail-over or restore.

A database belongs to one account or subaccount of Twilio's, in one region, or to the simulator, and to one
PHONE_HASH_KEY. The first start binds it; processes with other settings do not start. These commands need
the settings of a worker, from the environment or .env, else those of a 'todoku dev' in this folder.`
	group.Example = "  todoku ledger show\n  todoku ledger reconcile --yes"
	return group
}

// ledger is what commands about the ledger work with.
type ledger struct {
	binding
	log *slog.Logger
}

// onLedger opens the ledger and the carrier for a command.
func onLedger(cmd *cobra.Command, do func(context.Context, ledger) error) error {
	environment, err := ledgerEnvironment(cmd)
	if err != nil {
		return err
	}
	set, err := settings.LoadFrom(environment, settings.Database|settings.Carrier|settings.Phones)
	if err != nil {
		return err
	}
	db, err := store.Open(cmd.Context(), set.DatabaseURL)
	if err != nil {
		return err
	}
	defer db.Close()
	twilio, err := newCarrier(set)
	if err != nil {
		return err
	}
	defer twilio.Close()
	return do(cmd.Context(), ledger{binding{set, db, twilio}, slog.New(slog.DiscardHandler)})
}

// ledgerEnvironment is the environment with .env and, where no database is set, what a `todoku dev` in
// this folder gives its processes.
func ledgerEnvironment(cmd *cobra.Command) (map[string]string, error) {
	environment, err := environ()
	if err != nil || environment["DATABASE_URL"] != "" || environment["DATABASE_URL_FILE"] != "" {
		return environment, err
	}
	running, found, err := runningDev()
	if err != nil || !found {
		return environment, err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "the database is that of `todoku dev` in this folder")
	environment["DATABASE_URL"] = running.DatabaseURL
	if environment["PHONE_HASH_KEY"] == "" && environment["PHONE_HASH_KEY_FILE"] == "" {
		environment["PHONE_HASH_KEY_FILE"] = filepath.Join(devFolder, devstack.PhoneHashKeyFile)
	}
	if running.Simulator != "" {
		for name, value := range devstack.SimulatorSettings(running.Simulator) {
			environment[name] = value
			delete(environment, name+"_FILE")
		}
		environment["TWILIO_PHONE_NUMBER"] = cmp.Or(environment["TWILIO_PHONE_NUMBER"], devstack.SimulatorNumber)
	}
	return environment, nil
}

// ledgerShown is what `ledger show` prints.
type ledgerShown struct {
	Kind        string     `json:"kind"`
	Region      string     `json:"region"`
	Account     string     `json:"account_fingerprint"`
	PhoneKey    string     `json:"phone_hash_key_fingerprint"`
	BoundAt     *time.Time `json:"bound_at"`
	BehindSince *time.Time `json:"behind_since"`
	Waiting     int64      `json:"waiting"`
	Sending     int64      `json:"sending"`
	Pending     int64      `json:"pending"`
	Fits        bool       `json:"fits"`
	Problem     string     `json:"problem,omitempty"`
}

func newLedgerShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Show what the database is bound to, and whether the settings fit",
		Long:    "Show what the database is bound to, and whether the settings fit. It binds nothing, and ends with 1 where they do not.",
		Example: "  todoku ledger show --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onLedger(cmd, func(ctx context.Context, l ledger) error {
				bound, err := l.store.Bound(ctx)
				if err != nil {
					return err
				}
				open, err := l.store.Unfinished(ctx)
				if err != nil {
					return err
				}
				shown := ledgerShown{Kind: bound.Kind, Region: bound.Region, Account: short(bound.Account), PhoneKey: short(bound.PhoneKey),
					BoundAt: bound.BoundAt, BehindSince: bound.BehindSince, Waiting: open.Waiting, Sending: open.Sending, Pending: open.Pending}
				if shown.Problem, err = l.problem(ctx, bound); err != nil {
					return err
				}
				shown.Fits = shown.Problem == ""
				if wantsJSON(cmd) {
					err = writeJSON(cmd.OutOrStdout(), shown)
				} else {
					err = printLedger(cmd.OutOrStdout(), shown)
				}
				if err == nil && !shown.Fits {
					err = errToldAlready
				}
				return err
			})
		},
	}
}

// problem says why the settings do not fit, without binding anything.
func (l ledger) problem(ctx context.Context, bound store.Bound) (string, error) {
	if bound.PhoneKey != nil && short(bound.PhoneKey) != short(phoneKeyFingerprint(l.settings.PhoneHashKey)) {
		return errPhoneKey.Error(), nil
	}
	if bound.BoundAt == nil {
		return "", nil
	}
	account, err := l.carrier.Account(ctx)
	if err != nil {
		return "", fmt.Errorf("TWILIO_API_URL: %w", err)
	}
	if err := compare(bound, account); err != nil {
		return err.Error(), nil
	}
	return "", nil
}

// short is as much of a fingerprint as people compare.
func short(fingerprint []byte) string {
	return hex.EncodeToString(fingerprint[:min(len(fingerprint), 8)])
}

func printLedger(out io.Writer, l ledgerShown) error {
	zone, err := timezone()
	if err != nil {
		return err
	}
	switch {
	case l.BoundAt == nil:
		fmt.Fprintln(out, "not bound to an account yet: the first start of a worker or API binds it")
	case l.Kind == string(carrier.Simulator):
		fmt.Fprintf(out, "bound to the simulator (account %s) since %s\n", l.Account, l.BoundAt.In(zone).Format(timeLayout))
	default:
		fmt.Fprintf(out, "bound to the Twilio account %s in region %s since %s\n", l.Account, l.Region, l.BoundAt.In(zone).Format(timeLayout))
	}
	fmt.Fprintf(out, "%d wait to be sent, %d are being sent, %d wait for their outcome\n", l.Waiting, l.Sending, l.Pending)
	if l.BehindSince != nil {
		fmt.Fprintf(out, "it lacks sends since %s: run `todoku ledger reconcile`\n", l.BehindSince.In(zone).Format(timeLayout))
	}
	if l.Problem != "" {
		fmt.Fprintf(out, "the settings do not fit: %s\n", l.Problem)
	}
	return nil
}

func newLedgerBind() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "bind --yes",
		Short: "Bind a database that has sends to the account of the settings",
		Long: `Bind a database that has sends to the account of the settings.

A start does this by itself where the account knows the newest send. It may not know it though it is the
right one: sends are deleted at Twilio after some time, and a simulator forgets them when it ends. With
--yes you say that what waits in the database is to be sent through this account.`,
		Example: "  todoku ledger bind --yes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return usageErrorf("--yes confirms that what waits in the database is to be sent through the account of the settings")
			}
			return onLedger(cmd, func(ctx context.Context, l ledger) error {
				if _, err := l.checkPhoneKey(ctx); err != nil {
					return err
				}
				account, err := l.carrier.Account(ctx)
				if err != nil {
					return fmt.Errorf("TWILIO_API_URL: %w", err)
				}
				bound, err := l.store.BindAccount(ctx, bindingOf(account), false)
				if err != nil {
					return err
				}
				if err := compare(bound, account); err != nil {
					return err
				}
				return printDone(cmd, map[string]any{"bound": true}, "the database belongs to the account now")
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm it")
	return cmd
}

func newLedgerMove() *cobra.Command {
	var yes, cancel bool
	cmd := &cobra.Command{
		Use:   "move --yes [--cancel]",
		Short: "Move the database to the account of the settings",
		Long: `Move the database to the account of the settings.

It stops every sender first, so that nothing more is sent through the former account. Leave the workers
with the former settings running until nothing is being sent or waits for its outcome, then run the command
again. What waits to be sent stays, HELD, or is canceled with --cancel. Then start everything with the new
settings, and resume the senders with 'todoku sender resume'.`,
		Example: "  todoku ledger move --yes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return usageErrorf("--yes confirms that every sender is stopped and the database belongs to the account of the settings then")
			}
			return onLedger(cmd, func(ctx context.Context, l ledger) error { return l.move(ctx, cmd, cancel) })
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm it")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "cancel what waits to be sent")
	return cmd
}

// cancelTogether is how many notifications one statement cancels.
const cancelTogether = 5000

func (l ledger) move(ctx context.Context, cmd *cobra.Command, cancel bool) error {
	if _, err := l.checkPhoneKey(ctx); err != nil {
		return err
	}
	account, err := l.carrier.Account(ctx)
	if err != nil {
		return fmt.Errorf("TWILIO_API_URL: %w", err)
	}
	bound, err := l.store.Bound(ctx)
	switch {
	case err != nil:
		return err
	case bound.BoundAt == nil:
		return errors.New("the database is not bound to an account yet: start a worker, or see `todoku ledger bind`")
	case compare(bound, account) == nil:
		return errors.New("the database belongs to the account of the settings already: nothing was changed")
	case bound.BehindSince != nil:
		return errors.New("the ledger lacks sends of the former account: run `todoku ledger reconcile` with its settings first")
	}
	open, err := l.store.StopForMove(ctx)
	for more := cancel && err == nil && open.Sending+open.Pending == 0; more; {
		var n int64
		n, err = l.store.CancelWaiting(ctx, cancelTogether)
		more = err == nil && n > 0
	}
	if err == nil {
		err = l.store.MoveLedger(ctx, bindingOf(account))
	}
	if errors.Is(err, store.ErrStillOpen) {
		if open, err = l.store.Unfinished(ctx); err != nil {
			return err
		}
		return fmt.Errorf("every sender is stopped, and the database was not moved: %d notifications are being sent and %d wait for their outcome; "+
			"leave the workers with the former settings running, and run this again when `todoku ledger show` counts 0 of both", open.Sending, open.Pending)
	}
	if err != nil {
		return err
	}
	told := fmt.Sprintf("the database belongs to the account of the settings now; %d notifications wait behind stopped senders: "+
		"restart everything with these settings, then `todoku sender resume ID`", open.Waiting)
	if cancel {
		told = "what waited was canceled, and the database belongs to the account of the settings now: " +
			"restart everything with these settings, then `todoku sender resume ID`"
	}
	return printDone(cmd, map[string]any{"moved": true, "canceled": cancel, "waiting": open.Waiting}, told)
}

func newLedgerReconcile() *cobra.Command {
	var yes bool
	var since string
	cmd := &cobra.Command{
		Use:   "reconcile [--yes] [--since TIME]",
		Short: "After a fail-over or restore, learn from Twilio what was sent, and resume the senders",
		Long: `After a fail-over or restore, learn from Twilio what was sent, and resume the senders.

A database that went back, because a standby without the last commits took over or a backup was restored,
has notifications that wait though Twilio has sent them. Workers notice it and stop every sender
(LEDGER_BEHIND). This command lists what Twilio has since then. A send that no notification has is given to
the one that waits for the same recipient, sender and text, and is not sent again; others become
notifications that are marked as found. It then resumes the senders that were stopped for this.

Without --yes it only counts. --since takes the place of the moment that the workers noted.`,
		Example: "  todoku ledger reconcile\n  todoku ledger reconcile --yes\n  todoku ledger reconcile --yes --since 2026-11-30T22:00:00+09:00",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var from time.Time
			if since != "" {
				var err error
				if from, err = time.Parse(time.RFC3339, since); err != nil {
					return usageErrorf("--since is a moment such as 2026-11-30T22:00:00+09:00")
				}
			}
			return onLedger(cmd, func(ctx context.Context, l ledger) error { return l.reconcile(ctx, cmd, from, yes) })
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "write what was found, and resume the senders")
	cmd.Flags().StringVar(&since, "since", "", "the `time` since which the database may lack sends (RFC 3339)")
	return cmd
}

func (l ledger) reconcile(ctx context.Context, cmd *cobra.Command, from time.Time, apply bool) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	bound, err := l.store.Bound(ctx)
	if err != nil {
		return err
	}
	switch {
	case !from.IsZero():
	case bound.BehindSince != nil:
		from = *bound.BehindSince
	default:
		return printDone(cmd, map[string]any{"reconciled": true}, "no worker has noticed that the database lacks sends: give --since to compare it with Twilio all the same")
	}
	act := &activities.Activities{Store: l.store, Carrier: l.carrier, Log: l.log, Terms: terms(l.settings)}
	found, err := act.ReconcileLedger(ctx, from, apply)
	if err != nil {
		return err
	}
	told := fmt.Sprintf("Twilio has %d sends that no notification has: %d are of notifications that wait, %d of none, and of %d it is too early to tell",
		found.Sends, found.Waiting, found.Found, found.Young)
	result := map[string]any{"sends": found.Sends, "waiting": found.Waiting, "found": found.Found, "young": found.Young, "applied": apply, "resumed": 0}
	switch {
	case !apply:
		told += "; nothing was changed: --yes writes this down"
	case found.Young > 0:
		told += "; the senders stay stopped: run this again in some minutes"
	default:
		resumed, err := l.store.CatchUp(ctx)
		if err != nil {
			return err
		}
		result["resumed"] = resumed
		told += fmt.Sprintf("; all is written down, and %d senders go on", resumed)
	}
	if err := printDone(cmd, result, told); err != nil {
		return err
	}
	if apply && found.Young > 0 {
		return errToldAlready
	}
	return nil
}

// printDone prints a result as JSON, or a line.
func printDone(cmd *cobra.Command, result map[string]any, line string) error {
	if wantsJSON(cmd) {
		return writeJSON(cmd.OutOrStdout(), result)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
	return err
}
