package notify

import (
	"errors"
	"strings"
	"testing"
)

func TestBodiesThatCanBeSent(t *testing.T) {
	for _, body := range []string{
		"a", "ご予約は明日です。", "一行目\n二行目\r\n\t三行目", "{{氏名}}様", "👨‍👩‍👧", " a ",
		strings.Repeat("a", 1600), strings.Repeat("あ", 1600), strings.Repeat("😀", 1600),
	} {
		for _, c := range []Channel{SMS, Call} {
			if err := CheckBody(c, body); err != nil {
				t.Errorf("%s %q: %v", c, short(body), err)
			}
		}
	}
	if err := CheckBody(Call, strings.Repeat("あ", 4000)); err != nil {
		t.Error(err)
	}
}

func TestBodiesThatCannotBeSent(t *testing.T) {
	tests := []struct {
		channel Channel
		body    string
		code    string
	}{
		{SMS, "", CodeBodyEmpty},
		{Call, "", CodeBodyEmpty},
		{LINEText, "", CodeBodyEmpty},
		{SMS, " \t\r\n", CodeBodyEmpty},
		{SMS, "\u3000\u00a0\u200b\ufeff", CodeBodyEmpty},
		{SMS, strings.Repeat("a", 1601), CodeBodyTooLong},
		{SMS, strings.Repeat("あ", 1601), CodeBodyTooLong},
		{Call, strings.Repeat("あ", 4001), CodeBodyTooLong},
		{SMS, strings.Repeat("a", 10_000_000), CodeBodyTooLong},
		{SMS, "a\x00b", CodeBodyControlCharacters},
		{Call, "a\x1bb", CodeBodyControlCharacters},
		{SMS, "a\x7f", CodeBodyControlCharacters},
		{SMS, "a\u0085", CodeBodyControlCharacters},
		{SMS, "\x00", CodeBodyControlCharacters},
		{SMS, "a\fb", CodeBodyControlCharacters},
		{SMS, "a\xff", CodeBodyNotUTF8},
		{SMS, "\xed\xa0\x80", CodeBodyNotUTF8}, // half of a surrogate pair
	}
	for _, tt := range tests {
		var wrong *BodyError
		err := CheckBody(tt.channel, tt.body)
		if !errors.As(err, &wrong) || wrong.Code != tt.code || wrong.Channel != tt.channel {
			t.Errorf("%s %q: %#v, want the code %s", tt.channel, short(tt.body), err, tt.code)
			continue
		}
		if !strings.Contains(err.Error(), ": ") {
			t.Errorf("%s does not say what to do: %v", tt.code, err)
		}
	}
	err := CheckBody(SMS, strings.Repeat("a", 1601))
	if want := "the body has 1601 characters, and SMS allows 1600: shorten it"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}
