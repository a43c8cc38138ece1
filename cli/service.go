package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// service is what the API and the workers have in common: settings that were checked, a database
// whose schema fits, a door to Temporal, a log and the address to listen on.
type service struct {
	settings *settings.Settings
	log      *slog.Logger
	store    *store.Store
	starter  *starter.Starter
	carrier  *carrier.Client
	listener net.Listener
}

// openService fails, before anything was logged, with an error that names what is missing. address
// names a setting and gives its value: where to listen. Temporal may be away.
func openService(ctx context.Context, logs io.Writer, asJSON bool, need settings.Need, address func(*settings.Settings) (string, string)) (*service, error) {
	set, err := settings.Load(need)
	if err != nil {
		return nil, besideDotEnv(err)
	}
	s := &service{settings: set, log: newLogger(logs, asJSON, set)}
	if s.listener, err = listen(address(set)); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		s.close()
		return nil, err
	}
	for _, name := range set.Unknown() {
		s.log.Warn("the environment has a name that is no setting of Todoku: look for it in .env.example", "name", name)
	}
	slog.SetDefault(s.log) // so that what libraries log is scrubbed too
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return s, nil
}

// gcPercent lets the heap grow to five times what lives in it, which is a few megabytes: a garbage
// collector that runs less often saves a tenth of the CPU time under load.
const gcPercent = 400

func (s *service) connect(ctx context.Context) (err error) {
	switch err := migrations.Check(ctx, s.settings.DatabaseURL); {
	case errors.Is(err, migrations.ErrAhead):
		// A rolling update migrates first: what is still old goes on, and may start again.
		s.log.Warn("the database was migrated by a newer todoku: update this one soon")
	case err != nil:
		return err
	}
	if s.store, err = store.Open(ctx, s.settings.DatabaseURL); err != nil {
		return err
	}
	warnings, err := s.store.Durability(ctx)
	if err != nil {
		return err
	}
	logged, err := s.store.LoggedValues(ctx)
	if err != nil {
		return err
	}
	if logged != "" {
		warnings = append(warnings, logged)
	}
	for _, warning := range warnings {
		s.log.Warn(warning)
	}
	if s.carrier, err = newCarrier(s.settings); err != nil {
		return err
	}
	switch err := s.binding().check(ctx); {
	case isRefusal(err):
		return err
	case err != nil:
		s.log.Warn("it is not known yet whether the ledger belongs to the account: nothing is sent before", "error", err)
	}
	s.starter, err = starter.Dial(s.settings.TemporalUIURL, s.log)
	return err
}

func (s *service) binding() binding {
	return binding{settings: s.settings, store: s.store, carrier: s.carrier}
}

func (s *service) close() {
	if s.starter != nil {
		s.starter.Close()
	}
	if s.carrier != nil {
		s.carrier.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	_ = s.listener.Close() // closed already by the server that used it
}

// newLogger logs in lines of text on a terminal and as JSON elsewhere, and lets no secret through.
func newLogger(w io.Writer, asJSON bool, set *settings.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: set.Level()}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if !asJSON && isTerminal(w) {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(notify.NewLogHandler(handler, set.Secrets()...))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
