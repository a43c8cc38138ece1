package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
)

// Requests and answers, good and bad, are what the description says they are.
func TestAnswersAreAsDescribed(t *testing.T) {
	a := apitest.Start(t)
	description, err := openapi3.NewLoader().LoadFromData([]byte(a.Do("GET", "/openapi.json", "").Text))
	if err != nil {
		t.Fatal(err)
	}
	router, err := legacy.NewRouter(description)
	if err != nil {
		t.Fatal(err)
	}
	id := accept(t, a)
	batch := "/api/v1/batches/" + a.Do("POST", "/api/v1/batches", `{"channel": "SMS", "body": "x", "recipients": [{"to": "090-1234-5678"}]}`).Body["id"].(string)
	if err := a.Store.StopSender(t.Context(), 1, false, "21606", "the number cannot send SMS"); err != nil {
		t.Fatal(err)
	}
	called := "/api/v1/inbound/calls/" + receive(t, a)
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/v1/templates", `{"name": "t", "channel": "SMS", "body": "{{name}}様"}`, 201},
		{"POST", "/api/v1/templates", `{"name": "c", "channel": "CALL", "body": "Hello"}`, 201},
		{"POST", "/api/v1/templates", `{"name": "t", "channel": "SMS", "body": "x"}`, 409},
		{"GET", "/api/v1/templates?limit=1", "", 200},
		{"GET", "/api/v1/templates", "", 200},
		{"GET", "/api/v1/templates/1", "", 200},
		{"GET", "/api/v1/templates/9", "", 404},
		{"GET", "/api/v1/templates/1/versions", "", 200},
		{"PATCH", "/api/v1/templates/1", `{"body": "{{name}}さん"}`, 200},
		{"POST", "/api/v1/templates/1/render", `{"params": {"name": "山田"}}`, 200},
		{"POST", "/api/v1/templates/1/render", `{}`, 422},
		{"POST", "/api/v1/templates/2/render", `{}`, 200},
		{"POST", "/api/v1/templates/1/render", `{"example": true, "version": 1}`, 200},
		{"PATCH", "/api/v1/templates/1", `{"kinds": {"name": "text"}}`, 200},
		{"GET", "/api/v1/templates/1/diff?from=1", "", 200},
		{"DELETE", "/api/v1/templates/2", "", 204},
		{"DELETE", "/api/v1/templates/9", "", 404},
		{"GET", "/api/v1/templates?archived=true", "", 200},
		{"POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "template_id": 1, "params": {"name": "山田"}, "reference": "r"}`, 202},
		{"POST", "/api/v1/notifications", `{"channel": "CALL", "to": "110", "body": ""}`, 422},
		{"DELETE", "/api/v1/templates/1", "", 200},
		{"POST", "/api/v1/lists", `{"name": "l", "members": [{"to": "090-1234-5678", "params": {"name": "山田"}, "timezone": "Asia/Tokyo", "locale": "ja"}, {"to": "12"}]}`, 201},
		{"POST", "/api/v1/lists", `{"name": "l"}`, 409},
		{"GET", "/api/v1/lists?phone=5678", "", 200},
		{"GET", "/api/v1/lists/1", "", 200},
		{"PATCH", "/api/v1/lists/1", `{"name": "m"}`, 200},
		{"POST", "/api/v1/lists/1/members?mode=replace", `{"members": [{"to": "090-1234-5678", "params": {"name": "佐藤"}}]}`, 200},
		{"POST", "/api/v1/lists/1/members", `{"members": []}`, 422},
		{"GET", "/api/v1/lists/1/members?limit=1", "", 200},
		{"GET", "/api/v1/lists/1/members/1", "", 200},
		{"PATCH", "/api/v1/lists/1/members/1", `{"timezone": "Asia/Tokyo"}`, 200},
		{"DELETE", "/api/v1/lists/1/members/1", "", 204},
		{"GET", "/api/v1/lists/1/members/1", "", 404},
		{"DELETE", "/api/v1/lists/1", "", 204},
		{"GET", "/api/v1/notifications/" + id, "", 200},
		{"GET", "/api/v1/notifications/" + id + "/events", "", 200},
		{"GET", "/api/v1/notifications?limit=1&status=ACCEPTED,HELD&channel=SMS", "", 200},
		{"GET", "/api/v1/notifications?status=LOST", "", 422},
		{"POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "body": "x", "send_at": "2000-01-01T00:00:00Z"}`, 422},
		{"PATCH", "/api/v1/notifications/" + id, `{"send_at": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`, 200},
		{"POST", "/api/v1/notifications/" + id + "/cancel", "", 200},
		{"PATCH", "/api/v1/notifications/" + id, `{"send_at": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`, 409},
		{"GET", "/api/v1/notifications/0190b0a0-0000-7000-8000-000000000000", "", 404},
		{"PATCH", "/api/v1/templates/1", `{"archived": false}`, 200},
		{"POST", "/api/v1/lists", `{"name": "patients", "members": [{"to": "090-1234-5678", "params": {"name": "山田"}}]}`, 201},
		{"POST", "/api/v1/schedules", `{"name": "s", "channel": "SMS", "template_id": 1, "list_id": 3, "execution_time": "10:30", "days_of_week": ["MON"], "ends_on": "2099-12-31"}`, 201},
		{"POST", "/api/v1/schedules", `{"name": "s", "channel": "SMS", "template_id": 1, "list_id": 3, "cron": "0 9 * * *", "days_of_month": []}`, 409},
		{"POST", "/api/v1/schedules/1/trigger", "", 202},
		{"GET", "/api/v1/schedules", "", 200},
		{"GET", "/api/v1/schedules/1", "", 200},
		{"PATCH", "/api/v1/schedules/1", `{"cron": "0 9 * * 1-5", "note": "x"}`, 200},
		{"POST", "/api/v1/schedules/1/pause?note=x", "", 200},
		{"POST", "/api/v1/schedules/1/resume", "", 200},
		{"GET", "/api/v1/notifications?schedule_id=1", "", 200},
		{"DELETE", "/api/v1/schedules/1", "", 204},
		{"DELETE", "/api/v1/schedules/1", "", 404},
		{"POST", "/api/v1/taskrouter/runs", `{"action": "destroy"}`, 202},
		{"POST", "/api/v1/taskrouter/runs", `{"action": "plan", "file": "workspace: x"}`, 422},
		{"GET", "/api/v1/taskrouter/runs/0190b0a0-0000-7000-8000-000000000000", "", 404},
		{"GET", "/api/v1/taskrouter/objects", "", 200},
		{"GET", "/api/v1/senders", "", 200},
		{"POST", "/api/v1/senders/1/resume", "", 200},
		{"GET", "/api/v1/inbound/calls?limit=1&state=ANSWERED", "", 200},
		{"GET", "/api/v1/inbound/calls?state=LOST", "", 422},
		{"GET", called, "", 200},
		{"GET", called + "/events", "", 200},
		{"GET", "/api/v1/inbound/calls/0190b0a0-0000-7000-8000-000000000000", "", 404},
		{"GET", "/api/v1/inbound/statistics?within_minutes=5", "", 200},
		{"POST", "/api/v1/batches", `{"channel": "SMS", "body": "x", "recipients": [{"to": "090-1234-5678"}]}`, 202},
		{"POST", "/api/v1/batches?dry_run=true", `{"channel": "SMS", "body": "x", "recipients": [{"to": "090-1234-5678"}, {"to": "110"}]}`, 200},
		{"POST", "/api/v1/batches", `{"channel": "SMS", "recipients": [{"to": "110"}]}`, 422},
		{"GET", "/api/v1/batches?limit=1", "", 200},
		{"GET", batch, "", 200},
		{"PATCH", batch, `{"send_interval_ms": 250}`, 200},
		{"GET", batch + "/carrier-check", "", 404},
		{"POST", batch + "/carrier-check", "", 202},
		{"GET", batch + "/carrier-check", "", 200},
		{"POST", batch + "/pause?reason=lunch", "", 200},
		{"POST", batch + "/resume", "", 200},
		{"POST", batch + "/cancel", "", 200},
		{"POST", batch + "/pause", "", 409},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			request := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
			if test.body != "" {
				request.Header.Set("Content-Type", "application/json")
			}
			route, params, err := router.FindRoute(request)
			if err != nil {
				t.Fatal(err)
			}
			input := &openapi3filter.RequestValidationInput{
				Request: request, PathParams: params, Route: route, QueryParams: url.Values(request.URL.Query()),
				Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
			}
			if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
				t.Errorf("request: %v", err)
			}
			answer := a.Do(test.method, test.path, test.body, "If-Match: *") // which only some ask for
			if answer.Status != test.status {
				t.Fatalf("answer = %d %s, want %d", answer.Status, answer.Text, test.status)
			}
			err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
				RequestValidationInput: input, Status: answer.Status, Header: http.Header(answer.Header),
				Body: io.NopCloser(strings.NewReader(answer.Text)), Options: input.Options,
			})
			if err != nil {
				t.Errorf("answer: %v", err)
			}
		})
	}
}

// receive records a call that an operator has answered.
func receive(t *testing.T, a *apitest.API) (id string) {
	t.Helper()
	sid := "CA00000000000000000000000000000001"
	for _, word := range []notify.InboundWord{notify.WordReceived, notify.WordWaiting, notify.WordAnswered} {
		if _, err := a.Store.RecordInbound(t.Context(), notify.InboundEvent{
			CallID: notify.InboundID(sid), CallSID: sid, Key: string(word), Kind: string(word), Word: word, At: time.Now(), Source: notify.FromWebhook,
			From: "+819012345678", To: "+15005550006", Operator: notify.Operator{SID: "WK00000000000000000000000000000001", Name: "Mari"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return notify.InboundID(sid).String()
}
