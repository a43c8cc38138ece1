package notify

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMaskKeepsTheLastFourDigits(t *testing.T) {
	for in, want := range map[string]string{
		"+819012345678":   "*********5678",
		"+15005550006":    "********0006",
		"090-1234-5678":   "*********5678",
		"12345678":        "****5678",
		"1234567":         "*******",
		"5678":            "****",
		"1":               "*",
		"":                "",
		"taro@example.jp": "***************",
		"+81901234567八":   "*************",
	} {
		if got := Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestExcerptIsShortAndOnOneLine(t *testing.T) {
	long := strings.Repeat("あ", 51)
	family := "👨‍👩‍👧"
	tests := []struct{ name, body, want string }{
		{"empty", "", ""},
		{"short", "ご予約の確認です。", "ご予約の確認です。"},
		{"exactly 50", long[:150], long[:150]},
		{"51", long, strings.Repeat("あ", 49) + "…"},
		{"lines", "  一行目\r\n\r\n\t二行目 \n", "一行目 二行目"},
		{"a space after 50", long[:150] + " \n ", long[:150]},
		{"control characters", "a\x00b\x1b[31mc\u202ed", "ab[31mcd"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
		{"accents stay with their letter", strings.Repeat("a", 48) + "e\u0301xyz", strings.Repeat("a", 48) + "…"},
		{"a joined emoji stays whole", strings.Repeat("a", 46) + family + "xyz", strings.Repeat("a", 46) + "…"},
		{"skin tone", strings.Repeat("a", 48) + "👍🏽xyz", strings.Repeat("a", 48) + "…"},
		{"nothing but marks", strings.Repeat("\u0301", 60), strings.Repeat("\u0301", 49) + "…"},
		{"no space before the end", strings.Repeat("a", 48) + " bcdef", strings.Repeat("a", 48) + "…"},
	}
	for _, tt := range tests {
		got := Excerpt(tt.body)
		if got != tt.want {
			t.Errorf("%s: Excerpt(%q) = %q, want %q", tt.name, tt.body, got, tt.want)
		}
		if utf8.RuneCountInString(got) > MaxExcerpt {
			t.Errorf("%s: %d characters", tt.name, utf8.RuneCountInString(got))
		}
	}
}
