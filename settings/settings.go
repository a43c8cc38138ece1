// Package settings reads what the environment says, once, at the start of a process. A missing or
// malformed setting is one line that names it; a secret's value is never part of that line.
package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/nyaruka/phonenumbers"

	"github.com/todoku/todoku/notify"
)

// Settings is everything a process may be told from outside. The zero value is not usable: Load it.
// Durations are written as Go writes them (100ms, 5m, 1h).
type Settings struct {
	Addr          string `env:"TODOKU_ADDR" envDefault:"127.0.0.1:8080"`
	OpsAddr       string `env:"TODOKU_OPS_ADDR"`
	WorkerAddr    string `env:"TODOKU_WORKER_ADDR" envDefault:"127.0.0.1:8081"`
	PublicURL     string `env:"TODOKU_PUBLIC_URL"`
	APIKey        string `env:"TODOKU_API_KEY" secret:"true"`
	TemporalUIURL string `env:"TODOKU_TEMPORAL_UI_URL"`
	LogLevel      string `env:"TODOKU_LOG_LEVEL" envDefault:"info"`

	// TrustedProxies are the addresses and ranges whose X-Forwarded-For is believed.
	TrustedProxies []string      `env:"TODOKU_TRUSTED_PROXIES"`
	ShutdownDrain  time.Duration `env:"SHUTDOWN_DRAIN" envDefault:"500ms"`

	DatabaseURL string `env:"DATABASE_URL" secret:"true"`

	TwilioAccountSID          string `env:"TWILIO_ACCOUNT_SID" secret:"true"`
	TwilioAuthToken           string `env:"TWILIO_AUTH_TOKEN" secret:"true"`
	TwilioAuthTokenPrevious   string `env:"TWILIO_AUTH_TOKEN_PREVIOUS" secret:"true"`
	TwilioAPIKeySID           string `env:"TWILIO_API_KEY_SID" secret:"true"`
	TwilioAPIKeySecret        string `env:"TWILIO_API_KEY_SECRET" secret:"true"`
	TwilioPhoneNumber         string `env:"TWILIO_PHONE_NUMBER"`
	TwilioMessagingServiceSID string `env:"TWILIO_MESSAGING_SERVICE_SID"`
	TwilioAPIURL              string `env:"TWILIO_API_URL"`

	SMSSendInterval  time.Duration `env:"SMS_SEND_INTERVAL" envDefault:"100ms"`
	CallSendInterval time.Duration `env:"CALL_SEND_INTERVAL" envDefault:"500ms"`
	StatusCheckDelay time.Duration `env:"STATUS_CHECK_DELAY" envDefault:"5m"`
	AmbiguityWindow  time.Duration `env:"AMBIGUITY_WINDOW" envDefault:"60s"`
	SendDeadline     time.Duration `env:"SEND_DEADLINE" envDefault:"1h"`
	BatchShardSize   string        `env:"BATCH_SHARD_SIZE" envDefault:"auto"`

	CarrierConnections int    `env:"CARRIER_CONNECTIONS" envDefault:"100"`
	QueueLimit         string `env:"CARRIER_QUEUE_LIMIT" envDefault:"auto"`

	InboundMaxCalls       int `env:"INBOUND_MAX_CALLS" envDefault:"250"`
	InboundCallsPerSecond int `env:"INBOUND_CALLS_PER_SECOND" envDefault:"100"`

	InboundFollowUpsPerHour int `env:"INBOUND_FOLLOW_UPS_PER_HOUR" envDefault:"500"`

	AllowedCountries []string `env:"ALLOWED_COUNTRIES" envDefault:"JP"`

	// AllowedNumberKinds may be called and sent to though they charge the caller; see notify.CostlyKinds.
	AllowedNumberKinds []notify.PhoneKind `env:"ALLOWED_NUMBER_KINDS"`

	CallRequireHuman bool   `env:"CALL_REQUIRE_HUMAN" envDefault:"false"`
	PhoneHashKey     string `env:"PHONE_HASH_KEY" secret:"true"`
	DefaultRegion    string `env:"DEFAULT_REGION" envDefault:"JP"`
	DefaultTimezone  string `env:"DEFAULT_TIMEZONE" envDefault:"Asia/Tokyo"`

	location *time.Location
	unknown  []string
}

