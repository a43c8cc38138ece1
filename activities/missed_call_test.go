package activities_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// lineCentre is a call centre whose webhooks are at the address.
const lineCentre = `workspace: Support
queues: [{name: Everyone}]
routing: {default: {queue: Everyone}}
calls: {number: '+15005550006', follow_up: {abandoned: {sms: We are sorry that we missed your call.}}}
`

// line is a board whose number callers ring. Its API can be away.
type line struct {
	*board
	away atomic.Bool
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{board: newBoard(t)}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if l.away.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(api.Close)
	l.behave(`{"second_ms": 5, "callback_delay_ms": 1}`)
	l.Terms.Lease, l.Terms.AmbiguityWindow, l.Terms.PhoneHashKey = time.Millisecond, time.Millisecond, []byte("k")
	l.Terms.Inbound = activities.InboundTerms{
		From: func(notify.Channel) string { return "+15005550006" }, Countries: []string{"JP"},
	}
	l.Terms.TaskRouterURLs.Voice, l.Terms.TaskRouterURLs.VoiceStatus = api.URL+"/voice", api.URL+"/status"
	l.mustRun(activities.TaskRouterApply, lineCentre)
	l.execute(`UPDATE inbound_listing SET since = since - interval '1 hour'`) // Twilio's dates are whole seconds
	return l
}

// reconcile runs the reconciliation of calls until it has found so many, and once more.
func (l *line) reconcile(want int) {
	l.t.Helper()
	found := 0
	for end := time.Now().Add(20 * time.Second); found < want && time.Now().Before(end); {
		found += l.look()
		time.Sleep(20 * time.Millisecond)
	}
	if found += l.look(); found != want {
		l.t.Errorf("%d missed calls were found, want %d", found, want)
	}
}

func (l *line) look() int {
	l.t.Helper()
	done, err := l.Reconcile(l.t.Context(), notify.Call)
	if err != nil {
		l.t.Fatal(err)
	}
	return done.Missed
}

func TestACallThatCameInWhileTheAPIWasAwayIsARow(t *testing.T) {
	l := newLine(t)
	l.away.Store(true)
	calls := l.sim.Ring(`{"to": "+15005550006", "from": "+819012345670", "calls": 3}`)
	for _, c := range calls {
		if heard := c.Requests[1].Path; !strings.Contains(heard, "/Flows/FW") {
			t.Errorf("the caller did not hear the flow, but %s", heard)
		}
	}
	l.away.Store(false)
	l.reconcile(3)
	for _, c := range calls {
		id := notify.InboundID(c.SID)
		row, err := l.Store.InboundCall(t.Context(), id)
		if err != nil || row.State != notify.InboundMissed || row.ReceivedAt == nil || row.EndedAt == nil {
			t.Fatalf("the call is %+v, error %v", row, err)
		}
		timeline, err := l.Store.InboundCallEvents(t.Context(), id)
		if err != nil || len(timeline) != 2 || timeline[1].Word != notify.WordMissed || timeline[1].Kind != "poll completed" {
			t.Errorf("the timeline is %+v, error %v", timeline, err)
		}
		l.execute(`UPDATE inbound_calls SET exit_at = exit_at - interval '1 minute' WHERE id = $1`, id)
		if next := l.follow(id); !next.Done || next.FollowUp != notify.FollowUpSMS {
			t.Errorf("next is %+v", next)
		}
	}
	f, err := l.Store.InboundFigures(t.Context(), time.Hour, time.Minute)
	if err != nil || f.Missed != 3 || f.Calls != 3 || f.FollowedUp != 3 || f.Abandoned != 0 {
		t.Errorf("the figures are %+v, error %v", f, err)
	}
	if n := l.count(notify.Accepted); n != 3 {
		t.Errorf("%d SMS, want one for each caller", n)
	}
}

func TestCallsThatAreKnownWereNotMissed(t *testing.T) {
	l := newLine(t)
	for _, c := range l.sim.Ring(`{"to": "+15005550006", "from": "+819012345670", "calls": 2}`) {
		if _, err := l.Store.RecordInbound(t.Context(), notify.InboundEvent{
			CallID: notify.InboundID(c.SID), CallSID: c.SID, Key: "voice", Kind: "voice", Word: notify.WordReceived,
			At: time.Now(), Source: notify.FromWebhook,
		}); err != nil {
			t.Fatal(err)
		}
	}
	l.reconcile(0)
}

// Two workers look at the same list.
func TestAMissedCallIsRecordedOnce(t *testing.T) {
	l := newLine(t)
	l.away.Store(true)
	calls := l.sim.Ring(`{"to": "+15005550006", "from": "+819012345670", "calls": 20}`)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() { l.look() })
	}
	workers.Wait()
	for end := time.Now().Add(20 * time.Second); l.missed() < len(calls) && time.Now().Before(end); {
		l.look()
	}
	var events int
	l.queryRow(&events, `SELECT count(*) FROM inbound_call_events`)
	if n := l.missed(); n != 20 || events != 40 {
		t.Errorf("%d rows with %d events, want 20 and 40", n, events)
	}
}

