// Package auth knows what API keys look like, and slows down clients that guess them.
package auth

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// A key is a prefix, by which scanners for leaked secrets recognize it, 256 random bits and a checksum. Keys made
// before there were checksums end with the random bits.
const (
	prefix         = "tdk_"
	unsummedLength = len(prefix) + 43
	length         = unsummedLength + 6
)

// NewKey makes a key.
func NewKey() string {
	var random [32]byte
	rand.Read(random[:]) // never fails
	key := prefix + base64.RawURLEncoding.EncodeToString(random[:])
	return key + checksum(key)
}

// Mistyped reports whether a key begins as those of NewKey do and cannot be one of them, so that it need not be
// looked for.
func Mistyped(key string) bool {
	if !strings.HasPrefix(key, prefix) || len(key) == unsummedLength {
		return false
	}
	return len(key) != length || checksum(key[:unsummedLength]) != key[unsummedLength:]
}

func checksum(text string) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}