// Error says which setting stops a start, why, and what to write instead.
type Error struct{ Name, Problem string }

func (e *Error) Error() string { return e.Name + " " + e.Problem }

// Need names what a process cannot work without. Settings that a process does not need may be
// missing, but never malformed.
type Need uint

const (
	Database Need = 1 << iota // DATABASE_URL
	Carrier                   // Twilio's credentials and at least one sender
	Phones                    // PHONE_HASH_KEY
)

// Load reads the settings from the process's environment.
func Load(need Need) (*Settings, error) { return LoadFrom(env.ToMap(os.Environ()), need) }

// LoadFrom reads the settings from environ. For each secret NAME, NAME_FILE may name a file that
// holds it instead; the file's last line break is left out.
func LoadFrom(environ map[string]string, need Need) (*Settings, error) {
	resolved, err := withSecretFiles(environ)
	if err != nil {
		return nil, err
	}
	var s Settings
	if err := env.ParseWithOptions(&s, env.Options{Environment: resolved}); err != nil {
		return nil, parseError(err)
	}
	for i, c := range s.AllowedCountries {
		s.AllowedCountries[i] = strings.ToUpper(strings.TrimSpace(c))
	}
	for i, k := range s.AllowedNumberKinds {
		s.AllowedNumberKinds[i] = notify.PhoneKind(strings.ToLower(strings.TrimSpace(string(k))))
	}
	for i, proxy := range s.TrustedProxies {
		s.TrustedProxies[i] = strings.TrimSpace(proxy)
	}
	s.DefaultRegion = strings.ToUpper(strings.TrimSpace(s.DefaultRegion))
	s.PublicURL = strings.TrimRight(s.PublicURL, "/")
	s.TwilioAPIURL = strings.TrimRight(s.TwilioAPIURL, "/")
	s.TemporalUIURL = strings.TrimRight(s.TemporalUIURL, "/")
	for _, check := range []func(*Settings, Need) error{
		checkAddresses, checkAPIKey, checkDatabase, checkCarrier, checkPublicURL, checkPaces, checkRegions, checkPhoneHashKey, checkLogLevel,
	} {
		if err := check(&s, need); err != nil {
			return nil, err
		}
	}
	s.unknown = unknownNames(environ)
	return &s, nil
}

// Unknown lists the names in the environment that begin as ours do and are no setting: somebody has
// misspelled one.
func (s *Settings) Unknown() []string { return s.unknown }

// notSettings are ours too, and read elsewhere.
var notSettings = []string{"TODOKU_URL", "TODOKU_ALLOW_HTTP", "TODOKU_DEVSTACK_GUARD", "TODOKU_RIG_PROFILES"}

