package webhook

import (
	"fmt"
	"time"

	"github.com/todoku/todoku/notify"
)

// sentences are what callers hear where the policy has no words of its own.
type sentences struct {
	closed, busy, notSetUp, moment, unanswered, promised, goodbye string

	next  string               // in the queue: the next one
	place func(n int) string   // in the queue
	wait  func(min int) string // how long that takes
	offer func(key string) string
}

var inLanguage = map[notify.Language]sentences{
	notify.Japanese: {
		closed:     "お電話ありがとうございます。ただいまの時間は受付時間外でございます。",
		busy:       "お電話ありがとうございます。ただいま電話が大変混み合っております。",
		notSetUp:   "お電話ありがとうございます。恐れ入りますが、この番号では現在お電話をお受けしておりません。",
		moment:     "少々お待ちください。",
		unanswered: "申し訳ございません。担当者におつなぎすることができませんでした。",
		promised:   "承知いたしました。こちらから折り返しお電話いたします。",
		goodbye:    "お電話ありがとうございました。",
		next:       "次におつなぎいたします。",
		place: func(n int) string {
			return fmt.Sprintf("ただいま%d番目にお待ちいただいております。", n)
		},
		wait: func(n int) string { return fmt.Sprintf("お待ち時間はおよそ%d分です。", n) },
		offer: func(key string) string {
			return "折り返しのお電話をご希望の方は、" + key + "を押してください。"
		},
	},
	notify.English: {
		closed:     "Thank you for calling. We are closed at the moment.",
		busy:       "Thank you for calling. All our lines are busy at the moment.",
		notSetUp:   "Thank you for calling. We are sorry: calls to this number are not taken at the moment.",
		moment:     "One moment, please.",
		unanswered: "We are sorry that nobody could take your call.",
		promised:   "Thank you. We will call you back.",
		goodbye:    "Thank you for calling. Goodbye.",
		next:       "You are the next in line.",
		place:      func(n int) string { return fmt.Sprintf("You are number %d in line.", n) },
		wait:       func(n int) string { return fmt.Sprintf("The wait is about %s.", minutes(n)) },
		offer:      func(key string) string { return "To be called back, press " + key + "." },
	},
}

func minutes(n int) string {
	if n == 1 {
		return "one minute"
	}
	return fmt.Sprintf("%d minutes", n)
}

// speaking chooses the language of our sentences: that of the policy's own words, else the region's.
func speaking(p notify.InboundPolicy, region string) sentences {
	for _, words := range []string{p.Greeting.Say, p.Hold.Say, p.Busy.Say, p.Closed.Say} {
		if words == "" {
			continue
		}
		if language, _ := notify.SpeechLanguage(words); language == "ja-JP" {
			return inLanguage[notify.Japanese]
		}
		return inLanguage[notify.English]
	}
	if region == "JP" {
		return inLanguage[notify.Japanese]
	}
	return inLanguage[notify.English]
}

// longestEstimate is the longest wait that callers are told: beyond it a number is no help.
const longestEstimate = time.Hour

// whereabouts tells a caller the place in the queue and, where that is known, the wait.
func (s sentences) whereabouts(place int, estimate time.Duration) string {
	text := s.next
	if place > 1 {
		text = s.place(place)
	}
	if estimate > 0 && estimate < longestEstimate {
		text += " " + s.wait(int((estimate+time.Minute-1)/time.Minute))
	}
	return text
}
