package notify

import (
	"time"

	"github.com/google/uuid"
)

// InboundState says where a call that came in stands.
type InboundState string

const (
	InboundReceived InboundState = "RECEIVED" // hears the greeting
	InboundWaiting  InboundState = "WAITING"  // is in the queue
	InboundReserved InboundState = "RESERVED" // an operator's phone rings
	InboundAnswered InboundState = "ANSWERED" // speaks with an operator

	InboundFinished   InboundState = "FINISHED"           // spoke with an operator
	InboundCallback   InboundState = "CALLBACK_REQUESTED" // asked to be called back
	InboundTimedOut   InboundState = "TIMED_OUT"          // nobody answered for as long as the queue's workflow waits
	InboundTurnedAway InboundState = "TURNED_AWAY"        // heard a message and was not let into the queue
	InboundAbandoned  InboundState = "ABANDONED"          // hung up before anybody answered
	InboundMissed     InboundState = "MISSED"             // came in while we could not be reached
)

// InboundStates lists every state, in the order a call passes through them.
var InboundStates = []InboundState{
	InboundReceived, InboundWaiting, InboundReserved, InboundAnswered,
	InboundFinished, InboundCallback, InboundTimedOut, InboundTurnedAway, InboundAbandoned, InboundMissed,
}

// Final reports whether the call is over. A late event may still say that it ended in another way.
func (s InboundState) Final() bool {
	switch s {
	case InboundFinished, InboundCallback, InboundTimedOut, InboundTurnedAway, InboundAbandoned, InboundMissed:
		return true
	}
	return false
}

// InboundWord is what one event says of a call.
type InboundWord string

const (
	WordReceived          InboundWord = "received"           // it came in
	WordWaiting           InboundWord = "waiting"            // TaskRouter has a task for it
	WordHolding           InboundWord = "holding"            // it hears the hold music
	WordRinging           InboundWord = "ringing"            // we are asked what to do with the operator who was chosen
	WordReserved          InboundWord = "reserved"           // an operator was chosen
	WordReleased          InboundWord = "released"           // and did not take it
	WordAnswered          InboundWord = "answered"           // an operator took it
	WordWrapUp            InboundWord = "wrap_up"            // an operator had it; another one may have it still
	WordFinished          InboundWord = "finished"           // an operator had it, and it is over
	WordHungUp            InboundWord = "hung_up"            // it is over
	WordMissed            InboundWord = "missed"             // it is over, and nobody of us was asked what to do with it
	WordTurnedAway        InboundWord = "turned_away"        // it was not let into the queue
	WordTimedOut          InboundWord = "timed_out"          // it left the queue unanswered
	WordCallbackRequested InboundWord = "callback_requested" // the caller pressed the key
	WordCallbackTask      InboundWord = "callback_task"      // something happened to the task of calling it back
	WordNoted             InboundWord = "noted"              // for the timeline only
)

// InboundMeaning is what a word does to a call's row. Nothing in it depends on the order in which
// events arrive, so any permutation of the same events, with repeats, ends in the same row:
//
//   - Of what is known of an open call the highest tier counts, and within it the latest event.
//   - Whoever was answered once was answered.
//   - Of several ends the highest rank counts; of equal ones MISSED, and else the earliest. The end of a call that was
//     answered is FINISHED.
//   - What is told of an operator's reservation is kept for each reservation. They end a call together: when one has
//     ended and none goes on or rings.
type InboundMeaning struct {
	Phase    InboundState // of an open call; empty: says nothing of it
	Tier     int          // 1 and up: how much the source of the phase knows
	Answered bool
	Exit     InboundState // how an unanswered call ended; empty: it does not say that it did
	ExitRank int          // 1 and up
}

var inboundMeanings = map[InboundWord]InboundMeaning{
	WordReceived: {Phase: InboundReceived, Tier: 1},
	WordHolding:  {Phase: InboundWaiting, Tier: 2},
	WordRinging:  {Phase: InboundReserved, Tier: 2}, // it has no time of its own, and may be asked again after the operator has declined
	WordWaiting:  {Phase: InboundWaiting, Tier: 3},
	WordReserved: {Phase: InboundReserved, Tier: 3},
	WordReleased: {Phase: InboundWaiting, Tier: 3},
	WordAnswered: {Answered: true},
	WordWrapUp:   {Answered: true},

	WordHungUp:            {Exit: InboundAbandoned, ExitRank: 1},
	WordMissed:            {Exit: InboundMissed, ExitRank: 1}, // it was only hung up, as all that is told besides
	WordTurnedAway:        {Exit: InboundTurnedAway, ExitRank: 2},
	WordTimedOut:          {Exit: InboundTimedOut, ExitRank: 3},
	WordCallbackRequested: {Exit: InboundCallback, ExitRank: 4},
	WordFinished:          {Answered: true, Exit: InboundFinished, ExitRank: 5},
}

// Meaning is what the word does to a call's row; zero for what belongs to the timeline only.
func (w InboundWord) Meaning() InboundMeaning { return inboundMeanings[w] }

// Why a call was turned away.
const (
	TurnedAwayClosed   = "closed"         // outside of the opening hours
	TurnedAwayFull     = "queue_full"     // as many wait as may
	TurnedAwayBusy     = "too_many_calls" // as many calls are open as may be
	TurnedAwayRush     = "too_fast"       // more calls came in a second than may
	TurnedAwayNotSetUp = "not_set_up"     // nothing was applied that says where calls go
	TurnedAwayError    = "queue_error"    // Twilio could not put it into the queue
)

// Operator is whom TaskRouter chose for a call: one of its workers.
type Operator struct {
	SID  string // WK…
	Name string
}

// InboundEvent is one thing that Twilio told of a call, by a webhook, or that was learnt by asking.
type InboundEvent struct {
	CallID  uuid.UUID   // see InboundID; of a task without a call: the InboundID of its SID
	CallSID string      // CA…; empty for a task without a call, which is recorded and has no row
	Key     string      // the same for every delivery of the same event
	At      time.Time   // when it happened, by Twilio's clock where it tells
	Kind    string      // in Twilio's words: "reservation.accepted", "queue-result hangup"
	Word    InboundWord // in ours
	Source  Source

	From, To    string // as Twilio has them: E.164, or whatever the caller showed
	FromHash    []byte // of the caller's number, see PhoneNumber.Hash; nil: it is not told, or is none
	TaskSID     string
	Reservation string // WR…
	Operator    Operator
	Reason      string // why it was turned away, or Twilio's reason for the end of a task
}

// inboundNamespace makes the ids of calls.
var inboundNamespace = uuid.MustParse("6f2d3b0a-6a3e-5a53-9c1f-7d1c0a5be101")

// InboundID is the id of the call, or the task without a call, that Twilio knows by a SID. It follows
// from the SID alone, so events find their row in whatever order they arrive.
func InboundID(sid string) uuid.UUID { return uuid.NewSHA1(inboundNamespace, []byte(sid)) }
