package notify

import (
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
)

// PhoneKind says what answers at a number, as far as its range tells.
type PhoneKind string

// The kinds of numbers. They follow libphonenumber's types.
const (
	Mobile           PhoneKind = "mobile"
	Landline         PhoneKind = "landline"
	LandlineOrMobile PhoneKind = "landline_or_mobile" // the ranges are mixed, as in the United States
	VoIP             PhoneKind = "voip"               // Japan: 050
	TollFree         PhoneKind = "toll_free"          // Japan: 0120 and 0800
	PremiumRate      PhoneKind = "premium_rate"       // Japan: 0990
	SharedCost       PhoneKind = "shared_cost"
	Personal         PhoneKind = "personal" // follows its owner; Great Britain: 070
	Pager            PhoneKind = "pager"    // Japan: 020, machines and pagers
	CompanyWide      PhoneKind = "company"  // one number for a whole company; Japan: 0570
	Voicemail        PhoneKind = "voicemail"
)

// PhoneNumber is a valid number. The zero value is no number.
type PhoneNumber struct {
	E164     string    // "+819012345678"
	National string    // as people in its country write it: "090-1234-5678"
	Region   string    // two letters of ISO 3166-1 ("JP"), or "001" where a number belongs to no country (+800)
	Kind     PhoneKind // decides whether an SMS can reach it
}

// The codes of an [InvalidNumberError]. They are part of the API and do not change.
const (
	CodeNumberEmpty          = "phone_number_empty"
	CodeNumberUnparsable     = "phone_number_unparsable"
	CodeNumberTooShort       = "phone_number_too_short"
	CodeNumberTooLong        = "phone_number_too_long"
	CodeNumberInvalid        = "phone_number_invalid"
	CodeNumberRounded        = "phone_number_rounded"
	CodeNumberDecimal        = "phone_number_decimal"
	CodeSeveralNumbers       = "phone_number_several"
	CodeNumberHasExtension   = "phone_number_has_extension"
	CodeCountryUnknown       = "phone_number_country_unknown"
	CodeCountryNotAllowed    = "country_not_allowed"
	CodeLandlineWithoutSMS   = "landline_cannot_receive_sms"
	CodeNumberCannotReceive  = "number_cannot_receive_sms"
	CodeNumberKindNotAllowed = "number_kind_not_allowed"
)

// InvalidNumberError says why nothing can be sent to a number. Its text says what to do and never
// repeats the number, so it may be logged and shown.
type InvalidNumberError struct {
	Code   string    // one of the codes above
	Region string    // of a number that could be read, else empty
	Kind   PhoneKind // of a number that could be read, else empty
}

func (e *InvalidNumberError) Error() string {
	switch e.Code {
	case CodeNumberEmpty:
		return "the phone number is empty: write it with its area code, or with + and the country code"
	case CodeNumberTooShort:
		return "the phone number has too few digits: write all of it, with its area code; emergency and other short numbers cannot be notified"
	case CodeNumberTooLong:
		return "the phone number has too many digits: write one number, without an extension"
	case CodeNumberInvalid:
		return "the phone number does not exist in its country's numbering plan: check each digit"
	case CodeNumberRounded:
		return "a spreadsheet has rounded the phone number, as in 8.19E+11, and its last digits are lost: format the column as text, and write the number again"
	case CodeNumberDecimal:
		return "a spreadsheet has calculated with the phone number, as in 5550100.5 or -5550100: format the column as text, and write the number again"
	case CodeSeveralNumbers:
		return "the phone number is more than one, or has alternatives behind a slash or a line break: write one number"
	case CodeNumberHasExtension:
		return "the phone number has an extension, which an SMS or a call cannot reach: write the number without it"
	case CodeCountryUnknown:
		return "the phone number's country code does not exist or is missing: write + and the country code in front of the number"
	case CodeCountryNotAllowed:
		return "notifications to the phone number's country (" + e.Region + ") are not allowed: add the country to ALLOWED_COUNTRIES, or use a number of another country"
	case CodeLandlineWithoutSMS:
		return "the phone number is a landline, which cannot receive an SMS: use a mobile number, or send a call"
	case CodeNumberCannotReceive:
		return "the phone number is of a kind (" + string(e.Kind) + ") that cannot receive an SMS: use a mobile number, or send a call"
	case CodeNumberKindNotAllowed:
		return "calls and SMS to the phone number's kind (" + string(e.Kind) + ") may cost a lot and are not allowed: use a mobile number or a landline, or add the kind to ALLOWED_NUMBER_KINDS"
	default:
		return "the phone number cannot be read: write digits with hyphens or spaces, such as people dial it, or + and the country code"
	}
}

