package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// workflow routes tasks into queues. https://www.twilio.com/docs/taskrouter/api/workflow
type workflow struct {
	identity
	ws                                         *workspace
	configuration                              string
	routing                                    routing
	assignmentCallbackURL, fallbackCallbackURL string
	reservationTimeout                         string // seconds
}

var workflowFields = []field{
	webURL("AssignmentCallbackUrl", 0),
	webURL("FallbackAssignmentCallbackUrl", 0),
	integerBetween("TaskReservationTimeout", 1, 86400, 0),
}

func (ws *workspace) keepWorkflows(w *world) {
	ws.workflows = collection[*workflow]{
		key: "workflows", prefix: "WW", url: ws.url + "/Workflows",
		make: func(f *form, id identity) *workflow {
			flow := &workflow{identity: id, ws: ws, reservationTimeout: "120"}
			if !f.has("Configuration") {
				f.refuse(20001, "Missing required parameter Configuration in the post body")
			}
			flow.change(f)
			return flow
		},
		change: (*workflow).change,
		release: func(flow *workflow, f *form) {
			for _, t := range ws.tasks.order {
				if t.workflow == flow && !t.over() {
					f.refuse(20001, "Cannot delete workflow %s: it has tasks that are not over.", flow.sid)
					return
				}
			}
		},
	}
}

func (flow *workflow) change(f *form) {
	f.check(workflowFields)
	f.takeName(&flow.identity)
	if f.given("Configuration") {
		parsed, err := parseRouting(f.text("Configuration"), flow.ws)
		if err != nil {
			f.refuse(20001, "Invalid Workflow Configuration: %v", err)
			return
		}
		flow.configuration, flow.routing = f.text("Configuration"), parsed
	}
	f.take("AssignmentCallbackUrl", &flow.assignmentCallbackURL)
	f.take("FallbackAssignmentCallbackUrl", &flow.fallbackCallbackURL)
	if f.has("TaskReservationTimeout") {
		flow.reservationTimeout = f.text("TaskReservationTimeout")
	}
}

func (flow *workflow) show() any {
	return map[string]any{
		"account_sid": flow.account, "sid": flow.sid, "friendly_name": flow.name, "url": flow.url,
		"date_created": iso8601(flow.createdAt), "date_updated": iso8601(flow.updatedAt),
		"configuration": flow.configuration, "document_content_type": "application/json",
		"assignment_callback_url":          orNull(flow.assignmentCallbackURL),
		"fallback_assignment_callback_url": orNull(flow.fallbackCallbackURL),
		"task_reservation_timeout":         integerOf(flow.reservationTimeout), "workspace_sid": flow.ws.sid,
		"links": flow.links(map[string]string{
			"statistics": "/Statistics", "real_time_statistics": "/RealTimeStatistics",
			"cumulative_statistics": "/CumulativeStatistics",
		}),
	}
}

// routing is a workflow's configuration: the first filter that a task fits gives the targets that it is offered to,
// one after the other. https://www.twilio.com/docs/taskrouter/workflow-configuration
type routing struct {
	filters  []routingFilter
	fallback *routingTarget
}

type routingFilter struct {
	name    string
	fits    expression
	targets []routingTarget
}

type routingTarget struct {
	queue    *taskQueue
	priority *int
	timeout  *int // seconds; nil: until it is taken
	workers  expression
	skipIf   string
}

// parseRouting reads the JSON of a configuration and refuses what does not make sense in this workspace.
func parseRouting(text string, ws *workspace) (routing, error) {
	type target struct {
		Queue             string          `json:"queue"`
		Expression        string          `json:"expression"`
		Priority          json.RawMessage `json:"priority"`
		Timeout           json.RawMessage `json:"timeout"`
		SkipIf            string          `json:"skip_if"`
		OrderBy           string          `json:"order_by"`
		KnownWorkerSid    string          `json:"known_worker_sid"`
		KnownWorkerName   string          `json:"known_worker_friendly_name"`
		TargetDescription string          `json:"target_friendly_name"`
	}
	var document struct {
		TaskRouting *struct {
			Filters []struct {
				Name       string   `json:"filter_friendly_name"`
				OtherName  string   `json:"friendly_name"`
				Expression string   `json:"expression"`
				Targets    []target `json:"targets"`
			} `json:"filters"`
			Default *target `json:"default_filter"`
		} `json:"task_routing"`
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return routing{}, fmt.Errorf("it is not the JSON of a workflow: %w", err)
	}
	if document.TaskRouting == nil {
		return routing{}, errors.New("task_routing is missing")
	}
	read := func(t target) (routingTarget, error) {
		queue, ok := ws.queues.get(t.Queue)
		if !ok {
			return routingTarget{}, fmt.Errorf("there is no task queue %q", t.Queue)
		}
		r := routingTarget{queue: queue, skipIf: t.SkipIf}
		var err error
		if r.priority, err = wholeNumber("priority", t.Priority); err != nil {
			return r, err
		}
		if r.timeout, err = wholeNumber("timeout", t.Timeout); err != nil {
			return r, err
		}
		if t.Expression != "" {
			r.workers, err = parseExpression(t.Expression)
		}
		return r, err
	}
	var parsed routing
	for _, f := range document.TaskRouting.Filters {
		filter := routingFilter{name: f.Name + f.OtherName}
		var err error
		if filter.fits, err = parseExpression(f.Expression); err != nil {
			return routing{}, fmt.Errorf("filter %q: expression: %w", filter.name, err)
		}
		if len(f.Targets) == 0 {
			return routing{}, fmt.Errorf("filter %q has no targets", filter.name)
		}
		for _, t := range f.Targets {
			target, err := read(t)
			if err != nil {
				return routing{}, fmt.Errorf("filter %q: target: %w", filter.name, err)
			}
			filter.targets = append(filter.targets, target)
		}
		parsed.filters = append(parsed.filters, filter)
	}
	if document.TaskRouting.Default != nil {
		target, err := read(*document.TaskRouting.Default)
		if err != nil {
			return routing{}, fmt.Errorf("default_filter: %w", err)
		}
		parsed.fallback = &target
	}
	return parsed, nil
}

// wholeNumber reads 30 and "30", both of which Twilio takes; nothing is nil.
func wholeNumber(name string, raw json.RawMessage) (*int, error) {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return nil, nil
	}
	var n int
	if err := json.Unmarshal([]byte(text), &n); err != nil || n < 0 {
		return nil, fmt.Errorf("%s must be a whole number", name)
	}
	return &n, nil
}

// names reports whether tasks can be routed to the queue.
func (r *routing) names(queueSID string) bool {
	if r.fallback != nil && r.fallback.queue.sid == queueSID {
		return true
	}
	for _, f := range r.filters {
		for _, t := range f.targets {
			if t.queue.sid == queueSID {
				return true
			}
		}
	}
	return false
}

// targets are where a task with these attributes is offered, one after the other; none: nowhere.
func (r *routing) targets(attributes map[string]any) (filter string, targets []routingTarget) {
	for _, f := range r.filters {
		if f.fits.holds(attributes) {
			// What no target has taken goes to the default queue.
			targets = f.targets
			if r.fallback != nil {
				targets = append(targets[:len(targets):len(targets)], *r.fallback)
			}
			return f.name, targets
		}
	}
	if r.fallback != nil {
		return "Default", []routingTarget{*r.fallback}
	}
	return "", nil
}
