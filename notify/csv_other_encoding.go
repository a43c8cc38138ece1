package notify

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// otherEncodings are those of which short texts are well-formed Shift_JIS too.
var otherEncodings = []encoding.Encoding{
	japanese.EUCJP, simplifiedchinese.GBK, traditionalchinese.Big5, korean.EUCKR,
	charmap.Windows1250, charmap.Windows1251, charmap.Windows1252, charmap.Windows1253, charmap.Windows1255,
	charmap.Windows1256, charmap.Windows1257, charmap.Windows1258, charmap.Windows874, charmap.ISO8859_5,
	charmap.ISO8859_7, charmap.KOI8R, charmap.CodePage866, charmap.Macintosh, charmap.MacintoshCyrillic,
}

// isWrittenElsewhere reports whether a text that is Shift_JIS is one that people write in another encoding too.
func isWrittenElsewhere(text []byte) bool {
	return slices.ContainsFunc(otherEncodings, func(other encoding.Encoding) bool { return isWrittenIn(other, text) })
}

func isWrittenIn(other encoding.Encoding, text []byte) bool {
	decoded, err := other.NewDecoder().Bytes(text)
	return err == nil && isWritten(decoded)
}

// isWritten reports whether people write such a text: words of one script each, in capitals or in small letters with
// or without a capital in front, and common signs in their places.
func isWritten(text []byte) bool {
	var word writtenWord
	quotes, before := 0, ' '
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case r == utf8.RuneError:
			return len(text) == 0 && size == 1 // cut off by the end of the sample
		case unicode.IsLetter(r), unicode.IsMark(r):
			if commonSign(before) && before != '’' && !opens(before) || !word.add(r) {
				return false
			}
		case r < utf8.RuneSelf, commonSign(r):
			switch {
			case !word.isWritten(), (opens(r) || r == '—') && word.letters > 0,
				before >= utf8.RuneSelf && strings.ContainsRune("{|}~^[]\\`@_", r):
				return false
			}
			word = writtenWord{}
		default:
			return false
		}
		switch r {
		case '“', '„':
			quotes++
		case '”':
			quotes--
		}
		before = r
	}
	return quotes == 0 && word.isWritten()
}

// opens reports whether a sign stands in front of a word.
func opens(r rune) bool { return r == '“' || r == '„' || r == '‘' }

// commonSign reports whether a sign that is not ASCII is common beside words.
func commonSign(r rune) bool {
	switch r {
	case '‘', '’', '“', '”', '„', '–', '—', '…', '€', '°', '\u00A0', '\u3000', '、', '。', '・', '（', '）', '－':
		return true
	}
	return false
}

// writtenWord is letters that follow each other.
type writtenWord struct {
	script         *unicode.RangeTable
	letters, ascii int
	small          bool // the last letter
	capitals       int
}

// add takes a letter, or reports that no word has it there.
func (w *writtenWord) add(r rune) bool {
	script := scriptOf(r)
	switch {
	case unicode.IsMark(r) && w.letters > 0:
		return true
	case 0xFF66 <= r && r <= 0xFF9F: // half-width kana
		script = unicode.Han
	case script == nil:
		return false
	case script == unicode.Hiragana || script == unicode.Katakana:
		script = unicode.Han
	case (script == unicode.Han || script == unicode.Hangul) && !commonCharacters()[r]:
		return false
	}
	small := unicode.IsLower(r)
	if w.script != nil && script != w.script || w.small && unicode.IsUpper(r) || small && w.capitals > 1 {
		return false
	}
	w.script, w.small = script, small
	if unicode.IsUpper(r) {
		w.capitals++
	}
	w.letters++
	if r < utf8.RuneSelf {
		w.ascii++
	}
	return true
}

// isWritten reports whether the word may end. One of Latin letters does not consist of accented ones.
func (w *writtenWord) isWritten() bool {
	return w.script != unicode.Latin || w.letters < 2 || w.ascii > 0
}

// commonCharacters are the characters of East Asia that are more than rare: those of GB 2312, the first levels of Big5
// and of JIS X 0208, and the syllables of KS X 1001.
var commonCharacters = sync.OnceValue(func() map[rune]bool {
	found := make(map[rune]bool, 12_000)
	add := func(e encoding.Encoding, from, to int) {
		for code := from; code <= to; code++ {
			if decoded, err := e.NewDecoder().Bytes([]byte{byte(code >> 8), byte(code)}); err == nil {
				if r, size := utf8.DecodeRune(decoded); size == len(decoded) {
					found[r] = true
				}
			}
		}
	}
	for row := 0xB0; row <= 0xF7; row++ {
		add(simplifiedchinese.GBK, row<<8|0xA1, row<<8|0xFE)
	}
	for row := 0xB0; row <= 0xC8; row++ {
		add(korean.EUCKR, row<<8|0xA1, row<<8|0xFE)
	}
	add(traditionalchinese.Big5, 0xA440, 0xC67E)
	add(japanese.ShiftJIS, 0x889F, 0x9872)
	delete(found, utf8.RuneError)
	return found
})
