package simulator

import (
	"net/url"
	"testing"
)

func TestSignature(t *testing.T) {
	// The reference vector of twilio-go, client/request_validator_test.go.
	const (
		token   = "12345"
		address = "https://mycompany.com/myapp.php?foo=1&bar=2"
	)
	params := url.Values{
		"Digits": {"1234"}, "CallSid": {"CA1234567890ABCDE"}, "To": {"+18005551212"}, "Caller": {"+14158675309"},
		"From": {"+14158675309"}, "ReasonConferenceEnded": {"test"}, "Reason": {"Participant"},
	}
	if got, want := new(signer).sign(token, address, sorted(params)), "vOEb5UThFn24KEfnOFLQY2AE5FY="; got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

func TestSignatureOfRepeatedKeys(t *testing.T) {
	once := new(signer).sign("token", "https://example.com/", sorted(url.Values{"A": {"1", "2"}}))
	for name, params := range map[string]url.Values{
		"in another order":   {"A": {"2", "1"}},
		"with a value twice": {"A": {"1", "2", "1"}},
	} {
		if got := new(signer).sign("token", "https://example.com/", sorted(params)); got != once {
			t.Errorf("%s: signed %s, want %s", name, got, once)
		}
	}
	if new(signer).sign("token", "https://example.com/", sorted(url.Values{"A": {"1"}})) == once {
		t.Error("the second value is not signed")
	}
}
