package notify

import "strings"

// withheldWords are what Twilio shows of callers who withhold their number, or whose number it does not know.
var withheldWords = []string{"anonymous", "restricted", "unavailable", "unknown", "private", "blocked", "withheld"}

// withheldDigits are the same words as they are typed on a phone's keys, as some networks pass them on: +266696687
// spells ANONYMOUS. Two of them are shortened forms of "unknown".
// https://help.twilio.com/articles/223179988
var withheldDigits = func() map[string]string {
	digits := map[string]string{"464": "unknown", "8566": "unknown"}
	for _, word := range withheldWords {
		digits[strings.Map(keyOf, word)] = word
	}
	return digits
}()

// keyOf is the key of a phone that has the lower-case letter (ITU-T E.161).
func keyOf(letter rune) rune { return rune("22233344455566677778889999"[letter-'a']) }

// WithheldCaller is the word that a caller shows in the place of a number, such as "anonymous". It reports false for
// numbers and addresses.
func WithheldCaller(from string) (word string, withheld bool) {
	text := strings.TrimSpace(from)
	if word, spelled := withheldDigits[strings.TrimPrefix(text, "+")]; spelled {
		return word, true
	}
	_, user := splitScheme(text)
	for _, word := range withheldWords {
		if strings.EqualFold(user, word) {
			return user, true
		}
	}
	return "", false
}

// splitScheme takes an address such as sip:USER@HOST apart. A number has no scheme.
func splitScheme(address string) (scheme, user string) {
	for _, known := range []string{"sip:", "sips:", "client:"} {
		if len(address) >= len(known) && strings.EqualFold(address[:len(known)], known) {
			scheme, address = known, address[len(known):]
			break
		}
	}
	user, _, _ = strings.Cut(address, "@")
	return scheme, user
}

// ParseCaller reads the number that a caller shows. The error is an [*InvalidNumberError] for whoever withholds it, and
// for sip: and client: addresses.
func ParseCaller(from string) (PhoneNumber, error) {
	scheme, _ := splitScheme(strings.TrimSpace(from))
	if _, withheld := WithheldCaller(from); withheld || scheme != "" {
		return PhoneNumber{}, &InvalidNumberError{Code: CodeNumberUnparsable}
	}
	return ParsePhoneNumber(from, "")
}

// MaskCaller is Mask for what a caller shows: a word that stands in the place of a number is shown, and so is the
// scheme of an address. Its host, which may name a person too, is left out.
func MaskCaller(from string) string {
	if word, withheld := WithheldCaller(from); withheld {
		return word
	}
	scheme, user := splitScheme(strings.TrimSpace(from))
	if scheme == "" {
		return Mask(from)
	}
	return scheme + Mask(user)
}
