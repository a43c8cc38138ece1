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
		return r == utf8.RuneError || 0x80 <= r && r <= 0x9F || r&0xFFFE == 0xFFFE
	})
}

func hasHighByte(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0
}

// doubtful reports whether a row of a file whose encoding was not declared was written in another encoding, as
// where files were put together: what it would be read as is another text.
func (c *charset) doubtful(record []string) bool {
	if !c.sniffed {
		return false
	}
	row := []byte(strings.Join(record, ","))
	seen := countUTF8(row)
	switch {
	case c.encoding == nil:
		return seen.bytes > 0 && !seen.likely()
	case seen.other == 0 && seen.likely():
		return true
	}
	count := countShiftJIS(row)
	return looksLikeEUC(row) || count.enclosed+count.oddKana > 0 || count.rare > 1 && count.common == 0
}

// sniffer passes the bytes of a file on, with line feeds at the ends of its lines, and tells the encoding
// where ASCII ends.
type sniffer struct {
	r       *bufio.Reader
	charset *charset // nil: not told yet
	ascii   bool     // only ASCII so far
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
			if err := s.tell(sample); err != nil {
				return 0, err
			}
			s.ascii = false
		}
		if s.ascii {
			p = p[:min(ascii, len(p))]
		}
	}
	n, err := s.r.Read(p)
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
	case 2*seen.bytes <= seen.other && countShiftJIS(sample).isShiftJIS():
		s.charset = &charset{name: "shift_jis", encoding: japanese.ShiftJIS, sniffed: true}
	default:
		return &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
	}
	return nil
}

// utf8Count is how much of a text is well-formed UTF-8 beyond ASCII.
type utf8Count struct {
	bytes, long, letters int // in sequences; sequences of three bytes and more; those of two that people write much
	other                int // bytes that are not ASCII and in no sequence
}

func countUTF8(text []byte) (c utf8Count) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			if !utf8.FullRune(text) {
				return c // cut off by the end of the sample
			}
			c.other++
		case r >= utf8.RuneSelf && r <= 0x9F: // controls that nobody writes
			c.other += size
		case r >= utf8.RuneSelf:
			c.bytes += size
			if size > 2 {
				c.long++
			} else if r < 0x250 || unicode.In(r, unicode.Greek, unicode.Cyrillic, unicode.Hebrew, unicode.Arabic) {
				c.letters++
			}
		}
		text = text[size:]
	}
	return c
}

func (c utf8Count) likely() bool { return c.long+c.letters > 0 || c.bytes >= 8 }

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
	user     int // user-defined characters, which mean nothing outside
	oddKana  int // half-width kana where no word has them: letters, or halves of characters, elsewhere
	enclosed int // kanji between Latin letters: letters with accents elsewhere
	invalid  int
}

func countShiftJIS(text []byte) (c shiftJISCount) {
	letter := func(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
	var common, half int // of the run
	before := byte(0)    // the ASCII in front of a character, if that is in front of it
	endRun := func() {
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
			endRun()
			before = lead
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
		inWord := letter(trail) && letter(before)
		before = 0
		if kanji && letter(trail) && (inWord || i+2 < len(text) && letter(text[i+2])) {
			c.enclosed++
		}
		switch {
		case 0xF0 <= lead && lead <= 0xF9:
			c.user++
		case 0x829F <= code && code <= 0x82F1, 0x8340 <= code && code <= 0x8396, 0x889F <= code && code <= 0x9872:
			if !inWord && (lead != 0x8E || trail < 0xA1 || trail > 0xDF) { // which is half-width kana in EUC-JP
				common++
			}
		case kanji && lead < 0xED: // those of NEC and IBM are in names
			c.rare++
		}
		i++
	}
	endRun()
	decoded, _ := japanese.ShiftJIS.NewDecoder().Bytes(text)
	c.invalid = max(c.invalid, bytes.Count(decoded, []byte("\uFFFD"))-c.user-1) // the sample may cut off one
	return c
}

func (c shiftJISCount) isShiftJIS() bool {
	return c.common >= 2 && c.common >= 2*c.rare && c.common >= 2*c.user && c.common >= 4*c.enclosed && c.common >= 10*c.invalid
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
