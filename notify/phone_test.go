package notify

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestNumbersAsPeopleTypeThemInJapan(t *testing.T) {
	mobile := PhoneNumber{E164: "+819012345678", National: "090-1234-5678", Region: "JP", Kind: Mobile}
	tokyo := PhoneNumber{E164: "+81312345678", National: "03-1234-5678", Region: "JP", Kind: Landline}
	tests := []struct {
		input string
		want  PhoneNumber
	}{
		{"090-1234-5678", mobile},
		{"09012345678", mobile},
		{"090 1234 5678", mobile},
		{" 090-1234-5678\r\n", mobile},
		{"090.1234.5678", mobile},
		{"090・1234・5678", mobile},
		{"090/1234/5678", mobile},
		{"(090) 1234-5678", mobile},
		{"090(1234)5678", mobile},
		{"９０１２３４５６７８", mobile},   // a spreadsheet ate the 0
		{"'09012345678", mobile}, // and here it was told not to
		{"'+819012345678", mobile},
		{"０９０－１２３４－５６７８", mobile},
		{"０９０ー１２３４ー５６７８", mobile}, // the long vowel mark, on the same key as the dash
		{"090ー1234ー5678", mobile},
		{"０９０ｰ1234ｰ5678", mobile},
		{"090‐1234‐5678", mobile}, // U+2010
		{"090‑1234‑5678", mobile}, // U+2011
		{"090‒1234‒5678", mobile}, // U+2012
		{"090–1234–5678", mobile}, // U+2013
		{"090—1234—5678", mobile}, // U+2014
		{"090―1234―5678", mobile}, // U+2015
		{"090−1234−5678", mobile}, // U+2212
		{"090─1234─5678", mobile}, // U+2500
		{"090━1234━5678", mobile}, // U+2501
		{"090﹣1234﹣5678", mobile}, // U+FE63
		{"090一1234一5678", mobile}, // the kanji for one
		{"090　1234　5678", mobile}, // U+3000
		{"090\u00a01234\u00a05678", mobile},
		{"\ufeff090-\u200b1234-\u200d5678\u200e", mobile},
		{"\u202a090-1234-5678\u202c", mobile}, // as copied from a contact
		{"+819012345678", mobile},
		{"+81 90-1234-5678", mobile},
		{"+81-90-1234-5678", mobile},
		{"＋８１ー９０ー１２３４ー５６７８", mobile},
		{"+81 (0)90-1234-5678", mobile},
		{"+81（０）９０－１２３４－５６７８", mobile},
		{"+81 090 1234 5678", mobile},
		{"(+81) 90-1234-5678", mobile},
		{"81 90 1234 5678", mobile},
		{"0081 90 1234 5678", mobile},
		{"00819012345678", mobile},
		{"0081-(0)90-1234-5678", mobile},
		{"００８１９０１２３４５６７８", mobile},
		{"010-81-90-1234-5678", mobile},
		{"010819012345678", mobile},
		{"tel:+81-90-1234-5678", mobile},
		{"TEL: 090-1234-5678", mobile},
		{"ＴＥＬ：０９０－１２３４－５６７８", mobile},
		{"٠٩٠١٢٣٤٥٦٧٨", mobile},

		{"03-1234-5678", tokyo},
		{"(03) 1234-5678", tokyo},
		{"（０３）１２３４－５６７８", tokyo},
		{"03(1234)5678", tokyo},
		{"03)1234-5678", tokyo},
		{"+81 3 1234 5678", tokyo},
		{"+81 (0)3-1234-5678", tokyo},
		{"0081312345678", tokyo},

		{"080-1234-5678", PhoneNumber{"+818012345678", "080-1234-5678", "JP", Mobile}},
		{"070-1234-5678", PhoneNumber{"+817012345678", "070-1234-5678", "JP", Mobile}},
		{"060-1234-5678", PhoneNumber{"+816012345678", "060-1234-5678", "JP", Mobile}},
		{"050-1234-5678", PhoneNumber{"+815012345678", "050-1234-5678", "JP", VoIP}},
		{"020-1234-5678", PhoneNumber{"+812012345678", "020-1234-5678", "JP", Pager}},
		{"0120-123-456", PhoneNumber{"+81120123456", "0120-123-456", "JP", TollFree}},
		{"0800-123-1234", PhoneNumber{"+818001231234", "0800-123-1234", "JP", TollFree}},
		{"0570-012-345", PhoneNumber{"+81570012345", "0570-012-345", "JP", CompanyWide}},
		{"0990-123-456", PhoneNumber{"+81990123456", "0990-123-456", "JP", PremiumRate}},
		{"06-6123-4567", PhoneNumber{"+81661234567", "06-6123-4567", "JP", Landline}},

		{"+1 202-555-0123", PhoneNumber{"+12025550123", "(202) 555-0123", "US", LandlineOrMobile}},
		{"0012025550123", PhoneNumber{"+12025550123", "(202) 555-0123", "US", LandlineOrMobile}},
		{"+44 20 7946 0000", PhoneNumber{"+442079460000", "020 7946 0000", "GB", Landline}},
		{"+800 1234 5678", PhoneNumber{"+80012345678", "1234 5678", "001", TollFree}},
	}
	for _, tt := range tests {
		got, err := ParsePhoneNumber(tt.input, "JP")
		if err != nil || got != tt.want {
			t.Errorf("ParsePhoneNumber(%q) = %+v, %v, want %+v", tt.input, got, err, tt.want)
		}
	}
}

