package notify

import (
	"regexp"
	"strings"
	"testing"
)

func TestFailureMessages(t *testing.T) {
	tests := []struct {
		code    string
		channel Channel
		word    string
		ja, en  string // what the messages contain
	}{
		{"", Call, "busy", "通話中", "busy"},
		{"", Call, "no-answer", "応答なし", "Nobody answered"},
		{"", Call, "failed", "通話失敗", "failed"},
		{"", Call, "canceled", "キャンセル", "canceled"},
		{CodeNotAnswered, Call, "completed", "応答なし", "Nobody answered"},
		{CodeAnsweredByMachine, Call, "completed", "留守番電話", "answering machine"},
		{"", SMS, "undelivered", "届きませんでした", "did not reach"},
		{"", SMS, "failed", "送信できませんでした", "could not be sent"},
		{"30003", SMS, "undelivered", "電源", "switched off"},
		{"30006", SMS, "undelivered", "固定電話", "landline"},
		{"21610", SMS, "", "配信停止", "opted out"},
		{"21614", SMS, "failed", "携帯電話", "mobile"},
		{"20003", Call, "", "認証", "credentials"},
		{CodeSendDeadline, SMS, "", "期限", "in time"},
		{CodeAmbiguousSend, SMS, "", "確認できません", "Nobody can tell"},
		{CodeNoReceipt, SMS, "sent", "結果", "outcome"},
		{"99999", SMS, "failed", "99999", "99999"},
		{"99999", Call, "busy", "通話中", "busy"},
		{"99999", Call, "busy", "99999", "99999"},
		{"99999", LINEText, "", "99999", "99999"},
		{"SOMETHING_NEW", SMS, "", "SOMETHING_NEW", "SOMETHING_NEW"},
	}
	for _, tt := range tests {
		for lang, want := range map[Language]string{Japanese: tt.ja, English: tt.en} {
			if got := FailureMessage(tt.code, tt.channel, tt.word, lang); !strings.Contains(got, want) {
				t.Errorf("%s %q %q in %s: %q, want %q in it", tt.channel, tt.code, tt.word, lang, got, want)
			}
		}
	}
}

func TestNothingToExplain(t *testing.T) {
	for _, tt := range []struct {
		channel Channel
		word    string
	}{{SMS, "delivered"}, {SMS, "queued"}, {SMS, ""}, {Call, "completed"}, {Call, "ringing"}, {LINEText, "x"}} {
		if got := FailureMessage("", tt.channel, tt.word, Japanese); got != "" {
			t.Errorf("%s %q: %q", tt.channel, tt.word, got)
		}
	}
}

func TestUnknownLanguagesReadEnglish(t *testing.T) {
	if got, want := FailureMessage("", Call, "busy", "fr"), FailureMessage("", Call, "busy", English); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEveryFailedWordIsExplained(t *testing.T) {
	for _, c := range []Channel{SMS, Call} {
		for _, w := range CarrierWords(c) {
			if explained := FailureMessage("", c, w.Name, English) != ""; explained != (w.Outcome == Failed) {
				t.Errorf("%s %s: explained = %v", c, w.Name, explained)
			}
		}
	}
}

func TestEveryExplanationIsASentenceInItsLanguage(t *testing.T) {
	code := regexp.MustCompile(`^([0-9]{5}|[A-Z_]+)$`)
	japanese := regexp.MustCompile(`\p{Hiragana}.*。$`)
	check := func(name string, e explanation) {
		if !japanese.MatchString(e.ja) {
			t.Errorf("%s: %q is no Japanese sentence", name, e.ja)
		}
		if !strings.HasSuffix(e.en, ".") || regexp.MustCompile(`[^ -~]`).MatchString(e.en) {
			t.Errorf("%s: %q is no English sentence", name, e.en)
		}
	}
	for c, e := range codeExplanations {
		if !code.MatchString(c) {
			t.Errorf("%q is no code", c)
		}
		check(c, e)
	}
	for _, byWord := range wordExplanations {
		for w, e := range byWord {
			check(w, e)
		}
	}
}
