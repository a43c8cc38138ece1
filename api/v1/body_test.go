package v1

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/todoku/todoku/api/problem"
)

func read(text string) *body[sendRequest] {
	var b body[sendRequest]
	b.read([]byte(text))
	return &b
}

func TestWhatIsNoObject(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want problem.Code
	}{
		"a list":                       {`[]`, problem.WrongType},
		"a text":                       {`"SMS"`, problem.WrongType},
		"nothing":                      {"", problem.RequestEmpty},
		"white space":                  {" \n", problem.RequestEmpty},
		"not JSON":                     {"channel=SMS", problem.MalformedJSON},
		"an open object":               {`{"to": "1"`, problem.MalformedJSON},
		"a comma too many":             {`{"to": "1",}`, problem.MalformedJSON},
		"single quotes":                {`{'to': '1'}`, problem.MalformedJSON},
		"half a surrogate pair":        {`{"to": "\ud83d"}`, problem.MalformedJSON},
		"a byte order mark":            {"\ufeff{}", ""},
		"two byte order marks":         {"\ufeff\ufeff{}", problem.MalformedJSON},
		"nested without end":           {strings.Repeat("[", 100_000), problem.MalformedJSON},
		"a raw NUL":                    {"{\"to\": \"\x00\"}", problem.MalformedJSON},
		"a key twice":                  {`{"to": "1", "to": "2"}`, problem.DuplicateKey},
		"a key twice, escaped":         {`{"to": "1", "t\u006f": "2"}`, problem.DuplicateKey},
		"a key twice, deeper":          {`{"params": {"a": "1", "a": "2"}}`, problem.DuplicateKey},
		"an escaped NUL":               {`{"to": "\u0000"}`, problem.NULCharacter},
		"an escaped NUL in a key":      {`{"a\u0000": "1"}`, problem.NULCharacter},
		"Shift JIS":                    {"{\"body\": \"\x82\xb1\"}", problem.InvalidUTF8},
		"a second value":               {`{} {}`, problem.TrailingData},
		"something after the object":   {`{}x`, problem.TrailingData},
		"a NUL after the object":       {"{}\x00", problem.TrailingData},
		"a second value after a text":  {`"a" "b"`, problem.TrailingData},
		"a bracket after the object":   {`{}}`, problem.TrailingData},
		"a line break after the value": {"{}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got problem.Code
			if b := read(test.body); b.unreadable != nil {
				got = b.unreadable.Code
			}
			if got != test.want {
				t.Errorf("code = %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatCanBeReadAndIsWrongIsSaidAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string // pointer code
	}{
		"all is well":            {`{"channel": "SMS", "to": "1", "body": "x"}`, nil},
		"null is absent":         {`{"channel": "SMS", "to": null, "body": null}`, []string{"/to required"}},
		"types":                  {`{"channel": 1, "to": {}, "body": [], "template_id": "3", "reference": true}`, []string{"/channel wrong_type", "/to wrong_type", "/body wrong_type", "/template_id wrong_type", "/reference wrong_type"}},
		"numbers":                {`{"channel": "SMS", "to": "1", "template_id": 1.5}`, []string{"/template_id wrong_type"}},
		"a large number":         {`{"channel": "SMS", "to": "1", "template_id": 99999999999999999999}`, []string{"/template_id wrong_type"}},
		"parameters":             {`{"channel": "SMS", "to": "1", "params": {"a": 1, "b": "x", "c/d": null}}`, []string{"/params/a wrong_type", "/params/c~1d wrong_type"}},
		"parameters in a list":   {`{"channel": "SMS", "to": "1", "params": []}`, []string{"/params wrong_type"}},
		"unknown fields":         {`{"channel": "SMS", "to": "1", "sent_at": "2030-01-01T00:00:00Z", "TO": "1"}`, []string{"/TO unknown_field", "/sent_at unknown_field"}},
		"a name of many letters": {`{"channel": "SMS", "to": "1", "` + strings.Repeat("x", 1000) + `": 1}`, []string{" unknown_field"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := read(test.body)
			if b.unreadable != nil {
				t.Fatal(b.unreadable)
			}
			var got []string
			for _, d := range b.Wrong {
				got = append(got, d.Pointer+" "+string(d.Code))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("wrong = %q, want %q", got, test.want)
			}
		})
	}
}

func TestUnknownFieldsSuggestWhatWasMeant(t *testing.T) {
	known := []string{"channel", "to", "body", "template_id", "params", "reference"}
	for name, want := range map[string]string{
		"chanel": "channel", "templateId": "template_id", "template-id": "template_id", "Body": "body",
		"param": "params", "refrence": "reference", "To": "to",
		"from": "", "send_at": "", "x": "", "": "", strings.Repeat("channel", 20): "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// Whatever a body is, reading it ends in a problem or in a value, and what encoding/json can read as
// an object with known fields of the right types is taken as encoding/json takes it.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"channel": "SMS", "to": "090-1234-5678", "body": "ご予約"}`,
		`{"channel": "CALL", "to": "+81 90 1234 5678", "template_id": 3, "params": {"氏名": "山田"}, "reference": "r"}`,
		`{"to": "\u0000"}`, `{"to": 1e400}`, `{"a": 1, "a": 2}`, `{}{}`, `{"params": {"~": "/", "": ""}}`, "{\"to\": \"\xff\"}",
		`[]`, `null`, ``, ` `, `{"to": "\ud800"}`, `{"template_id": -0}`, `{"params": null}`, `{"":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b body[sendRequest]
		b.read(data)
		for _, d := range b.Wrong {
			if _, ok := problem.Lookup(d.Code); !ok || d.Detail == "" || !utf8.ValidString(d.Pointer) {
				t.Errorf("not a detail: %+v", d)
			}
		}
		if b.unreadable != nil {
			if want := map[bool]int{true: 422, false: 400}[b.unreadable.Code == problem.WrongType]; b.unreadable.Status != want {
				t.Errorf("status = %d, want %d", b.unreadable.Status, want)
			}
			return
		}
		if strings.Contains(b.Value.To, "\x00") {
			t.Error("a NUL character came through")
		}
		var plain sendRequest
		if len(b.Wrong) == 0 {
			if err := json.Unmarshal(data, &plain); err != nil {
				t.Fatalf("encoding/json: %v", err)
			}
			if plain.To != b.Value.To || plain.Channel != b.Value.Channel || len(plain.Params) != len(b.Value.Params) {
				t.Errorf("read %+v, encoding/json reads %+v", b.Value, plain)
			}
		}
	})
}
