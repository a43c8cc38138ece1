package settings

import (
	"strings"
	"testing"
)

func TestCallbackURLMustBePublic(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"localhost", "localhost.", "LOCALHOST.", "a.localhost.", "todoku", "todoku.", "todoku.local", "todoku.local.", "todoku.internal.", "nas.home.arpa",
		"127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1.", "10.0.0.1.", "1.2.3.0x4",
		"0.0.0.0", "10.1.2.3", "100.64.0.1", "100.127.255.255", "127.0.0.53", "169.254.169.254", "172.31.0.1", "192.0.0.8", "192.0.2.1",
		"192.168.0.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"[::]", "[::1]", "[::ffff:10.0.0.1]", "[::ffff:100.64.0.1]", "[64:ff9b::a00:1]", "[64:ff9b:1::1]", "[100::1]", "[2001::1]", "[2001:db8::1]",
		"[2002:a00:1::]", "[3fff::1]", "[5f00::1]", "[fc00::1]", "[fd12::1]", "[fe80::1]", "[fe80::1%25eth0]", "[ff02::1]",
		"a..example.com", "１２７.0.0.1", "localhost。", "-a.example.com",
	} {
		if err := loadPublic("https://" + host); err == nil || !strings.HasPrefix(err.Error(), "TODOKU_PUBLIC_URL ") {
			t.Errorf("https://%s: %v", host, err)
		}
	}
	for _, host := range []string{"todoku.example.com", "todoku.example.com.", "xn--eckwd4c7c.jp", "8.8.8.8", "100.63.255.255", "[2606:4700:4700::1111]", "0x7f.example.com"} {
		if err := loadPublic("https://" + host); err != nil {
			t.Errorf("https://%s: %v", host, err)
		}
	}
}

func loadPublic(address string) error {
	_, err := LoadFrom(map[string]string{
		"TODOKU_PUBLIC_URL": address, "TWILIO_ACCOUNT_SID": "AC00000000000000000000000000000000", "TWILIO_AUTH_TOKEN": "notarealtoken",
		"TWILIO_PHONE_NUMBER": "+15005550006",
	}, Carrier)
	return err
}

func TestTwilioIsSpokenToOverHTTPOnPrivateNetworksOnly(t *testing.T) {
	t.Parallel()
	for address, fine := range map[string]bool{
		"http://127.0.0.1:4010": true, "http://localhost:4010/prefix": true, "http://[::1]:4010": true, "http://simulator:4010": true,
		"https://api.example.com": true, "http://api.twilio.com": false, "HTTP://api.twilio.com": false, "http://10.0.0.1": false, "http://2130706433": false,
		"http://[2606:4700:4700::1111]": false, "http://localhost.example.com": false, "http://127.0.0.1.example.com": false,
	} {
		_, err := LoadFrom(map[string]string{"TWILIO_API_URL": address}, 0)
		if fine != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), "TWILIO_API_URL ") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAPIKeyThatCanBeGuessedIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", "changeme", strings.Repeat("a", 40), "0123456789abcdef0123456789abcde", "0123456789abcdef 0123456789abcdef"} {
		if _, err := LoadFrom(map[string]string{"TODOKU_API_KEY": key}, 0); err == nil || !strings.HasPrefix(err.Error(), "TODOKU_API_KEY ") || strings.Contains(err.Error(), key+" ") && len(key) > 1 {
			t.Errorf("%q: %v", key, err)
		}
	}
	if _, err := LoadFrom(map[string]string{"TODOKU_API_KEY": "0123456789abcdef0123456789abcdef"}, 0); err != nil {
		t.Error(err)
	}
}
