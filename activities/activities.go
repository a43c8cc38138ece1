// Package activities is what workflows ask for: to send a notification, to look for one whose
// answer was lost, and to ask the carrier what became of it. Every decision is made on the ledger;
// an activity's answer only tells the workflow what to do next, and when.
package activities

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/outbox"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/store/group"
	"github.com/todoku/todoku/taskrouter"
)

// Task queues, separate by purpose, so that a flood in one never delays another.
const (
	SendSMSQueue     = "send-sms"
	SendCallQueue    = "send-call"
	StatusCheckQueue = "status-check"
	ReminderQueue    = "reminder" // runs of schedules, their workflows too
	SyncQueue        = "sync"     // of schedules with Temporal, its workflow too
)

// SendQueue is the task queue on which a channel's notifications are sent.
func SendQueue(c notify.Channel) string {
	if c == notify.Call {
		return SendCallQueue
	}
	return SendSMSQueue
}

// Action is what a notification's workflow does next.
type Action string

const (
	Send        Action = "send"         // post what is accepted
	LookUp      Action = "look up"      // the answer to a create was lost: look for it at the carrier
	CheckStatus Action = "check status" // the carrier has it: ask what became of it
	Done        Action = "done"         // every status is final, or the row belongs to another workflow
)

// Next is an activity's answer to its workflow: what to do next, read from the ledger.
type Next struct {
	Action Action
	In     time.Duration // how long to wait for a signal first
	Status notify.Status `json:",omitempty"` // of a single notification, once it is final
}

// Ref names the notifications that a workflow carries. It holds no personal data: numbers and texts
// are read from the ledger, inside the activity.
type Ref struct {
	WorkflowID string
	ID         *uuid.UUID `json:",omitempty"` // the one notification; nil for a shard
	Adopt      int64      `json:",omitempty"` // of a shard: the sender whose waiting singles it takes
}

func (r Ref) owner() store.Owner { return store.Owner{WorkflowID: r.WorkflowID, Single: r.ID} }

// ahead is how far ahead the notifications' slots may be reserved.
func (r Ref) ahead() time.Duration {
	if r.owner().OfBatch() {
		return batchSlotAhead
	}
	return SlotAhead
}

// Activities holds what the activities work with.
type Activities struct {
	Store   *store.Store
	Carrier *carrier.Client
	Log     *slog.Logger
	Terms   Terms

	// Workflows tells the owners of rows that Reconcile settled. Nil: nobody tells them, and they find
	// out at their next check.
	Workflows settlement.Signaler

	// Shards starts the parts of batches. It is needed where CarryBatch runs.
	Shards ShardStarter

	// Batches starts the batches of schedules' runs. Nil: they are left to the loop that starts batches.
	Batches outbox.BatchStarter

	// Schedules are those of Temporal. They are needed where SyncSchedules runs.
	Schedules TemporalSchedules

	stops stops // of senders, as far as this process has caused them

	conns connections // to the carrier; see connections()

	answersOnce sync.Once
	answers     *group.Writer[notify.Receipt, struct{}] // see answerWriter()

	listing struct{ sms, call sync.Mutex } // held by those of this process who wait for a turn to list

	gateways gateways // answers that were not the carrier\'s
}

// connections bounds what is in flight.
func (a *Activities) connections() *connections {
	a.conns.init(a.Terms.Connections)
	return &a.conns
}

