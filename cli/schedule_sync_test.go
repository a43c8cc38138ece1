package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

func TestASyncOffersNoConnectionThatItDoesNotUse(t *testing.T) {
	term := newTerminal(t)
	if help := term.succeeds("schedule", "sync", "--help"); strings.Contains(help, "--api-") || !strings.Contains(help, "--dry-run") {
		t.Errorf("its help is\n%s", help)
	}
	if help := term.succeeds("schedule", "list", "--help"); !strings.Contains(help, "--api-url") || !strings.Contains(help, "--api-key-file") {
		t.Errorf("what uses one has the help\n%s", help)
	}
}

func TestASyncIsTriedAndThenDone(t *testing.T) {
	database, address := devstacktest.Postgres(t), devstacktest.Temporal(t) // found from this folder
	term := newTerminal(t)
	t.Setenv("DATABASE_URL", database)
	t.Setenv("TEMPORAL_ADDRESS", address)
	if _, err := migrations.Up(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	template, err := s.CreateTemplate(t.Context(), "t", notify.SMS, store.TemplateText{Body: "x", Params: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.CreateListOf(t.Context(), "l", func() (store.NewMember, bool, error) { return store.NewMember{}, false, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSchedule(t.Context(), store.ScheduleTerms{Name: "morning", Channel: notify.SMS, TemplateID: template.ID, ListID: list.List.ID, Active: true,
		CatchupWindow: time.Minute, Timetable: notify.Timetable{ExecutionTime: "10:30", Timezone: "Asia/Tokyo"}}); err != nil {
		t.Fatal(err)
	}
	temporal, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = temporal.DeleteSchedule(context.Background(), "schedule/1"); temporal.Close() })

	for range 2 {
		if out := term.succeeds("schedule", "sync", "--dry-run"); !strings.Contains(out, "create  schedule/1  Temporal does not have it  morning") {
			t.Errorf("it would do:\n%s", out)
		}
	}
	var done struct {
		DryRun    bool `json:"dry_run"`
		Unchanged int
		Items     []struct{ ID, Action string }
	}
	if err := json.Unmarshal([]byte(term.succeeds("schedule", "sync", "--json")), &done); err != nil || done.DryRun || len(done.Items) != 1 || done.Items[0].Action != "create" {
		t.Errorf("it did %+v, error %v", done, err)
	}
	if out := term.succeeds("schedule", "sync"); out != "nothing to change: Temporal has all 1 as they are here\n" {
		t.Errorf("afterwards it says %q", out)
	}
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	if code, _, errOut := term.run("schedule", "sync", "--dry-run"); code != exitFailed || !strings.Contains(errOut, "no connection to Temporal") || strings.Count(errOut, "\n") != 1 {
		t.Errorf("while Temporal is away: %d %s", code, errOut)
	}
}
