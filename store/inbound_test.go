package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

var (
	mari = notify.Operator{SID: "WK00000000000000000000000000000001", Name: "Mari"}
	ken  = notify.Operator{SID: "WK00000000000000000000000000000002", Name: "Ken"}
)

// happened is an event at a second of a call's life.
func happened(second int, word notify.InboundWord, change ...func(*notify.InboundEvent)) notify.InboundEvent {
	e := notify.InboundEvent{
		Key: fmt.Sprintf("%s %d", word, second), At: time.Date(2026, 4, 1, 1, 0, second, 0, time.UTC),
		Kind: string(word), Word: word, Source: notify.FromWebhook, From: recipient.E164, To: "+15005550006",
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func by(o notify.Operator, reservation string) func(*notify.InboundEvent) {
	return func(e *notify.InboundEvent) { e.Operator, e.Reservation = o, reservation }
}

func because(reason string) func(*notify.InboundEvent) {
	return func(e *notify.InboundEvent) { e.Reason = reason }
}

// What may be told of one call, and the row that must result, whatever the order.
var inboundStories = []struct {
	name   string
	events []notify.InboundEvent
	want   string
}{
	{"greeted", []notify.InboundEvent{happened(0, notify.WordReceived)}, "RECEIVED"},
	{"in the queue", []notify.InboundEvent{happened(0, notify.WordReceived), happened(5, notify.WordWaiting), happened(7, notify.WordHolding)}, "WAITING waiting=5"},
	{"ringing, and the hold music asks again", []notify.InboundEvent{
		happened(0, notify.WordReceived), happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")), happened(30, notify.WordHolding),
	}, "RESERVED waiting=5 operator=Mari"},
	{"released within the same second", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")), happened(6, notify.WordReleased, by(mari, "WR1")),
	}, "WAITING waiting=5"},
	{"the second operator rings", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")), happened(20, notify.WordReleased, by(mari, "WR1")),
		happened(21, notify.WordReserved, by(ken, "WR2")),
	}, "RESERVED waiting=5 operator=Ken"},
	{"answered", []notify.InboundEvent{
		happened(0, notify.WordReceived), happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")),
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(9, notify.WordNoted),
	}, "ANSWERED waiting=5 answered=9 operator=Mari"},
	{"finished, told by three", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(9, notify.WordAnswered, by(ken, "WR2")), happened(40, notify.WordFinished, by(ken, "WR2")),
		happened(41, notify.WordHungUp), happened(44, notify.WordFinished),
	}, "FINISHED waiting=5 answered=9 ended=40 operator=Ken"},
	{"finished, and only the hanging up was told", []notify.InboundEvent{
		happened(9, notify.WordAnswered, by(ken, "WR2")), happened(41, notify.WordHungUp),
	}, "FINISHED answered=9 ended=41 operator=Ken"},
	{"abandoned while the phone rang", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")), happened(12, notify.WordHungUp), happened(13, notify.WordReleased, by(mari, "WR1")),
		happened(13, notify.WordHungUp),
	}, "ABANDONED waiting=5 ended=12"},
	{"timed out and hung up", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(59, notify.WordTimedOut, because("timeout")), happened(58, notify.WordHungUp),
	}, "TIMED_OUT waiting=5 ended=59 reason=timeout"},
	{"asked to be called back", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(20, notify.WordCallbackRequested), happened(22, notify.WordTimedOut), happened(22, notify.WordHungUp),
	}, "CALLBACK_REQUESTED waiting=5 ended=20"},
	{"turned away", []notify.InboundEvent{
		happened(0, notify.WordReceived), happened(0, notify.WordTurnedAway, because("closed")), happened(9, notify.WordHungUp),
	}, "TURNED_AWAY ended=0 reason=closed"},
	{"turned away, and asked to be called back", []notify.InboundEvent{
		happened(0, notify.WordReceived), happened(0, notify.WordTurnedAway, because("closed")), happened(8, notify.WordCallbackRequested), happened(9, notify.WordHungUp),
	}, "CALLBACK_REQUESTED ended=8"},
	{"released, and asked about once more", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")), happened(20, notify.WordReleased, by(mari, "WR1")),
		happened(25, notify.WordRinging, by(mari, "WR1")),
	}, "WAITING waiting=5"},
	{"transferred: the second operator talks on", transferred[:8], "ANSWERED waiting=5 answered=9 operator=Ken"},
	{"transferred, and the second operator is done", transferred, "FINISHED waiting=5 answered=9 ended=50 operator=Ken"},
	{"transferred, and the second operator does not take it", []notify.InboundEvent{
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(20, notify.WordReserved, by(ken, "WR2")), happened(30, notify.WordReleased, by(ken, "WR2")),
	}, "ANSWERED answered=9 operator=Mari"},
	{"transferred, and the second operator's phone rings", []notify.InboundEvent{
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(20, notify.WordReserved, by(ken, "WR2")), happened(21, notify.WordFinished, by(mari, "WR1")),
	}, "ANSWERED answered=9 operator=Mari"},
	{"transferred, and the caller hangs up", []notify.InboundEvent{
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(20, notify.WordAnswered, by(ken, "WR2")), happened(21, notify.WordFinished, by(mari, "WR1")),
		happened(40, notify.WordHungUp),
	}, "FINISHED answered=9 ended=40 operator=Ken"},
	{"the task wraps up while the second operator talks", []notify.InboundEvent{
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(20, notify.WordAnswered, by(ken, "WR2")), happened(21, notify.WordFinished, by(mari, "WR1")),
		happened(21, notify.WordWrapUp),
	}, "ANSWERED answered=9 operator=Ken"},
	{"accepted, and the connection fails", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")),
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(10, notify.WordReleased, by(mari, "WR1")),
	}, "WAITING waiting=5"},
	{"accepted, the connection fails, and the caller hangs up", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(9, notify.WordAnswered, by(mari, "WR1")),
		happened(10, notify.WordReleased, by(mari, "WR1")), happened(12, notify.WordHungUp),
	}, "ABANDONED waiting=5 ended=12"},
	{"the connection fails with the first operator, and the second talks", []notify.InboundEvent{
		happened(5, notify.WordWaiting), happened(9, notify.WordAnswered, by(mari, "WR1")),
		happened(10, notify.WordReleased, by(mari, "WR1")), happened(20, notify.WordAnswered, by(ken, "WR2")),
		happened(30, notify.WordFinished, by(ken, "WR2")),
	}, "FINISHED waiting=5 answered=20 ended=30 operator=Ken"},
	{"the connection fails after they have talked", []notify.InboundEvent{
		happened(9, notify.WordAnswered, by(mari, "WR1")), happened(30, notify.WordReleased, by(mari, "WR1")),
		happened(31, notify.WordFinished),
	}, "FINISHED answered=31 ended=31"},
	{"found in the carrier's list, and told of late", []notify.InboundEvent{
		happened(0, notify.WordReceived), happened(9, notify.WordHungUp), happened(12, notify.WordMissed),
		happened(20, notify.WordHungUp),
	}, "MISSED ended=12"},
	{"asked about, and nothing else was told", []notify.InboundEvent{happened(0, notify.WordReceived), happened(6, notify.WordRinging, by(mari, "WR1"))}, "RESERVED operator=Mari"},
}

