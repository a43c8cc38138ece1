package notify

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	utf16 "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// charset is the encoding of a file. Without a decoder it is UTF-8.
type charset struct {
	name     string // as WHATWG names it
	encoding encoding.Encoding
	sniffed  bool // told by what the file looks like, so that each row is looked at again
}

// declaredCharset finds an encoding by its label, such as windows-1252 or sjis. An empty label declares none.
func declaredCharset(label string) (*charset, error) {
	label = strings.ToLower(strings.TrimSpace(label))
	switch label {
	case "":
		return nil, nil
	case "cp932", "ms932", "x-ms-cp932":
		label = "shift_jis"
	}
	found, err := htmlindex.Get(label)
	if err == nil {
		label, err = htmlindex.Name(found)
	}
	if err != nil || label == "replacement" || label == "x-user-defined" {
		return nil, &CSVError{Code: CSVUnknownEncoding, Detail: "there is no such charset: write a name of the WHATWG encoding standard, such as utf-8, shift_jis, windows-1252 or gb18030"}
	}
	if label == "utf-8" {
		found = nil
	}
	return &charset{name: label, encoding: found}, nil
}

// decode is the cell as UTF-8, unless some of it means nothing in the encoding.
func (c *charset) decode(cell string) (text string, ok bool) {
	text = cell
	if c.encoding != nil && hasHighByte(cell) {
		var err error
		if text, err = c.encoding.NewDecoder().String(cell); err != nil {
			return "", false
		}
	}
	return text, utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r == utf8.RuneError || 0x80 <= r && r <= 0x9F || r&0xFFFE == 0xFFFE || r == 0 || r == 0x1B
	})
}

func hasHighByte(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0
}

// doubt is why a row may be another text than it would be read as.
type doubt int

const (
	noDoubt doubt = iota
	badRow        // written in another encoding, as where files were put together
	unclear       // as likely written in another encoding: only a declared charset tells
)

// doubtOf looks at a row of a file whose encoding was not declared.
func (c *charset) doubtOf(record []string) doubt {
	if !c.sniffed {
		return noDoubt
	}
	ascii := true
	for _, cell := range record {
		ascii = ascii && !hasHighByte(cell)
	}
	if ascii {
		return noDoubt
	}
	row := []byte(strings.Join(record, ","))
	seen := countUTF8(row)
	if c.encoding == nil {
		if seen.other == 0 && !seen.likely() {
			return badRow
		}
		return noDoubt
	}
	count := countShiftJIS(row)
	switch {
	case seen.other == 0 && seen.likely(), looksLikeEUC(row), count.enclosed+count.oddKana > 0,
		4*count.kanaBeforeLetter > count.common, count.common < 3 && count.elsewhere > 0, count.common == 0 && count.rare > 0:
		return badRow
	case (count.common == 1 || count.common == 2) && count.rare+count.extended > 0 &&
		isWrittenIn(simplifiedchinese.GBK, row): // traditional characters
		return badRow
	case count.common > 0, count.wide > 2, !isWrittenElsewhere(row):
		return noDoubt
	}
	return unclear
}

// sniffer passes the bytes of a file on, with line feeds at the ends of its lines, and tells the encoding
// where ASCII ends.
type sniffer struct {
	r       *bufio.Reader
	charset *charset // nil: not told yet
	ascii   bool     // only ASCII so far
	last    byte     // that was read
}

const unknownEncoding = "the encoding of the file cannot be told: save it as `CSV UTF-8`, or name it as charset, as in `Content-Type: text/csv; charset=windows-1252`"

// sampleSize is how much of the file, from its first byte that is not ASCII, the encoding is told by.
const sampleSize = 64 << 10

// newSniffer reads the file in the declared encoding, if there is one. A byte order mark outweighs it.
func newSniffer(r io.Reader, declared *charset) (*sniffer, error) {
	s := &sniffer{r: bufio.NewReaderSize(r, sampleSize), charset: declared, ascii: true}
	head, _ := s.r.Peek(4) // a short file is read, and its error found, below
	recode := func(e encoding.Encoding) {
		s.r = bufio.NewReaderSize(transform.NewReader(s.r, e.NewDecoder()), sampleSize)
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0")): // .xlsx, .ods, .numbers; .xls
		return nil, &CSVError{Code: CSVUnknownEncoding, Detail: "the file is a workbook or an archive, and no text: open it, and save it as `CSV UTF-8`"}
	case bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")):
		_, _ = s.r.Discard(3) // just peeked
		s.charset = &charset{name: "utf-8"}
	case bytes.HasPrefix(head, []byte("\xFE\xFF")), bytes.HasPrefix(head, []byte("\xFF\xFE")):
		recode(utf16.UTF16(utf16.BigEndian, utf16.ExpectBOM))
		s.charset = &charset{name: "utf-16"}
	case declared != nil && (strings.HasPrefix(declared.name, "utf-16") || declared.name == "iso-2022-jp"):
		recode(declared.encoding) // its bytes may look like commas
		s.charset = &charset{name: declared.name}
	}
	return s, nil
}

