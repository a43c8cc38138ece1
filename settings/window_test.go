package settings

import (
	"strings"
	"testing"
)

func TestAShortAmbiguityWindowIsForTheSimulator(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		window, url string
		refused     bool
	}{
		{"29s", "", true},
		{"1s", "", true},
		{"1s", "https://api.twilio.com", true},
		{"29.999s", "https://api.dublin.ie1.twilio.com", true},
		{"30s", "", false},
		{"1s", "http://127.0.0.1:9911", false}, // the start asks what it is
	} {
		_, err := LoadFrom(map[string]string{
			"TWILIO_ACCOUNT_SID": "AC" + strings.Repeat("0", 32), "TWILIO_AUTH_TOKEN": "token", "TWILIO_PHONE_NUMBER": "+15005550006",
			"TWILIO_API_URL": test.url, "AMBIGUITY_WINDOW": test.window,
		}, Carrier)
		if (err != nil) != test.refused {
			t.Errorf("%s at %q: error %v, want one: %t", test.window, test.url, err, test.refused)
		}
	}
}