// maxNumberBytes bounds what is looked at. The longest E.164 number has 15 digits; the rest leaves
// room for separators of three bytes each.
const maxNumberBytes = 200

// ParsePhoneNumber reads a number as people type it: with half-width or full-width digits, any of
// the dashes of an IME (the long vowel mark ー among them), spaces, brackets and dots, and with
// "+81", "0081", "010 81", "+81 (0)" or "tel:" in front. Numbers without a country code belong to
// defaultRegion ("JP"); if that is empty, each number needs its country code.
//
// The error is an [*InvalidNumberError]. Extensions, letters, short numbers and ranges that are not
// in use are refused.
func ParsePhoneNumber(input, defaultRegion string) (PhoneNumber, error) {
	dialled, code := dialledDigits(input)
	if code != "" {
		return PhoneNumber{}, &InvalidNumberError{Code: code}
	}
	region := strings.ToUpper(strings.TrimSpace(defaultRegion))

	// Japan dials 010 to go abroad, but people type 00 as most of the world does. The national
	// reading comes second: it knows 00 only as the prefix of some free numbers.
	if rest, ok := strings.CutPrefix(dialled, "00"); ok {
		if number, err := parseDialled("+"+rest, region); err == nil {
			return number, nil
		}
	}
	return parseDialled(dialled, region)
}

var (
	telPrefix = regexp.MustCompile(`^\s*(?i:tel)\s*:`)
	// A mark that starts an extension ("ext. 12", "x12", "#12", ",12", ";ext=12", "内線12") and a few
	// digits up to the end.
	extension = regexp.MustCompile(`(?i)[0-9][^0-9]*(?:x|#|,|;|内)[^0-9]*[0-9]{1,7}[^0-9]*$`)
	// What a spreadsheet shows, and saves, of a number that is wider than its column.
	rounded = regexp.MustCompile(`^\s*[+-]?[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]+\s*$`)
	// What a spreadsheet writes of a number without separators whose column shows decimals.
	wholeDecimal = regexp.MustCompile(`^\s*\+?[0-9]+\.0{1,2}\s*$`)
	// A decimal that is no whole number, or that has separators of thousands: the digits behind its dot
	// are none of the phone number's. Pairs of digits ("06.12.34.56.78") are groups.
	decimal = regexp.MustCompile(`^[^.]*\.([0-9]{1,2}|0+)[\s)\]]*$|\.[0-9][\s)\]]*$|[0-9]{3}\.00[\s)\]]*$`)
	// The result of a formula such as 030-1234567, also as accountants write it.
	negative = regexp.MustCompile(`^\s*(-[-\s]*[0-9]|\(\s*[0-9][0-9\s]*\)\s*$)`)
	// An area code, a slash and a number ("030/1234567").
	slashed = regexp.MustCompile(`^((\+|00)[0-9]{3,8}|0[0-9]{1,5}|[0-9]{2,5})/[0-9]{4,}$|^0[0-9]{1,3}/[0-9]{2,4}/[0-9]{4}$`)
)

// spelling tells what the marks between the digits make of the number: the text to take the digits of, or
// a code where these would be another number than the one that was meant.
func spelling(text string) (plain, code string) {
	if strings.ContainsAny(strings.TrimSpace(text), "\n\r\v\f") {
		return "", CodeSeveralNumbers
	}
	if strings.Contains(text, ".") {
		switch {
		case wholeDecimal.MatchString(text):
			text, _, _ = strings.Cut(text, ".")
		case decimal.MatchString(text):
			return "", CodeNumberDecimal
		}
	}
	if negative.MatchString(text) {
		return "", CodeNumberDecimal
	}
	if strings.Contains(text, "/") && !slashed.MatchString(onlyDigitsAndSlashes(text)) {
		return "", CodeSeveralNumbers
	}
	return text, ""
}

func onlyDigitsAndSlashes(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || r == '/' || r == '+' {
			return r
		}
		return -1
	}, text)
}