func TestDefaultRegion(t *testing.T) {
	tests := []struct{ input, region, want string }{
		{"(202) 555-0123", "US", "+12025550123"},
		{"(202) 555-0123", " us ", "+12025550123"},
		{"090-1234-5678", "jp", "+819012345678"},
		{"+81 90-1234-5678", "", "+819012345678"},
		{"+81 90-1234-5678", "US", "+819012345678"},
		{"011 81 90 1234 5678", "US", "+819012345678"},
		{"0081 90 1234 5678", "", "+819012345678"},
	}
	for _, tt := range tests {
		if got, err := ParsePhoneNumber(tt.input, tt.region); err != nil || got.E164 != tt.want {
			t.Errorf("ParsePhoneNumber(%q, %q) = %q, %v, want %q", tt.input, tt.region, got.E164, err, tt.want)
		}
	}
}

func TestTwilioMagicNumbersAreNumbersOfTheUnitedStates(t *testing.T) {
	for last := '0'; last <= '9'; last++ {
		input := "+1500555000" + string(last)
		got, err := ParsePhoneNumber(input, "JP")
		if err != nil || got.E164 != input || got.Region != "US" {
			t.Errorf("ParsePhoneNumber(%q) = %+v, %v", input, got, err)
			continue
		}
		for _, c := range []Channel{SMS, Call} {
			if err := got.Accepts(c, []string{"JP", "US"}); err != nil {
				t.Errorf("%s to %s: %v", c, input, err)
			}
		}
		if err := got.Accepts(SMS, []string{"JP"}); err == nil {
			t.Errorf("SMS to %s was accepted without US", input)
		}
	}
}

