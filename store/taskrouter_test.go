package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/taskrouter"
)

func TestRunsOfTaskRouterHaveTheirTurnInOrder(t *testing.T) {
	s := openStore(t)
	if _, err := s.NextTaskRouterRun(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("where none waits the error is %v", err)
	}
	var ids []uuid.UUID
	for range 3 {
		ids = append(ids, uuid.Must(uuid.NewV7()))
		if _, err := s.AddTaskRouterRun(t.Context(), ids[len(ids)-1], "apply", "f", "workspace: x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		next, err := s.NextTaskRouterRun(t.Context())
		if err != nil || next.ID != id {
			t.Fatalf("next is %s, error %v, want %s", next.ID, err, id)
		}
		change := taskrouter.Change{Action: taskrouter.Create, Kind: taskrouter.Queues, Name: "Sales"}
		if err := s.AddTaskRouterChange(t.Context(), id, change); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishTaskRouterRun(t.Context(), id, nil, nil, ""); err != nil {
			t.Fatal(err)
		}
		// What comes after the end is not part of the run.
		if err := errors.Join(s.AddTaskRouterChange(t.Context(), id, change), s.FinishTaskRouterRun(t.Context(), id, nil, nil, "late")); err != nil {
			t.Fatal(err)
		}
		if run, err := s.TaskRouterRun(t.Context(), id); err != nil || len(run.Changes) != 1 || run.Problem != nil || run.FinishedAt == nil {
			t.Errorf("the run is %+v, error %v", run, err)
		}
	}
	if waits, err := s.TaskRouterWaits(t.Context()); waits || err != nil {
		t.Errorf("one waits: %t, error %v", waits, err)
	}
	if n, err := s.PurgeTaskRouterRuns(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("%d young runs were forgotten, error %v", n, err)
	}
	if n, err := s.PurgeTaskRouterRuns(t.Context(), 0); n != 3 || err != nil {
		t.Errorf("%d runs were forgotten, error %v", n, err)
	}
}

func TestANumberRemembersWhatItWasBeforeOurFirstChange(t *testing.T) {
	s := openStore(t)
	for _, change := range []struct{ before, after map[string]string }{
		{map[string]string{"VoiceUrl": "old"}, map[string]string{"VoiceUrl": "ours"}},
		{map[string]string{"VoiceUrl": "ours", "StatusCallback": "theirs"}, map[string]string{"VoiceUrl": "ours again", "StatusCallback": "ours"}},
	} {
		if err := s.NoteNumber(t.Context(), "+15005550006", "PN1", change.before, change.after); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := s.TaskRouterObjects(t.Context())
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	if got := fmt.Sprint(objects[0].Before, objects[0].After); got != "map[StatusCallback:theirs VoiceUrl:old] map[StatusCallback:ours VoiceUrl:ours again]" {
		t.Errorf("noted is %s", got)
	}
}

func TestWhatIsAboutToBeMadeIsKnownWithoutItsSID(t *testing.T) {
	s := openStore(t)
	note, err := s.IntendTaskRouterObject(t.Context(), taskrouter.Queues, "Sales", "WS1")
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, sids ...string) {
		t.Helper()
		objects, err := s.TaskRouterObjects(t.Context())
		if err != nil || len(objects) != len(sids) || len(sids) > 0 && (objects[0].SID != sids[0] || objects[0].WorkspaceSID != "WS1") {
			t.Errorf("%s: %+v, error %v", when, objects, err)
		}
	}
	check("before", "")
	if err := s.TaskRouterObjectMade(t.Context(), note, "WQ1"); err != nil {
		t.Fatal(err)
	}
	check("made", "WQ1")
	if err := s.ForgetTaskRouterObject(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	check("gone")
}
