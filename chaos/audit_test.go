package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/notify"
)

// patience is how long nothing may settle before what is left counts as stuck: longer than a claim, a
// lost answer and the longest pause between two tries together.
const patience = 100 * time.Second

// shownOffenders is how many timelines a failed audit prints.
const shownOffenders = 8

// audit waits until everything is settled, and holds what the API accepted against the ledger and
// what the carrier got. Every accepted notification goes to a number of its own and would arrive.
func audit(t *testing.T, r *rig.Rig, accepted []rig.Accepted) {
	t.Helper()
	ctx := t.Context()
	began := time.Now()
	if _, err := r.Ledger.AwaitSettled(ctx, "", patience); err != nil {
		t.Fatalf("wait for the ledger: %v", err)
	}
	took := time.Since(began)
	open, err := r.Temporal.AwaitClosed(ctx, patience/2)
	if err != nil {
		t.Error(err)
	}

	rows, err := r.Ledger.Rows(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	creates, err := r.Simulator.ByNumber(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]uuid.UUID{}
	offend := func(how string, id uuid.UUID) { found[how] = append(found[how], id) }

	ledger := map[uuid.UUID]rig.Row{}
	rowsTo := map[string]int{}
	for _, row := range rows {
		ledger[row.ID] = row
		rowsTo[row.To]++
		switch {
		case !row.Status.Final():
			offend("stuck", row.ID)
		case row.Status == notify.Unknown:
			offend("unknown", row.ID)
		case row.Status != notify.Success:
			offend("wrong status", row.ID)
		}
	}
	for _, row := range rows {
		if len(creates[row.To]) > rowsTo[row.To] {
			offend("twice", row.ID)
		}
		if rowsTo[row.To] > 1 { // each call under a key of its own names a number of its own
			offend("two rows for one key", row.ID)
		}
	}
	tries := 0
	for _, a := range accepted {
		tries += a.Tries
		if _, kept := ledger[a.ID]; !kept {
			offend("not in the ledger", a.ID)
		}
		if len(creates[a.To]) == 0 {
			offend("lost", a.ID)
		}
	}

	var table strings.Builder
	line := func(what string, value any) { fmt.Fprintf(&table, "\n  %-28s %v", what, value) }
	line("accepted (202)", len(accepted))
	line("calls of the API for that", tries)
	line("rows in the ledger", len(rows))
	line("recipients at the carrier", len(creates))
	line("settled after the stream", took.Round(100*time.Millisecond))
	for _, how := range []string{"twice", "lost", "stuck", "unknown", "wrong status", "not in the ledger", "two rows for one key"} {
		line(how, len(found[how]))
	}
	line("open workflows", len(open))
	t.Logf("audit:%s", table.String())

	for how, ids := range found {
		t.Errorf("%d notifications: %s", len(ids), how)
		for _, id := range ids[:min(len(ids), shownOffenders)] {
			t.Log(timeline(ctx, r, id, creates[ledger[id].To]))
		}
	}
	if len(open) > 0 {
		t.Errorf("%d workflows are still open, among them %s", len(open), strings.Join(open[:min(len(open), shownOffenders)], ", "))
	}
	if len(accepted) == 0 {
		t.Error("nothing was accepted, so nothing was tested")
	}
}

// auditBatch audits a batch to the first numbers of all, the only one of its rig, and holds what is
// counted of it against its rows.
func auditBatch(t *testing.T, r *rig.Rig, b rig.Batch, tries int) {
	t.Helper()
	var rows []rig.Row
	await(t, time.Minute, "the ledger can be read", func(ctx context.Context) (_ bool, err error) {
		rows, err = r.Ledger.Rows(ctx, "")
		return err == nil, err
	})
	ids := map[string]uuid.UUID{}
	for _, row := range rows {
		ids[row.To] = row.ID
	}
	accepted := make([]rig.Accepted, b.Total)
	for i := range accepted {
		accepted[i] = rig.Accepted{ID: ids[rig.Number(i)], To: rig.Number(i)}
	}
	accepted[0].Tries = tries // one call for all
	audit(t, r, accepted)

	statuses, err := r.Ledger.Statuses(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	await(t, time.Minute, "the batch is finished", func(ctx context.Context) (bool, error) {
		b, err = r.API.Batch(ctx, b.ID)
		return err == nil && b.State == "finished", err
	})
	sum := 0
	for status, n := range b.Counts {
		sum += n
		if rows := statuses[notify.Status(strings.ToUpper(status))]; rows != n {
			t.Errorf("of the batch %d are counted as %s, and %d rows are", n, status, rows)
		}
	}
	if sum != b.Total || len(rows) != b.Total {
		t.Errorf("the counts add up to %d of %d, and there are %d rows", sum, b.Total, len(rows))
	}
}

// timeline tells a notification's story from both sides.
func timeline(ctx context.Context, r *rig.Rig, id uuid.UUID, creates []rig.Create) string {
	story, err := r.Ledger.Timeline(ctx, id)
	if err != nil {
		story = fmt.Sprintf("%s: %v\n", id, err)
	}
	for _, create := range creates {
		story += fmt.Sprintf("    at the carrier: %s %s created %s", create.SID, create.Status, create.CreatedAt.Format(time.RFC3339Nano))
		for _, callback := range create.Callbacks {
			answer := "unanswered"
			if callback.HTTPStatus != nil {
				answer = fmt.Sprint(*callback.HTTPStatus)
			}
			story += fmt.Sprintf(", %s at %s: %s", callback.Status, callback.At.Format("15:04:05.000"), answer)
		}
		story += "\n"
	}
	return story
}
