package notify

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// minSecret is the shortest secret that is looked for by its value. Anything shorter occurs by
// chance in what is not secret.
const minSecret = 4

// A scrubber removes secrets, account SIDs, phone numbers and bodies from text by their looks.
// SIDs of messages and calls, UUIDs, times and ordinary numbers stay as they are.
type scrubber struct{ secrets *strings.Replacer }

func newScrubber(secrets []string) scrubber {
	var wanted []string
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		wanted = append(wanted, s)
		if escaped := url.QueryEscape(s); escaped != s {
			wanted = append(wanted, escaped)
		}
	}
	// A secret may contain another one: the longest is replaced first.
	slices.SortStableFunc(wanted, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range wanted {
		pairs = append(pairs, s, redacted)
	}
	return scrubber{secrets: strings.NewReplacer(pairs...)}
}

const (
	secretWord = `[\w-]*(?:password|passwd|pwd|secret|token|api[_-]?key|authorization|credentials?|cookie)`
	bodyWord   = `(?:message|sms)?[_-]?body|text|twiml|params`
	phoneWord  = `to|from|caller|called|number|recipient|\w*phone\w*`
	jsonString = `\\*"(?:[^"\\]|\\.)*"?` // perhaps quoted once more, perhaps cut off
)

var (
	// Account SIDs and the SIDs of API keys.
	accountSID = regexp.MustCompile(`(AC|SK)[0-9a-fA-F]{32}`)
	// postgres://user:password@host, https://AC…:token@host
	urlPassword = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@"'<>]*):[^\s"'<>]*@`)
	// Authorization: Bearer abc, and the same without its header's name
	authHeader = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|x-api-key|api-key|(?:set-)?cookie)(\s*:\s+)[^\r\n"]+`)
	authScheme = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[a-z0-9+/._~-]{6,}=*`)

	secretInJSON = regexp.MustCompile(`(?i)(\\*"` + secretWord + `\\*"\s*:\s*)(?:` + jsonString + `|[^\s,}\]]+)`)
	secretInText = regexp.MustCompile(`(?i)\b(` + secretWord + `)(=|:)("[^"]*"|'[^']*'|[^\s"'&,;{}\[\]()<>]+)`)
	bodyInJSON   = regexp.MustCompile(`(?i)(\\*"(?:` + bodyWord + `)\\*"\s*:\s*)(?:` + jsonString + `|\{[^}]*\}?|\[[^\]]*\]?)`)
	bodyInStruct = regexp.MustCompile(`(?is)\b((?:` + bodyWord + `):)("(?:[^"\\]|\\.)*"|[^\s"].*)`) // nobody knows where it ends
	bodyInForm   = regexp.MustCompile(`(?i)((?:^|[?&\s"'({])(?:` + bodyWord + `)=)("[^"]*"|[^&"]+)`)
	phoneInForm  = regexp.MustCompile(`(?i)((?:^|[?&\s"'({])(?:` + phoneWord + `)=)([^&\s"'#,;)}]+)`)
)

// text scrubs any text. The tests before the expressions are only there for speed: each names what
// every match of the expression holds.
func (s scrubber) text(t string) string {
	t = s.secrets.Replace(t)
	if len(t) >= len("AC")+32 {
		t = accountSID.ReplaceAllString(t, "${1}"+redacted)
	}
	if strings.ContainsAny(t, ":=") {
		t = scrubNamed(t)
	}
	if strings.ContainsFunc(t, unicode.IsSpace) {
		t = authScheme.ReplaceAllStringFunc(t, redactCredentials)
	}
	return MaskNumbers(t)
}

