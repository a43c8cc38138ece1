package activities_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

func TestASendWhoseAnswerWasLostIsSentOnceWhateverTwiliosClockShows(t *testing.T) {
	t.Parallel()
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		for _, offset := range []int{-86_000_000, -3_600_000, -10_000, -6000, 6000, 10_000, 20_000, 3_600_000, 400_000_000} {
			t.Run(fmt.Sprintf("%s %d ms", channel, offset), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.behave(fmt.Sprintf(`{"clock_offset_ms": %d, "callbacks": "lost", "fault": {"kind": "accept_then_drop", "count": 1}}`, offset))
				ref := b.accept(channel, recipient, "hello")
				next, err := b.Send(t.Context(), ref)
				b.want(ref, next, err, activities.LookUp, notify.Sending)
				next = b.resolve(ref, next)
				if row := b.row(ref); row.TwilioSID == nil || row.Status != notify.Pending && row.Status != notify.Success {
					t.Errorf("the answer is %+v and the row %s with SID %v", next, row.Status, shown(row.TwilioSID))
				}
				if n := b.creates(); n != 1 {
					t.Errorf("%d creates, want 1", n)
				}
			})
		}
	}
}

// TestASendAtATimeThatNoClockExplainsIsNeverAnAbsence has Twilio's clock set between the create and the look-up, so that
// what is measured then explains nothing.
func TestASendAtATimeThatNoClockExplainsIsNeverAnAbsence(t *testing.T) {
	t.Parallel()
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		for _, offset := range []int{-3_600_000, -60_000, 60_000, 3_600_000} {
			t.Run(fmt.Sprintf("%s %d ms", channel, offset), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.behave(fmt.Sprintf(`{"clock_offset_ms": %d, "callbacks": "lost", "fault": {"kind": "accept_then_drop", "count": 1}}`, offset))
				ref := b.accept(channel, recipient, "hello")
				next, err := b.Send(t.Context(), ref)
				b.want(ref, next, err, activities.LookUp, notify.Sending)
				b.behave(`{"callbacks": "lost"}`)
				next = b.resolve(ref, next)
				b.want(ref, next, nil, activities.Done, notify.Unknown)
				if n := b.creates(); n != 1 {
					t.Errorf("%d creates, want 1", n)
				}
			})
		}
	}
}

func TestEarlierSendsOfTheSameTextAreNoDoubt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	yesterday := b.accept(notify.SMS, recipient, "hello") // its row has its SID
	next, err := b.Send(t.Context(), yesterday)
	b.want(yesterday, next, err, activities.CheckStatus, notify.Pending)
	b.behave(`{"clock_offset_ms": -90000000, "callbacks": "lost"}`)
	stray := b.accept(notify.SMS, recipient, "hello") // its row is gone, and it was sent 25 h ago
	next, err = b.Send(t.Context(), stray)
	b.want(stray, next, err, activities.CheckStatus, notify.Pending)
	b.execute(`UPDATE notifications SET twilio_sid = NULL, status = 'FAILED' WHERE id = $1`, *stray.ID)

	b.behave(`{"fault": {"kind": "http_500", "count": 1}}`)
	today := b.accept(notify.SMS, recipient, "hello")
	next, err = b.Send(t.Context(), today)
	b.want(today, next, err, activities.LookUp, notify.Sending)
	next = b.resolve(today, next)
	b.want(today, next, nil, activities.Send, notify.Accepted)
}

func TestARunThatTemporalStartsBeforeItsTimeWaitsForIt(t *testing.T) {
	o := newOffice(t)
	a := &activities.Activities{Store: o.store, Log: slog.New(slog.DiscardHandler), Terms: activities.Terms{
		Batch: func(notify.Channel) activities.BatchTerms {
			return activities.BatchTerms{Sender: "+15005550006", ShardSize: 1}
		}}}
	for _, early := range []time.Duration{2 * time.Second, 20 * time.Second, 2 * time.Minute, time.Hour} {
		due := time.Now().UTC().Add(early).Truncate(time.Second)
		terms := o.terms(early.String(), due.Format("15:04:05"))
		terms.Timetable.Timezone = "UTC"
		made, err := o.store.CreateSchedule(t.Context(), terms)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := a.RunSchedule(t.Context(), activities.DueRun{ScheduleID: made.ID, At: due})
		if early < 5*time.Second {
			if err != nil || outcome.NotDue || time.Now().Before(due) {
				t.Errorf("%v early: %+v, error %v, %v before its time", early, outcome, err, time.Until(due))
			}
			continue
		}
		if wait := (&bench{t: t}).wantRetry(err); wait < min(early, time.Minute)-2*time.Second || wait > min(early, time.Minute)+time.Second {
			t.Errorf("%v early, it is tried again after %v", early, wait)
		}
		if runs, err := o.store.ScheduleRuns(t.Context(), 1, made.ID); err != nil || len(runs[made.ID]) > 0 {
			t.Errorf("%v early, it ran: %+v, error %v", early, runs[made.ID], err)
		}
	}
}
