package webhook

import (
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
)

func TestCallbackURLNamesTheNotificationAndAsksForRepeats(t *testing.T) {
	id := uuid.MustParse("0190b0a0-0000-7000-8000-000000000000")
	callbackURL := CallbackURL("https://todoku.example.com/behind/proxy")
	for channel, want := range map[notify.Channel]string{
		notify.SMS:  "https://todoku.example.com/behind/proxy/api/twilio/webhook/sms-status?id=0190b0a0-0000-7000-8000-000000000000#rc=5&rp=all",
		notify.Call: "https://todoku.example.com/behind/proxy/api/twilio/webhook/call-status?id=0190b0a0-0000-7000-8000-000000000000#rc=5&rp=all",
	} {
		if got := callbackURL(channel, id); got != want {
			t.Errorf("%s: got %s, want %s", channel, got, want)
		}
	}
}