func unknownNames(environ map[string]string) []string {
	known := slices.Clone(notSettings)
	for field := range reflect.TypeFor[Settings]().Fields() {
		name := field.Tag.Get("env")
		known = append(known, name)
		if field.Tag.Get("secret") == "true" {
			known = append(known, name+"_FILE")
		}
	}
	var unknown []string
	for name := range environ {
		if strings.HasPrefix(name, "TODOKU_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Secrets returns the values that must never be printed, for the log handler.
func (s *Settings) Secrets() []string {
	var secrets []string
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("secret") == "true" && v.Field(i).String() != "" {
			secrets = append(secrets, v.Field(i).String())
		}
	}
	return secrets
}

// Location is the zone of DEFAULT_TIMEZONE.
func (s *Settings) Location() *time.Location { return s.location }

// Level is the level of TODOKU_LOG_LEVEL.
func (s *Settings) Level() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // checked by Load
	return level
}

const (
	// maxShardSize is where the cost of a workflow, some 35 ms of a processor, is shared by so many
	// notifications that it does not show. A workflow's part is still short enough to be seen moving.
	maxShardSize = 2000

	// burstSize is less: while more singles may come, a shard looks again and again at what it has.
	burstSize = 500

	maxConnections = 1000 // to the carrier, of one process

	// maxQueueLimit keeps the count of what is queued, which every claim of a paced sender makes, cheap.
	maxQueueLimit = 10_000

	// slowPace is where a batch's notifications have a workflow each: Temporal starts so many a second
	// on a small machine.
	slowPace = 50 * time.Millisecond

	// shardTime is how long a shard of a batch is sent for, at its sender's pace.
	shardTime = 10 * time.Second
)

// ShardSize is how many singles that come in a burst one workflow carries at most.
func (s *Settings) ShardSize() int {
	if n, err := strconv.Atoi(s.BatchShardSize); err == nil {
		return n
	}
	return burstSize // auto
}

// BatchShard is how many notifications of a channel's batch one workflow carries.
func (s *Settings) BatchShard(channel notify.Channel) int {
	pace := s.SendInterval(channel)
	switch {
	case s.BatchShardSize != "auto":
		return s.ShardSize()
	case pace >= slowPace:
		return 1
	case pace == 0:
		return maxShardSize
	}
	return min(int(shardTime/pace), maxShardSize)
}

// SendInterval is the least time between two sends of one sender; 0: no pacing.
func (s *Settings) SendInterval(channel notify.Channel) time.Duration {
	if channel == notify.Call {
		return s.CallSendInterval
	}
	return s.SMSSendInterval
}

// autoQueue is how much of a sender's pace may wait in Twilio's queue: what waits there can hardly be stopped.
const autoQueue = time.Minute

// CarrierQueueLimit is how many notifications of one sender of the channel may wait in Twilio's queue; 0: no limit.
func (s *Settings) CarrierQueueLimit(channel notify.Channel) int {
	pace := s.SendInterval(channel)
	if n, err := strconv.Atoi(s.QueueLimit); err == nil || pace == 0 {
		return n
	}
	return max(1, int(autoQueue/pace))
}

// Sender is the number or Messaging Service that a channel is sent from; empty: there is none.
func (s *Settings) Sender(channel notify.Channel) string {
	if channel == notify.SMS && s.TwilioMessagingServiceSID != "" {
		return s.TwilioMessagingServiceSID
	}
	return s.TwilioPhoneNumber
}

// RealTwilio reports whether the address is Twilio's own. At another one may be a proxy to it, or the
// simulator.
func (s *Settings) RealTwilio() bool {
	if s.TwilioAPIURL == "" {
		return true
	}
	u, err := url.Parse(s.TwilioAPIURL)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return host == "twilio.com" || strings.HasSuffix(host, ".twilio.com")
}

// ShortestAmbiguityWindow is how long a lost send must at least be looked for at the real Twilio, whose
// lists may be seconds late. The simulator's are not.
const ShortestAmbiguityWindow = 30 * time.Second

// ErrAmbiguityWindow refuses a shorter one.
var ErrAmbiguityWindow = &Error{"AMBIGUITY_WINDOW", "is too short to prove that Twilio has not accepted a send: choose from 30s to 1h (less is for the simulator)"}

func withSecretFiles(environ map[string]string) (map[string]string, error) {
	resolved := make(map[string]string, len(environ))
	for name, value := range environ {
		if value != "" { // an empty variable is an unset one, as in .env.example
			resolved[name] = value
		}
	}
	t := reflect.TypeFor[Settings]()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("secret") != "true" {
			continue
		}
		name := t.Field(i).Tag.Get("env")
		path := resolved[name+"_FILE"]
		if path == "" {
			continue
		}
		if resolved[name] != "" {
			return nil, &Error{name, "and " + name + "_FILE are both set: keep one of them"}
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, &Error{name + "_FILE", fmt.Sprintf("cannot be read: %v", errors.Unwrap(err))}
		}
		resolved[name] = strings.TrimRight(strings.TrimPrefix(string(content), "\uFEFF"), "\r\n") // Windows writes a byte order mark
	}
	return resolved, nil
}