func (l *line) missed() (n int) {
	l.t.Helper()
	l.queryRow(&n, `SELECT count(*) FROM inbound_calls WHERE state = 'MISSED'`)
	return n
}

// What was listed is not asked for again, and a call that goes on is looked for until it is over.
func TestTheListIsReadFromWhereItEnded(t *testing.T) {
	l := newLine(t)
	l.away.Store(true)
	l.sim.Ring(`{"to": "+15005550006", "from": "+819012345670"}`)
	l.Terms.Lease = time.Hour // young calls are left for later
	for range 2 {
		if n := l.look(); n != 0 {
			t.Errorf("%d young calls were taken for missed ones", n)
		}
	}
	l.Terms.Lease = time.Millisecond
	l.reconcile(1)
	var until time.Time
	l.queryRow(&until, `SELECT listed_until FROM inbound_listing`)
	if time.Since(until) > 5*time.Second {
		t.Errorf("it was listed until %v ago", time.Since(until))
	}
}

// Somebody else answers the number by now: nobody of his callers was missed.
func TestCallsThatSomebodyElseAnswersAreNotOurs(t *testing.T) {
	l := newLine(t)
	l.away.Store(true)
	l.sim.Ring(`{"to": "+15005550006", "from": "+819012345670"}`)
	form := map[string][]string{"VoiceUrl": {"https://else.example.com/voice"}}
	sid := l.number()["sid"].(string)
	l.board.twilio("POST", "/2010-04-01/Accounts/"+testAccount+"/IncomingPhoneNumbers/"+sid+".json", form)
	time.Sleep(1100 * time.Millisecond)
	l.reconcile(0)
	if n := l.missed(); n != 0 {
		t.Errorf("%d calls were taken for missed ones", n)
	}
}

func TestAMissedCallThatIsFoundADayLaterIsFollowedUpNoMore(t *testing.T) {
	b := newInboundBench(t, sorry)
	for age, want := range map[time.Duration]string{23 * time.Hour: "", 25 * time.Hour: notify.FollowUpTooLate} {
		id := b.rings("+8190123456"+age.String()[:2], age, "", notify.WordReceived, notify.WordMissed)
		next := b.follow(id)
		if !next.Done || (next.FollowUp == notify.FollowUpNone) != (want != "") || b.becauseOf(id) != want {
			t.Errorf("after %v: next is %+v, because %q", age, next, b.becauseOf(id))
		}
	}
}

// The API is back before the call is over, so its status callback comes in.
func TestACallOfWhichOnlyTheEndIsToldWasMissed(t *testing.T) {
	policy := sorry
	policy.FollowUps.Missed, policy.Asked = notify.FollowUp{Action: notify.FollowUpNone}, true
	b := newInboundBench(t, policy)
	for want, words := range map[notify.InboundState][]notify.InboundWord{
		notify.InboundMissed:    {notify.WordHungUp},
		notify.InboundAbandoned: {notify.WordReceived, notify.WordHungUp},
		notify.InboundTimedOut:  {notify.WordTimedOut, notify.WordHungUp},
	} {
		id := b.rings(fmt.Sprintf("+81901234%04d", len(want)), time.Minute, "", words...)
		next := b.follow(id)
		c, err := b.Store.InboundCall(t.Context(), id)
		if err != nil || c.State != want || next.State == notify.InboundMissed && next.FollowUp != notify.FollowUpNone {
			t.Errorf("%v: the call is %s, error %v; next is %+v; want %s", words, c.State, err, next, want)
		}
	}
	policy.Asked = false // a Studio flow answers, and the caller may have hung up in its greeting
	if err := b.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	next := b.follow(b.rings("+819012345678", time.Minute, "", notify.WordHungUp))
	if next.State != notify.InboundAbandoned {
		t.Errorf("with a flow: next is %+v", next)
	}
}

func TestAMissedCallHasItsOwnFollowUp(t *testing.T) {
	policy := sorry
	policy.FollowUps.Missed = notify.FollowUp{Action: notify.FollowUpNone}
	b := newInboundBench(t, policy)
	for word, want := range map[notify.InboundWord]notify.FollowUpAction{
		notify.WordMissed: notify.FollowUpNone, notify.WordHungUp: notify.FollowUpSMS,
	} {
		if next := b.follow(b.rings("+819012345678", time.Minute, "", word)); !next.Done || next.FollowUp != want {
			t.Errorf("%s: next is %+v, want %s", word, next, want)
		}
	}
}
