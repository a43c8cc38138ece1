package notify

import (
	"slices"
	"strings"
)

// costlyKinds are the kinds of numbers that charge whoever calls them, or that no person answers. Fraud earns money
// with calls to such numbers, so they are refused unless the settings allow the kind. Numbers of satellite phones belong
// to no country and are refused with their country code.
var costlyKinds = []PhoneKind{PremiumRate, SharedCost, CompanyWide, Personal, Pager, Voicemail}

// CostlyKinds lists the kinds that nothing is sent to unless a setting allows them.
func CostlyKinds() []PhoneKind { return slices.Clone(costlyKinds) }

// AcceptsKind reports whether the number's kind may be called or sent to: it does not charge the caller, or it is
// among the allowed kinds. The error is an [*InvalidNumberError].
func (p PhoneNumber) AcceptsKind(allowed ...PhoneKind) error {
	if !slices.Contains(costlyKinds, p.Kind) || slices.Contains(allowed, p.Kind) {
		return nil
	}
	return &InvalidNumberError{Code: CodeNumberKindNotAllowed, Region: p.Region, Kind: p.Kind}
}

// CallableKind checks the kind of a number in E.164 form that was accepted before. Mobile numbers of Japan, which are
// most, take no look-up.
func CallableKind(e164 string, allowed ...PhoneKind) error {
	if rest, ok := strings.CutPrefix(e164, "+81"); ok && isJapaneseMobile(rest) {
		return nil
	}
	number, err := ParsePhoneNumber(e164, "")
	if err != nil {
		return nil // a number that the metadata no longer knows was valid when it was accepted
	}
	return number.AcceptsKind(allowed...)
}

// isTwilioTestNumber reports whether it is one of Twilio's magic numbers, +1500555000x, which reach nobody
// (https://www.twilio.com/docs/iam/test-credentials). They stand for ordinary numbers, in a range of personal ones.
func isTwilioTestNumber(e164 string) bool {
	return len(e164) == len("+15005550000") && strings.HasPrefix(e164, "+1500555000")
}
