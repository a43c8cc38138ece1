package simulator

import (
	"crypto/hmac"
	"crypto/sha1" // what X-Twilio-Signature is defined with
	"encoding/base64"
	"hash"
)

// signer makes signatures under one auth token after the other; it is quick while the token stays the same.
type signer struct {
	token string
	mac   hash.Hash
	text  []byte
}

// sign makes the X-Twilio-Signature of a request to fullURL (no fragment) that posts params: base64 of the
// HMAC-SHA1, under the auth token, of the URL and each key and value, sorted by key; a key that is there
// more than once comes once for each distinct value, those sorted too.
// https://www.twilio.com/docs/usage/security#validating-requests; for repeated keys: twilio-node, webhooks.ts.
func (s *signer) sign(token, fullURL string, p params) string {
	if s.mac == nil || s.token != token {
		s.token, s.mac = token, hmac.New(sha1.New, []byte(token))
	}
	s.text = append(s.text[:0], fullURL...)
	for i, param := range p {
		if i > 0 && param == p[i-1] {
			continue
		}
		s.text = append(s.text, param.name...)
		s.text = append(s.text, param.value...)
	}
	s.mac.Reset()
	_, _ = s.mac.Write(s.text) // a hash never fails
	s.text = s.mac.Sum(s.text[:0])
	return base64.StdEncoding.EncodeToString(s.text)
}
