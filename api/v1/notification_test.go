package v1_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
)

const send = "/api/v1/notifications"

// accept sends a notification and returns its id.
func accept(t *testing.T, a *apitest.API, body string) uuid.UUID {
	t.Helper()
	answer := a.Do("POST", send, body)
	if answer.Status != http.StatusAccepted {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	id := uuid.MustParse(answer.Body["id"].(string))
	if got, want := answer.Header.Get("Location"), send+"/"+id.String(); got != want {
		t.Errorf("Location = %q, want %q", got, want)
	}
	return id
}

func TestANotificationIsInTheLedgerBeforeItsAnswerAndStartsBesideIt(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, `{"channel": "SMS", "to": "０９０－１２３４－５６７８", "body": "ご予約は明日10時です。", "reference": "visit 7"}`)
	if id.Version() != 7 {
		t.Errorf("the id is a UUID of version %d, want 7", id.Version())
	}
	n, err := a.Store.Notification(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if n.To != "+819012345678" || n.ToNational != "090-1234-5678" || n.Sender != apitest.Number || *n.Reference != "visit 7" {
		t.Errorf("the ledger has %+v", n)
	}
	a.Eventually("the workflow is started", func() bool { return slices.Contains(a.Workflows.Started(), id) })
}

// unstarted is how many notifications the relay would start workflows for now.
func unstarted(t *testing.T, a *apitest.API) int {
	t.Helper()
	left, err := a.Store.Unstarted(t.Context(), nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(left)
}

func TestANotificationHasExactlyTheFieldsOfTheContract(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x", "reference": "r"}`)
	got := a.Do("GET", send+"/"+id.String(), "").Body
	want := []string{
		"answered_by", "attempts", "body", "channel", "created_at", "duration_seconds", "error_code", "error_message", "id", "reference",
		"segments", "send_at", "sent_at", "status", "to", "to_national", "twilio_sid", "twilio_status", "updated_at", "workflow_id", "workflow_url",
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("fields = %q,\nwant     %q", names, want)
	}
	for _, name := range []string{"twilio_sid", "twilio_status", "error_code", "error_message", "segments", "duration_seconds", "answered_by", "sent_at"} {
		if got[name] != nil {
			t.Errorf("%s = %v, want null", name, got[name])
		}
	}
	if got["status"] != "ACCEPTED" || got["attempts"] != 0.0 || got["workflow_id"] != "notification/"+id.String() ||
		got["workflow_url"] != "http://ui.example.com/namespaces/default/workflows/notification/"+id.String() {
		t.Errorf("notification = %v", got)
	}
}

func TestNumbersAreMaskedUnlessTheKeyMaySeeThem(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("seesall", "read", "pii")
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	masked := a.Do("GET", send+"/"+id.String(), "")
	if strings.Contains(masked.Text, "1234") || masked.Body["to"] != "*********5678" || masked.Body["to_national"] != "*********5678" {
		t.Errorf("without pii: %s", masked.Text)
	}
	whole := a.Do("GET", send+"/"+id.String(), "", "Authorization: Bearer seesall")
	if whole.Body["to"] != "+819012345678" || whole.Body["to_national"] != "090-1234-5678" {
		t.Errorf("with pii: %s", whole.Text)
	}
	if strings.Contains(a.Log(), "12345678") || strings.Contains(a.Log(), "1234-5678") {
		t.Error("the log has the number")
	}
}

func TestATemplateIsPinnedAtItsCurrentVersion(t *testing.T) {
	a := apitest.Start(t)
	a.Do("POST", "/api/v1/templates", `{"name": "greeting", "channel": "SMS", "body": "{{氏名}}様"}`)
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "template_id": 1, "params": {"氏名": "山田"}}`)
	a.Do("PATCH", "/api/v1/templates/1", `{"body": "{{氏名}}さん、{{時刻}}です"}`, "If-Match: *")
	got := a.Do("GET", send+"/"+id.String(), "").Body
	if got["template_id"] != 1.0 || got["template_version"] != 1.0 || got["params"].(map[string]any)["氏名"] != "山田" || got["body"] != nil {
		t.Errorf("notification = %v", got)
	}
	if again := a.Do("POST", send, `{"channel": "SMS", "to": "090-1234-5678", "template_id": 1, "params": {"氏名": "山田"}}`); again.Code() != "param_missing" {
		t.Errorf("with the parameters of version 1: %s", again.Text)
	}
}

func TestATemplateWithoutPlaceholdersNeedsNoParams(t *testing.T) {
	a := apitest.Start(t)
	a.Do("POST", "/api/v1/templates", `{"name": "plain", "channel": "CALL", "body": "Good morning"}`)
	accept(t, a, `{"channel": "CALL", "to": "03-1234-5678", "template_id": 1}`)
	accept(t, a, `{"channel": "CALL", "to": "03-1234-5678", "template_id": 1, "params": {}}`)
}

func TestTheMessagingServiceGoesBeforeTheNumberForSMSOnly(t *testing.T) {
	service := "MG" + strings.Repeat("0", 32)
	a := apitest.Start(t, "TWILIO_MESSAGING_SERVICE_SID="+service)
	for channel, want := range map[string]string{"SMS": service, "CALL": apitest.Number} {
		id := accept(t, a, `{"channel": "`+channel+`", "to": "090-1234-5678", "body": "x"}`)
		if n, err := a.Store.Notification(t.Context(), id); err != nil || n.Sender != want {
			t.Errorf("%s is sent from %q (%v), want %q", channel, n.Sender, err, want)
		}
	}
}

func TestCallsNeedANumber(t *testing.T) {
	a := apitest.Start(t, "TWILIO_PHONE_NUMBER=", "TWILIO_MESSAGING_SERVICE_SID=MG"+strings.Repeat("0", 32))
	accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	answer := a.Do("POST", send, `{"channel": "CALL", "to": "090-1234-5678", "body": "x"}`)
	if answer.Status != http.StatusUnprocessableEntity || answer.Code() != "channel_not_configured" {
		t.Errorf("answer = %d %s", answer.Status, answer.Text)
	}
}

func TestFailuresAreExplainedInTheReadersLanguage(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, `{"channel": "CALL", "to": "090-1234-5678", "body": "x"}`)
	_, err := a.Store.Settle(t.Context(), notify.Receipt{
		NotificationID: id.String(), Channel: notify.Call, SID: "CA" + strings.Repeat("0", 32), Word: "busy", Source: notify.FromWebhook,
	})
	if err != nil {
		t.Fatal(err)
	}
	for accepts, want := range map[string]struct{ language, message string }{
		"":                  {"en", "The line was busy."},
		"ja":                {"ja", "通話中でした。"},
		"ja-JP,ja;q=0.9,en": {"ja", "通話中でした。"},
		"fr, en;q=0.5":      {"en", "The line was busy."},
	} {
		got := a.Do("GET", send+"/"+id.String(), "", "Accept-Language: "+accepts)
		if got.Body["status"] != "FAILED" || got.Body["error_message"] != want.message || got.Header.Get("Content-Language") != want.language {
			t.Errorf("Accept-Language %q: %s in %q", accepts, got.Text, got.Header.Get("Content-Language"))
		}
		if got.Header.Get("Vary") != "Accept-Language" {
			t.Errorf("Vary = %q", got.Header.Get("Vary"))
		}
	}
}

func TestOurOwnCodeStandsWhereTwilioGaveNone(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	refuse(t, a, id)
	got := a.Do("GET", send+"/"+id.String(), "").Body
	if got["error_code"] != notify.CodeSendDeadline || got["error_message"] != "It could not be sent in time." {
		t.Errorf("notification = %v", got)
	}
}

func TestTheTimelineHasEveryReceipt(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	for _, word := range []string{"delivered", "sent", "vanished"} {
		_, err := a.Store.Settle(t.Context(), notify.Receipt{
			NotificationID: id.String(), Channel: notify.SMS, SID: "SM" + strings.Repeat("0", 32), Word: word, Source: notify.FromWebhook,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	answer := a.Do("GET", send+"/"+id.String()+"/events", "")
	var got []string
	for _, item := range answer.Body["items"].([]any) {
		event := item.(map[string]any)
		word, _ := event["twilio_status"].(string)
		got = append(got, strings.TrimSpace(event["kind"].(string)+" "+word))
	}
	if want := []string{"accepted", "receipt delivered", "receipt sent", "unknown_word vanished"}; !slices.Equal(got, want) {
		t.Errorf("timeline = %q, want %q", got, want)
	}
}

func TestTemporalDownDoesNotStopAcceptance(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down()
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	a.Eventually("the failure is logged", func() bool { return strings.Contains(a.Log(), "left to the relay") })
	a.Eventually("it is left to the relay", func() bool {
		left, err := a.Store.Unstarted(t.Context(), nil, 10)
		return err == nil && len(left) == 1 && left[0].Single != nil && *left[0].Single == id
	})
}

func TestASlowTemporalHoldsUpNoRequest(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Hold()
	for range 10 {
		accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`) // none waits for Release
	}
	a.Eventually("10 starts are in flight", func() bool { return a.Workflows.Waiting() == 10 })
	a.Workflows.Release()
	a.Eventually("all are started", func() bool { return len(a.Workflows.Started()) == 10 })
}

