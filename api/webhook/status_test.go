package webhook_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestMain(m *testing.M) { apitest.Main(m) }

const (
	smsPath  = "/api/twilio/webhook/sms-status"
	callPath = "/api/twilio/webhook/call-status"
)

func sid(prefix string, n int) string { return fmt.Sprintf("%s%032x", prefix, n) }

// sms is the form of an SMS's status callback as Twilio posts it.
func sms(sid, status string, more ...string) url.Values {
	form := url.Values{
		"SmsSid": {sid}, "SmsStatus": {status}, "MessageSid": {sid}, "MessageStatus": {status},
		"To": {"+15005550009"}, "From": {apitest.Number}, "AccountSid": {sidOfTests}, "ApiVersion": {"2010-04-01"},
	}
	return with(form, more)
}

// call is the form of a call's status callback.
func call(sid, status string, more ...string) url.Values {
	form := url.Values{
		"CallSid": {sid}, "CallStatus": {status}, "To": {"+15005550009"}, "From": {apitest.Number}, "Called": {"+15005550009"},
		"AccountSid": {sidOfTests}, "ApiVersion": {"2010-04-01"}, "Direction": {"outbound-api"}, "CallbackSource": {"call-progress-events"},
	}
	return with(form, more)
}

const sidOfTests = "AC00000000000000000000000000000000"

func with(form url.Values, more []string) url.Values {
	for _, field := range more {
		name, value, _ := strings.Cut(field, "=")
		form.Set(name, value)
	}
	return form
}

// claimed accepts a notification and claims it, so that a workflow owns it.
func claimed(t *testing.T, a *apitest.API, channel notify.Channel) (id uuid.UUID, workflowID string) {
	t.Helper()
	answer := a.Do("POST", "/api/v1/notifications", fmt.Sprintf(`{"channel": %q, "to": "090-1234-5678", "body": "x"}`, channel))
	if answer.Status != http.StatusAccepted {
		t.Fatal(answer.Text)
	}
	id = uuid.MustParse(answer.Body["id"].(string))
	workflowID = "notification/" + id.String()
	claimBy(t, a, id, workflowID)
	return id, workflowID
}

func claimBy(t *testing.T, a *apitest.API, id uuid.UUID, workflowID string) {
	t.Helper()
	claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{
		Owner: store.Owner{WorkflowID: workflowID, Single: &id}, Limit: 1, Lease: 15 * time.Second, Ahead: time.Second,
	})
	if err != nil || len(claims) != 1 {
		t.Fatalf("claimed %d, %v", len(claims), err)
	}
}

func status(t *testing.T, a *apitest.API, id uuid.UUID) string {
	t.Helper()
	n, err := a.Store.Notification(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(n.Status)
}

func TestACallbackIsInTheLedgerBeforeItsAnswerAndThenTheWorkflowHearsOfIt(t *testing.T) {
	for name, test := range map[string]struct {
		channel notify.Channel
		path    string
		forms   []url.Values
		want    notify.Status
	}{
		"delivered":   {notify.SMS, smsPath, []url.Values{sms(sid("SM", 1), "sent"), sms(sid("SM", 1), "delivered")}, notify.Success},
		"undelivered": {notify.SMS, smsPath, []url.Values{sms(sid("SM", 2), "undelivered", "ErrorCode=30003")}, notify.Failed},
		"completed": {notify.Call, callPath, []url.Values{
			call(sid("CA", 3), "ringing", "SequenceNumber=1"), call(sid("CA", 3), "completed", "CallDuration=12", "Duration=1", "SequenceNumber=3"),
		}, notify.Success},
		"busy": {notify.Call, callPath, []url.Values{call(sid("CA", 4), "busy", "CallDuration=0", "Duration=0", "SipResponseCode=486")}, notify.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			a := apitest.Start(t)
			id, workflowID := claimed(t, a, test.channel)
			for _, form := range test.forms {
				answer := a.Callback(test.path+"?id="+id.String(), form)
				if answer.Status != http.StatusNoContent || answer.Text != "" {
					t.Fatalf("answer = %d %s", answer.Status, answer.Text)
				}
			}
			if got := status(t, a, id); got != string(test.want) {
				t.Errorf("status = %s, want %s", got, test.want)
			}
			want := []apitest.Signal{{WorkflowID: workflowID, Status: test.want}}
			a.Eventually("the workflow is told once", func() bool { return slices.Equal(a.Workflows.Signals(), want) })
		})
	}
}

