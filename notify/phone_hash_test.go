package notify

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func TestHashIsHMACOfTheE164Form(t *testing.T) {
	key := []byte("a test key")
	number := PhoneNumber{E164: "+819012345678", National: "090-1234-5678"}
	// printf +819012345678 | openssl dgst -sha256 -hmac 'a test key'
	const want = "dcc573613c88f50d986282860f1cb541051931c8e0b10f21372e0622c013c601"
	if got := hex.EncodeToString(number.Hash(key)); got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
	if bytes.Equal(number.Hash(key), number.Hash([]byte("another key"))) {
		t.Error("two keys give the same hash")
	}
	if !bytes.Equal(number.Hash(key), PhoneNumber{E164: "+819012345678"}.Hash(key)) {
		t.Error("the hash depends on more than the E.164 form")
	}
}
