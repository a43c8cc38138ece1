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

// TailDigits is how many digits a number's tail has: as many as a masked number shows.
const TailDigits = 4

// TailHash is the keyed hash by which numbers that end in the same 4 digits are found.
func (p PhoneNumber) TailHash(key []byte) []byte {
	return TailHash(p.E164[max(0, len(p.E164)-TailDigits):], key)
}

// TailHash is the keyed hash of the last 4 digits of a number. It is not the hash of any number.
func TailHash(digits string, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tail:" + digits))
	return mac.Sum(nil)[:16]
}

// LastDigits reads the last 4 digits of a number as people type them, in half-width or full-width
// digits. Whatever else was typed is false: a whole number, or too few digits to search by.
func LastDigits(typed string) (digits string, ok bool) {
	dialled, code := dialledDigits(typed)
	return dialled, code == "" && len(dialled) == TailDigits && dialled[0] != '+'
}
