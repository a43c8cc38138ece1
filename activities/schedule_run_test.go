package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// starts records the batches that were started, or fails.
type starts struct {
	batches []uuid.UUID
	down    bool
}

func (s *starts) StartBatch(_ context.Context, _ string, id uuid.UUID, _ notify.Channel) error {
	if s.down {
		return errors.New("no connection to Temporal")
	}
	s.batches = append(s.batches, id)
	return nil
}

func TestARunHasItsBatchStarted(t *testing.T) {
	for _, down := range []bool{false, true} {
		o := newOffice(t)
		members := []store.NewMember{{Row: 1, Key: []byte("a"), To: notify.PhoneNumber{E164: "+12025550143", National: "x", Region: "US", Kind: notify.Mobile}, ToHash: []byte("a"), TailHash: []byte("t")}}
		filled, err := o.store.CreateListOf(t.Context(), "filled", func() (m store.NewMember, ok bool, err error) {
			if len(members) == 0 {
				return m, false, nil
			}
			m, members = members[0], nil
			return m, true, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		due := time.Now().UTC().Truncate(time.Second)
		terms := o.terms("a", due.Format("15:04:05"))
		terms.Timetable.Timezone, terms.ListID = "UTC", filled.List.ID
		made, err := o.store.CreateSchedule(t.Context(), terms)
		if err != nil {
			t.Fatal(err)
		}
		started := &starts{down: down}
		a := &activities.Activities{Store: o.store, Batches: started, Log: slog.New(slog.DiscardHandler), Terms: activities.Terms{
			Batch: func(notify.Channel) activities.BatchTerms {
				return activities.BatchTerms{Sender: "+15005550006", ShardSize: 1, Countries: []string{"US"}}
			}}}
		first, err := a.RunSchedule(t.Context(), activities.DueRun{ScheduleID: made.ID, At: due})
		if err != nil || first.BatchID == nil || first.Before {
			t.Fatalf("the run is %+v, error %v", first, err)
		}
		again, err := a.RunSchedule(t.Context(), activities.DueRun{ScheduleID: made.ID, At: due})
		if err != nil || again.BatchID == nil || *again.BatchID != *first.BatchID || !again.Before {
			t.Errorf("again: %+v, error %v", again, err)
		}
		if !down && (len(started.batches) != 1 || started.batches[0] != *first.BatchID) {
			t.Errorf("started are %v", started.batches)
		}
		waiting, err := o.store.UnstartedBatches(t.Context(), 0, 10)
		if err != nil || len(waiting) == 1 != down {
			t.Errorf("to be started are %v, error %v", waiting, err)
		}
		var refused *temporal.ApplicationError // Temporal's own trigger ends with what to do, and not with success
		if _, err := a.RunSchedule(t.Context(), activities.DueRun{ScheduleID: made.ID, At: due.Add(-time.Hour)}); !errors.As(err, &refused) ||
			!refused.NonRetryable() || !strings.Contains(refused.Message(), "/trigger") {
			t.Errorf("at a time at which it does not run: %v", err)
		}
		for _, gone := range []activities.DueRun{{ScheduleID: 99, At: due}} {
			if outcome, err := a.RunSchedule(t.Context(), gone); err != nil || !outcome.NotDue {
				t.Errorf("%+v: %+v, error %v", gone, outcome, err)
			}
		}
		made = o.create("empty", "00:00")
		skipped, err := a.RunSchedule(t.Context(), activities.DueRun{ScheduleID: made.ID, At: time.Date(2020, 1, 1, 15, 0, 0, 0, time.UTC)})
		if err != nil || skipped.Skipped != store.SkipTooLate || skipped.BatchID != nil {
			t.Errorf("a late one is %+v, error %v", skipped, err)
		}
	}
}