// scrubNamed scrubs what a name in front of it gives away: "password=…", "body": "…", ?To=….
func scrubNamed(t string) string {
	t = urlPassword.ReplaceAllString(t, "${1}:"+redacted+"@")
	t = authHeader.ReplaceAllString(t, "${1}${2}"+redacted)
	t = secretInJSON.ReplaceAllString(t, `${1}"`+redacted+`"`)
	t = secretInText.ReplaceAllString(t, "${1}${2}"+redacted)
	t = bodyInJSON.ReplaceAllString(t, `${1}"`+redacted+`"`)
	t = bodyInStruct.ReplaceAllString(t, "${1}"+redacted)
	t = bodyInForm.ReplaceAllString(t, "${1}"+redacted)
	return phoneInForm.ReplaceAllStringFunc(t, func(match string) string {
		name, value, _ := strings.Cut(match, "=")
		if plain, err := url.QueryUnescape(value); err == nil && looksAddressed(plain) {
			return name + "=" + maskNumber(plain)
		}
		return match
	})
}

// phone scrubs the value of an attribute that is named as if it held a number. A status, a SID or a
// small count under such a name ("from", "to") stays.
func (s scrubber) phone(t string) string {
	if clean := s.text(t); !looksAddressed(clean) {
		return clean
	}
	return maskNumber(t)
}

// body scrubs the value of an attribute that is named as if it held a body.
func (s scrubber) body(t string) string { return Excerpt(s.text(t)) }

// redactCredentials leaves "basic authentication" and "bearer token" alone.
func redactCredentials(match string) string {
	const longestWord = 16
	words := strings.Fields(match)
	scheme, credentials := words[0], words[1]
	if len(credentials) <= longestWord && !strings.ContainsFunc(credentials, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return match
	}
	return scheme + " " + redacted
}

// looksAddressed reports whether a value can be the address of a person: enough digits for a phone
// number, or an @.
func looksAddressed(t string) bool {
	digits := 0
	for _, r := range noNumber.ReplaceAllString(t, "") {
		switch r = foldNumberRune(r); {
		case r == '@':
			return true
		case '0' <= r && r <= '9':
			digits++
		}
	}
	return digits >= minMasked-1
}

// maskNumber masks what is known to be a number, however it is written.
func maskNumber(t string) string {
	return Mask(strings.Map(func(r rune) rune {
		switch r = foldNumberRune(r); {
		case '0' <= r && r <= '9', r == '+', unicode.IsLetter(r), r == '@':
			return r
		}
		return -1
	}, t))
}

// noNumber matches what has the digits of a phone number and is none: UUIDs, SIDs, dates with and
// without a time, what Go's monotonic clock writes behind them, and long runs of hexadecimal digits.
var noNumber = regexp.MustCompile(`(?i)\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}` +
	`|[a-z]{2}[0-9a-f]{32}` +
	`|(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?Z?` +
	`|\d\d:\d\d:\d\d\.\d+` +
	`|m=[+-]\d+\.\d{9}` +
	`|[0-9a-f]{16,})\b`)

// MaskNumbers masks the phone numbers in a text: E.164 with or without separators, and Japanese
// numbers as they are dialled at home (03-…, 090…) or from abroad (0081…, 010 81…), in half-width
// or full-width characters.
func MaskNumbers(t string) string {
	if !strings.ContainsFunc(t, isDigitOrFullWidth) {
		return t
	}
	var out strings.Builder
	start := 0
	for _, keep := range noNumber.FindAllStringIndex(t, -1) {
		maskNumbersIn(&out, t[start:keep[0]])
		out.WriteString(t[keep[0]:keep[1]])
		start = keep[1]
	}
	maskNumbersIn(&out, t[start:])
	return out.String()
}

func isDigitOrFullWidth(r rune) bool { return '0' <= r && r <= '9' || '０' <= r && r <= '９' }

func maskNumbersIn(out *strings.Builder, t string) {
	previous := ' '
	for len(t) > 0 {
		if length, digits := numberAt(t, previous); length > 0 {
			out.WriteString(Mask(digits))
			previous, t = '0', t[length:]
			continue
		}
		r, size := utf8.DecodeRuneInString(t)
		out.WriteString(t[:size])
		previous, t = r, t[size:]
	}
}