func (s *sniffer) Read(p []byte) (int, error) {
	if _, err := s.r.Peek(1); err != nil {
		return 0, err
	}
	sample, _ := s.r.Peek(s.r.Buffered())
	if s.ascii {
		ascii := bytes.IndexFunc(sample, func(r rune) bool { return r >= utf8.RuneSelf || s.charset == nil && r == 0x1B })
		switch {
		case ascii < 0:
			ascii = len(sample)
		case ascii == 0:
			sample, _ = s.r.Peek(sampleSize) // shorter at the end of the file
			if err := s.tell(append([]byte{s.last}, sample...)); err != nil {
				return 0, err
			}
			s.ascii = false
		}
		if s.ascii {
			p = p[:min(ascii, len(p))]
		}
	}
	n, err := s.r.Read(p)
	if n > 0 {
		s.last = p[n-1]
	}
	for i := range n {
		if p[i] != '\r' {
			continue
		}
		next := p[min(i+1, n-1)]
		if i == n-1 {
			next = 0
			if after, _ := s.r.Peek(1); len(after) > 0 {
				next = after[0]
			}
		}
		if next != '\n' { // a line break of old Macs
			p[i] = '\n'
		}
	}
	return n, err
}

// tell decides by evidence, and not by the absence of an error.
func (s *sniffer) tell(sample []byte) error {
	seen := countUTF8(sample)
	if s.charset != nil {
		if s.charset.encoding != nil && seen.other == 0 && (seen.long > 0 || seen.bytes >= 8) {
			return &CSVError{Code: CSVUnknownEncoding, Detail: "the file is UTF-8, and not in the charset that is declared: leave charset out"}
		}
		return nil
	}
	switch {
	case bytes.IndexByte(sample, 0x1B) >= 0: // ISO-2022
		return &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
	case seen.isUTF8():
		s.charset = &charset{name: "utf-8", sniffed: true}
	case (!seen.likely() || 2*seen.bytes <= seen.other) && countShiftJIS(sample).isShiftJIS() &&
		!isWrittenElsewhere(sample[:min(len(sample), 4<<10)]):
		s.charset = &charset{name: "shift_jis", encoding: japanese.ShiftJIS, sniffed: true}
	default:
		return &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
	}
	return nil
}

// utf8Count is how much of a text is well-formed UTF-8 beyond ASCII.
type utf8Count struct {
	bytes, long int // in sequences; sequences of three bytes and more
	strong      int // words and signs that bytes of another encoding do not make by chance
	other       int // bytes that are not ASCII and in no sequence
}

func countUTF8(text []byte) (c utf8Count) {
	var word utf8Word
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			if !utf8.FullRune(text) { // cut off by the end of the sample
				text = nil
				continue
			}
			c.other++
		case r >= utf8.RuneSelf && r <= 0x9F: // controls that nobody writes
			c.other += size
		case r >= utf8.RuneSelf:
			c.bytes += size
			if size > 2 {
				c.long++
			}
			if r == 0xFEFF { // the byte order mark of a file that was appended
				c.strong++
			}
		}
		if !word.add(r, text[:size]) {
			c.strong += word.strength()
			word = utf8Word{}
		}
		text = text[size:]
	}
	c.strong += word.strength()
	return c
}

// utf8Word is letters, digits and signs that follow each other.
type utf8Word struct {
	ascii   bool // has a letter or a digit of ASCII
	low     bool // has a second byte that encodings of East Asia do not use for common characters
	mixed   bool // of two scripts, or with a capital behind a small letter
	letters int  // of two bytes
	latin   int  // of those
	long    int  // of three bytes and more
	script  *unicode.RangeTable
	small   bool // the last letter
}