// dialledDigits strips what people write around the digits and leaves "+819012345678" or
// "09012345678". On failure it returns a code.
func dialledDigits(input string) (dialled, code string) {
	if len(input) > maxNumberBytes {
		return "", CodeNumberTooLong
	}
	if !utf8.ValidString(input) {
		return "", CodeNumberUnparsable
	}
	// An apostrophe keeps a spreadsheet from taking the number for one, or for a formula.
	text := strings.TrimPrefix(strings.Map(foldNumberRune, input), "'")
	if strings.TrimSpace(text) == "" {
		return "", CodeNumberEmpty
	}
	if strings.Contains(text, ":") {
		text = telPrefix.ReplaceAllString(text, "")
	}
	if strings.ContainsAny(text, "./\n\r\v\f") || strings.IndexAny(strings.TrimSpace(text), "-(") == 0 {
		if text, code = spelling(text); code != "" {
			return "", code
		}
	}

	var out strings.Builder
	for _, r := range text {
		switch {
		case '0' <= r && r <= '9':
			out.WriteRune(r)
		case r == '+' && out.Len() == 0:
			out.WriteRune(r)
		case r == '-', r == '(', r == ')', r == '[', r == ']', r == '.', r == '/', unicode.IsSpace(r):
			// Punctuation between groups of digits means nothing.
		case rounded.MatchString(text):
			return "", CodeNumberRounded
		case extension.MatchString(text):
			return "", CodeNumberHasExtension
		default:
			return "", CodeNumberUnparsable
		}
	}
	switch out.String() {
	case "", "+":
		return "", CodeNumberUnparsable
	}
	return out.String(), ""
}

// foldNumberRune maps the many ways to type a digit or a separator to ASCII. It returns -1 for
// characters that cannot be seen. The log handler reads numbers in text with it as well.
func foldNumberRune(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	switch r {
	case 'ー', 'ｰ', '−', '─', '━', '一', 'ㅡ', '⁻', '⁃', '˗', '➖': // not dashes for Unicode, but for people
		return '-'
	case '・', '･', '·', '•', '‧':
		return '.'
	case '〔':
		return '('
	case '〕':
		return ')'
	case '〜', '〰': // dashes for Unicode, but they write a range
		return r
	}
	switch {
	case '！' <= r && r <= '～': // full-width ASCII
		return r - '！' + '!'
	case '٠' <= r && r <= '٩':
		return r - '٠' + '0'
	case '۰' <= r && r <= '۹':
		return r - '۰' + '0'
	case unicode.Is(unicode.Pd, r):
		return '-'
	case r == '\u0085', r == '\u2028', r == '\u2029':
		return '\n'
	case unicode.IsSpace(r):
		return ' '
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		return -1
	}
	return r
}

func parseDialled(dialled, region string) (PhoneNumber, error) {
	// Mexico's mobile phones had a 1 behind the country code until 2019; all numbers have ten digits.
	if rest, ok := strings.CutPrefix(dialled, "+521"); ok && len(rest) == 10 {
		dialled = "+52" + rest
	}
	if rest, ok := strings.CutPrefix(dialled, "+81"); ok && isJapaneseMobile(rest) {
		return japaneseMobile(rest), nil
	}
	if rest, ok := strings.CutPrefix(dialled, "0"); ok && region == "JP" && isJapaneseMobile(rest) {
		return japaneseMobile(rest), nil
	}
	return lookUp(dialled, region)
}

// isJapaneseMobile reports whether the digits behind Japan's country code, or behind the 0 in its place,
// are those of a mobile phone: 60, 70, 80 or 90, then eight digits of which the first is not 0. 060 is
// there since the numbering plan of 20 December 2024 (Ministry of Internal Affairs and Communications,
// notice 441), in use from July 2026.
func isJapaneseMobile(digits string) bool {
	return len(digits) == 10 && '6' <= digits[0] && digits[0] <= '9' && digits[1] == '0' && digits[2] != '0'
}

// japaneseMobile is the number with such digits, as lookUp gives it in fifty times as long: most of what
// a batch is sent to are such numbers.
func japaneseMobile(digits string) PhoneNumber {
	return PhoneNumber{
		E164:     "+81" + digits,
		National: "0" + digits[:2] + "-" + digits[2:6] + "-" + digits[6:],
		Region:   "JP",
		Kind:     Mobile,
	}
}

// lookUp finds a number in the numbering plans of phonenumbers.
func lookUp(dialled, region string) (PhoneNumber, error) {
	parsed, err := phonenumbers.Parse(dialled, region)
	if err != nil {
		return PhoneNumber{}, &InvalidNumberError{Code: parseErrorCode(err)}
	}
	kind := phonenumbers.GetNumberType(parsed)
	number := PhoneNumber{
		E164:     phonenumbers.Format(parsed, phonenumbers.E164),
		National: phonenumbers.Format(parsed, phonenumbers.NATIONAL),
		Region:   phonenumbers.GetRegionCodeForNumber(parsed),
		Kind:     kinds[kind],
	}
	if rest, ok := strings.CutPrefix(number.E164, "+81"); ok && isJapaneseMobile(rest) {
		return japaneseMobile(rest), nil // phonenumbers v1.8.1 does not know 060; libphonenumber does since v9.0.32
	}
	if isTwilioTestNumber(number.E164) {
		number.Kind = LandlineOrMobile
	}
	if kind == phonenumbers.UNKNOWN { // which is what phonenumbers calls not valid: to ask would match every pattern again
		return PhoneNumber{}, &InvalidNumberError{Code: invalidCode(parsed), Region: number.Region}
	}
	return number, nil
}