func TestInvalidNumbersAreRefusedWithACode(t *testing.T) {
	tests := []struct{ input, code string }{
		{"", CodeNumberEmpty},
		{" \t\n", CodeNumberEmpty},
		{"\u3000\u200b\ufeff\u00a0", CodeNumberEmpty},

		{"-", CodeNumberUnparsable},
		{"+", CodeNumberUnparsable},
		{"tel:", CodeNumberUnparsable},
		{"abc", CodeNumberUnparsable},
		{"0120-FLOWER", CodeNumberUnparsable},
		{"090-1234-ABCD", CodeNumberUnparsable},
		{"０１２０－ＡＢＣ", CodeNumberUnparsable},
		{"電話番号", CodeNumberUnparsable},
		{"taro@example.jp", CodeNumberUnparsable},
		{"090+1234+5678", CodeNumberUnparsable},
		{"++819012345678", CodeNumberUnparsable},
		{"090-1234-567~9", CodeNumberUnparsable},
		{"090-1234-5678～9", CodeNumberUnparsable},
		{"*67 090-1234-5678", CodeNumberUnparsable},
		{"090-1234-\x005678", CodeNumberUnparsable},
		{"090-1234-567\xff", CodeNumberUnparsable},
		{"090①2345678", CodeNumberUnparsable},
		{"090-1234-5678, 080-1234-5678", CodeNumberUnparsable},
		{"📞", CodeNumberUnparsable},

		{"8.19E+11", CodeNumberRounded},
		{"9.01235E+09", CodeNumberRounded},
		{" ８．１９ｅ＋１１", CodeNumberRounded},
		{"9E+09", CodeNumberRounded},
		{"8.19E", CodeNumberUnparsable},

		{"110", CodeNumberTooShort},
		{"119", CodeNumberTooShort},
		{"#7119", CodeNumberUnparsable},
		{"1", CodeNumberTooShort},
		{"+8", CodeNumberTooShort},
		{"0", CodeNumberTooShort},
		{"1234-5678", CodeNumberTooShort},
		{"090-1234-567", CodeNumberTooShort},
		{"090-1234-56", CodeNumberTooShort},
		{"03-1234-567", CodeNumberTooShort},

		{"090-1234-56789", CodeNumberTooLong},
		{"+81 90-1234-56789", CodeNumberTooLong},
		{"03-1234-56789", CodeNumberTooLong},
		{"090-1234-5678-090-1234-5678", CodeNumberTooLong},
		{strings.Repeat("1", 40), CodeNumberTooLong},
		{strings.Repeat("0", 10_000_000), CodeNumberTooLong},

		{"091-1234-5678", CodeNumberInvalid},
		{"090-0234-5678", CodeNumberInvalid},
		{"000-0000-0000", CodeNumberInvalid},
		{"+1 000-000-0000", CodeNumberInvalid},

		{"03-1234-5678 内線 12", CodeNumberHasExtension},
		{"03-1234-5678(内線12)", CodeNumberHasExtension},
		{"03-1234-5678 ext. 12", CodeNumberHasExtension},
		{"03-1234-5678 extension 12", CodeNumberHasExtension},
		{"03-1234-5678x12", CodeNumberHasExtension},
		{"03-1234-5678#12", CodeNumberHasExtension},
		{"03-1234-5678＃１２", CodeNumberHasExtension},
		{"03-1234-5678,12", CodeNumberHasExtension},
		{"tel:+81-3-1234-5678;ext=12", CodeNumberHasExtension},

		{"+999 1234 5678", CodeCountryUnknown},
		{"+0 1234 5678", CodeCountryUnknown},
	}
	for _, tt := range tests {
		got, err := ParsePhoneNumber(tt.input, "JP")
		checkNumberError(t, short(tt.input), err, tt.code)
		if got != (PhoneNumber{}) {
			t.Errorf("%q: %+v beside an error", short(tt.input), got)
		}
	}
	for _, region := range []string{"", "XX", "Japan"} {
		_, err := ParsePhoneNumber("090-1234-5678", region)
		checkNumberError(t, "no country code in region "+region, err, CodeCountryUnknown)
	}
}

func short(s string) string { return s[:min(len(s), 60)] }

func checkNumberError(t *testing.T, input string, err error, code string) {
	t.Helper()
	var invalid *InvalidNumberError
	if !errors.As(err, &invalid) || invalid.Code != code {
		t.Errorf("%q: %v (%+v), want the code %s", input, err, invalid, code)
	}
}

func TestNumberErrorsSayWhatToDoAndHoldNoDigits(t *testing.T) {
	codes := []string{
		CodeNumberEmpty, CodeNumberUnparsable, CodeNumberTooShort, CodeNumberTooLong, CodeNumberInvalid,
		CodeNumberHasExtension, CodeCountryUnknown, CodeCountryNotAllowed, CodeLandlineWithoutSMS, CodeNumberCannotReceive,
		CodeNumberKindNotAllowed,
	}
	digit := regexp.MustCompile(`[0-9]`)
	seen := map[string]bool{}
	for _, code := range codes {
		text := (&InvalidNumberError{Code: code, Region: "FR", Kind: TollFree}).Error()
		if digit.MatchString(text) || !strings.Contains(text, ": ") || seen[text] {
			t.Errorf("%s: %q", code, text)
		}
		seen[text] = true
	}
}