func TestRepeatsAreAnsweredAndSignalNobody(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	for range 3 {
		if answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered")); answer.Status != http.StatusNoContent {
			t.Fatalf("answer = %d %s", answer.Status, answer.Text)
		}
	}
	if err := a.Stop(); err != nil { // which waits for the signals
		t.Fatal(err)
	}
	if got := a.Workflows.Signals(); len(got) != 1 {
		t.Errorf("%d signals, want 1", len(got))
	}
}

func TestARowWithoutAWorkflowIsSettledWithoutASignal(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down()
	answer := a.Do("POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	id := uuid.MustParse(answer.Body["id"].(string))
	a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered"))
	if got := status(t, a, id); got != "SUCCESS" {
		t.Errorf("status = %s, want SUCCESS", got)
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := a.Workflows.Signals(); len(got) != 0 {
		t.Errorf("signals = %v, want none", got)
	}
}

func TestAShardIsToldWhenNothingOfItIsLeft(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down() // nobody owns the rows yet
	const shard = "relay/1"
	var ids []uuid.UUID
	for range 3 {
		answer := a.Do("POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
		id := uuid.MustParse(answer.Body["id"].(string))
		claimBy(t, a, id, shard)
		ids = append(ids, id)
	}
	a.Workflows.Up()
	for i, id := range ids {
		if signals := a.Workflows.Signals(); len(signals) != 0 {
			t.Errorf("signals after %d of 3: %v", i, signals)
		}
		if answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", i+1), "delivered")); answer.Status != http.StatusNoContent {
			t.Fatalf("answer = %d %s", answer.Status, answer.Text)
		}
	}
	told := apitest.Signal{WorkflowID: shard, Status: notify.Success}
	a.Eventually("the shard is told", func() bool { return slices.Contains(a.Workflows.Signals(), told) })
}

func TestManyCallbacksAtOnceAreEachAnsweredAndKept(t *testing.T) {
	a := apitest.Start(t)
	var ids []uuid.UUID
	for range 40 {
		id, _ := claimed(t, a, notify.SMS)
		ids = append(ids, id)
	}
	var all sync.WaitGroup
	for i, id := range ids {
		for _, word := range []string{"sent", "delivered", "sent"} {
			all.Go(func() {
				if answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", i+1), word)); answer.Status != http.StatusNoContent {
					t.Errorf("answer = %d %s", answer.Status, answer.Text)
				} else if events, err := a.Store.Events(t.Context(), id); err != nil || !slices.ContainsFunc(events, func(e store.Event) bool {
					return e.TwilioStatus != nil && *e.TwilioStatus == word
				}) {
					t.Errorf("%s was answered and is not in the timeline (%v)", word, err)
				}
			})
		}
	}
	all.Wait()
	for _, id := range ids {
		if got := status(t, a, id); got != "SUCCESS" {
			t.Errorf("status = %s, want SUCCESS", got)
		}
	}
	a.Eventually("each workflow is told", func() bool { return len(a.Workflows.Signals()) == len(ids) })
}

func TestWhatTwilioDidNotSignIsRefusedAndCounted(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	path, form := smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered")
	post := func(path, body string, headers ...string) apitest.Answer {
		return a.Do("POST", path, body, append(headers, "Authorization: ", "Content-Type: application/x-www-form-urlencoded")...)
	}
	signature := carrier.SignatureHeader + ": " + carrier.Sign(apitest.AuthToken, apitest.PublicURL+path, form)
	for name, test := range map[string]struct {
		answer func() apitest.Answer
		status int
		code   string
		reason string
	}{
		"unsigned": {func() apitest.Answer { return post(path, form.Encode()) }, 403, "callback_unsigned", "unsigned"},
		"signed by a stranger": {func() apitest.Answer {
			return post(path, form.Encode(), carrier.SignatureHeader+": "+carrier.Sign("guess", apitest.PublicURL+path, form))
		}, 403, "callback_forged", "forged"},
		"another body":    {func() apitest.Answer { return post(path, sms(sid("SM", 1), "failed").Encode(), signature) }, 403, "callback_forged", "forged"},
		"another id":      {func() apitest.Answer { return post(smsPath+"?id="+uuid.NewString(), form.Encode(), signature) }, 403, "callback_forged", "forged"},
		"another address": {func() apitest.Answer { return post(callPath+"?id="+id.String(), form.Encode(), signature) }, 403, "callback_forged", "forged"},
		"signed for the Host header": {func() apitest.Answer {
			return post(path, form.Encode(), carrier.SignatureHeader+": "+carrier.Sign(apitest.AuthToken, a.URL+path, form))
		}, 403, "callback_forged", "forged"},
		"65 kB": {func() apitest.Answer {
			return a.Callback(path, sms(sid("SM", 1), "delivered", "Body="+strings.Repeat("x", 65<<10)))
		}, 413, "request_too_large", "too_long"},
		"no form":   {func() apitest.Answer { return post(path, "%zz", signature) }, 400, "malformed_callback", "unreadable"},
		"no status": {func() apitest.Answer { return a.Callback(path, url.Values{"MessageSid": {sid("SM", 1)}}) }, 400, "malformed_callback", "malformed"},
		"no SID":    {func() apitest.Answer { return a.Callback(path, sms("SM1", "delivered")) }, 400, "malformed_callback", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			before := counter(t, "todoku_webhook_rejected_total", "reason", test.reason)
			answer := test.answer()
			if answer.Status != test.status || answer.Code() != test.code {
				t.Errorf("answer = %d %s, want %d %s", answer.Status, answer.Text, test.status, test.code)
			}
			if got := counter(t, "todoku_webhook_rejected_total", "reason", test.reason); got != before+1 {
				t.Errorf("counted %v as %s, want 1", got-before, test.reason)
			}
		})
	}
	if got := status(t, a, id); got != "SENDING" {
		t.Errorf("status = %s, want SENDING: nothing may have changed it", got)
	}
	if log := a.Log(); strings.Contains(log, "15005550009") || strings.Contains(log, id.String()) {
		t.Error("the log has what a stranger sent")
	}
}

