package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/api/webhook"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/simulator"
	"github.com/todoku/todoku/store"
)

// The account and the number of a rig's simulator, as the stack sets them.
const (
	account      = "AC00000000000000000000000000000000"
	accountToken = "simulator"
	called       = "+15005550006"
)

// OpenCallCentre sets TaskRouter up at the simulator, with so many operators and one queue, has the
// number's calls come to the API, and receives them by the policy, whose SIDs it fills in.
func (r *Rig) OpenCallCentre(ctx context.Context, operators int, policy notify.InboundPolicy) error {
	address := func(path string) string { return webhook.InboundURL(r.API.base, path) }
	make := func(path string, form ...string) (string, error) { return r.Simulator.make(ctx, path, form) }

	workspace, err := make("/v1/Workspaces", "FriendlyName", "Call centre", "EventCallbackUrl", address(webhook.TaskEventPath))
	if err != nil {
		return err
	}
	in := "/v1/Workspaces/" + workspace
	available, err := make(in+"/Activities", "FriendlyName", "On duty", "Available", "true")
	if err != nil {
		return err
	}
	queue, err := make(in+"/TaskQueues", "FriendlyName", "Everybody", "TargetWorkers", "1==1")
	if err != nil {
		return err
	}
	for i := range operators {
		if _, err := make(in+"/Workers", "FriendlyName", fmt.Sprintf("operator-%02d", i), "ActivitySid", available,
			"Attributes", fmt.Sprintf(`{"contact_uri": "client:operator%d"}`, i)); err != nil {
			return err
		}
	}
	workflow, err := make(in+"/Workflows", "FriendlyName", "Reception", "AssignmentCallbackUrl", address(webhook.AssignmentPath),
		"TaskReservationTimeout", "10", "Configuration", `{"task_routing": {"filters": [], "default_filter": {"queue": "`+queue+`"}}}`)
	if err != nil {
		return err
	}
	numbers := "/2010-04-01/Accounts/" + account + "/IncomingPhoneNumbers"
	number, err := r.Simulator.find(ctx, numbers+".json?PhoneNumber="+url.QueryEscape(called))
	if err != nil {
		return err
	}
	if _, err = make(numbers+"/"+number+".json", "VoiceUrl", address(webhook.VoicePath), "StatusCallback", address(webhook.VoiceStatusPath)); err != nil {
		return err
	}
	policy.WorkspaceSID, policy.WorkflowSID = workspace, workflow
	ledger, err := store.Open(ctx, r.DatabaseURL())
	if err != nil {
		return err
	}
	defer ledger.Close()
	return ledger.SaveInboundPolicy(ctx, policy)
}

// ApplyCallCentre has the product set TaskRouter up by a file, as `todoku taskrouter apply` does, and waits until it
// has.
func (r *Rig) ApplyCallCentre(ctx context.Context, file string) error {
	request, err := json.Marshal(map[string]string{"action": "apply", "file_name": "taskrouter.yaml", "file": file})
	if err != nil {
		return err
	}
	var run struct {
		ID      uuid.UUID
		State   string
		Problem *string
	}
	err = r.API.call(ctx, exchange{
		method: http.MethodPost, path: "/taskrouter/runs", media: "application/json", body: request,
		want: http.StatusAccepted, into: &run,
	})
	for err == nil && run.State == "waiting" {
		sleep(ctx, 100*time.Millisecond)
		err = r.API.call(ctx, exchange{
			method: http.MethodGet, path: "/taskrouter/runs/" + run.ID.String(), want: http.StatusOK, into: &run,
		})
	}
	if err == nil && run.Problem != nil {
		err = errors.New(*run.Problem)
	}
	return err
}

// make posts a form to one of Twilio's paths and returns the SID of what is made.
func (s *Simulator) make(ctx context.Context, path string, form []string) (string, error) {
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Set(form[i], form[i+1])
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(values.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var made struct{ SID string }
	err = s.twilio(request, &made)
	return made.SID, err
}

// find reads the SID of the only number of a list.
func (s *Simulator) find(ctx context.Context, path string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return "", err
	}
	var page struct {
		Numbers []struct{ SID string } `json:"incoming_phone_numbers"`
	}
	if err := s.twilio(request, &page); err != nil {
		return "", err
	}
	if len(page.Numbers) != 1 {
		return "", fmt.Errorf("the simulator lists %d numbers, not 1", len(page.Numbers))
	}
	return page.Numbers[0].SID, nil
}

