package carrier

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Kind says what stands behind the address of the API.
type Kind string

// The kinds of carrier.
const (
	Twilio    Kind = "twilio"
	Simulator Kind = "simulator"
)

// SimulatorHeader is the header by which the simulator names itself in every response.
const SimulatorHeader = "Todoku-Simulator"

// Account is what a client sends through, without its secrets.
type Account struct {
	Kind        Kind
	Region      string // where Twilio keeps the account's data, "us1" by default; empty for the simulator
	Fingerprint []byte // of the account's SID
}

// kindLimit bounds how long the carrier may take to say what it is.
const kindLimit = 5 * time.Second

// Account tells which account the client sends through. Only at an address that is not Twilio's own
// does it ask, without credentials; an error says that no usable response came.
func (c *Client) Account(ctx context.Context) (Account, error) {
	kind, err := c.kind(ctx)
	if err != nil {
		return Account{}, err
	}
	mac := hmac.New(sha256.New, []byte("todoku ledger account"))
	mac.Write([]byte(c.accountSID))
	account := Account{Kind: kind, Fingerprint: mac.Sum(nil)}
	if kind == Twilio {
		account.Region = c.dataRegion()
	}
	return account, nil
}

func (c *Client) kind(ctx context.Context) (Kind, error) {
	if c.base == nil || twilioHost(c.base.Hostname()) {
		return Twilio, nil
	}
	if known := c.knownKind.Load(); known != nil {
		return *known, nil
	}
	kind, err := c.askKind(ctx)
	if err == nil {
		c.knownKind.Store(&kind)
	}
	return kind, err
}

func (c *Client) askKind(ctx context.Context) (Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, kindLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("/_simulator/behaviour").String(), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask the carrier what it is: %s", describe(err))
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("ask the carrier what it is: %s", describe(err))
	}
	defer response.Body.Close()
	switch {
	case response.Header.Get(SimulatorHeader) != "":
		return Simulator, nil
	case response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests:
		return "", fmt.Errorf("ask the carrier what it is: it answers %d", response.StatusCode)
	}
	return Twilio, nil // behind a proxy
}

// twilioHost reports whether the host is one of Twilio's own.
func twilioHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "twilio.com" || strings.HasSuffix(host, ".twilio.com")
}

// dataRegion is the region that the address names (api.EDGE.REGION.twilio.com, api.REGION.twilio.com),
// else that of TWILIO_REGION, else Twilio's default.
func (c *Client) dataRegion() string {
	if c.base != nil && twilioHost(c.base.Hostname()) {
		return regionOf(c.base)
	}
	return cmp.Or(strings.ToLower(c.region), defaultRegion)
}

const defaultRegion = "us1"

func regionOf(base *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(base.Hostname()), ".")
	labels := strings.Split(strings.TrimSuffix(host, ".twilio.com"), ".")
	if len(labels) < 2 {
		return defaultRegion
	}
	return labels[len(labels)-1]
}
