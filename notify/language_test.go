package notify

import "testing"

func TestMatchLanguage(t *testing.T) {
	for header, want := range map[string]Language{
		"":                           English,
		"ja":                         Japanese,
		"ja-JP":                      Japanese,
		"ja_JP":                      Japanese,
		"JA-jp":                      Japanese,
		"ja,en;q=0.8":                Japanese,
		"en-US,en;q=0.9,ja;q=0.8":    English,
		"en;q=0.5,ja;q=0.9":          Japanese,
		"fr-FR,fr;q=0.9,ja;q=0.5":    Japanese,
		"fr":                         English,
		"zh-TW":                      English,
		"ko-KR":                      English,
		"*":                          English,
		"ja;q=0":                     English,
		"not a language at all, ???": English,
		"ja-JP-x-osaka, de;q=0.1":    Japanese,
	} {
		if got := MatchLanguage(header); got != want {
			t.Errorf("MatchLanguage(%q) = %s, want %s", header, got, want)
		}
	}
}

func TestCallsSpeakTheLanguageOfTheirBody(t *testing.T) {
	tests := []struct{ body, language, voice string }{
		{"ご予約は明日10時です。", "ja-JP", "Polly.Mizuki"},
		{"ｶﾀｶﾅ", "ja-JP", "Polly.Mizuki"},
		{"明日", "ja-JP", "Polly.Mizuki"},
		{"Your code is 1234 です", "ja-JP", "Polly.Mizuki"},
		{"예약은 내일입니다.", "ko-KR", "Polly.Seoyeon"},
		{"金 선생님, 예약은 내일입니다.", "ko-KR", "Polly.Seoyeon"},
		{"キム（김）様、ご予約は明日です。", "ja-JP", "Polly.Mizuki"},
		{"Your appointment is tomorrow.", "en-US", "Polly.Joanna"},
		{"1234", "en-US", "Polly.Joanna"},
		{"", "en-US", "Polly.Joanna"},
	}
	for _, tt := range tests {
		if language, voice := SpeechLanguage(tt.body); language != tt.language || voice != tt.voice {
			t.Errorf("SpeechLanguage(%q) = %s, %s, want %s, %s", tt.body, language, voice, tt.language, tt.voice)
		}
	}
}
