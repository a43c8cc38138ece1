package webhook

import (
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

func TestCallersHearTheLanguageOfThePolicy(t *testing.T) {
	japanese, english := inLanguage[notify.Japanese].goodbye, inLanguage[notify.English].goodbye
	for name, test := range map[string]struct {
		policy notify.InboundPolicy
		region string
		want   string
	}{
		"its greeting":               {notify.InboundPolicy{Greeting: notify.Prompt{Say: "Welcome to our shop."}}, "JP", english},
		"its hold words":             {notify.InboundPolicy{Greeting: notify.Prompt{Play: "https://example.com/a.mp3"}, Hold: notify.Prompt{Say: "お待ちください。"}}, "US", japanese},
		"no words, in Japan":         {notify.InboundPolicy{}, "JP", japanese},
		"no words, in another place": {notify.InboundPolicy{}, "DE", english},
	} {
		if got := speaking(test.policy, test.region).goodbye; got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatACallerHearsOfTheQueue(t *testing.T) {
	for _, test := range []struct {
		language notify.Language
		place    int
		estimate time.Duration
		want     string
	}{
		{notify.English, 1, 0, "You are the next in line."},
		{notify.English, 3, 0, "You are number 3 in line."},
		{notify.English, 2, 20 * time.Second, "You are number 2 in line. The wait is about one minute."},
		{notify.English, 9, 61 * time.Second, "You are number 9 in line. The wait is about 2 minutes."},
		{notify.English, 900, 5 * time.Hour, "You are number 900 in line."},
		{notify.Japanese, 1, 0, "次におつなぎいたします。"},
		{notify.Japanese, 4, 3 * time.Minute, "ただいま4番目にお待ちいただいております。 お待ち時間はおよそ3分です。"},
	} {
		if got := inLanguage[test.language].whereabouts(test.place, test.estimate); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
