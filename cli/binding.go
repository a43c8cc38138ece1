package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/store"
)

// refusal is the reason why a process may not work on the ledger with its settings.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// binding holds the settings of a process against the account that its ledger belongs to.
type binding struct {
	settings *settings.Settings
	store    *store.Store
	carrier  *carrier.Client
}

// spareConnections are for what is not a create: status checks, lists, cancellations.
const spareConnections = 16

// newCarrier makes the client for the account of the settings.
func newCarrier(s *settings.Settings) (*carrier.Client, error) {
	return carrier.New(carrier.Options{
		AccountSID:   s.TwilioAccountSID,
		AuthToken:    s.TwilioAuthToken,
		APIKeySID:    s.TwilioAPIKeySID,
		APIKeySecret: s.TwilioAPIKeySecret,
		APIURL:       s.TwilioAPIURL,
		UserAgent:    "todoku",

		// Status checks and lists have connections of their own, so that creates do not keep them waiting.
		MaxConnections: s.CarrierConnections + spareConnections,
	})
}

// check binds a ledger that is not bound yet. The error is a *refusal when the process must not work on
// the ledger, and another one when the database or the carrier cannot be asked.
func (b binding) check(ctx context.Context) error {
	bound, err := b.checkPhoneKey(ctx)
	if err != nil {
		return err
	}
	account, err := b.carrier.Account(ctx)
	if err != nil {
		return fmt.Errorf("TWILIO_API_URL: %w", err)
	}
	if account.Kind == carrier.Twilio && b.settings.AmbiguityWindow < settings.ShortestAmbiguityWindow {
		return &refusal{settings.ErrAmbiguityWindow.Error()}
	}
	if bound.BoundAt == nil {
		if bound, err = b.bindAccount(ctx, account); err != nil {
			return err
		}
	}
	return compare(bound, account)
}

// checkPhoneKey holds PHONE_HASH_KEY against the ledger's: by another key no number would be found, nor
// anybody who has opted out.
func (b binding) checkPhoneKey(ctx context.Context) (store.Bound, error) {
	fingerprint := phoneKeyFingerprint(b.settings.PhoneHashKey)
	bound, err := b.store.Bound(ctx)
	if err != nil {
		return bound, err
	}
	if bound.PhoneKey == nil {
		number, hash, err := b.store.NewestRecipient(ctx)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return bound, err
		case !bytes.Equal(hash, notify.PhoneNumber{E164: number}.Hash([]byte(b.settings.PhoneHashKey))):
			return bound, errPhoneKey
		}
		if bound, err = b.store.BindPhoneKey(ctx, fingerprint); err != nil {
			return bound, err
		}
	}
	if !bytes.Equal(bound.PhoneKey, fingerprint) {
		return bound, errPhoneKey
	}
	return bound, nil
}

var errPhoneKey = &refusal{"PHONE_HASH_KEY is not the one that this ledger was made with, so no number in it would be found: set the former key"}

func phoneKeyFingerprint(key string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("todoku ledger phone hash key"))
	return mac.Sum(nil)
}

// bindAccount binds a ledger without sends to the account, and one with sends when the account knows the
// newest of them.
func (b binding) bindAccount(ctx context.Context, account carrier.Account) (store.Bound, error) {
	channel, sid, err := b.store.NewestSend(ctx)
	unused := errors.Is(err, store.ErrNotFound)
	if err != nil && !unused {
		return store.Bound{}, err
	}
	if !unused {
		_, err := b.carrier.Fetch(ctx, channel, sid)
		failure, ok := errors.AsType[*carrier.Error](err)
		switch {
		case ok && failure.NotFound():
			return store.Bound{}, &refusal{accountName(account.Kind) + " does not know the newest send of this ledger: " +
				"set the account that it was used with, or use another database; " +
				"if it is the right account, `todoku ledger bind --yes` says so"}
		case err != nil:
			return store.Bound{}, fmt.Errorf("look for the ledger's newest send in the account: %w", err)
		}
	}
	bound, err := b.store.BindAccount(ctx, bindingOf(account), unused)
	if err == nil && bound.BoundAt == nil {
		err = errors.New("the ledger got its first send in this moment: try again")
	}
	return bound, err
}

func bindingOf(account carrier.Account) store.Binding {
	return store.Binding{Kind: string(account.Kind), Region: account.Region, Account: account.Fingerprint}
}

func accountName(kind carrier.Kind) string {
	if kind == carrier.Simulator {
		return "the simulator"
	}
	return "the Twilio account of TWILIO_ACCOUNT_SID"
}

// compare says in one line how the account differs from the one that the ledger is bound to.
func compare(bound store.Bound, account carrier.Account) error {
	const remedy = ": use another database, or `todoku ledger move` where that is meant"
	switch {
	case bound.Kind == string(carrier.Simulator) && account.Kind == carrier.Twilio:
		return &refusal{"this ledger belongs to the simulator, and the settings name the real Twilio, " +
			"which would send to real people what waits in it" + remedy}
	case bound.Kind != string(account.Kind):
		return &refusal{"this ledger belongs to a Twilio account, and the settings name the simulator, " +
			"which would report sends that nobody gets" + remedy}
	case !bytes.Equal(bound.Account, account.Fingerprint):
		return &refusal{"this ledger belongs to another account or subaccount than TWILIO_ACCOUNT_SID names: " +
			"set the former account, use another database, or `todoku ledger move` where that is meant"}
	case bound.Region != account.Region:
		return &refusal{fmt.Sprintf("this ledger belongs to the Twilio region %s, and TWILIO_REGION or TWILIO_API_URL names %s: "+
			"set the former region, use another database, or `todoku ledger move` where that is meant", bound.Region, account.Region)}
	}
	return nil
}

// bindingInterval is how often a process that runs looks whether the ledger was moved.
const bindingInterval = 10 * time.Second

// watch ends the context that it returns when the ledger was moved to another account, or was replaced by
// another one. The cause is then a *refusal.
func (b binding) watch(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			select {
			case <-watched.Done():
				return
			case <-time.After(bindingInterval):
			}
			if err := panics.Catch(func() error { return b.check(watched) }); isRefusal(err) {
				cancel(err)
				return
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// refused is the cause for which a watched context ended, if it was a refusal, else err.
func refused(watched context.Context, err error) error {
	if cause := context.Cause(watched); isRefusal(cause) {
		return cause
	}
	return err
}