func (s *Simulator) twilio(request *http.Request, into any) error {
	request.SetBasicAuth(account, accountToken)
	answer, err := s.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the simulator: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("ask the simulator: %w", err)
	case answer.StatusCode > 299:
		return fmt.Errorf("the simulator answered %d to %s %s: %s", answer.StatusCode, request.Method, request.URL.Path, text)
	}
	return json.Unmarshal(text, into)
}

// Ring lets people call the number from now on.
func (s *Simulator) Ring(ctx context.Context, callers simulator.Callers) error {
	callers.To, callers.AccountSID = called, account
	return s.control(ctx, http.MethodPost, "inbound", callers, nil)
}

// A Caller is somebody who rang, as the simulator has it.
type Caller struct {
	SID      string
	From     string
	Outcome  string // answered, abandoned, left, ended, failed; empty while the call goes on
	Problem  string
	Operator string
	EndedAt  *time.Time `json:"ended_at"`
	Requests []Asked
}

// Asked is one request for what a call is to do next.
type Asked struct {
	Path       string
	HTTPStatus int     `json:"http_status"`
	TookMS     float64 `json:"took_ms"`
}

// Callers are all who rang since the last reset.
func (s *Simulator) Callers(ctx context.Context) ([]Caller, error) {
	var answer struct{ Items []Caller }
	err := s.control(ctx, http.MethodGet, "inbound", nil, &answer)
	return answer.Items, err
}

// Dialed are the numbers with which operators were connected who had a task of calling back.
func (s *Simulator) Dialed(ctx context.Context) ([]string, error) {
	var answer struct{ Dialed []string }
	err := s.control(ctx, http.MethodGet, "inbound", nil, &answer)
	return answer.Dialed, err
}

// Move has every operator change to an activity.
func (s *Simulator) Move(ctx context.Context, activity string) error {
	return s.control(ctx, http.MethodPost, "operators", map[string]string{"activity": activity}, nil)
}

// Assignments are how long the answers to assignment callbacks took.
type Assignments struct {
	Made, Failed int
	P50MS        float64 `json:"p50_ms"`
	P99MS        float64 `json:"p99_ms"`
	MaxMS        float64 `json:"max_ms"`
}

// Assignments measures those since the last reset.
func (s *Simulator) Assignments(ctx context.Context) (Assignments, error) {
	var stats struct{ Assignments Assignments }
	err := s.control(ctx, http.MethodGet, "stats", nil, &stats)
	return stats.Assignments, err
}

// InboundRow is a call that came in, in the ledger.
type InboundRow struct {
	ID             uuid.UUID
	CallSID        string
	State          notify.InboundState
	Operator       *string
	Reason         *string
	FollowUp       *string
	NotificationID *uuid.UUID
	Closed         bool
}

// InboundRows reads all calls.
func (l *Ledger) InboundRows(ctx context.Context) ([]InboundRow, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT id, call_sid, state::text, answered_by_name, exit_reason, follow_up, notification_id, closed_at IS NOT NULL
		FROM inbound_calls
		ORDER BY created_at`)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[InboundRow])
}

// AwaitInboundClosed waits until nothing is left to be done about any call or, when nothing has changed
// for so long, gives up. It returns how many are open then.
func (l *Ledger) AwaitInboundClosed(ctx context.Context, patience time.Duration) (left int, err error) {
	return awaitNone(ctx, patience, func() (open int, err error) {
		err = l.pool.QueryRow(ctx, `SELECT count(*) FROM inbound_calls WHERE closed_at IS NULL`).Scan(&open)
		return open, err
	})
}

// InboundTimeline tells, a line for each event, what happened to a call, without its number.
func (l *Ledger) InboundTimeline(ctx context.Context, id uuid.UUID) (string, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT concat_ws(' ', '   ', recorded_at, kind, word, operator_name, reason)
		FROM inbound_call_events WHERE call_id = $1 ORDER BY id`, id)
	if err != nil {
		return "", fmt.Errorf("read the timeline of %s: %w", id, err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(append([]string{id.String()}, events...), "\n"), err
}