// parseError turns the library's error into one line that names the variable. Only durations, numbers and
// booleans can fail to parse, so no secret is in it.
func parseError(err error) error {
	var parse env.ParseError
	if errors.As(err, &parse) {
		if f, ok := reflect.TypeFor[Settings]().FieldByName(parse.Name); ok {
			hint := "is not a " + f.Type.String()
			switch f.Type {
			case reflect.TypeFor[time.Duration]():
				hint = "is not a duration: write it as Go does, for example 100ms, 5m or 1h"
			case reflect.TypeFor[bool]():
				hint = "is neither true nor false"
			case reflect.TypeFor[int]():
				hint = "is not a whole number"
			}
			return &Error{f.Tag.Get("env"), hint}
		}
	}
	return fmt.Errorf("read settings: %w", err)
}

func checkAddresses(s *Settings, _ Need) error {
	for _, a := range []struct{ name, value string }{{"TODOKU_ADDR", s.Addr}, {"TODOKU_WORKER_ADDR", s.WorkerAddr}, {"TODOKU_OPS_ADDR", s.OpsAddr}} {
		if a.value == "" {
			continue // TODOKU_OPS_ADDR, where the first listener has it all
		}
		_, port, err := net.SplitHostPort(a.value)
		if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
			return &Error{a.name, "is not host:port, for example 127.0.0.1:8080"}
		}
	}
	if s.TemporalUIURL != "" && !isHTTP(s.TemporalUIURL) {
		return &Error{"TODOKU_TEMPORAL_UI_URL", "is not an http or https address, for example http://127.0.0.1:8233"}
	}
	return nil
}

// minAPIKey is the length of a key that cannot be guessed. Keys made by `todoku key add` are longer.
const minAPIKey = 32

func checkAPIKey(s *Settings, _ Need) error {
	for _, proxy := range s.TrustedProxies {
		_, notAddress := netip.ParseAddr(proxy)
		if _, err := netip.ParsePrefix(proxy); err != nil && notAddress != nil {
			return &Error{"TODOKU_TRUSTED_PROXIES", "has an entry that is neither an IP address nor a range such as 10.0.0.0/8"}
		}
	}
	if s.APIKey == "" {
		return nil
	}
	distinct := make(map[rune]bool)
	for _, r := range s.APIKey {
		if r <= ' ' || r > '~' {
			return &Error{"TODOKU_API_KEY", "has characters that no request header can carry: use the output of `openssl rand -hex 32`"}
		}
		distinct[r] = true
	}
	if len(s.APIKey) < minAPIKey || len(distinct) < 8 {
		return &Error{"TODOKU_API_KEY", "can be guessed: it needs 32 characters or more, such as the output of `openssl rand -hex 32`"}
	}
	return nil
}

func checkDatabase(s *Settings, need Need) error {
	if s.DatabaseURL == "" && need&Database != 0 {
		return &Error{"DATABASE_URL", "is missing: set it to postgres://USER:PASSWORD@HOST:5432/todoku, or run `todoku dev`, which starts a Postgres of its own"}
	}
	if s.DatabaseURL != "" && !strings.HasPrefix(s.DatabaseURL, "postgres://") && !strings.HasPrefix(s.DatabaseURL, "postgresql://") {
		return &Error{"DATABASE_URL", "does not begin with postgres://: write postgres://USER:PASSWORD@HOST:5432/todoku"}
	}
	return nil
}

var (
	accountSID          = regexp.MustCompile(`^AC[0-9a-fA-F]{32}$`)
	apiKeySID           = regexp.MustCompile(`^SK[0-9a-fA-F]{32}$`)
	messagingServiceSID = regexp.MustCompile(`^MG[0-9a-fA-F]{32}$`)
	alphanumeric        = regexp.MustCompile(`^[A-Za-z0-9]+$`)
	e164                = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
)

