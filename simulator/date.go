package simulator

import (
	"encoding/json"
	"time"
)

// rfc2822 is how Twilio writes dates in its 2010-04-01 API and in the Timestamp of call callbacks.
const rfc2822 = "Mon, 02 Jan 2006 15:04:05 +0000"

// twilioDate writes t as Twilio does; null when it has not happened yet.
func twilioDate(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(rfc2822)
	return &s
}

// instant is a time that the simulator's own endpoints write in RFC 3339 with microseconds.
type instant time.Time

func (t instant) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