// transferred is a call that Mari hands over to Ken.
var transferred = []notify.InboundEvent{
	happened(5, notify.WordWaiting), happened(6, notify.WordReserved, by(mari, "WR1")), happened(9, notify.WordAnswered, by(mari, "WR1")),
	happened(20, notify.WordNoted), happened(21, notify.WordReserved, by(ken, "WR2")), happened(23, notify.WordAnswered, by(ken, "WR2")),
	happened(25, notify.WordFinished, by(mari, "WR1")), happened(30, notify.WordFinished, by(mari, "WR1")),
	happened(50, notify.WordFinished, by(ken, "WR2")), happened(55, notify.WordFinished, by(ken, "WR2")), happened(56, notify.WordFinished),
}

func told(c store.InboundCall) string {
	text := []string{string(c.State)}
	second := func(name string, at *time.Time) {
		if at != nil {
			text = append(text, fmt.Sprintf("%s=%d", name, at.UTC().Second()))
		}
	}
	second("waiting", c.WaitingAt)
	second("answered", c.AnsweredAt)
	second("ended", c.EndedAt)
	if c.OperatorName != nil {
		text = append(text, "operator="+*c.OperatorName)
	}
	if c.Reason != nil {
		text = append(text, "reason="+*c.Reason)
	}
	return strings.Join(text, " ")
}

