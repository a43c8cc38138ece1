package carrier

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/todoku/todoku/notify"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, // but for what the simulator's Close says goes on
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*Client).mCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

const (
	testAccount = "AC00000000000000000000000000000000"
	testToken   = "fakeauthtoken"
	testMessage = "SM00000000000000000000000000000001"
	testCall    = "CA00000000000000000000000000000001"
	testService = "MG00000000000000000000000000000001"
	testTo      = "+15555550123"
	testFrom    = "+15005550006"
)

func sms() Create {
	return Create{Channel: notify.SMS, To: testTo, From: testFrom, Body: "a body that stays private"}
}

func call() Create {
	return Create{Channel: notify.Call, To: testTo, From: testFrom, Body: "a body that stays private"}
}

// newClient returns a client of the address, with changes to its options.
func newClient(t *testing.T, address string, changes ...func(*Options)) *Client {
	t.Helper()
	o := Options{AccountSID: testAccount, AuthToken: testToken, APIURL: address, Timeout: 5 * time.Second}
	for _, change := range changes {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve starts a stand-in for Twilio and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc, changes ...func(*Options)) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newClient(t, server.URL, changes...)
}

// answer writes what Twilio writes.
func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func TestNewRefusesWhatTwilioWould(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		says    string
	}{
		"no account SID":         {Options{AuthToken: testToken}, "account SID"},
		"an API key's SID":       {Options{AccountSID: "SK00000000000000000000000000000000", AuthToken: testToken}, "account SID"},
		"account SID with quote": {Options{AccountSID: `AC"00"`, AuthToken: testToken}, "account SID"},
		"no token":               {Options{AccountSID: testAccount}, "auth token"},
		"token with a dash":      {Options{AccountSID: testAccount, AuthToken: "fake-token"}, "auth token"},
		"token with a new line":  {Options{AccountSID: testAccount, AuthToken: testToken + "\n"}, "auth token"},
		"negative time-out":      {Options{AccountSID: testAccount, AuthToken: testToken, Timeout: -1}, "time-out"},
		"negative connections":   {Options{AccountSID: testAccount, AuthToken: testToken, MaxConnections: -1}, "connections"},
		"address without scheme": {Options{AccountSID: testAccount, AuthToken: testToken, APIURL: "localhost:4010"}, "API URL"},
		"address without host":   {Options{AccountSID: testAccount, AuthToken: testToken, APIURL: "http:///x"}, "API URL"},
		"address with password":  {Options{AccountSID: testAccount, AuthToken: testToken, APIURL: "https://u:p4ss@example.com"}, "API URL"},
		"address with query":     {Options{AccountSID: testAccount, AuthToken: testToken, APIURL: "https://example.com?a=b"}, "API URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, want an error about the %s", err, tc.says)
			}
			for _, secret := range []string{"fake-token", testToken, "p4ss", "SK000"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q repeats %q", err, secret)
				}
			}
		})
	}
}

func TestRequestsGoToTheConfiguredAddressOnly(t *testing.T) {
	t.Setenv("TWILIO_EDGE", "tokyo")
	t.Setenv("TWILIO_REGION", "jp1")
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		answer(w, http.StatusCreated, `{"sid":"`+testMessage+`","status":"queued"}`)
	}))
	defer server.Close()

	c := newClient(t, server.URL+"/a%20prefix/twilio/", func(o *Options) { o.UserAgent = "todoku/test" })
	if _, err := c.Create(t.Context(), sms()); err != nil {
		t.Fatal(err)
	}
	if want := "/a%20prefix/twilio/2010-04-01/Accounts/" + testAccount + "/Messages.json"; got.URL.EscapedPath() != want {
		t.Errorf("path %s, want %s", got.URL.EscapedPath(), want)
	}
	if want := strings.TrimPrefix(server.URL, "http://"); got.Host != want {
		t.Errorf("host %s, want %s", got.Host, want)
	}
	if user, password, _ := got.BasicAuth(); user != testAccount || password != testToken {
		t.Errorf("credentials %s:%s", user, password)
	}
	if ua := got.UserAgent(); !strings.HasPrefix(ua, "twilio-go/") || !strings.HasSuffix(ua, " todoku/test") {
		t.Errorf("user agent %q", ua)
	}
}

func TestWithoutAnAddressTwilioIsMeant(t *testing.T) {
	t.Setenv("TWILIO_EDGE", "tokyo")
	for edge, host := range map[string]string{"": "api.twilio.com", "tokyo": "api.tokyo.us1.twilio.com"} {
		t.Setenv("TWILIO_EDGE", edge)
		c := newClient(t, "")
		e, service := c.begin(t.Context(), "look")
		address, err := service.RequestHandler().BuildUrl("https://api.twilio.com/2010-04-01/x")
		if err != nil {
			t.Fatal(err)
		}
		req, err := e.request(t.Context(), http.MethodGet, address, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if req.URL.Host != host || req.Host != host || req.URL.Scheme != "https" {
			t.Errorf("with edge %q: %s, want host %s", edge, req.URL, host)
		}
	}
}
