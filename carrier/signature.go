package carrier

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// SignatureHeader is where Twilio puts the signature of a request that it makes.
const SignatureHeader = "X-Twilio-Signature"

// maxCallbackBytes bounds the body of a callback; real ones are about 1 kB.
const maxCallbackBytes = 64 << 10

// Why a callback was refused.
var (
	ErrUnsigned         = errors.New("the request has no X-Twilio-Signature")
	ErrForged           = errors.New("the request's X-Twilio-Signature is not that of our account and public URL")
	ErrCallbackTooLong  = errors.New("the request's body is over 64 kB")
	ErrCallbackUnparsed = errors.New("the request's body is not a form")
)

// SignatureValidator tells Twilio's own requests from forged ones.
//
// Twilio signs the URL that it was given. Behind a proxy a request does not show that URL, so it is
// built from the configured public URL and the request's path and query; the Host header, which the
// sender of a request chooses, is never looked at. twilio-go's validator is not used: it refuses
// repeated parameters and an apostrophe that was escaped on the way.
//
// See https://www.twilio.com/docs/usage/webhooks/webhooks-security.
type SignatureValidator struct {
	authToken string
	origins   []string // the public URL's scheme, host and path, with and without a port
}

// NewSignatureValidator checks callbacks that are addressed to publicURL, the https base of the
// API as Twilio sees it, with the account's primary auth token.
func NewSignatureValidator(authToken, publicURL string) (*SignatureValidator, error) {
	if authToken == "" {
		return nil, errors.New("check signatures: the auth token is empty")
	}
	base, err := parseBaseURL(publicURL)
	if err != nil {
		return nil, fmt.Errorf("check signatures: the public URL %w", err)
	}
	return &SignatureValidator{authToken: authToken, origins: origins(base)}, nil
}

// Receive reads a callback's form from the body and checks that Twilio signed it. It fails with
// ErrUnsigned, ErrForged, ErrCallbackTooLong or ErrCallbackUnparsed, or with the error of reading.
func (v *SignatureValidator) Receive(r *http.Request) (url.Values, error) {
	if r.Header.Get(SignatureHeader) == "" {
		return nil, ErrUnsigned
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCallbackBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the callback: %w", err)
	case len(body) > maxCallbackBytes:
		return nil, ErrCallbackTooLong
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ErrCallbackUnparsed
	}
	if !v.Valid(r, form) {
		return nil, ErrForged
	}
	return form, nil
}

// Valid reports whether the request's signature is that of its path, its query and the form, which
// must hold the parameters of the body and no others.
//
// Twilio's servers are not of one mind about some details, so each is tried in its known forms:
// the port is signed or not, an apostrophe in the query is escaped or not, and of a repeated
// parameter each distinct value is signed in order of the alphabet (as Twilio's library for Node
// has it), or each as it came.
func (v *SignatureValidator) Valid(r *http.Request, form url.Values) bool {
	got := []byte(r.Header.Get(SignatureHeader))
	spelled := slices.Compact([]string{distinct(form), verbatim(form)})
	valid := false
	for _, origin := range v.origins {
		for _, query := range queries(r.URL.RawQuery) {
			for _, params := range spelled {
				want := sign(v.authToken, origin+r.URL.EscapedPath()+query+params)
				valid = hmac.Equal(got, []byte(want)) || valid
			}
		}
	}
	return valid
}

// Sign returns the signature that Twilio sends with a POST of the form to the URL, whose fragment
// does not count.
func Sign(authToken, fullURL string, form url.Values) string {
	address, _, _ := strings.Cut(fullURL, "#")
	return sign(authToken, address+distinct(form))
}

func sign(authToken, text string) string {
	mac := hmac.New(sha1.New, []byte(authToken))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// origins are the beginnings that the URL of a callback may have had when Twilio signed it.
func origins(base *url.URL) []string {
	host, port := base.Hostname(), base.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[base.Scheme]
	}
	bare := host
	if strings.Contains(host, ":") {
		bare = "[" + host + "]"
	}
	prefix := base.EscapedPath()
	return []string{
		base.Scheme + "://" + bare + prefix,
		base.Scheme + "://" + net.JoinHostPort(host, port) + prefix,
	}
}

// queries are the spellings that the query may have had when Twilio signed it.
func queries(raw string) []string {
	if raw == "" {
		return []string{""}
	}
	spellings := []string{
		"?" + raw,
		"?" + strings.ReplaceAll(raw, "'", "%27"),
		"?" + strings.ReplaceAll(raw, "%27", "'"),
	}
	slices.Sort(spellings)
	return slices.Compact(spellings)
}

// distinct writes the parameters sorted by key, and of a repeated one each distinct value, sorted.
func distinct(form url.Values) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(form)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(form[key]))) {
			b.WriteString(key + value)
		}
	}
	return b.String()
}

// verbatim writes the parameters sorted by key, and of a repeated one each value as it came.
func verbatim(form url.Values) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(form)) {
		for _, value := range form[key] {
			b.WriteString(key + value)
		}
	}
	return b.String()
}
