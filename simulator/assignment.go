package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// assignmentTimeout is how long an application has to answer an assignment callback.
const assignmentTimeout = 5 * time.Second

// askForInstruction makes the assignment callback of a reservation, and does what it is answered. The fallback URL
// is asked where the first one fails; where both do, the reservation waits for the API, or times out.
func (w *world) askForInstruction(r *reservation) {
	w.mu.Lock()
	flow, ws := r.task.workflow, r.task.ws
	urls := []string{flow.assignmentCallbackURL, flow.fallbackCallbackURL}
	form := url.Values{"AccountSid": {ws.account}, "WorkspaceSid": {ws.sid},
		"Timestamp": {strconv.FormatInt(time.Now().Unix(), 10)}}
	for name, value := range mergedParams(r.task.params(), r.params()) {
		form.Set(name, value)
	}
	told := sorted(form)
	w.mu.Unlock()

	for _, address := range urls {
		if address == "" {
			continue
		}
		hook := ws.hook(address)
		hook.terms.readTimeout = assignmentTimeout // nobody else has it yet
		asked := time.Now()
		reply := w.ask(w.living, callback{hook: hook, status: "assignment", params: told, token: randomHex()})
		do, err := readInstruction(reply)
		w.mu.Lock()
		if err == nil && !r.instructed && do.Instruction != "" {
			err = w.follow(r, do)
		}
		w.assignments = append(w.assignments, assignment{took: time.Since(asked), failed: err != nil})
		w.mu.Unlock()
		if err == nil {
			return
		}
		w.logger.Warn("assignment callback failed", "reservation", r.sid, "error", err)
	}
}

func mergedParams(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}

// readInstruction reads the answer to an assignment callback: JSON, or nothing, which leaves it to the API.
func readInstruction(r reply) (instruction, error) {
	var do instruction
	if r.trouble != "" || r.status != http.StatusOK && r.status != http.StatusNoContent {
		return do, fmt.Errorf("it was answered %d (%s), not 200", r.status, r.trouble)
	}
	if len(r.body) == 0 {
		return do, nil
	}
	if kind, _, _ := mime.ParseMediaType(r.contentType); kind != "application/json" {
		return do, fmt.Errorf("its answer is %q, not application/json (Twilio's error 40000)", kind)
	}
	if err := json.Unmarshal(r.body, &do); err != nil {
		return do, errors.New("its answer is not the JSON of an instruction")
	}
	return do, nil
}

// askForDocument asks for what an operator hears who was called by the instruction call. A document with <Dial>
// connects him with a number, of which the simulator notes that it was dialed.
func (w *world) askForDocument(r *reservation) {
	w.mu.Lock()
	ws := r.task.ws
	to, _ := r.worker.known["contact_uri"].(string)
	w.mu.Unlock()
	hook := ws.hook(r.document)
	reply := w.ask(w.living, callback{hook: hook, status: "voice", token: randomHex(), params: sorted(url.Values{
		"AccountSid": {ws.account}, "ApiVersion": {apiVersion}, "CallSid": {newSID("CA")}, "CallStatus": {"in-progress"},
		"Direction": {"outbound-api"}, "To": {to}, "Called": {to},
	})})
	verbs, err := parseDocument(reply.body, []string{"Say", "Play", "Pause", "Dial", "Hangup"})
	if err != nil || reply.trouble != "" {
		w.logger.Warn("the document for an operator failed", "reservation", r.sid, "status", reply.status, "error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range verbs {
		if v.name != "Dial" {
			continue
		}
		number := v.text
		for _, inner := range v.inner {
			number += inner.text
		}
		w.dialed = append(w.dialed, number)
	}
}

// assignment is one assignment callback that was made.
type assignment struct {
	took   time.Duration // until what it was answered had been done
	failed bool
}

// assignmentStats are in the answer to GET /_simulator/stats.
type assignmentStats struct {
	Made   int     `json:"made"`
	Failed int     `json:"failed"` // not answered in time, or with something that could not be followed
	P50MS  float64 `json:"p50_ms"`
	P99MS  float64 `json:"p99_ms"`
	MaxMS  float64 `json:"max_ms"`
}

func summarize(assignments []assignment) assignmentStats {
	s := assignmentStats{Made: len(assignments)}
	if s.Made == 0 {
		return s
	}
	took := make([]time.Duration, s.Made)
	for i, a := range assignments {
		took[i] = a.took
		if a.failed {
			s.Failed++
		}
	}
	slices.Sort(took)
	at := func(share int) float64 { return float64(took[min(s.Made-1, s.Made*share/100)].Microseconds()) / 1000 }
	s.P50MS, s.P99MS, s.MaxMS = at(50), at(99), at(100)
	return s
}
