package notify

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSegments(t *testing.T) {
	tests := []struct {
		name, body string
		want       SegmentInfo
	}{
		{"empty", "", SegmentInfo{GSM7, 0, 0, 0}},
		{"one letter", "a", SegmentInfo{GSM7, 1, 1, 1}},
		{"160 letters", strings.Repeat("a", 160), SegmentInfo{GSM7, 1, 160, 160}},
		{"161 letters", strings.Repeat("a", 161), SegmentInfo{GSM7, 2, 161, 161}},
		{"306 letters", strings.Repeat("a", 306), SegmentInfo{GSM7, 2, 306, 306}},
		{"307 letters", strings.Repeat("a", 307), SegmentInfo{GSM7, 3, 307, 307}},
		{"the longest SMS", strings.Repeat("a", 1600), SegmentInfo{GSM7, 11, 1600, 1600}},
		{"the euro counts twice", "€", SegmentInfo{GSM7, 1, 2, 1}},
		{"80 euros", strings.Repeat("€", 80), SegmentInfo{GSM7, 1, 160, 80}},
		{"81 euros", strings.Repeat("€", 81), SegmentInfo{GSM7, 2, 162, 81}},
		{"an escape pair is not split", strings.Repeat("a", 152) + "€" + strings.Repeat("a", 152), SegmentInfo{GSM7, 3, 306, 305}},
		{"pairs leave a septet unused", strings.Repeat("€", 153), SegmentInfo{GSM7, 3, 306, 153}},
		{"alphabet", gsmAlphabet, SegmentInfo{GSM7, 1, 127, 127}},
		{"extension", gsmExtension, SegmentInfo{GSM7, 1, 20, 10}},
		{"line breaks", "a\r\nb\n", SegmentInfo{GSM7, 1, 5, 5}},
		{"a tab is not in GSM-7", "a\tb", SegmentInfo{UCS2, 1, 3, 3}},
		{"nor is a backtick", "`", SegmentInfo{UCS2, 1, 1, 1}},
		{"nor ç, though Ç is", "ç", SegmentInfo{UCS2, 1, 1, 1}},
		{"nor a curly quote", "it’s", SegmentInfo{UCS2, 1, 4, 4}},
		{"Japanese", "ご予約は明日です。", SegmentInfo{UCS2, 1, 9, 9}},
		{"70 kana", strings.Repeat("あ", 70), SegmentInfo{UCS2, 1, 70, 70}},
		{"71 kana", strings.Repeat("あ", 71), SegmentInfo{UCS2, 2, 71, 71}},
		{"134 kana", strings.Repeat("あ", 134), SegmentInfo{UCS2, 2, 134, 134}},
		{"135 kana", strings.Repeat("あ", 135), SegmentInfo{UCS2, 3, 135, 135}},
		{"one kana among letters", strings.Repeat("a", 70) + "あ", SegmentInfo{UCS2, 2, 71, 71}},
		{"in UCS-2 the euro counts once", "あ€", SegmentInfo{UCS2, 1, 2, 2}},
		{"an emoji counts twice", "😀", SegmentInfo{UCS2, 1, 2, 1}},
		{"35 emoji", strings.Repeat("😀", 35), SegmentInfo{UCS2, 1, 70, 35}},
		{"36 emoji", strings.Repeat("😀", 36), SegmentInfo{UCS2, 2, 72, 36}},
		{"67 emoji: a surrogate pair is not split", strings.Repeat("😀", 67), SegmentInfo{UCS2, 3, 134, 67}},
		{"a kanji outside of the basic plane", "𠮟", SegmentInfo{UCS2, 1, 2, 1}},
	}
	for _, tt := range tests {
		if got := Segments(tt.body); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestSegmentsOfAnyText(t *testing.T) {
	alphabet := []rune(gsmAlphabet + gsmExtension)
	rapid.Check(t, func(t *rapid.T) {
		gsm := rapid.StringOf(rapid.SampledFrom(alphabet)).Draw(t, "gsm")
		if got := Segments(gsm); got.Encoding != GSM7 {
			t.Fatalf("%q is %s", gsm, got.Encoding)
		}
		checkSegments(t, gsm)
		checkSegments(t, rapid.StringN(0, 500, -1).Draw(t, "any"))
		checkSegments(t, gsm+"あ")
	})
}

func FuzzSegments(f *testing.F) {
	for _, seed := range []string{"", "a", strings.Repeat("€", 81), strings.Repeat("😀", 67), "あ", "\xff", "\x00", "a\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) { checkSegments(t, body) })
}

// checkSegments holds what is true of every text.
func checkSegments(t interface{ Fatalf(string, ...any) }, body string) {
	got := Segments(body)
	single, joined := gsmSingle, gsmJoined
	if got.Encoding == UCS2 {
		single, joined = ucsSingle, ucsJoined
		if want := len(utf16.Encode([]rune(body))); got.Units != want {
			t.Fatalf("%q: %d units, want %d", body, got.Units, want)
		}
	}
	if want := utf8.RuneCountInString(body); got.Characters != want || got.Units < want || got.Units > 2*want {
		t.Fatalf("%q: %+v, want %d characters", body, got, want)
	}
	switch {
	case got.Units == 0 && got.Segments != 0,
		0 < got.Units && got.Units <= single && got.Segments != 1,
		got.Units > single && got.Segments < 2,
		// At most one unit of a segment stays unused, for a pair that does not fit.
		got.Units > single && got.Segments > (got.Units+joined-2)/(joined-1),
		got.Segments > 1 && got.Segments < (got.Units+joined-1)/joined:
		t.Fatalf("%q: %+v", body, got)
	}
}
