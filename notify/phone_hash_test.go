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

func TestTheLastDigitsHaveAHashOfTheirOwn(t *testing.T) {
	number := PhoneNumber{E164: "+819012345678"}
	other := PhoneNumber{E164: "+12025555678"}
	key := []byte("k")
	if !bytes.Equal(number.TailHash(key), other.TailHash(key)) || !bytes.Equal(number.TailHash(key), TailHash("5678", key)) {
		t.Error("the same last digits have different hashes")
	}
	if bytes.Equal(number.TailHash(key), number.TailHash([]byte("l"))) || bytes.Equal(TailHash("5678", key), TailHash("5679", key)) {
		t.Error("different digits or keys have the same hash")
	}
	for typed, want := range map[string]string{"5678": "5678", "５６７８": "5678", " 56-78 ": "5678", "567": "", "+567": "", "56789": "", "090-1234-5678": "", "abcd": "", "": ""} {
		if digits, ok := LastDigits(typed); ok != (want != "") || ok && digits != want {
			t.Errorf("%q = %q, %v, want %q", typed, digits, ok, want)
		}
	}
}
