package carrier

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTwiMLSpeaksTheBodyInItsLanguage(t *testing.T) {
	for body, want := range map[string]string{
		"Hello":            `<Response><Say language="en-US" voice="Polly.Joanna">Hello</Say></Response>`,
		"ご予約は10時です。":       `<Response><Say language="ja-JP" voice="Polly.Mizuki">ご予約は10時です。</Say></Response>`,
		"안녕하세요":            `<Response><Say language="ko-KR" voice="Polly.Seoyeon">안녕하세요</Say></Response>`,
		"a & b <c> 'd' \"": `<Response><Say language="en-US" voice="Polly.Joanna">a &amp; b &lt;c&gt; &#39;d&#39; &#34;</Say></Response>`,
		"</Say><Dial>+1</Dial>": `<Response><Say language="en-US" voice="Polly.Joanna">` +
			`&lt;/Say&gt;&lt;Dial&gt;+1&lt;/Dial&gt;</Say></Response>`,
		"nul \x00 bad \xff": `<Response><Say language="en-US" voice="Polly.Joanna">nul ` + "\uFFFD bad \uFFFD" + `</Say></Response>`,
	} {
		got, err := TwiML(body)
		if err != nil || got != want {
			t.Errorf("%q: %v\ngot  %s\nwant %s", body, err, got, want)
		}
	}
}

func TestTwiMLKeepsTheTextWhole(t *testing.T) {
	for _, body := range []string{"", "two\nlines\tand\r\nmore", "]]>", "&amp;", "絵文字 🎉 と ｶﾅ", "<!-- x -->"} {
		document, err := TwiML(body)
		if err != nil {
			t.Fatal(err)
		}
		var read response
		if err := xml.Unmarshal([]byte(document), &read); err != nil || read.Say.Text != body {
			t.Errorf("%q reads %q, %v", body, read.Say.Text, err)
		}
	}
}

func TestTwiMLHoldsAtMost4000Characters(t *testing.T) {
	empty, err := TwiML("あ")
	if err != nil {
		t.Fatal(err)
	}
	room := MaxTwiMLCharacters - utf8.RuneCountInString(empty) + 1
	if _, err := TwiML(strings.Repeat("あ", room)); err != nil {
		t.Errorf("%d characters of body: %v", room, err)
	}
	_, err = TwiML(strings.Repeat("あ", room+1))
	if tooLong, ok := errors.AsType[*TooLongError](err); !ok || tooLong.Characters != MaxTwiMLCharacters+1 {
		t.Errorf("%d characters of body: %v", room+1, err)
	}
}