func TestWhatANumberAccepts(t *testing.T) {
	tests := []struct {
		input   string
		channel Channel
		allowed []string
		code    string // empty: accepted
	}{
		{"090-1234-5678", SMS, []string{"JP"}, ""},
		{"060-1234-5678", SMS, []string{"JP"}, ""},
		{"090-1234-5678", Call, []string{"JP"}, ""},
		{"090-1234-5678", SMS, []string{"US", " jp "}, ""},
		{"090-1234-5678", SMS, []string{"US"}, CodeCountryNotAllowed},
		{"090-1234-5678", Call, []string{"US"}, CodeCountryNotAllowed},
		{"090-1234-5678", SMS, nil, CodeCountryNotAllowed},
		{"090-1234-5678", SMS, []string{""}, CodeCountryNotAllowed},
		{"050-1234-5678", SMS, []string{"JP"}, ""},
		{"03-1234-5678", SMS, []string{"JP"}, CodeLandlineWithoutSMS},
		{"03-1234-5678", SMS, []string{"US"}, CodeCountryNotAllowed},
		{"03-1234-5678", Call, []string{"JP"}, ""},
		{"0120-123-456", SMS, []string{"JP"}, CodeNumberCannotReceive},
		{"0120-123-456", Call, []string{"JP"}, ""},
		{"0570-012-345", SMS, []string{"JP"}, CodeNumberCannotReceive},
		{"0990-123-456", SMS, []string{"JP"}, CodeNumberCannotReceive},
		{"020-1234-5678", SMS, []string{"JP"}, CodeNumberCannotReceive},
		{"+1 202-555-0123", SMS, []string{"US"}, ""},
		{"+1 202-555-0123", SMS, []string{"JP"}, CodeCountryNotAllowed},
		{"+1 242-365-1234", SMS, []string{"US"}, CodeCountryNotAllowed}, // the Bahamas share +1
		{"+800 1234 5678", Call, []string{"JP"}, CodeCountryNotAllowed},
	}
	for _, tt := range tests {
		number, err := ParsePhoneNumber(tt.input, "JP")
		if err != nil {
			t.Errorf("%q: %v", tt.input, err)
			continue
		}
		err = number.Accepts(tt.channel, tt.allowed)
		if tt.code != "" {
			checkNumberError(t, tt.input, err, tt.code)
		} else if err != nil {
			t.Errorf("%s to %q, allowed %q: %v", tt.channel, tt.input, tt.allowed, err)
		}
	}
	if err := (PhoneNumber{}).Accepts(SMS, []string{"JP", ""}); err == nil {
		t.Error("no number accepts an SMS")
	}
}

// All numbers of the ranges that are not looked up, but for their last digits, and those beside them.
func TestMobileNumbersOfJapanAreReadAsTheNumberingPlansHaveThem(t *testing.T) {
	for prefix := range 10_000 { // behind the 0 or the country code
		digits := fmt.Sprintf("%04d%06d", prefix, (prefix*104_729)%1_000_000)
		if digits[1] != '0' && prefix%97 != 0 {
			continue
		}
		numbers := []string{"0" + digits, "+81" + digits}
		if prefix%10 == 0 {
			numbers = append(numbers, "0"+digits[:9], "+81"+digits+"1")
		}
		for _, dialled := range numbers {
			got, err := parseDialled(dialled, "JP")
			want, wantErr := lookUp(dialled, "JP")
			if got != want || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("%s: %+v, %v, want %+v, %v", dialled, got, err, want, wantErr)
			}
		}
		if got, err := parseDialled("0"+digits, "US"); err == nil && got.Region == "JP" {
			t.Errorf("0%s is a number of Japan in the United States", digits)
		}
	}
}

func FuzzParsePhoneNumber(f *testing.F) {
	for _, seed := range []string{
		"090-1234-5678", "０９０ー１２３４ー５６７８", "+81 (0)90-1234-5678", "(03) 1234-5678", "00819012345678",
		"tel:+81-3-1234-5678;ext=12", "03-1234-5678 内線 12", "110", "", "\xff", "+1500555000１", "0120-FLOWER", "++", "〜",
	} {
		f.Add(seed, "JP")
	}
	f.Add("(202) 555-0123", "US")
	e164 := regexp.MustCompile(`^\+[1-9][0-9]{4,14}$`)
	f.Fuzz(func(t *testing.T, input, region string) {
		number, err := ParsePhoneNumber(input, region)
		if err != nil {
			var invalid *InvalidNumberError
			if !errors.As(err, &invalid) || invalid.Code == "" || number != (PhoneNumber{}) {
				t.Fatalf("%q: %+v, %#v", input, number, err)
			}
			return
		}
		if !e164.MatchString(number.E164) || number.National == "" || number.Region == "" || number.Kind == "" {
			t.Fatalf("%q: %+v", input, number)
		}
		again, err := ParsePhoneNumber(number.E164, "")
		if err != nil || again != number {
			t.Fatalf("%q became %+v, and that became %+v, %v", input, number, again, err)
		}
	})
}