// newCall names a call that nobody was told of yet, and addresses events to it.
func newCall(events []notify.InboundEvent) (uuid.UUID, []notify.InboundEvent) {
	sid := "CA" + strings.ReplaceAll(uuid.NewString(), "-", "")
	id := notify.InboundID(sid)
	events = slices.Clone(events)
	for i := range events {
		events[i].CallID, events[i].CallSID = id, sid
	}
	return id, events
}

func TestEveryOrderOfACallsEventsEndsInTheSameRow(t *testing.T) {
	s := openStore(t)
	for _, story := range inboundStories {
		t.Run(story.name, rapid.MakeCheck(func(t *rapid.T) {
			ctx := context.Background()
			id, events := newCall(story.events)
			repeats := rapid.SliceOfN(rapid.SampledFrom(events), 0, 5).Draw(t, "repeats")
			events = rapid.Permutation(append(events, repeats...)).Draw(t, "order")
			for len(events) > 0 {
				n := rapid.IntRange(1, len(events)).Draw(t, "together")
				if _, err := s.RecordInbound(ctx, events[:n]...); err != nil {
					t.Fatal(err)
				}
				events = events[n:]
			}
			c, err := s.InboundCall(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(c); got != story.want {
				t.Errorf("got  %s\nwant %s", got, story.want)
			}
			timeline, err := s.InboundCallEvents(ctx, id)
			if err != nil || len(timeline) != len(story.events) {
				t.Errorf("the timeline has %d entries, want %d; error %v", len(timeline), len(story.events), err)
			}
		}))
	}
}

func TestWritersOfTheSameCallsDoNotDeadlock(t *testing.T) {
	s := openStore(t)
	var all []notify.InboundEvent
	for range 10 {
		_, events := newCall(inboundStories[6].events)
		all = append(all, events...)
	}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 20 {
				group := slices.Clone(all)
				if (w+i)%2 == 0 {
					slices.Reverse(group)
				}
				if _, err := s.RecordInbound(t.Context(), group...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
}

func TestATaskWithoutACallIsRecordedAndHasNoRow(t *testing.T) {
	s := openStore(t)
	e := happened(0, notify.WordWaiting)
	e.CallID = notify.InboundID("WT00000000000000000000000000000001")
	if changes, err := s.RecordInbound(t.Context(), e); err != nil || len(changes) != 0 {
		t.Fatal(changes, err)
	}
	if timeline, err := s.InboundCallEvents(t.Context(), e.CallID); err != nil || len(timeline) != 1 {
		t.Errorf("%d entries, error %v", len(timeline), err)
	}
	if _, err := s.InboundCall(t.Context(), e.CallID); err != store.ErrNotFound {
		t.Errorf("the row: %v", err)
	}
}

// arrive announces a call.
func arrive(limits store.InboundLimits, refused string) store.InboundArrival {
	_, events := newCall([]notify.InboundEvent{happened(0, notify.WordReceived)})
	events[0].At = time.Now()
	return store.InboundArrival{Event: events[0], Limits: limits, Refused: refused}
}

func TestLimitsHoldExactlyHoweverManyDecide(t *testing.T) {
	for name, test := range map[string]struct {
		limits store.InboundLimits
		reason string
	}{
		"open":       {store.InboundLimits{Open: 25}, notify.TurnedAwayBusy},
		"per second": {store.InboundLimits{PerSecond: 25}, notify.TurnedAwayRush},
		"waiting":    {store.InboundLimits{Waiting: 25}, notify.TurnedAwayFull},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			var mu sync.Mutex
			reasons := map[string]int{}
			var deciding sync.WaitGroup
			for n := range 20 {
				deciding.Go(func() {
					arrivals := make([]store.InboundArrival, 1+n%3)
					for i := range arrivals {
						arrivals[i] = arrive(test.limits, "")
					}
					admissions, err := s.AdmitInbound(t.Context(), arrivals...)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					for _, a := range admissions {
						reasons[a.TurnedAway]++
					}
				})
			}
			deciding.Wait()
			if reasons[""] != 25 || reasons[test.reason] != 39-25 {
				t.Errorf("decided %v, want 25 taken and 14 %s", reasons, test.reason)
			}
		})
	}
}

// A call's time is told by another machine than the database's.
func TestTheLimitOfASecondHoldsWhateverTheClocksSay(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s, db := openLedger(t)
			old := arrive(store.InboundLimits{}, "")
			old.Event.At = old.Event.At.Add(skew)
			if _, err := s.AdmitInbound(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(t.Context(), `UPDATE inbound_calls SET created_at = now() - interval '2 seconds'`); err != nil {
				t.Fatal(err)
			}
			taken := 0
			for range 6 {
				a := arrive(store.InboundLimits{PerSecond: 3}, "")
				a.Event.At = a.Event.At.Add(skew)
				admissions, err := s.AdmitInbound(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				if admissions[0].TurnedAway == "" {
					taken++
				}
			}
			if taken != 3 {
				t.Errorf("%d of 6 are taken, want 3", taken)
			}
		})
	}
}

