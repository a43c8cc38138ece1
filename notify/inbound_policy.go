package notify

import (
	"cmp"
	"fmt"
	"time"
)

// InboundPolicy is how calls that come in are received. `todoku taskrouter apply` keeps it in the
// database, with the SIDs that TaskRouter gave; the webhooks and workflows read it there.
type InboundPolicy struct {
	WorkspaceSID string // WS…
	WorkflowSID  string // WW…: where calls are enqueued, and tasks of calling back

	Number string // that callers dial, in E.164 form; empty: numbers are set by hand

	// Asked says that our voice webhook is asked about every call first, and no Studio flow: a call of which only the end
	// is known came in while we could not be reached.
	Asked bool

	TaskAttributes map[string]any // added to those of each call's task

	// Instruction is how an operator is connected: "dequeue", or "conference". Empty means dequeue.
	Instruction         string
	CallerID            string // what operators' phones show, in E.164 form; empty: the number that was called
	PostWorkActivitySID string // WA…: what an operator does after a call; empty: what TaskRouter chooses

	Greeting Prompt // before the queue; empty: none
	Hold     Prompt // while waiting; empty: a short pause and the place in the queue again

	Closed Prompt // outside of the opening hours; empty: a sentence of ours
	Busy   Prompt // when the queue is full or too many call; empty: a sentence of ours

	CallbackKey string // the key that asks to be called back, "0" to "9"; empty: no such offer

	Hours    []OpeningHours // empty: always open
	Timezone string         // of the hours, such as Asia/Tokyo; empty: UTC

	MaxWaiting int // how many may wait in the queue at a time; 0: as many as Twilio lets

	// ServiceLevel is how soon a call should be answered. 0 means 20 s.
	ServiceLevel time.Duration

	FollowUps FollowUps
}

// Prompt is something that a caller hears: one of the two.
type Prompt struct {
	Say  string // spoken in the language that it is written in
	Play string // the https address of an audio file
}

// OpeningHours are those of some days of the week.
type OpeningHours struct {
	Days        []time.Weekday
	From, Until string // "09:00" and "18:00", local time; until 24:00 is the end of the day
}

// FollowUps says what is done about callers who did not speak with anybody.
type FollowUps struct {
	Abandoned FollowUp // hung up in the queue
	TimedOut  FollowUp // waited for too long
	Full      FollowUp // was turned away: the queue was full, or too many called
	Closed    FollowUp // was turned away outside of the opening hours
	Requested FollowUp // pressed the key
	Missed    FollowUp // came in while we could not be reached; without an action: as Abandoned
}

// FollowUp is what is done about a caller.
type FollowUp struct {
	Action FollowUpAction // empty means none
	Body   string         // what the SMS says, or the call
}

// FollowUpAction is a way to come back to a caller.
type FollowUpAction string

const (
	FollowUpNone FollowUpAction = "none"
	FollowUpSMS  FollowUpAction = "sms"
	FollowUpCall FollowUpAction = "call" // an automated call that says something
	FollowUpTask FollowUpAction = "task" // a task for an operator, who is then connected with the caller
)

// Why nothing is done about a caller though something was wanted.
const (
	FollowUpSpoken     = "already_spoken"      // an operator has spoken with them in another call
	FollowUpAlready    = "already_followed_up" // they got one within the day
	FollowUpTooLate    = "too_late"            // the call was found when it was over for a day
	FollowUpBudget     = "hourly_budget"       // as many were sent to all callers as may be
	FollowUpCallsAgain = "calls_again"         // not decided yet: they are calling again
)

// For is what the policy wants to be done about a call that ended so. reason says why it was turned away.
func (f FollowUps) For(state InboundState, reason string) FollowUp {
	switch {
	case state == InboundAbandoned:
		return f.Abandoned
	case state == InboundMissed && f.Missed.Action == "":
		return f.Abandoned
	case state == InboundMissed:
		return f.Missed
	case state == InboundTimedOut:
		return f.TimedOut
	case state == InboundCallback:
		return f.Requested
	case state == InboundTurnedAway && reason == TurnedAwayClosed:
		return f.Closed
	case state == InboundTurnedAway && reason != TurnedAwayNotSetUp:
		return f.Full
	}
	return FollowUp{}
}

const defaultServiceLevel = 20 * time.Second

// ServiceThreshold is how soon a call should be answered.
func (p InboundPolicy) ServiceThreshold() time.Duration {
	if p.ServiceLevel > 0 {
		return p.ServiceLevel
	}
	return defaultServiceLevel
}

// SetUp reports whether there is a queue to put calls into.
func (p InboundPolicy) SetUp() bool { return p.WorkflowSID != "" }

// Open reports whether calls are taken at that moment. Hours that end before they begin go on until
// the next day. The error says what of the hours cannot be read.
func (p InboundPolicy) Open(at time.Time) (bool, error) {
	if len(p.Hours) == 0 {
		return true, nil
	}
	zone, err := LoadZone(cmp.Or(p.Timezone, "UTC"))
	if err != nil {
		return false, fmt.Errorf("the time zone %q is not known: write one such as Asia/Tokyo", p.Timezone)
	}
	local := at.In(zone)
	minute := local.Hour()*60 + local.Minute()
	for _, h := range p.Hours {
		from, until, err := h.minutes()
		if err != nil {
			return false, err
		}
		for _, day := range h.Days {
			switch {
			case from < until && day == local.Weekday() && from <= minute && minute < until,
				from > until && day == local.Weekday() && from <= minute,
				from > until && (day+1)%7 == local.Weekday() && minute < until:
				return true, nil
			}
		}
	}
	return false, nil
}

// minutes are the hours in minutes since midnight.
func (h OpeningHours) minutes() (from, until int, err error) {
	if from, err = minuteOfDay(h.From); err == nil {
		until, err = minuteOfDay(h.Until)
	}
	if err == nil && from == until {
		err = fmt.Errorf("opening hours from %s until %s are empty: for a whole day write 00:00 and 24:00", h.From, h.Until)
	}
	return from, until, err
}

// Check says what of the hours cannot be read, or nil.
func (h OpeningHours) Check() error {
	_, _, err := h.minutes()
	return err
}

func minuteOfDay(text string) (int, error) {
	if text == "24:00" {
		return 24 * 60, nil
	}
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day: write it as in 09:00", text)
	}
	return at.Hour()*60 + at.Minute(), nil
}