func checkCarrier(s *Settings, need Need) error {
	if need&Carrier != 0 {
		switch {
		case s.TwilioAccountSID == "":
			return &Error{"TWILIO_ACCOUNT_SID", "is missing: copy it from the Twilio console, or run `todoku dev`, which has a simulator of Twilio"}
		case s.TwilioAuthToken == "":
			return &Error{"TWILIO_AUTH_TOKEN", "is missing: copy it from the Twilio console"}
		case s.TwilioPhoneNumber == "" && s.TwilioMessagingServiceSID == "":
			return &Error{"TWILIO_PHONE_NUMBER", "and TWILIO_MESSAGING_SERVICE_SID are both missing: set at least one sender (calls need a number)"}
		}
	}
	switch {
	case s.TwilioAccountSID != "" && !accountSID.MatchString(s.TwilioAccountSID):
		return &Error{"TWILIO_ACCOUNT_SID", "is not an account SID: AC and 32 hexadecimal digits"}
	case s.TwilioAuthToken != "" && !alphanumeric.MatchString(s.TwilioAuthToken):
		return &Error{"TWILIO_AUTH_TOKEN", "has characters other than letters and digits: copy it once more"}
	case s.TwilioAuthTokenPrevious != "" && !alphanumeric.MatchString(s.TwilioAuthTokenPrevious):
		return &Error{"TWILIO_AUTH_TOKEN_PREVIOUS", "has characters other than letters and digits: copy it once more"}
	case s.TwilioAPIKeySID != "" && !apiKeySID.MatchString(s.TwilioAPIKeySID):
		return &Error{"TWILIO_API_KEY_SID", "is not the SID of an API key: SK and 32 hexadecimal digits"}
	case s.TwilioAPIKeySecret != "" && !alphanumeric.MatchString(s.TwilioAPIKeySecret):
		return &Error{"TWILIO_API_KEY_SECRET", "has characters other than letters and digits: copy it once more"}
	case s.TwilioAPIKeySID != "" && s.TwilioAPIKeySecret == "":
		return &Error{"TWILIO_API_KEY_SECRET", "is missing: TWILIO_API_KEY_SID is set, so set both or neither"}
	case s.TwilioAPIKeySID == "" && s.TwilioAPIKeySecret != "":
		return &Error{"TWILIO_API_KEY_SID", "is missing: TWILIO_API_KEY_SECRET is set, so set both or neither"}
	case s.TwilioPhoneNumber != "" && !e164.MatchString(s.TwilioPhoneNumber):
		return &Error{"TWILIO_PHONE_NUMBER", "is not in E.164 form, for example +15005550006"}
	case s.TwilioMessagingServiceSID != "" && !messagingServiceSID.MatchString(s.TwilioMessagingServiceSID):
		return &Error{"TWILIO_MESSAGING_SERVICE_SID", "is not a Messaging Service SID: MG and 32 hexadecimal digits"}
	case s.TwilioAPIURL != "" && !isHTTP(s.TwilioAPIURL):
		return &Error{"TWILIO_API_URL", "is not an http or https address; leave it empty for Twilio itself"}
	case strings.HasPrefix(strings.ToLower(s.TwilioAPIURL), "http:") && !privateByName(s.TwilioAPIURL):
		return &Error{"TWILIO_API_URL", "sends credentials and messages unencrypted: use https, or http with a loopback address or a one-word service name such as http://simulator:4010"}
	}
	return nil
}

// checkPublicURL refuses an address that Twilio could not call: callbacks would be lost without a word.
func checkPublicURL(s *Settings, need Need) error {
	if s.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(s.PublicURL)
	switch {
	case err != nil || !isHTTP(s.PublicURL):
		return &Error{"TODOKU_PUBLIC_URL", "is not an address: write https://HOST, or leave it empty to ask Twilio instead of being called"}
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return &Error{"TODOKU_PUBLIC_URL", "has a query, a fragment or a user: write only https://HOST and, if there is one, the path"}
	case strings.Contains(u.Hostname(), "_"):
		return &Error{"TODOKU_PUBLIC_URL", "has an underscore in its host name, which Twilio refuses"}
	}
	if need&Carrier == 0 || !s.RealTwilio() {
		return nil
	}
	if u.Scheme != "https" || !publicHost(u.Hostname()) {
		return &Error{"TODOKU_PUBLIC_URL", "is not a public https address, so Twilio could not call it: put a TLS proxy or tunnel in front, or leave it empty to ask Twilio instead of being called"}
	}
	return nil
}

