package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// flow is a Studio flow. https://www.twilio.com/docs/studio/rest-api/v2/flow
type flow struct {
	identity
	definition json.RawMessage
	program    flowProgram
	status     string
	revision   int
	commit     string
	published  *flowProgram // what callers hear; nil: nothing
}

var flowFields = []field{oneOf("Status", 0, "draft", "published"), jsonObject("Definition", 0)}

func keepFlows(a *account) {
	a.flows = collection[*flow]{
		key: "flows", prefix: "FW", url: studioURL + "/v2/Flows",
		make: func(f *form, id identity) *flow {
			for _, name := range []string{"Status", "Definition"} {
				if !f.has(name) {
					f.refuse(20001, "Missing required parameter %s in the post body", name)
				}
			}
			made := &flow{identity: id}
			made.change(f)
			return made
		},
		change: func(w *flow, f *form) {
			if !f.has("Status") {
				f.refuse(20001, "Missing required parameter Status in the post body")
			}
			w.change(f)
		},
		release: func(*flow, *form) {},
	}
}

func (w *flow) change(f *form) {
	f.check(flowFields)
	f.takeName(&w.identity)
	program := w.program
	if f.has("Definition") {
		var err error
		if program, err = parseFlow(f.text("Definition")); err != nil {
			f.refuse(60202, "Flow definition is not valid: %v", err)
		}
	}
	if f.failed != nil {
		return
	}
	if f.has("Definition") {
		w.definition = json.RawMessage(f.text("Definition"))
	}
	w.program, w.status = program, f.text("Status")
	f.take("CommitMessage", &w.commit)
	w.revision++
	if w.status == "published" {
		w.published = &program
	}
}

func (w *flow) webhookURL() string {
	return studioHooks + w.account + "/Flows/" + w.sid
}

func (w *flow) show() any {
	return map[string]any{
		"sid": w.sid, "account_sid": w.account, "author_sid": nil, "friendly_name": w.name,
		"definition": w.definition, "status": w.status, "revision": w.revision, "commit_message": orNull(w.commit),
		"valid": true, "errors": []any{}, "warnings": []any{}, "url": w.url, "webhook_url": w.webhookURL(),
		"date_created": iso8601(w.createdAt), "date_updated": iso8601(w.updatedAt),
		"links": w.links(map[string]string{
			"executions": "/Executions", "revisions": "/Revisions", "test_users": "/TestUsers",
		}),
	}
}

// flowValidation answers POST /v2/Flows/Validate.
type flowValidation struct{}

func (flowValidation) serve(method, _ string, f *form, _ caller) answer {
	if method != http.MethodPost {
		return refusal(methodNotAllowed())
	}
	f.check(flowFields)
	if _, err := parseFlow(f.text("Definition")); err != nil {
		f.refuse(60202, "Flow definition is not valid: %v", err)
	}
	if f.failed != nil {
		return refusal(f.failed)
	}
	return jsonAnswer(http.StatusOK, map[string]bool{"valid": true})
}

// flowProgram is what a definition does with an incoming call: only widgets that answer it without asking
// anybody, say-play, record-voicemail and enqueue-call, are known here.
// https://www.twilio.com/docs/studio/rest-api/v2/flow-definition
type flowProgram struct {
	states  map[string]flowState
	initial string
}

type flowState struct {
	Name        string         `json:"name"`
	Type        string         `json:"type"`
	Properties  map[string]any `json:"properties"`
	Transitions []struct {
		Event string `json:"event"`
		Next  string `json:"next"`
	} `json:"transitions"`
}

// The event that leads from each known widget to the next one when all goes well.
var flowWidgets = map[string]string{
	"trigger": "incomingCall", "say-play": "audioComplete", "enqueue-call": "callComplete",
	"record-voicemail": "recordingComplete",
}

func parseFlow(definition string) (flowProgram, error) {
	var d struct {
		States  []flowState `json:"states"`
		Initial string      `json:"initial_state"`
	}
	if err := json.Unmarshal([]byte(definition), &d); err != nil {
		return flowProgram{}, errors.New("it is not the JSON of a flow")
	}
	p := flowProgram{states: make(map[string]flowState), initial: d.Initial}
	for _, s := range d.States {
		if _, known := flowWidgets[s.Type]; !known {
			return p, fmt.Errorf("the widget type %q is not known here; known are %s", s.Type,
				strings.Join(slices.Sorted(maps.Keys(flowWidgets)), ", "))
		}
		p.states[s.Name] = s
	}
	for _, s := range d.States {
		for _, t := range s.Transitions {
			if _, ok := p.states[t.Next]; t.Next != "" && !ok {
				return p, fmt.Errorf("the transition %s of %q leads to %q, which is not there", t.Event, s.Name, t.Next)
			}
		}
		if s.Type == "enqueue-call" && s.text("workflow_sid") == "" && s.text("queue_name") == "" {
			return p, fmt.Errorf("the widget %q has neither workflow_sid nor queue_name", s.Name)
		}
	}
	if p.states[p.initial].Type != "trigger" {
		return p, fmt.Errorf("initial_state %q is not a trigger", p.initial)
	}
	return p, nil
}

func (s flowState) text(property string) string {
	text, _ := s.Properties[property].(string)
	return text
}

func (s flowState) next() string {
	for _, t := range s.Transitions {
		if t.Event == flowWidgets[s.Type] {
			return t.Next
		}
	}
	return ""
}

// verbs are what a caller comes to, in TwiML's words.
func (p *flowProgram) verbs() ([]verb, error) {
	var verbs []verb
	name := p.states[p.initial].next()
	for name != "" {
		s := p.states[name]
		name = s.next()
		switch {
		case len(verbs) == len(p.states):
			return nil, errors.New("the flow goes in a circle")
		case s.Type == "enqueue-call":
			enqueue := verb{name: "Enqueue", attributes: map[string]string{
				"workflowSid": s.text("workflow_sid"), "waitUrl": s.text("wait_url"),
			}, inner: []verb{{name: "Task", text: s.text("task_attributes")}}}
			verbs = append(verbs, enqueue)
		case s.Type == "record-voicemail":
			verbs = append(verbs, verb{name: "Record"})
		case s.text("play") != "":
			verbs = append(verbs, verb{name: "Play", text: s.text("play")})
		default:
			verbs = append(verbs, verb{name: "Say", text: s.text("say")})
		}
	}
	return verbs, nil
}

// studioHooks is where the webhooks of flows begin.
const studioHooks = "https://webhooks.twilio.com/v1/Accounts/"

// studioFlow is the program of the flow whose webhook the address is.
func (c *inboundCall) studioFlow(address string) (*flowProgram, bool) {
	path, ok := strings.CutPrefix(address, studioHooks+c.account+"/Flows/")
	if !ok {
		return nil, false
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	found, ok := c.w.accounts[c.account].flows.get(path)
	if !ok || found.published == nil {
		return &flowProgram{}, true
	}
	return found.published, true
}
