package v1_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestACarrierCheckIsAskedForAndRead(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down() // a worker starts the check's workflow
	a.AddKey("seesnumbers", "read", "pii")
	id := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n09012345679\n", asCSV), 2, 0, 0))
	at := batches + "/" + id.String() + "/carrier-check"
	if answer := a.Do("GET", at, ""); answer.Status != http.StatusNotFound || answer.Code() != "carrier_check_not_found" {
		t.Errorf("before one was asked for: %d %s", answer.Status, answer.Text)
	}
	asked := a.Do("POST", at, "")
	if asked.Status != http.StatusAccepted || asked.Body["state"] != "waiting" || asked.Body["agrees"] != nil || !strings.HasPrefix(asked.Body["workflow_id"].(string), "carrier-check/") {
		t.Fatalf("asking answers %d %s", asked.Status, asked.Text)
	}
	if again := a.Do("POST", at, ""); again.Text != asked.Text {
		t.Errorf("asking again answers %s", again.Text)
	}

	waiting, err := a.Store.UnstartedCarrierChecks(t.Context(), 10)
	if err != nil || len(waiting) != 1 || waiting[0].BatchID != id {
		t.Fatalf("waiting are %+v, error %v", waiting, err)
	}
	check := waiting[0].ID
	if err := a.Store.MarkCarrierCheckStarted(t.Context(), check); err != nil {
		t.Fatal(err)
	}
	if answer := a.Do("GET", at, ""); answer.Body["state"] != "running" {
		t.Errorf("while it runs: %s", answer.Text)
	}
	// The carrier has the first one delivered, and a second send to it.
	rows := rowsOf(t, a, id.String())
	if _, err := a.Store.Settle(t.Context(), notify.Receipt{NotificationID: rows[0].ID.String(), Channel: notify.SMS, SID: "SM" + strings.Repeat("a", 32), Word: "sent", Source: notify.FromCreate}); err != nil {
		t.Fatal(err)
	}
	c, err := a.Store.BeginComparison(t.Context(), check)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Add(t.Context(), []store.CarrierSend{
		{SID: "SM" + strings.Repeat("a", 32), Word: "delivered", To: rows[0].To, Ours: true},
		{SID: "SM" + strings.Repeat("b", 32), Word: "delivered", To: rows[0].To, Ours: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.End(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for key, number := range map[string]string{apitest.Key: "*********5678", "seesnumbers": "+819012345678"} {
		answer := a.Do("GET", at, "", "Authorization: Bearer "+key)
		var got struct {
			State       string
			Agrees      *bool
			Counts      map[string]int
			Differences []struct{ Kind, To, Status string }
		}
		if err := json.Unmarshal([]byte(answer.Text), &got); err != nil {
			t.Fatal(err)
		}
		if got.State != "finished" || got.Agrees == nil || *got.Agrees || got.Counts["extra_at_carrier"] != 1 || got.Counts["status_differs"] != 1 || len(got.Differences) != 2 {
			t.Fatalf("the result is %s", answer.Text)
		}
		if d := got.Differences[0]; d.Kind != "extra_at_carrier" || d.To != number || d.Status != "PENDING" {
			t.Errorf("the first difference is %+v, want the number %s", d, number)
		}
	}
	if next := a.Do("POST", at, ""); next.Body["state"] != "waiting" || next.Body["workflow_id"] == asked.Body["workflow_id"] {
		t.Errorf("asking anew answers %s", next.Text)
	}
}

func TestAFailedCarrierCheckSaysWhy(t *testing.T) {
	a := apitest.Start(t)
	id := wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n", asCSV), 1, 0, 0)
	at := batches + "/" + id + "/carrier-check"
	a.Do("POST", at, "")
	waiting, err := a.Store.UnstartedCarrierChecks(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Store.FailCarrierCheck(t.Context(), waiting[0].ID, "the carrier was away"); err != nil {
		t.Fatal(err)
	}
	if answer := a.Do("GET", at, ""); answer.Body["state"] != "failed" || answer.Body["failure"] != "the carrier was away" || answer.Body["agrees"] != nil {
		t.Errorf("it reads %s", answer.Text)
	}
}
