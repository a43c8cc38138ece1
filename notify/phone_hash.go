package notify

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Hash is the keyed hash by which a number is found without being read: HMAC-SHA-256 of its E.164
// form. Whoever lacks the key cannot try out all numbers to learn which one it is.
func (p PhoneNumber) Hash(key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(p.E164))
	return mac.Sum(nil)
}