// numberAt reads a phone number at the beginning of t. It returns the number's length in bytes, or
// 0, and its digits.
func numberAt(t string, previous rune) (length int, digits string) {
	first, _ := utf8.DecodeRuneInString(t)
	switch {
	case strings.HasPrefix(t, "%2B"), strings.HasPrefix(t, "%2b"):
		return groupsOfDigits(t, len("%2B"), isInternational)
	case foldNumberRune(first) == '+':
		return groupsOfDigits(t, utf8.RuneLen(first), isInternational)
	case foldNumberRune(first) == '0' || first == '8':
		if !startsInWord(previous) {
			return groupsOfDigits(t, 0, isDialledInJapan)
		}
	}
	return 0, ""
}

// startsInWord reports whether digits after the character belong to an identifier or a fraction.
func startsInWord(r rune) bool {
	return r == '_' || r == '.' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || isDigitOrFullWidth(r)
}

// groupsOfDigits reads digits and the separators between them, until the digits read so far are a
// whole number. It looks only where a group ends, never inside.
func groupsOfDigits(t string, offset int, whole func(digits string, last bool) bool) (length int, digits string) {
	const maxDigits, maxSeparators = 20, 3
	var read []byte
	separators := 0
	for at := offset; at < len(t); {
		r, size := utf8.DecodeRuneInString(t[at:])
		switch folded := foldNumberRune(r); {
		case '0' <= folded && folded <= '9':
			read = append(read, byte(folded))
			separators = 0
			if len(read) > maxDigits {
				return 0, ""
			}
			end := at + size
			next, _ := utf8.DecodeRuneInString(t[end:])
			if !isDigit(foldNumberRune(next)) && !endsInWord(t[end:]) && whole(string(read), false) {
				return end, string(read)
			}
			length = end
		case strings.ContainsRune("-() .", folded) || folded == -1:
			fraction := string(read) == "0" // 0.5, and no number is written "0 3-…"
			if separators++; separators > maxSeparators || fraction {
				at = len(t)
			}
		default:
			at = len(t)
		}
		at += size
	}
	if length > 0 && !endsInWord(t[length:]) && whole(string(read), true) {
		return length, string(read)
	}
	return 0, ""
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// endsInWord reports whether the digits before the text are part of something else: of a hexadecimal
// or other identifier, or of a time.
func endsInWord(rest string) bool {
	if rest == "" {
		return false
	}
	if rest[0] == ':' {
		return len(rest) > 1 && isDigit(rune(rest[1]))
	}
	return strings.ContainsRune("abcdefABCDEF_", rune(rest[0]))
}

// isInternational reports whether the digits after a + are a whole number. Most have 11 digits or
// more; shorter ones count only where no more follow. A country code never starts with 0, which
// tells "+0900" from a number.
func isInternational(digits string, last bool) bool {
	return digits[0] != '0' && len(digits) <= 15 && (len(digits) >= 11 || last && len(digits) >= minMasked)
}

// isDialledInJapan reports whether the digits are a whole number as dialled in Japan: 10 digits for
// a landline, 11 for 0X0 numbers, the country code after 00 or 010, or a mobile number that lost
// its +.
func isDialledInJapan(digits string, _ bool) bool {
	switch {
	case strings.HasPrefix(digits, "0081"), strings.HasPrefix(digits, "01081"):
		return len(digits) >= 13 && len(digits) <= 17
	case digits[0] == '8':
		return japanMobile.MatchString(digits)
	case strings.HasPrefix(digits, "00"):
		return false
	case len(digits) > 2 && digits[2] == '0' && digits[1] >= '5' || strings.HasPrefix(digits, "0800"):
		return len(digits) == 11
	}
	return len(digits) == 10
}

var japanMobile = regexp.MustCompile(`^81[6-9]0[1-9][0-9]{7}$`)
