package taskrouter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/todoku/todoku/notify"
)

// Kind is a kind of thing that is set up.
type Kind string

const (
	Workspaces Kind = "workspace"
	Activities Kind = "activity"
	Queues     Kind = "task queue"
	Workers    Kind = "worker"
	Workflows  Kind = "workflow"
	Flows      Kind = "studio flow"
	Numbers    Kind = "phone number"

	// Policies are the one thing that is not at Twilio: how our webhooks receive calls.
	Policies Kind = "policy"
)

// Kinds lists those of Twilio's in the order in which they are made; they are deleted in the reverse order.
var Kinds = []Kind{Workspaces, Activities, Queues, Workers, Workflows, Flows, Numbers}

// Object is one thing that Twilio keeps, or shall keep. Within its kind and workspace its name, exactly as it is
// written, stands for it.
//
// A SID in a field is written as the name of what it stands for, {kind:name}, so that what shall be and what is can be
// compared before everything exists.
type Object struct {
	Kind   Kind
	Name   string
	SID    string            // of what exists
	URL    string            // of a flow that exists: its webhook, which is what a number names of it
	Fields map[string]string // the parameters of Twilio's API that are looked after, FriendlyName left out
	Begins map[string]string // those that a new one begins with, and that are left alone from then on
	Line   int               // of the file; 0: it does not name it itself
}

// reference is how a field names another object. It is the same inside of JSON and outside: what JSON would escape in a
// name is written in per cents.
func reference(kind Kind, name string) string {
	return "{" + string(kind) + ":" + plainInJSON.Replace(name) + "}"
}

