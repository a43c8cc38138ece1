package carrier

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
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
	// PreviousUsed is called when a callback was signed with a previous token. It may be nil.
	PreviousUsed func()

	origins  []string     // the public URL's scheme, host and path, with and without a port
	signers  sync.Pool    // of *signer, for the account's token
	previous []*sync.Pool // of *signer, for the tokens before it
}

// NewSignatureValidator checks callbacks that are addressed to publicURL, the https base of the
// API as Twilio sees it, with the account's primary auth token. While the token is rotated, some callbacks are signed
// with the previous one.
func NewSignatureValidator(authToken, publicURL string, previous ...string) (*SignatureValidator, error) {
	if authToken == "" {
		return nil, errors.New("check signatures: the auth token is empty")
	}
	base, err := parseBaseURL(publicURL)
	if err != nil {
		return nil, fmt.Errorf("check signatures: the public URL %w", err)
	}
	v := &SignatureValidator{
		origins: origins(base),
		signers: sync.Pool{New: func() any { return newSigner(authToken) }},
	}
	for _, token := range previous {
		if token != "" {
			v.previous = append(v.previous, &sync.Pool{New: func() any { return newSigner(token) }})
		}
	}
	return v, nil
}

// Receive reads a callback's form from the body and checks that Twilio signed it. It fails with
// ErrUnsigned, ErrForged, ErrCallbackTooLong or ErrCallbackUnparsed, or with the error of reading.
func (v *SignatureValidator) Receive(r *http.Request) (Form, error) {
	if r.Header.Get(SignatureHeader) == "" {
		return nil, ErrUnsigned
	}
	s := v.signers.Get().(*signer)
	defer v.signers.Put(s)
	s.text.Reset()
	n, err := s.text.ReadFrom(io.LimitReader(r.Body, maxCallbackBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the callback: %w", err)
	case n > maxCallbackBytes:
		return nil, ErrCallbackTooLong
	}
	form, err := ParseForm(s.text.String())
	if err != nil {
		return nil, ErrCallbackUnparsed
	}
	if v.signed(s, r, form) {
		return form, nil
	}
	for _, signers := range v.previous {
		before := signers.Get().(*signer)
		signed := v.signed(before, r, form)
		signers.Put(before)
		if signed {
			if v.PreviousUsed != nil {
				v.PreviousUsed()
			}
			return form, nil
		}
	}
	return nil, ErrForged
}

// signed reports whether the request's signature is that of its path, its query and the form of its body.
//
// Twilio's servers are not of one mind about some details, so each is tried in its known forms:
// the port is signed or not, an apostrophe in the query is escaped or not, and of a repeated
// parameter each distinct value is signed in order of the alphabet (as Twilio's library for Node
// has it), or each as it came; and the alphabet is that of UTF-8 or of UTF-16, as strings are in the
// language of the library.
//
// Twilio's webhook rules (a public beta) may sign by HMAC-SHA256 with a key of their own, named in
// X-Twilio-Webhooks-Signature-Settings. That is not accepted: it needs a second secret that nobody has to
// set up, and without a rule of the account Twilio signs as above.
func (v *SignatureValidator) signed(s *signer, r *http.Request, form Form) bool {
	got, path := []byte(r.Header.Get(SignatureHeader)), r.URL.EscapedPath()
	forms := []Form{form}
	if form.repeats() {
		forms = append(forms, form.distinct())
	}
	if form.astral() {
		forms = append(forms, form.byUTF16(), form.distinctByUTF16())
	}
	for _, origin := range v.origins {
		for _, query := range queries(r.URL.RawQuery) {
			for _, form := range forms {
				if hmac.Equal(got, s.sign(form, origin, path, query)) {
					return true
				}
			}
		}
	}
	return false
}

// Sign returns the signature that Twilio sends with a POST of the form to the URL, whose fragment
// does not count.
func Sign(authToken, fullURL string, form url.Values) string {
	address, _, _ := strings.Cut(fullURL, "#")
	parameters, err := ParseForm(form.Encode())
	if err != nil {
		panic(fmt.Errorf("sign a form: %w", err)) // it has too many parameters to be one of Twilio's
	}
	return string(newSigner(authToken).sign(parameters.distinct(), address))
}

// signer signs with one token. What it needs for that it keeps for the next text, because most of
// the work would be to make it.
type signer struct {
	mac       hash.Hash
	text      bytes.Buffer
	sum       [sha1.Size]byte
	signature []byte
}

func newSigner(authToken string) *signer {
	return &signer{mac: hmac.New(sha1.New, []byte(authToken)), signature: make([]byte, base64.StdEncoding.EncodedLen(sha1.Size))}
}

// sign signs the parts of an address and the parameters of a form in their order. The signature holds
// until the next one.
func (s *signer) sign(form Form, address ...string) []byte {
	s.text.Reset()
	for _, part := range address {
		s.text.WriteString(part)
	}
	for _, p := range form {
		s.text.WriteString(p.name)
		s.text.WriteString(p.value)
	}
	s.mac.Reset()
	s.mac.Write(s.text.Bytes())
	base64.StdEncoding.Encode(s.signature, s.mac.Sum(s.sum[:0]))
	return s.signature
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

// queries are the spellings that the query may have had when Twilio signed it, as it came first.
func queries(raw string) []string {
	if raw == "" {
		return []string{""}
	}
	query := "?" + raw
	if !strings.ContainsAny(query, "'%") {
		return []string{query}
	}
	return []string{query, strings.ReplaceAll(query, "'", "%27"), strings.ReplaceAll(query, "%27", "'")}
}
