package simulator

import "time"

// record is one message or call, from its create on. The lock of its world guards it.
type record struct {
	sid, account string
	to           string
	from         string // empty while a Messaging Service has not chosen
	sender       string // what it was created to be sent from: a number or a Messaging Service
	body         string // the text of a message; the TwiML of a call, or where to find it
	status       string
	createdAt    time.Time
	updatedAt    time.Time
	sentAt       time.Time // messages only: when they were sent, or failed to be

	kind      kind
	steps     []step // what is still to come, in order
	behaviour *Behaviour
	delivery  *delivery // nil: nobody is told, or there is nothing more to tell
	callbacks []attempt

	// Its place in the ledger.
	createdIndex, sentIndex int
	older                   *record // the record before this one to the same number
	deleted                 bool
	drains                  bool // it has its time to leave the queue
	pagedUnsent             bool // see ledger.newestFirst
}

// kind is what messages and calls do differently.
type kind interface {
	// enter moves the record to the step's status and sets what comes with it.
	enter(r *record, s step, now time.Time)
	// callbackParams are what the callback URL is told about the step that was just entered.
	callbackParams(r *record, s step, now time.Time) params
	// resource is the record as Twilio's API shows it.
	resource(r *record) any
}

// step is one change of status that is told to the callback URL.
type step struct {
	event  string // what a call's StatusCallbackEvent names it; empty for messages, which tell of every step
	status string
}

// complete reports whether nothing more happens to the record: only then can it be deleted or redacted.
func (r *record) complete() bool {
	switch r.status {
	case "accepted", "scheduled", "queued", "ringing", "in-progress":
		return false
	}
	return len(r.steps) == 0
}
