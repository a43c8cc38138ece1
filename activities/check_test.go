package activities_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

func TestWithoutCallbacksTheCarrierTellsTheOutcome(t *testing.T) {
	tests := []struct {
		name      string
		channel   notify.Channel
		behaviour string
		status    notify.Status
		word      string
		code      any
	}{
		{"delivered", notify.SMS, `{"callback_delay_ms": 1}`, notify.Success, "delivered", nil},
		{"undelivered", notify.SMS, `{"callback_delay_ms": 1, "default_outcome": {"status": "undelivered", "error_code": 30003}}`, notify.Failed, "undelivered", "30003"},
		{"completed", notify.Call, `{"callback_delay_ms": 1}`, notify.Success, "completed", nil},
		{"busy", notify.Call, `{"callback_delay_ms": 1, "default_call_outcome": {"status": "busy"}}`, notify.Failed, "busy", nil},
		{"no answer", notify.Call, `{"callback_delay_ms": 1, "default_call_outcome": {"status": "no-answer"}}`, notify.Failed, "no-answer", nil},
		{"completed after 0 s", notify.Call, `{"callback_delay_ms": 1, "default_call_outcome": {"status": "completed", "duration_s": 0}}`, notify.Failed, "completed", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.Terms.StatusCheckDelay = time.Millisecond
			b.behave(test.behaviour)
			ref := b.accept(test.channel, recipient, "hello")
			next, err := b.Send(t.Context(), ref)
			b.want(ref, next, err, activities.CheckStatus, notify.Pending)
			for wait := time.Millisecond; next.Action != activities.Done && wait < 10*time.Second; wait *= 2 {
				time.Sleep(wait) // the simulator's own steps
				b.checkNow(ref)
				if next, err = b.CheckStatus(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
			}
			b.want(ref, next, err, activities.Done, test.status)
			if row := b.row(ref); shown(row.TwilioStatus) != test.word || shown(row.TwilioErrorCode) != test.code {
				t.Errorf("the row has %v with error %v, want %s with %v", shown(row.TwilioStatus), shown(row.TwilioErrorCode), test.word, test.code)
			}
		})
	}
}

func TestChecksOfASilentSendGetRarer(t *testing.T) {
	b := newBench(t)
	b.behave(`{"callback_delay_ms": 1, "default_outcome": {"status": "sent"}}`)
	ref := b.accept(notify.SMS, recipient, "hello")
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.CheckStatus, notify.Pending)
	for _, step := range []struct{ since, want time.Duration }{
		{5 * time.Minute, 5 * time.Minute},
		{10 * time.Minute, 10 * time.Minute},
		{40 * time.Minute, 40 * time.Minute},
		{3 * time.Hour, time.Hour},
		{9*time.Hour + 30*time.Minute, 30 * time.Minute},
	} {
		b.sentAgo(ref, step.since)
		next, err := b.CheckStatus(t.Context(), ref)
		b.want(ref, next, err, activities.CheckStatus, notify.Pending)
		if got := next.In.Round(time.Minute); got != step.want {
			t.Errorf("%v after sending the next check is in %v, want %v", step.since, got, step.want)
		}
	}
	b.sentAgo(ref, 10*time.Hour)
	next, err = b.CheckStatus(t.Context(), ref)
	b.want(ref, next, err, activities.Done, notify.Unknown)
	if row := b.row(ref); shown(row.FailureCode) != notify.CodeNoReceipt || shown(row.TwilioStatus) != "sent" {
		t.Errorf("the row has %v and %v, want NO_RECEIPT and the carrier's last word", shown(row.FailureCode), shown(row.TwilioStatus))
	}
}

func TestACheckOfARowThatIsNotSentGoesBackToSending(t *testing.T) {
	b := newBench(t)
	ref := b.accept(notify.SMS, recipient, "hello")
	next, err := b.CheckStatus(t.Context(), ref)
	b.want(ref, next, err, activities.Send, notify.Accepted)
	unknown := uuid.New()
	if _, err := b.CheckStatus(t.Context(), activities.Ref{ID: &unknown}); err == nil {
		t.Error("an unknown notification was checked")
	}
}
