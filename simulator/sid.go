package simulator

import (
	"crypto/md5" // a stable name for a number, not a secret
	"crypto/rand"
	"encoding/hex"
)

// newSID makes a string identifier: two letters that tell what it names, and 32 random hex digits.
func newSID(prefix string) string {
	return prefix + randomHex()
}

func randomHex() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails, see crypto/rand
	return hex.EncodeToString(random[:])
}

// phoneNumberSID is the SID under which an account would own the number: always the same one.
func phoneNumberSID(number string) string {
	sum := md5.Sum([]byte(number))
	return "PN" + hex.EncodeToString(sum[:])
}

// isSID reports whether s has the shape of a SID with that prefix.
func isSID(s, prefix string) bool {
	if len(s) != 34 || s[:2] != prefix {
		return false
	}
	_, err := hex.DecodeString(s[2:])
	return err == nil
}
