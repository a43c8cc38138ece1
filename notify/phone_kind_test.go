package notify

import "testing"

func TestNumbersThatChargeTheCallerAreRefusedUnlessTheirKindIsAllowed(t *testing.T) {
	t.Parallel()
	everywhere := []string{"JP", "GB", "DE", "FR", "US"}
	for number, kind := range map[string]PhoneKind{
		"0990-123-456": PremiumRate, "0570-012-345": CompanyWide, "020-1234-5678": Pager, "0204-123-4567": Pager,
		"+44 906 123 4567": PremiumRate, "+44 844 123 4567": PremiumRate, "+44 7024 123456": Personal, "+44 55 1234 5678": CompanyWide,
		"+49 180 5 123456": SharedCost, "+49 137 1234567": SharedCost, "+33 891 67 00 00": PremiumRate, "+1 900 555 0123": PremiumRate,
		"+1 500 222 3333": Personal,
	} {
		parsed, err := ParsePhoneNumber(number, "JP")
		if err != nil || parsed.Kind != kind {
			t.Errorf("%q is %q, error %v, want %s", number, parsed.Kind, err, kind)
			continue
		}
		checkNumberError(t, number, parsed.Accepts(Call, everywhere), CodeNumberKindNotAllowed)
		checkNumberError(t, number, CallableKind(parsed.E164), CodeNumberKindNotAllowed)
		if parsed.Accepts(SMS, everywhere) == nil {
			t.Errorf("an SMS to %q is accepted", number)
		}
		if err := parsed.Accepts(Call, everywhere, kind); err != nil {
			t.Errorf("%q, allowed: %v", number, err)
		}
		if err := CallableKind(parsed.E164, kind); err != nil {
			t.Errorf("%q, allowed: %v", number, err)
		}
	}
	for _, number := range []string{"090-1234-5678", "060-1234-5678", "03-1234-5678", "050-1234-5678", "0120-123-456", "+1 202-555-0123", "+15005550006"} {
		parsed, err := ParsePhoneNumber(number, "JP")
		if err == nil {
			err = parsed.Accepts(Call, everywhere)
		}
		if err == nil {
			err = CallableKind(parsed.E164)
		}
		if err != nil {
			t.Errorf("%q: %v", number, err)
		}
	}
}

func TestEmergencyShortAndSatelliteNumbersAreNeverAccepted(t *testing.T) {
	t.Parallel()
	for _, number := range []string{
		"110", "119", "118", "104", "171", "#7119", "+81110", "186 110", "184-119", "911", "112", "0180-99-1234",
		"+870 773 111 632", "+8816 1234 5678", "+883 5100 1234 5678", "+979 123 456 789", "+808 1234 5678",
	} {
		parsed, err := ParsePhoneNumber(number, "JP")
		if err == nil {
			err = parsed.Accepts(Call, []string{"JP", "US"}, CostlyKinds()...)
		}
		if err == nil {
			t.Errorf("%q is accepted as %+v", number, parsed)
		}
	}
}