var plainInJSON = strings.NewReplacer("%", "%25", `"`, "%22", `\`, "%5C", "<", "%3C", ">", "%3E", "&", "%26", "\u2028", "%E2%80%A8", "\u2029", "%E2%80%A9")

// URLs are the addresses at which Twilio finds our webhooks.
type URLs struct {
	Voice       string // a call comes in
	VoiceStatus string // it is over
	Wait        string // it waits
	Assignment  string // an operator was chosen
	Events      string // TaskRouter's events
}

// ErrNoPublicURL says that Twilio cannot be told where to call.
var ErrNoPublicURL = errors.New("TODOKU_PUBLIC_URL is empty: Twilio must be told where to call; set it for the workers and start them again")

// Objects are what the file means at Twilio, in the order in which they are made.
func (f *File) Objects(urls URLs) ([]Object, error) {
	if urls.Voice == "" {
		return nil, ErrNoPublicURL
	}
	objects := []Object{{
		Kind: Workspaces, Name: f.Workspace,
		Fields: map[string]string{"EventCallbackUrl": urls.Events, "EventsFilter": strings.Join(notify.TaskEvents(), ",")},
		Begins: map[string]string{"Template": "NONE"},
	}}
	for _, a := range f.Activities {
		objects = append(objects, Object{Kind: Activities, Name: a.Name, Line: a.line, Fields: map[string]string{
			"Available": strconv.FormatBool(a.Available)}})
	}
	for _, q := range f.Queues {
		order := "FIFO"
		if q.LIFO {
			order = "LIFO"
		}
		objects = append(objects, Object{Kind: Queues, Name: q.Name, Line: q.line, Fields: map[string]string{
			"TargetWorkers": q.Workers, "TaskOrder": order, "MaxReservedWorkers": strconv.Itoa(q.MaxReserved)}})
	}
	for _, o := range f.Operators {
		attributes := maps.Clone(o.Attributes)
		if attributes == nil {
			attributes = map[string]any{}
		}
		attributes["contact_uri"] = o.ContactURI
		object := Object{Kind: Workers, Name: o.Name, Line: o.line, Fields: map[string]string{"Attributes": compact(attributes)},
			Begins: map[string]string{"ActivitySid": reference(Activities, o.Activity)}}
		objects = append(objects, object)
	}
	objects = append(objects, Object{Kind: Workflows, Name: f.Routing.Name, Fields: map[string]string{
		"Configuration":          f.Routing.configuration(),
		"AssignmentCallbackUrl":  urls.Assignment,
		"TaskReservationTimeout": seconds(f.Routing.ReservationTimeout),
		// The same address a second time: a restart of ours is over by then.
		"FallbackAssignmentCallbackUrl": urls.Assignment,
	}})
	answers := urls.Voice
	if f.Calls.AnsweredBy == Studio {
		objects = append(objects, Object{Kind: Flows, Name: f.Workspace, Fields: map[string]string{
			"Status": "published", "Definition": f.definition(urls)}})
		answers = reference(Flows, f.Workspace)
	}
	if f.Calls.Number != "" {
		fallback := f.fallbackName()
		objects = append(objects, Object{Kind: Flows, Name: fallback, Fields: map[string]string{
			"Status": "published", "Definition": f.Calls.Away.definition()}})
		objects = append(objects, Object{Kind: Numbers, Name: f.Calls.Number, Fields: map[string]string{
			"VoiceUrl": answers, "VoiceMethod": "POST",
			// The fallback is not ours: it may be ours that fails.
			"VoiceFallbackUrl": reference(Flows, fallback), "VoiceFallbackMethod": "POST",
			"StatusCallback": urls.VoiceStatus, "StatusCallbackMethod": "POST",
			"VoiceApplicationSid": "", "TrunkSid": "", // either would be asked in the place of VoiceUrl
		}})
	}
	return objects, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// compact writes JSON whose keys are in order, so that equal values are equal texts.
func compact(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("taskrouter: encode %T: %v", value, err)) // made of what a file can hold
	}
	return string(encoded)
}

// canonical rewrites JSON of somebody else's in the form of compact; other text stays as it is.
func canonical(text string) string {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return text
	}
	return compact(value)
}

// configuration is the routing as TaskRouter's API takes it
// (https://www.twilio.com/docs/taskrouter/workflow-configuration).
func (t Routing) configuration() string {
	type target map[string]any
	write := func(from Target) target {
		to := target{"queue": reference(Queues, from.Queue)}
		if from.Priority != nil {
			to["priority"] = *from.Priority
		}
		if from.Timeout > 0 {
			to["timeout"] = int(from.Timeout / time.Second)
		}
		if from.Workers != "" {
			to["expression"] = from.Workers
		}
		if from.SkipIf != "" {
			to["skip_if"] = from.SkipIf
		}
		return to
	}
	filters := []map[string]any{}
	for _, filter := range t.Filters {
		var targets []target
		for _, one := range filter.Targets {
			targets = append(targets, write(one))
		}
		filters = append(filters, map[string]any{
			"filter_friendly_name": filter.Name, "expression": filter.When, "targets": targets,
		})
	}
	return compact(map[string]any{"task_routing": map[string]any{"filters": filters, "default_filter": write(*t.Default)}})
}

// sidsOf are what stands for references once their objects exist: the SID, or the webhook of a flow.
func sidsOf(objects []Object) map[string]string {
	sids := make(map[string]string, len(objects))
	for _, o := range objects {
		switch {
		case o.URL != "":
			sids[reference(o.Kind, o.Name)] = o.URL
		case o.SID != "":
			sids[reference(o.Kind, o.Name)] = o.SID
		}
	}
	return sids
}

// Resolve writes the SIDs of what exists into the fields, in the place of names.
func Resolve(fields map[string]string, exist []Object) (map[string]string, error) {
	sids := sidsOf(exist)
	resolved := make(map[string]string, len(fields))
	for field, text := range fields {
		for ref, sid := range sids {
			text = strings.ReplaceAll(text, ref, sid)
		}
		for _, kind := range Kinds {
			if begin := strings.Index(text, "{"+string(kind)+":"); begin >= 0 {
				end := begin + strings.IndexByte(text[begin:], '}')
				return nil, fmt.Errorf("%s: %s is not there", field, text[begin+1:end])
			}
		}
		resolved[field] = text
	}
	return resolved, nil
}

// Refers reports whether an object names others.
func Refers(o Object) bool {
	_, err := Resolve(o.Fields, nil)
	return err != nil
}

// named writes names into the fields of what exists, in the place of SIDs.
func named(fields map[string]string, exist []Object) map[string]string {
	written := make(map[string]string, len(fields))
	for field, text := range fields {
		for ref, sid := range sidsOf(exist) {
			text = strings.ReplaceAll(text, sid, ref)
		}
		written[field] = text
	}
	return written
}
