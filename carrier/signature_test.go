package carrier

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// The vector of Twilio's documentation and of twilio-go's tests
// (https://github.com/twilio/twilio-go/blob/main/client/request_validator_test.go).
var (
	vectorForm = url.Values{
		"Digits": {"1234"}, "CallSid": {"CA1234567890ABCDE"}, "To": {"+18005551212"}, "Caller": {"+14158675309"},
		"From": {"+14158675309"}, "ReasonConferenceEnded": {"test"}, "Reason": {"Participant"},
	}
	vectorURL       = "https://mycompany.com/myapp.php?foo=1&bar=2"
	vectorToken     = "12345"
	vectorSignature = "vOEb5UThFn24KEfnOFLQY2AE5FY="
)

func TestSignAgreesWithTwiliosVector(t *testing.T) {
	for _, address := range []string{vectorURL, vectorURL + "#rc=5&rp=all"} {
		if got := Sign(vectorToken, address, vectorForm); got != vectorSignature {
			t.Errorf("%s: %s, want %s", address, got, vectorSignature)
		}
	}
}

// sign signs a text as it is.
func sign(authToken, text string) string {
	return string(newSigner(authToken).sign(nil, text))
}

// callback is a request as it arrives behind a proxy: by http, for a host of its own.
func callback(target, body, signature string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Host = "10.0.0.7:8080"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if signature != "" {
		r.Header.Set(SignatureHeader, signature)
	}
	return r
}

func TestASignatureHoldsHoweverTheRequestArrives(t *testing.T) {
	form := "MessageSid=" + testMessage + "&MessageStatus=sent"
	for name, tc := range map[string]struct {
		publicURL string
		target    string // path and query, as they arrive
		body      string
		signed    string // what Twilio signed: the URL, then the parameters
	}{
		"behind a TLS proxy":                     {"https://todoku.example.com", "/hook?id=1", form, "https://todoku.example.com/hook?id=1MessageSid" + testMessage + "MessageStatussent"},
		"signed with the default port":           {"https://todoku.example.com", "/hook", "a=b", "https://todoku.example.com:443/hookab"},
		"signed without the default port":        {"https://todoku.example.com:443", "/hook", "a=b", "https://todoku.example.com/hookab"},
		"signed with another port":               {"https://todoku.example.com:8443", "/hook", "a=b", "https://todoku.example.com:8443/hookab"},
		"signed without the other port":          {"https://todoku.example.com:8443", "/hook", "a=b", "https://todoku.example.com/hookab"},
		"http with its port":                     {"http://127.0.0.1:8080", "/hook", "a=b", "http://127.0.0.1:8080/hookab"},
		"http with the default port":             {"http://localhost", "/hook", "a=b", "http://localhost:80/hookab"},
		"IPv6":                                   {"http://[::1]:8080", "/hook", "a=b", "http://[::1]:8080/hookab"},
		"IPv6 without the port":                  {"http://[::1]:8080", "/hook", "a=b", "http://[::1]/hookab"},
		"public URL with a slash":                {"https://todoku.example.com/", "/hook", "a=b", "https://todoku.example.com/hookab"},
		"public URL with a path":                 {"https://example.com/todoku/", "/hook", "a=b", "https://example.com/todoku/hookab"},
		"escaped path":                           {"https://example.com", "/a%20b", "a=b", "https://example.com/a%20bab"},
		"empty value":                            {"https://example.com", "/hook", "a=&b=1", "https://example.com/hookab1"},
		"no parameters":                          {"https://example.com", "/hook", "", "https://example.com/hook"},
		"white space and plus":                   {"https://example.com", "/hook", "a=+x%20%2B", "https://example.com/hooka x +"},
		"Japanese":                               {"https://example.com", "/hook", "a=%E5%B1%8A%E3%81%8F", "https://example.com/hooka届く"},
		"capitals sort before small letters":     {"https://example.com", "/hook", "a=1&B=2", "https://example.com/hookB2a1"},
		"repeated, each distinct value in order": {"https://example.com", "/hook", "a=2&a=1&a=2", "https://example.com/hooka1a2"},
		"repeated, each value as it came":        {"https://example.com", "/hook", "a=2&a=1&a=2", "https://example.com/hooka2a1a2"},
		"apostrophe as it came":                  {"https://example.com", "/hook?n='x'", "a=b", "https://example.com/hook?n='x'ab"},
		"apostrophe escaped by Twilio":           {"https://example.com", "/hook?n='x'", "a=b", "https://example.com/hook?n=%27x%27ab"},
		"apostrophe escaped on the way":          {"https://example.com", "/hook?n=%27x%27", "a=b", "https://example.com/hook?n='x'ab"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := NewSignatureValidator(testToken, tc.publicURL)
			if err != nil {
				t.Fatal(err)
			}
			signature := sign(testToken, tc.signed)
			got, err := v.Receive(callback(tc.target, tc.body, signature))
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := ParseForm(tc.body); !slices.Equal(got, want) {
				t.Errorf("form %v, want %v", got, want)
			}
		})
	}
}

