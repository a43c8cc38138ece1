package notify

import (
	"unicode"

	"golang.org/x/text/language"
)

// Language is a language that our messages for people are written in.
type Language string

const (
	English  Language = "en"
	Japanese Language = "ja"
)

var (
	messageLanguages = []Language{English, Japanese} // the first is the default
	languageMatcher  = language.NewMatcher([]language.Tag{language.English, language.Japanese})
)

// MatchLanguage chooses the language of our messages by an Accept-Language header: Japanese for
// "ja" and "ja-JP" where they are preferred, English for everything else.
func MatchLanguage(acceptLanguage string) Language {
	wanted, _, err := language.ParseAcceptLanguage(acceptLanguage)
	if err != nil {
		return English
	}
	_, index, _ := languageMatcher.Match(wanted...)
	return messageLanguages[index]
}

// SpeechLanguage chooses the language and the voice in which a call speaks a body: Japanese for kana
// and kanji, Korean for Hangul, whichever there is more of, and American English for all else. The
// voices are those of Twilio's <Say> (twilio.com/docs/voice/twiml/say/text-speech). Chinese reads as
// Japanese: its characters alone do not tell.
func SpeechLanguage(body string) (language, voice string) {
	var japanese, korean int
	for _, r := range body {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han):
			japanese++
		case unicode.Is(unicode.Hangul, r):
			korean++
		}
	}
	switch {
	case japanese == 0 && korean == 0:
		return "en-US", "Polly.Joanna"
	case japanese >= korean:
		return "ja-JP", "Polly.Mizuki"
	default:
		return "ko-KR", "Polly.Seoyeon"
	}
}
