package notify

import (
	"errors"
	"testing"
)

func TestADecimalIsNeverAnotherNumber(t *testing.T) {
	t.Parallel()
	// Numbers of any length exist in these countries, so a digit too many is another person's number.
	for region, national := range map[string]string{
		"DE": "1711234567", "AT": "6641234567", "IT": "3123456789", "FI": "401234567", "JP": "9012345678", "US": "2015550123",
	} {
		want, err := ParsePhoneNumber(national, region)
		if err != nil {
			t.Fatalf("%s: %v", region, err)
		}
		n := len(national)
		thousands := national[:n-9] + " " + national[n-9:n-6] + " " + national[n-6:n-3] + " " + national[n-3:]
		for _, input := range []string{
			national + ".0", national + ".00", national + "．０", national + "·0", " " + national + ".0 ", "'" + national + ".0", want.E164 + ".0",
			national + ".000", national + ".5", national + ".50", national + ".", national + ",0", national + ",00", national + "٫0", national + "。0",
			thousands, thousands + ".0", thousands + ".00", "-" + national, "−" + national, "(" + national + ")",
			national[:1] + "." + national[1:] + "E+9", national[:1] + "." + national[1:4] + "e9", national + "E0", "+" + national[:1] + "." + national[1:] + "E+11",
			"0x" + national, national + "/8", national + "/18", national + "/0", national + " / " + national, national + "\n" + national[:5], national + "\r5", national + "\u20285",
			"0" + national + ";ext=5", "0" + national + " ext. 5", "0" + national + "x5", "0" + national + "#5",
		} {
			got, err := ParsePhoneNumber(input, region)
			if err == nil && got.E164 != want.E164 {
				t.Errorf("%s: %q is read as %s, another number than %s", region, input, got.E164, want.E164)
			}
			if err != nil && !errors.As(err, new(*InvalidNumberError)) {
				t.Errorf("%s: %q: %v", region, input, err)
			}
		}
		for _, input := range []string{national + ".0", national + ".00", national + "．０"} {
			if got, err := ParsePhoneNumber(input, region); err != nil || got.E164 != want.E164 {
				t.Errorf("%s: %q is %s, error %v", region, input, got.E164, err)
			}
		}
	}
}

func TestDotsAndSlashesBetweenGroupsAreStillPunctuation(t *testing.T) {
	t.Parallel()
	for input, want := range map[[2]string]string{
		{"06.12.34.56.78", "FR"}:      "+33612345678",
		{"01.42.68.53.00", "FR"}:      "+33142685300",
		{"0171.1234567", "DE"}:        "+491711234567",
		{"030/1234567", "DE"}:         "+49301234567",
		{"+49 (0) 171/1234567", "DE"}: "+491711234567",
		{"0664/1234567", "AT"}:        "+436641234567",
		{"+81.90.1234.5678", "JP"}:    "+819012345678",
		{"090・1234・5678", "JP"}:       "+819012345678",
		{"(0171) 1234567", "DE"}:      "+491711234567",
		{"(090)1234-5678", "JP"}:      "+819012345678",
		{"201.555.0123", "US"}:        "+12015550123",
	} {
		if got, err := ParsePhoneNumber(input[0], input[1]); err != nil || got.E164 != want {
			t.Errorf("%q in %s is %s, error %v, want %s", input[0], input[1], got.E164, err, want)
		}
	}
}