var kinds = map[phonenumbers.PhoneNumberType]PhoneKind{
	phonenumbers.FIXED_LINE:           Landline,
	phonenumbers.MOBILE:               Mobile,
	phonenumbers.FIXED_LINE_OR_MOBILE: LandlineOrMobile,
	phonenumbers.TOLL_FREE:            TollFree,
	phonenumbers.PREMIUM_RATE:         PremiumRate,
	phonenumbers.SHARED_COST:          SharedCost,
	phonenumbers.VOIP:                 VoIP,
	phonenumbers.PERSONAL_NUMBER:      Personal,
	phonenumbers.PAGER:                Pager,
	phonenumbers.UAN:                  CompanyWide,
	phonenumbers.VOICEMAIL:            Voicemail,
}

func parseErrorCode(err error) string {
	switch {
	case errors.Is(err, phonenumbers.ErrNumTooLong):
		return CodeNumberTooLong
	case errors.Is(err, phonenumbers.ErrTooShortNSN), errors.Is(err, phonenumbers.ErrTooShortAfterIDD):
		return CodeNumberTooShort
	case errors.Is(err, phonenumbers.ErrInvalidCountryCode):
		return CodeCountryUnknown
	case errors.Is(err, phonenumbers.ErrNotANumber):
		return CodeNumberTooShort // there are digits, but fewer than any number has
	}
	return CodeNumberUnparsable
}

// invalidCode tells a digit too few or too many from a range that does not exist. The metadata
// alone cannot: in Japan a number of 9 digits is possible, but not one that starts with 090.
func invalidCode(n *phonenumbers.PhoneNumber) string {
	switch phonenumbers.IsPossibleNumberWithReason(n) {
	case phonenumbers.TOO_SHORT, phonenumbers.IS_POSSIBLE_LOCAL_ONLY:
		return CodeNumberTooShort
	case phonenumbers.TOO_LONG:
		return CodeNumberTooLong
	}
	national := n.GetNationalNumber()
	withNational := func(v uint64) bool {
		return phonenumbers.IsValidNumber(&phonenumbers.PhoneNumber{
			CountryCode: n.CountryCode, NationalNumber: &v,
			ItalianLeadingZero: n.ItalianLeadingZero, NumberOfLeadingZeros: n.NumberOfLeadingZeros,
		})
	}
	switch {
	case withNational(national / 10), withNational(national / 100):
		return CodeNumberTooLong
	case withNational(national*10 + 1), withNational(national*100 + 11):
		return CodeNumberTooShort
	}
	return CodeNumberInvalid
}

// Accepts reports whether a notification may go to the number on the channel: its country must be
// among the allowed regions ("JP", upper or lower case; an empty list allows none), its kind must not
// be one that charges the caller, unless it is among the allowed kinds, and an SMS must
// have a chance to arrive. Landlines, toll-free, premium-rate, shared-cost and company-wide numbers,
// pagers and voicemail have none. VoIP numbers (Japan: 050) are let through: some of them do receive
// SMS, and only the carrier knows which; it answers 21614 for the others.
//
// The error is an [*InvalidNumberError].
func (p PhoneNumber) Accepts(channel Channel, allowed []string, kinds ...PhoneKind) error {
	if !regionAllowed(p.Region, allowed) {
		return &InvalidNumberError{Code: CodeCountryNotAllowed, Region: p.Region, Kind: p.Kind}
	}
	if channel != SMS {
		return p.AcceptsKind(kinds...)
	}
	switch p.Kind {
	case Landline:
		return &InvalidNumberError{Code: CodeLandlineWithoutSMS, Region: p.Region, Kind: p.Kind}
	case TollFree, PremiumRate, SharedCost, CompanyWide, Pager, Voicemail:
		return &InvalidNumberError{Code: CodeNumberCannotReceive, Region: p.Region, Kind: p.Kind}
	}
	return p.AcceptsKind(kinds...)
}

func regionAllowed(region string, allowed []string) bool {
	for _, a := range allowed {
		if region != "" && strings.EqualFold(region, strings.TrimSpace(a)) {
			return true
		}
	}
	return false
}