// add takes a character, or reports that the word is over.
func (w *utf8Word) add(r rune, text []byte) bool {
	switch {
	case r < utf8.RuneSelf:
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
		w.ascii = true
		return true
	case r == utf8.RuneError || r <= 0x9F || r == 0xFEFF:
		return false
	case len(text) > 2:
		w.long++
		return true
	case r < 0x250:
		w.latin++
		return true
	}
	w.letters++
	w.low = w.low || text[1] < 0xA1
	script := scriptOf(r)
	w.mixed = w.mixed || script == nil || w.script != nil && script != w.script || w.small && unicode.IsUpper(r)
	w.script, w.small = script, unicode.IsLower(r)
	return true
}

// strength is how sure it is that the word is UTF-8; 0: bytes of another encoding make it too.
func (w *utf8Word) strength() int {
	switch {
	case w.long > 1, w.long == 1 && (!w.ascii || w.latin > 0):
		return w.long
	case w.long == 1, w.mixed, w.letters > 0 && (w.latin > 0 || w.ascii):
		return 0 // as a kanji beside a letter
	case w.latin > 0 && w.ascii:
		return 1
	case w.letters > 3, w.letters > 1 && w.low:
		return 1
	}
	return 0
}

// scriptOf is the script of a letter that languages of today write; nil: none.
func scriptOf(r rune) *unicode.RangeTable {
	switch {
	case 0x460 <= r && r <= 0x489, 0x37B <= r && r <= 0x383, 0x3D0 <= r && r <= 0x3FF, 0x250 <= r && r <= 0x2FF:
		return nil // only in old books
	}
	for _, script := range scripts {
		if unicode.Is(script, r) {
			return script
		}
	}
	return nil
}

var scripts = []*unicode.RangeTable{
	unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Hebrew, unicode.Arabic, unicode.Thai, unicode.Han, unicode.Hiragana,
	unicode.Katakana, unicode.Hangul, unicode.Armenian, unicode.Thaana, unicode.Nko, unicode.Syriac,
}

func (c utf8Count) likely() bool { return c.strong > 0 }

// isUTF8 tells UTF-8 with a stray byte or a row of another encoding from other encodings, in which
// sequences that are well-formed come by chance.
func (c utf8Count) isUTF8() bool {
	switch {
	case !c.likely():
		return false // as half-width kana of Shift_JIS
	case c.other == 0:
		return true
	case c.long > 0:
		return c.bytes >= 6 && c.bytes >= 2*c.other
	}
	return c.bytes >= 4 && c.bytes >= 4*c.other
}

// shiftJISCount is what a text would consist of as Shift_JIS.
type shiftJISCount struct {
	common   int // kana and kanji of JIS level 1, which other encodings do not make
	rare     int // kanji of level 2, which are lower case letters with accents, or Cyrillic, elsewhere
	extended int // kanji of NEC and IBM, which are in names
	user     int // user-defined characters, which mean nothing outside
	oddKana  int // half-width kana where no word has them: letters, or halves of characters, elsewhere
	enclosed int // kanji between Latin letters: letters with accents elsewhere
	invalid  int

	wide int // full-width digits and letters

	kanaBeforeLetter int // kana that end in a letter, in front of another: a capital with an accent elsewhere
	elsewhere        int // characters that alone, or with one more, are rather a word of another encoding
}