func checkPaces(s *Settings, need Need) error {
	for _, d := range []struct {
		name       string
		value, min time.Duration
		max        time.Duration
	}{
		{"SMS_SEND_INTERVAL", s.SMSSendInterval, 0, time.Hour},
		{"CALL_SEND_INTERVAL", s.CallSendInterval, 0, time.Hour},
		{"STATUS_CHECK_DELAY", s.StatusCheckDelay, time.Second, 24 * time.Hour},
		{"AMBIGUITY_WINDOW", s.AmbiguityWindow, time.Second, time.Hour},
		{"SEND_DEADLINE", s.SendDeadline, time.Second, 7 * 24 * time.Hour},
		{"SHUTDOWN_DRAIN", s.ShutdownDrain, 0, 5 * time.Minute},
	} {
		if d.value < d.min || d.value > d.max {
			return &Error{d.name, fmt.Sprintf("is out of range: choose from %v to %v", d.min, d.max)}
		}
	}
	if need&Carrier != 0 && s.RealTwilio() && s.AmbiguityWindow < ShortestAmbiguityWindow {
		return ErrAmbiguityWindow
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"INBOUND_MAX_CALLS", s.InboundMaxCalls}, {"INBOUND_CALLS_PER_SECOND", s.InboundCallsPerSecond}, {"INBOUND_FOLLOW_UPS_PER_HOUR", s.InboundFollowUpsPerHour}} {
		if n.value < 0 || n.value > 1_000_000 {
			return &Error{n.name, "is out of range: choose from 0 (no limit) to 1,000,000"}
		}
	}
	if s.CarrierConnections < 1 || s.CarrierConnections > maxConnections {
		return &Error{"CARRIER_CONNECTIONS", fmt.Sprintf("is out of range: choose from 1 to %d", maxConnections)}
	}
	if n, err := strconv.Atoi(s.QueueLimit); s.QueueLimit != "auto" && (err != nil || n < 0 || n > maxQueueLimit) {
		return &Error{"CARRIER_QUEUE_LIMIT", fmt.Sprintf("is neither auto nor a number from 0 (no limit) to %d", maxQueueLimit)}
	}
	if s.BatchShardSize == "auto" {
		return nil
	}
	if n, err := strconv.Atoi(s.BatchShardSize); err != nil || n < 1 || n > maxShardSize {
		return &Error{"BATCH_SHARD_SIZE", fmt.Sprintf("is neither auto nor a number from 1 to %d", maxShardSize)}
	}
	return nil
}

func checkRegions(s *Settings, _ Need) (err error) {
	for _, r := range slices.Concat(s.AllowedCountries, []string{s.DefaultRegion}) {
		if !phonenumbers.GetSupportedRegions()[r] {
			name := "ALLOWED_COUNTRIES"
			if r == s.DefaultRegion {
				name = "DEFAULT_REGION"
			}
			return &Error{name, fmt.Sprintf("has %q, which is not an ISO 3166 country code such as JP or US", r)}
		}
	}
	for _, k := range s.AllowedNumberKinds {
		if costly := notify.CostlyKinds(); !slices.Contains(costly, k) {
			return &Error{"ALLOWED_NUMBER_KINDS", fmt.Sprintf("has %q: leave it empty, or choose from %v", k, costly)}
		}
	}
	if s.location, err = notify.LoadZone(s.DefaultTimezone); err != nil {
		return &Error{"DEFAULT_TIMEZONE", fmt.Sprintf("is %q, which is no zone of the IANA database such as Asia/Tokyo", s.DefaultTimezone)}
	}
	return nil
}

func checkPhoneHashKey(s *Settings, need Need) error {
	switch {
	case s.PhoneHashKey == "" && need&Phones != 0:
		return &Error{"PHONE_HASH_KEY", "is missing: set it to the output of `openssl rand -hex 32` and never change it, since numbers are found by it"}
	case s.PhoneHashKey != "" && len(s.PhoneHashKey) < 32:
		return &Error{"PHONE_HASH_KEY", "is shorter than 32 characters: use the output of `openssl rand -hex 32`"}
	}
	return nil
}

func checkLogLevel(s *Settings, _ Need) error {
	var level slog.Level
	if level.UnmarshalText([]byte(s.LogLevel)) != nil {
		return &Error{"TODOKU_LOG_LEVEL", "is none of debug, info, warn, error"}
	}
	return nil
}

func isHTTP(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