func TestWithoutAPublicAddressEveryCallbackIsRefused(t *testing.T) {
	a := apitest.Start(t, "TODOKU_PUBLIC_URL=")
	answer := a.Callback(smsPath+"?id="+uuid.NewString(), sms(sid("SM", 1), "delivered"))
	if answer.Status != http.StatusForbidden || answer.Code() != "callbacks_off" {
		t.Errorf("answer = %d %s", answer.Status, answer.Text)
	}
}

func TestWhatTheLedgerDoesNotKnowIsRecordedAndAnswered(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	stranger := uuid.New()
	for name, test := range map[string]struct {
		query string
		form  url.Values
	}{
		"an unknown id":                {"?id=" + stranger.String(), sms(sid("SM", 1), "delivered")},
		"no id and an unknown SID":     {"", sms(sid("SM", 2), "delivered")},
		"an id that is none":           {"?id=7", sms(sid("SM", 3), "delivered")},
		"a status never heard of":      {"?id=" + id.String(), sms(sid("SM", 4), "teleported")},
		"an error code never heard of": {"?id=" + id.String(), sms(sid("SM", 4), "sent", "ErrorCode=99999")},
		"parameters never heard of":    {"?id=" + id.String(), sms(sid("SM", 4), "sent", "RawDlrDoneDate=2611291640", "Novelty=yes")},
	} {
		if answer := a.Callback(smsPath+test.query, test.form); answer.Status != http.StatusNoContent {
			t.Errorf("%s: answer = %d %s", name, answer.Status, answer.Text)
		}
	}
	kinds := func(id uuid.UUID) (kinds []store.EventKind) {
		t.Helper()
		events, err := a.Store.Events(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	if got := kinds(stranger); !slices.Equal(got, []store.EventKind{store.EventUnknownID}) {
		t.Errorf("of the unknown id: %v", got)
	}
	if got := kinds(id); !slices.Contains(got, store.EventUnknownWord) {
		t.Errorf("of the known id: %v", got)
	}
}

func TestACallbackThatKnowsOnlyItsSIDFindsItsRow(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "sent"))
	a.Callback(smsPath, sms(sid("SM", 1), "delivered"))
	if got := status(t, a, id); got != "SUCCESS" {
		t.Errorf("status = %s, want SUCCESS", got)
	}
}