func countShiftJIS(text []byte) (c shiftJISCount) {
	letter := func(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
	var common, half, start int // of the run
	before := byte(0)           // the ASCII in front of a character, if that is in front of it
	var kanaOfEUC int
	endRun := func(end int) {
		if run := text[start:end]; len(run) > 3 && run[0] < 0xA0 && allAbove(run[1:], 0xE0) {
			c.elsewhere++ // a capital and small letters of Macs in Cyrillic
		}
		if half == 0 { // half-width kana among kanji are letters elsewhere
			c.common += common
		}
		if half == 1 && common == 0 {
			c.oddKana++
		}
		common, half = 0, 0
	}
	for i := 0; i < len(text); i++ {
		lead := text[i]
		switch {
		case lead < utf8.RuneSelf:
			endRun(i)
			before, start = lead, i+1
			continue
		case 0xA1 <= lead && lead <= 0xDF:
			if half == 0 && common == 0 && lead <= 0xB0 || lead <= 0xA6 || half == 0 && letter(before) {
				c.oddKana++ // no word begins so
			}
			half++
			before = 0
			continue
		case i+1 == len(text): // cut off, or the end
			continue
		}
		trail := text[i+1]
		if trail < 0x40 || trail == 0x7F || trail > 0xFC || lead == 0x80 || lead == 0xA0 || lead > 0xFC {
			c.invalid++
			continue
		}
		code := int(lead)<<8 | int(trail)
		kanji := code >= 0x889F
		afterLetter := letter(before)
		inWord := letter(trail) && afterLetter
		before = 0
		nextLetter := i+2 < len(text) && letter(text[i+2])
		if kanji && (letter(trail) && (inWord || nextLetter) || afterLetter && nextLetter) {
			c.enclosed++
		}
		if !kanji && lead != 0x81 && letter(trail) && (inWord || nextLetter) {
			c.kanaBeforeLetter++
		}
		switch {
		case 0xF0 <= lead && lead <= 0xF9:
			c.user++
		case 0x849F <= code && code <= 0x84BE: // frames, which no name has
			c.oddKana++
		case 0x824F <= code && code <= 0x829A:
			c.wide++
		case 0x829F <= code && code <= 0x82F1, 0x8340 <= code && code <= 0x8396, 0x889F <= code && code <= 0x9872:
			switch {
			case lead == 0x8E && 0xA1 <= trail && trail <= 0xDF: // a half-width kana in EUC-JP
				kanaOfEUC++
			case !inWord:
				common++
			}
			if isWordElsewhere(code, i == start, i+2 == len(text) || text[i+2] < utf8.RuneSelf) {
				c.elsewhere++
			}
		case kanji && lead < 0xED: // those of NEC and IBM are in names
			c.rare++
		case kanji:
			c.extended++
		}
		i++
	}
	endRun(len(text))
	if kanaOfEUC == 1 { // in EUC-JP a word of one letter
		c.common++
	}
	decoded, _ := japanese.ShiftJIS.NewDecoder().Bytes(text)
	c.invalid = max(c.invalid, bytes.Count(decoded, []byte("\uFFFD"))-c.user-1) // the sample may cut off one
	return c
}

// isWordElsewhere reports whether a character of Shift_JIS, the first or the last one of a run, is more often part of a
// name in another encoding.
func isWordElsewhere(code int, first, last bool) bool {
	lead, trail := code>>8, byte(code)
	vowel := strings.IndexByte("aeiouyAEIOUY", trail) >= 0
	switch {
	case !first:
	case code == 0x8F88, code == 0x97EE: // 張 and 楊 in GBK
		return true
	case code == 0x8C4F && !last: // 孫 in GBK
		return true
	case lead == 0x8A, lead == 0x8C, lead == 0x8E: // Š, Œ or Ś, Ž of Windows, in words of two letters
		return last && vowel
	case lead == 0x83: // É of Macs
		return last && trail >= 'a' && trail <= 'z'
	case lead == 0x92: // the apostrophe of Dutch ’t and ’s
		return last && (trail == 't' || trail == 's' || trail == 'n')
	}
	return false
}

func allAbove(text []byte, least byte) bool {
	for _, b := range text {
		if b < least {
			return false
		}
	}
	return true
}

func (c shiftJISCount) isShiftJIS() bool {
	return c.common >= 2 && c.common >= 2*c.rare && c.common >= 2*c.user &&
		c.common >= 4*(c.enclosed+c.kanaBeforeLetter) && c.common >= 10*c.invalid
}

// looksLikeEUC reports whether the sample, which is Shift_JIS too, is EUC-JP. As Shift_JIS nearly all of it
// would be half-width kana, and of an even number wherever some follow each other. That tells the two apart
// where there are many such runs; where there are few, pairs do that are frequent in EUC-JP and not in kana.
func looksLikeEUC(sample []byte) bool {
	const many = 16
	var runs, hiragana, kanji int
	for before := byte(0); len(sample) > 1; {
		lead, trail := sample[0], sample[1]
		switch {
		case lead < utf8.RuneSelf:
			before, sample = lead, sample[1:]
			continue
		case lead < 0xA1 || lead > 0xFE || trail < 0xA1 || trail > 0xFE:
			return false
		case lead == 0xA4: // as half-width kana a comma
			hiragana++
		case lead >= 0xB0 && lead <= 0xCF && trail >= 0xE0:
			kanji++
		}
		if before < utf8.RuneSelf {
			runs++
		}
		before, sample = trail, sample[2:]
	}
	return runs >= many || hiragana > 1 || kanji > 0
}
