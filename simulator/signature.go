package simulator

import (
	"crypto/hmac"
	"crypto/sha1" // what X-Twilio-Signature is defined with
	"encoding/base64"
	"io"
	"maps"
	"net/url"
	"slices"
)

// sign makes the X-Twilio-Signature of a request to fullURL (no fragment) that posts params: base64 of the
// HMAC-SHA1, under the auth token, of the URL and each key and value, sorted by key; a key that is there
// more than once comes once for each distinct value, those sorted too.
// https://www.twilio.com/docs/usage/security#validating-requests; for repeated keys: twilio-node, webhooks.ts.
func sign(token, fullURL string, params url.Values) string {
	mac := hmac.New(sha1.New, []byte(token))
	_, _ = io.WriteString(mac, fullURL) // a hash never fails
	for _, key := range slices.Sorted(maps.Keys(params)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(params[key]))) {
			_, _ = io.WriteString(mac, key)
			_, _ = io.WriteString(mac, value)
		}
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