func TestASecondSIDIsCountedAndSaidAloud(t *testing.T) {
	a := apitest.Start(t)
	before := counter(t, "todoku_second_sids_total", "", "")
	id, _ := claimed(t, a, notify.SMS)
	a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "sent"))
	a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 2), "sent"))
	a.Eventually("it is counted", func() bool { return counter(t, "todoku_second_sids_total", "", "") == before+1 })
	a.Eventually("it is logged", func() bool {
		return strings.Contains(a.Log(), "level=ERROR") && strings.Contains(a.Log(), "somebody got two")
	})
}

func TestWithoutItsDatabaseACallbackComesAgain(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	a.Database.Cut()
	answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered"))
	if answer.Status != http.StatusServiceUnavailable || answer.Code() != "database_unavailable" {
		t.Errorf("answer = %d %s", answer.Status, answer.Text)
	}
	a.Database.Restore()
	if answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered")); answer.Status != http.StatusNoContent {
		t.Errorf("the second time: %d %s", answer.Status, answer.Text)
	}
}

func TestWithAReadOnlyDatabaseACallbackComesAgain(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	devstacktest.SetReadOnly(t, a.Settings.DatabaseURL, true)
	for range 3 {
		answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered"))
		if answer.Status != http.StatusServiceUnavailable || answer.Code() != "database_unavailable" || answer.Header.Get("Retry-After") == "" {
			t.Errorf("answer = %d %s", answer.Status, answer.Text)
		}
	}
	devstacktest.SetReadOnly(t, a.Settings.DatabaseURL, false)
	a.Eventually("it is recorded", func() bool {
		return a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered")).Status == http.StatusNoContent
	})
}

func TestTemporalDownDoesNotHoldUpCallbacks(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Hold()
	for i := range 20 { // more than signals in flight
		id, _ := claimed(t, a, notify.SMS)
		if answer := a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", i+1), "delivered")); answer.Status != http.StatusNoContent {
			t.Fatalf("answer = %d %s", answer.Status, answer.Text)
		}
	}
	a.Workflows.Release()
	a.Eventually("every workflow is told", func() bool { return len(a.Workflows.Signals()) == 20 })
}

func TestWordsNeverHeardOfShareOneLabel(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	before := counter(t, "todoku_receipts_total", "word", "other")
	for i := range 5 {
		a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), fmt.Sprintf("novelty%d", i)))
	}
	if got := counter(t, "todoku_receipts_total", "word", "other"); got != before+5 {
		t.Errorf("counted %v words never heard of, want 5", got-before)
	}
}

