package simulator

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// trouble is what a callback failed with, in the words of the retry policy: ct (no connection in time), rt (no
// answer in time, or none at all), 4xx or 5xx. Empty: it did not fail.
type trouble string

// terms are Twilio's connection overrides, which stand in the fragment of a callback URL:
// #ct=1000&rt=2000&tt=5000&rc=5&rp=all. What is missing, or makes no sense, has its default.
// https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides
type terms struct {
	connectTimeout time.Duration
	readTimeout    time.Duration
	totalTimeout   time.Duration // of all tries together
	retries        int
	policy         []string
}

const (
	defaultConnectTimeout = 5 * time.Second
	defaultReadTimeout    = 15 * time.Second
	defaultTotalTimeout   = 15 * time.Second
	maxRetries            = 5
)

func parseTerms(fragment string) terms {
	t := terms{
		connectTimeout: defaultConnectTimeout,
		readTimeout:    defaultReadTimeout,
		totalTimeout:   defaultTotalTimeout,
		retries:        1,
		policy:         []string{"ct"},
	}
	overrides, err := url.ParseQuery(fragment)
	if err != nil {
		return t
	}
	override := func(name string, low, high int, set func(int)) {
		if n, err := strconv.Atoi(overrides.Get(name)); err == nil && low <= n && n <= high {
			set(n)
		}
	}
	override("ct", 100, 10_000, func(ms int) { t.connectTimeout = milliseconds(ms) })
	override("rt", 100, 15_000, func(ms int) { t.readTimeout = milliseconds(ms) })
	override("tt", 100, 15_000, func(ms int) { t.totalTimeout = milliseconds(ms) })
	override("rc", 0, maxRetries, func(n int) { t.retries = n })
	if policy := overrides.Get("rp"); policy != "" {
		t.policy = strings.Split(policy, ",")
	}
	return t
}

// retry reports whether a callback that met trouble is to be tried again after so many tries.
func (t terms) retry(met trouble, tries int) bool {
	return tries <= t.retries && (slices.Contains(t.policy, string(met)) || slices.Contains(t.policy, "all"))
}