// Terms are the settings of sending and following up.
type Terms struct {
	SMSSendInterval  time.Duration
	CallSendInterval time.Duration
	StatusCheckDelay time.Duration // between sending and the first status check
	AmbiguityWindow  time.Duration // how long an ambiguous send is looked for before it may be repeated
	SendDeadline     time.Duration // since a row's first claim

	// SMSQueueLimit and CallQueueLimit are how many notifications of a paced sender may be in the carrier's queue. 0: no
	// limit. They hold only with a CallbackURL: without callbacks nobody can tell what left the queue.
	SMSQueueLimit, CallQueueLimit int

	// Connections is how many creates of this process are in flight at the carrier at most. 0 means 100.
	Connections int

	// ShardSize is how many waiting singles one workflow adopts at most.
	ShardSize int

	// Lease is how long after a claim its request may still be written to the wire: it outlasts the
	// wait for a slot. 0 means 15 s.
	Lease time.Duration

	// AnswerLimit is how long after the lease an answer may still come. 0 means 10 s.
	AnswerLimit time.Duration

	// Turn is how long one run of Send claims for a shard, before its workflow runs it again: a batch that
	// was slowed down may take hours, and an activity that is cut off leaves ambiguous what is in flight.
	// 0 means 5 minutes.
	Turn time.Duration

	// Batch gives what the batch of a schedule's run takes from the settings. It is needed where
	// RunSchedule runs.
	Batch func(notify.Channel) BatchTerms

	// PhoneHashKey is the key of the keyed hash by which numbers are found. Nil: sends that are found at
	// the carrier and belong to no row are only counted.
	PhoneHashKey []byte

	// CallbackURL makes the address of a notification's status callbacks. Nil: no callbacks, the
	// carrier is asked instead.
	CallbackURL func(notify.Channel, uuid.UUID) string

	// TaskRouterURLs are where Twilio finds the webhooks of calls that come in. Without them TaskRouter
	// cannot be set up.
	TaskRouterURLs taskrouter.URLs

	// NumberKinds are the kinds of numbers that may be called though they charge the caller.
	NumberKinds []notify.PhoneKind

	// Inbound is needed where FollowInbound runs.
	Inbound InboundTerms
}

// InboundTerms are the settings of what is sent to people whose calls nobody answered.
type InboundTerms struct {
	From         func(notify.Channel) string // the number or Messaging Service; empty: the channel has none
	Countries    []string                    // that may be sent to
	RequireHuman bool                        // a call is a success only when a person answered
	FollowUps    store.FollowUpLimits
}

// BatchTerms are the settings of a batch.
type BatchTerms struct {
	Sender       string // the number or Messaging Service; empty: the channel has none
	RequireHuman bool
	ShardSize    int
	Countries    []string // that may be sent to
}

// interval is how far apart creates of one sender are.
func (t Terms) interval(c notify.Channel) time.Duration {
	if c == notify.Call {
		return t.CallSendInterval
	}
	return t.SMSSendInterval
}

// QueueLimit is how many notifications of one sender of the channel may be in the carrier's queue.
func (t Terms) QueueLimit(c notify.Channel) store.QueueLimit {
	switch {
	case t.CallbackURL == nil || t.interval(c) == 0:
		return store.QueueLimit{}
	case c == notify.Call:
		return store.NewQueueLimit(t.CallQueueLimit)
	}
	return store.NewQueueLimit(t.SMSQueueLimit)
}

func (t Terms) lease() time.Duration       { return cmp.Or(t.Lease, 15*time.Second) }
func (t Terms) answerLimit() time.Duration { return cmp.Or(t.AnswerLimit, 10*time.Second) }
func (t Terms) turn() time.Duration        { return cmp.Or(t.Turn, 5*time.Minute) }

// SlotAhead is how far ahead a single may reserve a slot. A batch may less, so that singles overtake it.
const (
	SlotAhead      = time.Second
	batchSlotAhead = 500 * time.Millisecond
)

// A slot is missed by who comes so much later, and is minded at paces no faster than slotMinded: at
// others it would take as long as some creates to reserve another one.
const (
	slotMissed = 10 * time.Millisecond
	slotMinded = 50 * time.Millisecond
)

// receiptDeadline is how long after sending the carrier may still report: an SMS is valid for 10
// hours (https://www.twilio.com/docs/messaging/api/message-resource, ValidityPeriod) and a call may
// wait in Twilio's queue for 24.
func receiptDeadline(c notify.Channel) time.Duration {
	if c == notify.Call {
		return 24 * time.Hour
	}
	return 10 * time.Hour
}