func TestWhatACallbackSaysAndNobodyUnderstandsIsKeptCountedAndLogged(t *testing.T) {
	for _, test := range []struct {
		name, kind string
		path       string // ID is that of a notification
		form       url.Values
		event      store.EventKind // the last of the notification; empty: the callback does not name it
		detail     string
	}{
		{"a status never heard of", "unknown_status", smsPath + "?id=ID", sms(sid("SM", 1), "novelty"),
			store.EventUnknownWord, ""},
		{"a code that is no number", "unknown_error_code", smsPath + "?id=ID", sms(sid("SM", 1), "undelivered", "ErrorCode=E30003"),
			store.EventReceipt, "not an error code: E30003"},
		{"a code that is not ASCII", "unknown_error_code", smsPath + "?id=ID", sms(sid("SM", 1), "undelivered", "ErrorCode=３０００３"),
			store.EventReceipt, "not an error code: unprintable"},
		{"an id of nobody", "no_notification", smsPath + "?id=" + uuid.NewString(), sms(sid("SM", 1), "delivered"), "", ""},
		{"a malformed id", "no_notification", smsPath + "?id=1", sms(sid("SM", 2), "delivered"), "", ""},
		{"no id, and a SID of nobody", "no_notification", smsPath, sms(sid("SM", 3), "delivered"), "", ""},
		{"the id of another channel", "no_notification", callPath + "?id=ID", call(sid("CA", 1), "busy"), "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := apitest.Start(t)
			id, _ := claimed(t, a, notify.SMS)
			before := counter(t, "todoku_webhook_unexplained_total", "kind", test.kind)
			if answer := a.Callback(strings.ReplaceAll(test.path, "=ID", "="+id.String()), test.form); answer.Status != http.StatusNoContent {
				t.Fatalf("answer = %d %s", answer.Status, answer.Text)
			}
			if got := counter(t, "todoku_webhook_unexplained_total", "kind", test.kind) - before; got != 1 {
				t.Errorf("counted %v, want 1", got)
			}
			if !strings.Contains(a.Log(), "kind="+test.kind) {
				t.Errorf("not logged:\n%s", a.Log())
			}
			if test.event == "" {
				return
			}
			events, err := a.Store.Events(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			last := events[len(events)-1]
			var detail string
			if last.Detail != nil {
				detail = *last.Detail
			}
			if last.Kind != test.event || detail != test.detail {
				t.Errorf("the timeline ends with %s %q, want %s %q", last.Kind, detail, test.event, test.detail)
			}
		})
	}
}

func TestWhatIsUnderstoodCountsAsNothingStrange(t *testing.T) {
	a := apitest.Start(t)
	id, _ := claimed(t, a, notify.SMS)
	before := counter(t, "todoku_webhook_unexplained_total", "", "")
	a.Callback(smsPath+"?id="+id.String(), sms(sid("SM", 1), "sent", "ErrorCode=0"))
	a.Callback(smsPath, sms(sid("SM", 1), "delivered"))
	if got := counter(t, "todoku_webhook_unexplained_total", "", "") - before; got != 0 {
		t.Errorf("counted %v, want 0", got)
	}
}

func TestACallbackSignedWithThePreviousTokenIsTakenAndCounted(t *testing.T) {
	const previous = "previoustokenprevioustoken"
	signed := func(a *apitest.API, token string, id uuid.UUID) int {
		path, form := smsPath+"?id="+id.String(), sms(sid("SM", 1), "delivered")
		return a.Do(http.MethodPost, path, form.Encode(), "Authorization: ", "Content-Type: application/x-www-form-urlencoded",
			carrier.SignatureHeader+": "+carrier.Sign(token, apitest.PublicURL+path, form)).Status
	}
	rotating := apitest.Start(t, "TWILIO_AUTH_TOKEN_PREVIOUS="+previous)
	before := counter(t, "todoku_webhook_previous_token_total", "", "")
	for _, token := range []string{previous, apitest.AuthToken} {
		id, _ := claimed(t, rotating, notify.SMS)
		if got := signed(rotating, token, id); got != http.StatusNoContent {
			t.Errorf("a callback signed with %q is answered %d", token, got)
		}
	}
	if got := counter(t, "todoku_webhook_previous_token_total", "", "") - before; got != 1 {
		t.Errorf("counted %v with the previous token, want 1", got)
	}
	rotated := apitest.Start(t)
	id, _ := claimed(t, rotated, notify.SMS)
	if got := signed(rotated, previous, id); got != http.StatusForbidden {
		t.Errorf("after the rotation it is answered %d", got)
	}
}

// counter sums a metric's series that have the label.
func counter(t *testing.T, metric, label, value string) (sum float64) {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, series := range family.GetMetric() {
			matches := label == ""
			for _, pair := range series.GetLabel() {
				matches = matches || pair.GetName() == label && pair.GetValue() == value
			}
			if matches {
				sum += series.GetCounter().GetValue()
			}
		}
	}
	return sum
}