func TestASurgeIsLeftToTheRelay(t *testing.T) {
	a := apitest.Start(t)
	var surge sync.WaitGroup
	for range 50 {
		surge.Go(func() { a.Do("POST", send, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`) })
	}
	surge.Wait()
	if err := a.Stop(); err != nil { // which waits for the starts
		t.Fatal(err)
	}
	started := len(a.Workflows.Started())
	if left := unstarted(t, a); left < 50-started || started < 10 {
		t.Errorf("%d of 50 were started at once and %d are left to the relay, want about 10 and the rest", started, left)
	}
}

func TestWithoutItsDatabaseTheAPISaysSo(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	a.Database.Cut()
	for _, answer := range []apitest.Answer{
		a.Do("POST", send, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`),
		a.Do("GET", send+"/"+id.String(), ""),
		a.Do("GET", send+"/"+id.String(), "", "Authorization: Bearer someotherkey"),
		a.Do("GET", "/api/v1/templates", ""),
		a.Do("GET", "/api/v1/senders", ""),
		a.Do("GET", "/api/v1/lists", ""),
		a.Do("POST", "/api/v1/lists", `{"name": "l", "members": [{"to": "090-1234-5678"}]}`),
		a.Do("POST", "/api/v1/lists/1/members", "to\n09012345678\n", asCSV),
		a.Do("GET", "/api/v1/lists/1/members.csv", ""),
	} {
		if answer.Status != http.StatusServiceUnavailable || answer.Code() != "database_unavailable" || answer.Header.Get("Retry-After") != "5" {
			t.Errorf("answer = %d %s, Retry-After %q", answer.Status, answer.Text, answer.Header.Get("Retry-After"))
		}
	}
	a.Database.Restore()
	accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
}