func TestACallThatIsAnnouncedAgainKeepsItsDecision(t *testing.T) {
	s := openStore(t)
	limits := store.InboundLimits{Open: 1}
	first, second, closed := arrive(limits, ""), arrive(limits, ""), arrive(limits, notify.TurnedAwayClosed)
	for range 2 {
		admissions, err := s.AdmitInbound(t.Context(), first, first, second, closed)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "", notify.TurnedAwayBusy, notify.TurnedAwayClosed} {
			if got := admissions[i].TurnedAway; got != want {
				t.Errorf("call %d is turned away as %q, want %q", i, got, want)
			}
		}
	}
}

func TestACallHearsItsPlaceInTheQueue(t *testing.T) {
	s := openStore(t)
	var ids []uuid.UUID
	for i := range 3 {
		id, events := newCall([]notify.InboundEvent{happened(i, notify.WordReceived), happened(i, notify.WordWaiting)})
		if _, err := s.RecordInbound(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	place, err := s.InboundPlace(t.Context(), ids[2])
	if err != nil || !place.Open || place.Place != 3 || place.Estimate != 0 {
		t.Errorf("%+v, error %v", place, err)
	}
}

func TestAFollowUpIsDecidedOnce(t *testing.T) {
	s := openStore(t)
	id, events := newCall(inboundStories[8].events)
	if _, err := s.RecordInbound(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	c, err := s.InboundCall(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	decisions, notifications := 0, []uuid.UUID{}
	var deciding sync.WaitGroup
	for range 8 {
		deciding.Go(func() {
			text := "We are sorry that we missed your call."
			n := store.NewNotification{ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, To: recipient, ToHash: []byte("h"), Message: &text, SenderID: sender}
			decision, err := s.DecideInboundFollowUp(t.Context(), id, c.Version, store.InboundFollowUp{Action: notify.FollowUpSMS, Notification: &n})
			decided := decision.Decided
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if decided {
				decisions, notifications = decisions+1, append(notifications, n.ID)
			}
		})
	}
	deciding.Wait()
	c, err = s.InboundCall(t.Context(), id)
	if err != nil || decisions != 1 || c.NotificationID == nil || *c.NotificationID != notifications[0] || c.ClosedAt == nil {
		t.Errorf("%d decisions, the row is %+v, error %v", decisions, c, err)
	}
	if all, _, err := s.Notifications(t.Context(), store.Filter{}, nil, 10); err != nil || len(all) != 1 {
		t.Errorf("%d notifications, error %v", len(all), err)
	}
}

func TestAFollowUpWaitsForWhatChangedMeanwhile(t *testing.T) {
	s := openStore(t)
	id, events := newCall(inboundStories[8].events)
	if _, err := s.RecordInbound(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	before, err := s.InboundCall(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	late := happened(14, notify.WordAnswered, by(mari, "WR2"))
	late.CallID, late.CallSID = id, before.CallSID
	if _, err := s.RecordInbound(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if decision, err := s.DecideInboundFollowUp(t.Context(), id, before.Version, store.InboundFollowUp{Action: notify.FollowUpNone}); err != nil || decision.Decided {
		t.Errorf("it was decided: %v, error %v", decision.Decided, err)
	}
}

// A caller who was turned away may hear for long why, and press the key after nothing was decided to be done.
func TestALateWishIsFollowedUpUnlessSomethingWas(t *testing.T) {
	s := openStore(t)
	for _, test := range []struct {
		action notify.FollowUpAction
		again  bool
	}{{notify.FollowUpNone, true}, {notify.FollowUpTask, false}} {
		id, events := newCall([]notify.InboundEvent{
			happened(0, notify.WordReceived), happened(0, notify.WordTurnedAway, because("closed")), happened(59, notify.WordCallbackRequested),
		})
		if _, err := s.RecordInbound(t.Context(), events[:2]...); err != nil {
			t.Fatal(err)
		}
		if decision, err := s.DecideInboundFollowUp(t.Context(), id, 1, store.InboundFollowUp{Action: test.action, Reason: "because"}); err != nil || !decision.Decided {
			t.Fatal(decision.Decided, err)
		}
		if err := s.MarkInboundTask(t.Context(), id, "WT1"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := s.RecordInbound(t.Context(), events[2]); err != nil {
				t.Fatal(err)
			}
		}
		c, err := s.InboundCall(t.Context(), id)
		if err != nil || c.State != notify.InboundCallback || (c.FollowUp == nil) != test.again || (c.FollowUpReason == nil) != test.again || (c.ClosedAt == nil) != test.again {
			t.Errorf("after %s: %+v, error %v", test.action, c, err)
		}
		if test.again {
			if decision, err := s.DecideInboundFollowUp(t.Context(), id, c.Version, store.InboundFollowUp{Action: notify.FollowUpNone}); err != nil || !decision.Decided {
				t.Error(decision.Decided, err)
			}
			if _, err := s.RecordInbound(t.Context(), events...); err != nil { // repeats ask for nothing
				t.Fatal(err)
			}
			if c, err := s.InboundCall(t.Context(), id); err != nil || c.ClosedAt == nil {
				t.Errorf("a repeated wish opens it again: %+v, error %v", c, err)
			}
		}
	}
}

func TestNewsOfACallReachItsWorkflowOnce(t *testing.T) {
	s, db := openLedger(t)
	id, events := newCall([]notify.InboundEvent{happened(0, notify.WordReceived), happened(5, notify.WordWaiting), happened(7, notify.WordHungUp)})
	due := func() []store.InboundNews {
		t.Helper()
		if _, err := db.Exec(t.Context(), `UPDATE inbound_calls SET relay_at = now() - interval '1 minute'`); err != nil {
			t.Fatal(err)
		}
		news, err := s.TakeInboundNews(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		return news
	}
	tell := func(n store.InboundNews) {
		t.Helper()
		if err := s.MarkInboundTold(t.Context(), time.Minute, store.InboundTold{ID: n.ID, WorkflowID: "inbound/" + id.String(), Version: n.Version}); err != nil {
			t.Fatal(err)
		}
	}
	record := func(e notify.InboundEvent) {
		t.Helper()
		if _, err := s.RecordInbound(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	record(events[0])
	first := due()
	if len(first) != 1 || first[0].Started || first[0].State != notify.InboundReceived {
		t.Fatalf("%+v", first)
	}
	record(events[1]) // while the workflow is started
	tell(first[0])
	second := due()
	if len(second) != 1 || !second[0].Started || second[0].State != notify.InboundWaiting {
		t.Fatalf("%+v", second)
	}
	tell(second[0])
	record(events[1])
	if again := due(); len(again) != 0 {
		t.Errorf("a repeat is news: %+v", again)
	}
	if err := s.BequeathInbound(t.Context(), id, "inbound/"+id.String()); err != nil {
		t.Fatal(err)
	}
	if successor := due(); len(successor) != 1 || successor[0].Started || *successor[0].WorkflowID != "inbound/"+id.String()+"/r1" {
		t.Errorf("%+v", successor)
	}
}

func TestFigures(t *testing.T) {
	s := openStore(t)
	now := time.Now()
	for _, story := range inboundStories {
		_, events := newCall(story.events)
		for i := range events {
			events[i].At = now.Add(time.Duration(events[i].At.Second()-60) * time.Second)
		}
		if _, err := s.RecordInbound(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.InboundFigures(t.Context(), time.Hour, 4*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if f.LongestWait < 55*time.Second || f.LongestWait > 90*time.Second {
		t.Errorf("the longest wait is %v, want about 55 s", f.LongestWait)
	}
	if f.AverageTalk.Round(time.Second) != 24*time.Second { // of 31, 31, 32, 41, 10 and 0 s
		t.Errorf("the average talk is %v", f.AverageTalk)
	}
	f.LongestWait, f.AverageTalk, f.AverageAnswer = 0, 0, 0
	want := store.InboundFigures{
		Received: 1, Waiting: 4, Reserved: 3, Answered: 5,
		Calls: 26, Offered: 21, Handled: 11, InTime: 10, Abandoned: 2, TimedOut: 1, Callbacks: 2, TurnedAway: 1, Missed: 1,
	}
	if f != want {
		t.Errorf("got  %+v\nwant %+v", f, want)
	}
	operators, err := s.InboundOperators(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, o := range operators {
		text = append(text, fmt.Sprintf("%s busy=%v answered=%d", *o.Name, o.Busy, o.Answered))
	}
	if got := strings.Join(text, ", "); got != "Ken busy=true answered=7, Mari busy=true answered=7" {
		t.Error(got)
	}
}

// A destroy and an apply make of each operator another worker of TaskRouter's with the same name.
func TestAnOperatorWhoIsSetUpAnewIsOne(t *testing.T) {
	s := openStore(t)
	now := time.Now()
	answered := func(sid, name string, ago time.Duration) {
		id := "CA" + strings.ReplaceAll(uuid.NewString(), "-", "")
		if _, err := s.RecordInbound(t.Context(), notify.InboundEvent{CallID: notify.InboundID(id), CallSID: id, Key: "answered", Kind: "answered",
			Word: notify.WordAnswered, At: now.Add(-ago), Source: notify.FromWebhook, From: "+819012345678", To: "+15005550006",
			Operator: notify.Operator{SID: sid, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	answered("WK1", "Mari", time.Hour)
	answered("WK2", "Mari", 2*time.Minute)
	answered("WK2", "", time.Minute) // whose name that event lacked
	answered("WK3", "", time.Minute)
	answered("WK4", "", time.Minute)
	operators, err := s.InboundOperators(t.Context(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, o := range operators {
		name := "?"
		if o.Name != nil {
			name = *o.Name
		}
		text = append(text, fmt.Sprint(o.SID, " ", name, " ", o.Answered))
	}
	if got := strings.Join(text, ", "); got != "WK2 Mari 3, WK3 ? 1, WK4 ? 1" {
		t.Error(got)
	}
}

// Calls of the time in which a number was somebody else's are never ours.
func TestCallsAreOursSinceTheNumberIs(t *testing.T) {
	s := openStore(t)
	listing := func() store.InboundListing {
		t.Helper()
		l, err := s.InboundListing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	save := func(number string) {
		t.Helper()
		if err := s.SaveInboundPolicy(t.Context(), notify.InboundPolicy{WorkflowSID: "WW1", Number: number}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.InboundListing(t.Context()); err != store.ErrNotFound {
		t.Errorf("before: %v", err)
	}
	save("+15005550006")
	first := listing()
	if err := s.InboundListed(t.Context(), "+15005550006", first.Until.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := s.InboundListed(t.Context(), "+15005550006", first.Until); err != nil { // by a slower worker
		t.Fatal(err)
	}
	save("+15005550006")
	if again := listing(); !again.Since.Equal(first.Since) || !again.From.Equal(first.Until.Add(time.Minute)) {
		t.Errorf("the same number again: %+v, first %+v", again, first)
	}
	save("+15005550007")
	if other := listing(); !other.Since.After(first.Since) || other.From.Before(other.Since) {
		t.Errorf("another number: %+v, first %+v", other, first)
	}
	save("")
	if _, err := s.InboundListing(t.Context()); err != store.ErrNotFound {
		t.Errorf("without a number: %v", err)
	}
	save("+15005550006")
	if back := listing(); !back.Since.After(first.Since) {
		t.Errorf("the first number is back: %+v", back)
	}
	if err := s.ForgetInboundPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.InboundListing(t.Context()); err != store.ErrNotFound {
		t.Errorf("after: %v", err)
	}
}

func TestThePolicyIsKeptAndForgotten(t *testing.T) {
	s := openStore(t)
	if p, err := s.InboundPolicy(t.Context()); err != nil || p.SetUp() {
		t.Errorf("before: %+v, %v", p, err)
	}
	for _, sid := range []string{"WW1", "WW2"} {
		if err := s.SaveInboundPolicy(t.Context(), notify.InboundPolicy{WorkflowSID: sid, ServiceLevel: time.Minute, Hours: []notify.OpeningHours{{Days: []time.Weekday{time.Monday}, From: "09:00", Until: "18:00"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := s.InboundPolicy(t.Context()); err != nil || p.WorkflowSID != "WW2" || p.ServiceThreshold() != time.Minute || p.Hours[0].Days[0] != time.Monday {
		t.Errorf("%+v, %v", p, err)
	}
	if err := s.ForgetInboundPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := s.InboundPolicy(t.Context()); err != nil || p.SetUp() {
		t.Errorf("after: %+v, %v", p, err)
	}
}

func TestCallsAreListedNewestFirst(t *testing.T) {
	s := openStore(t)
	for range 5 {
		_, events := newCall(inboundStories[8].events)
		if _, err := s.RecordInbound(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
	}
	first, err := s.InboundCalls(t.Context(), store.InboundFilter{State: notify.InboundAbandoned, CreatedFrom: time.Now().Add(-time.Hour), CreatedTo: time.Now().Add(time.Hour)}, nil, 3)
	if err != nil || len(first) != 3 || first[0].CreatedAt.Before(first[2].CreatedAt) {
		t.Fatal(len(first), err)
	}
	place := first[2].Place()
	rest, err := s.InboundCalls(t.Context(), store.InboundFilter{}, &place, 3)
	if err != nil || len(rest) != 2 || rest[0].ID == first[2].ID {
		t.Error(len(rest), err)
	}
}
