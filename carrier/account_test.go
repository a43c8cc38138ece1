package carrier_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/carrier/carriertest"
	"github.com/todoku/todoku/notify"
)

func accountAt(t *testing.T, sid, apiURL string) carrier.Account {
	t.Helper()
	client, err := carrier.New(carrier.Options{AccountSID: sid, AuthToken: "token", APIURL: apiURL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	account, err := client.Account(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return account
}

func TestAnAccountIsToldByItsSIDRegionAndKind(t *testing.T) {
	ours, other := "AC"+strings.Repeat("a", 32), "AC"+strings.Repeat("b", 32)
	proxy := httptest.NewServer(http.NotFoundHandler())
	defer proxy.Close()
	for _, test := range []struct {
		sid, url, region string
		kind             carrier.Kind
	}{
		{ours, "", "us1", carrier.Twilio},
		{ours, "https://api.twilio.com", "us1", carrier.Twilio},
		{ours, "https://api.dublin.ie1.twilio.com/", "ie1", carrier.Twilio},
		{ours, "https://API.AU1.Twilio.com.", "au1", carrier.Twilio},
		{ours, proxy.URL, "us1", carrier.Twilio},
		{other, carriertest.Start(t).URL, "", carrier.Simulator},
	} {
		account := accountAt(t, test.sid, test.url)
		if account.Kind != test.kind || account.Region != test.region {
			t.Errorf("%s: %s in %q, want %s in %q", test.url, account.Kind, account.Region, test.kind, test.region)
		}
		if same := bytes.Equal(account.Fingerprint, accountAt(t, ours, "").Fingerprint); same != (test.sid == ours) {
			t.Errorf("%s: same fingerprint: %t", test.sid, same)
		}
	}
}

func TestWhatCannotSayWhatItIsIsNoKind(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer busy.Close()
	for _, url := range []string{busy.URL, "http://127.0.0.1:1"} {
		client, err := carrier.New(carrier.Options{AccountSID: "AC" + strings.Repeat("a", 32), AuthToken: "token", APIURL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if account, err := client.Account(t.Context()); err == nil {
			t.Errorf("%s: it is %s", url, account.Kind)
		}
	}
}

// What another account shows, or does not show, proves nothing about ours.
func TestAnAnswerOfAnotherAccountIsAnError(t *testing.T) {
	const other = "AC11111111111111111111111111111111"
	message := `{"sid": "SM00000000000000000000000000000001", "status": "sent", "account_sid": "` + other + `"}`
	call := `{"sid": "CA00000000000000000000000000000001", "status": "completed", "account_sid": "` + other + `"}`
	for _, test := range []struct {
		name, answer string
		ask          func(*testing.T, *carrier.Client) error
	}{
		{"list of messages", `{"messages": [` + message + `]}`, listOf(notify.SMS)},
		{"list of calls", `{"calls": [` + call + `]}`, listOf(notify.Call)},
		{"empty list", `{"messages": [], "uri": "/2010-04-01/Accounts/` + other + `/Messages.json?PageSize=1000&Page=0"}`, listOf(notify.SMS)},
		{"message", message, fetchOf(notify.SMS, "SM00000000000000000000000000000001")},
		{"call", call, fetchOf(notify.Call, "CA00000000000000000000000000000001")},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.answer) }))
			defer server.Close()
			client, err := carrier.New(carrier.Options{AccountSID: "AC" + strings.Repeat("0", 32), AuthToken: "token", APIURL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := test.ask(t, client); err == nil || !strings.Contains(err.Error(), "another account") || strings.Contains(err.Error(), other) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func listOf(channel notify.Channel) func(*testing.T, *carrier.Client) error {
	return func(t *testing.T, c *carrier.Client) error {
		for _, err := range c.List(t.Context(), channel, carrier.Filter{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func fetchOf(channel notify.Channel, sid string) func(*testing.T, *carrier.Client) error {
	return func(t *testing.T, c *carrier.Client) error {
		_, err := c.Fetch(t.Context(), channel, sid)
		return err
	}
}