// Twilio's libraries sort by the strings of their language: by UTF-8 or by UTF-16. The two differ where a
// character beyond U+FFFF stands beside one from U+E000 on.
func TestNamesAndValuesAreSignedInTheOrderOfUTF8OrUTF16(t *testing.T) {
	const address = "https://todoku.example.com/hook"
	for name, tc := range map[string]struct{ body, signed string }{
		"names by UTF-8":            {url.Values{"ｱ": {"1"}, "😀": {"2"}}.Encode(), "ｱ1😀2"},
		"names by UTF-16":           {url.Values{"ｱ": {"1"}, "😀": {"2"}}.Encode(), "😀2ｱ1"},
		"values by UTF-8":           {url.Values{"a": {"😀", "ｱ"}}.Encode(), "aｱa😀"},
		"values by UTF-16":          {url.Values{"a": {"ｱ", "😀"}}.Encode(), "a😀aｱ"},
		"repeated values by UTF-16": {url.Values{"a": {"ｱ", "😀", "ｱ"}}.Encode(), "a😀aｱ"},
		"values as they came":       {url.Values{"a": {"ｱ", "😀", "ｱ"}}.Encode(), "aｱa😀aｱ"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := NewSignatureValidator(vectorToken, "https://todoku.example.com")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Receive(callback("/hook", tc.body, sign(vectorToken, address+tc.signed))); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestForgedCallbacksAreRefused(t *testing.T) {
	v, err := NewSignatureValidator(testToken, "https://todoku.example.com")
	if err != nil {
		t.Fatal(err)
	}
	const target, body = "/hook?id=1", "a=b&c=d"
	good := sign(testToken, "https://todoku.example.com/hook?id=1abcd")
	if _, err := v.Receive(callback(target, body, good)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		request *http.Request
		want    error
	}{
		"no signature":           {callback(target, body, ""), ErrUnsigned},
		"another signature":      {callback(target, body, vectorSignature), ErrForged},
		"cut signature":          {callback(target, body, good[:20]), ErrForged},
		"another token":          {callback(target, body, sign("another", "https://todoku.example.com/hook?id=1abcd")), ErrForged},
		"another id":             {callback("/hook?id=2", body, good), ErrForged},
		"another path":           {callback("/other?id=1", body, good), ErrForged},
		"another scheme":         {callback(target, body, sign(testToken, "http://todoku.example.com/hook?id=1abcd")), ErrForged},
		"another host":           {callback(target, body, sign(testToken, "https://evil.example.com/hook?id=1abcd")), ErrForged},
		"the Host header":        {callback(target, body, sign(testToken, "http://10.0.0.7:8080/hook?id=1abcd")), ErrForged},
		"another value":          {callback(target, "a=b&c=e", good), ErrForged},
		"one parameter more":     {callback(target, body+"&e=f", good), ErrForged},
		"one parameter less":     {callback(target, "a=b", good), ErrForged},
		"over 64 kB":             {callback(target, "a="+strings.Repeat("b", maxCallbackBytes), good), ErrCallbackTooLong},
		"not a form":             {callback(target, "a=%zz", good), ErrCallbackUnparsed},
		"a body that breaks off": {callback(target, body, good), io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == io.ErrUnexpectedEOF {
				tc.request.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
			}
			form, err := v.Receive(tc.request)
			if !errors.Is(err, tc.want) || form != nil {
				t.Errorf("got %v, %v; want %v", form, err, tc.want)
			}
		})
	}
}

func TestAValidatorNeedsATokenAndAPublicURL(t *testing.T) {
	for name, tc := range map[string]struct{ token, publicURL, says string }{
		"no token":       {"", "https://example.com", "auth token"},
		"no URL":         {testToken, "", "public URL"},
		"no host":        {testToken, "https://", "public URL"},
		"no scheme":      {testToken, "example.com", "public URL"},
		"a query":        {testToken, "https://example.com/?a=b", "public URL"},
		"a fragment":     {testToken, "https://example.com/#rc=5", "public URL"},
		"credentials":    {testToken, "https://u:p4ss@example.com", "public URL"},
		"not even a URL": {testToken, "https://%zz", "public URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewSignatureValidator(tc.token, tc.publicURL)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "p4ss") {
				t.Errorf("got %v, want an error about the %s", err, tc.says)
			}
		})
	}
}
