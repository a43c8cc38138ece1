package notify

import "testing"

func TestACallerWhoWithholdsTheNumberIsShownAsAWord(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"Anonymous": "Anonymous", "anonymous": "anonymous", "RESTRICTED": "RESTRICTED", "Unavailable": "Unavailable", "unknown": "unknown",
		"Private": "Private", "Blocked": "Blocked", "sip:anonymous@anonymous.invalid": "anonymous", "client:Anonymous": "Anonymous", " Anonymous ": "Anonymous",
		"+266696687": "anonymous", "266696687": "anonymous", "+7378742833": "restricted", "+86282452253": "unavailable", "+2562533": "blocked",
		"+8656696": "unknown", "+464": "unknown", "+8566": "unknown", "+7748283": "private",
	} {
		if word, withheld := WithheldCaller(from); !withheld || word != want {
			t.Errorf("WithheldCaller(%q) = %q, %v, want %q", from, word, withheld, want)
		}
		if got := MaskCaller(from); got != want {
			t.Errorf("MaskCaller(%q) = %q, want %q", from, got, want)
		}
		if number, err := ParseCaller(from); err == nil {
			t.Errorf("ParseCaller(%q) = %+v", from, number)
		}
	}
}

func TestNumbersAndAddressesOfCallersAreMasked(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"+819012345678": "*********5678", "client:taro": "client:****", "sip:taro.yamada@example.jp": "sip:***********",
		"sip:+819012345678@example.jp": "sip:*********5678", "SIP:09012345678@example.jp;user=phone": "sip:*******5678", "Taro Yamada": "***********", "": "",
	} {
		if got := MaskCaller(from); got != want {
			t.Errorf("MaskCaller(%q) = %q, want %q", from, got, want)
		}
	}
	for _, from := range []string{"sip:+819012345678@example.jp", "client:+819012345678", "", "sips:09012345678@example.jp"} {
		if number, err := ParseCaller(from); err == nil {
			t.Errorf("ParseCaller(%q) = %+v", from, number)
		}
	}
	if number, err := ParseCaller("+819012345678"); err != nil || number.E164 != "+819012345678" {
		t.Errorf("a number is %+v, %v", number, err)
	}
}
