package taskrouter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Action is what is done to an object.
type Action string

const (
	Create  Action = "create"
	Update  Action = "update"
	Delete  Action = "delete"
	Restore Action = "restore" // give a number back what it had before
)

// Change is one step from what is to what shall be.
type Change struct {
	Action Action        `json:"action"`
	Kind   Kind          `json:"kind"`
	Name   string        `json:"name"`
	Fields []FieldChange `json:"fields,omitempty"`

	Object Object `json:"-"` // as it shall be; of a deletion, as it is
}

// FieldChange is one parameter of Twilio's API.
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to"`
}

// Made is an object that Todoku has made at Twilio. Nothing else is ever deleted.
type Made struct {
	Kind         Kind
	Name         string
	SID          string // empty: the answer to the create was never read
	WorkspaceSID string // that it is in; empty: in none
}

// Plan says what makes exist what is wanted: creates and updates in their order, then deletes of what Todoku has made
// and the file no longer names. exist is everything of the workspace, and the flows and numbers that matter. The error
// is a Problems when a name does not stand for one thing.
func Plan(file string, wanted, exist []Object, made []Made) ([]Change, error) {
	var changes []Change
	var problems Problems
	kept := map[string]bool{}
	for _, want := range wanted {
		have, problem := find(want, exist)
		if problem != "" {
			problems = append(problems, Problem{File: file, Line: want.Line, Detail: problem})
			continue
		}
		if have == nil {
			change := Change{Action: Create, Kind: want.Kind, Name: want.Name, Object: want}
			change.Object.Fields = maps.Clone(want.Fields)
			maps.Copy(change.Object.Fields, want.Begins)
			for _, field := range slices.Sorted(maps.Keys(change.Object.Fields)) {
				if to := change.Object.Fields[field]; to != "" {
					change.Fields = append(change.Fields, FieldChange{Field: field, To: to})
				}
			}
			changes = append(changes, change)
			continue
		}
		kept[have.SID] = true
		if change := differ(want, *have, exist); len(change.Fields) > 0 {
			changes = append(changes, change)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return append(changes, superfluous(exist, made, kept)...), nil
}

// find is what exists under the wanted name, nil where nothing does, or the problem with it.
func find(want Object, exist []Object) (have *Object, problem string) {
	var sids []string
	for i, o := range exist {
		if o.Kind != want.Kind {
			continue
		}
		if o.Name == want.Name {
			have = &exist[i]
			sids = append(sids, o.SID)
		} else if o.Kind == Workers && strings.EqualFold(o.Name, want.Name) {
			return nil, fmt.Sprintf("the worker %s exists as %s, and Twilio does not tell the two apart: write it so", want.Name, o.Name)
		}
	}
	switch {
	case len(sids) > 1:
		return nil, fmt.Sprintf("there are %d of the %s %s at Twilio (%s): rename or delete all but one", len(sids), want.Kind, want.Name, strings.Join(sids, ", "))
	case have == nil && want.Kind == Numbers:
		return nil, fmt.Sprintf("the account has no number %s", want.Name)
	case have != nil && want.Kind == Activities && have.Fields["Available"] != want.Fields["Available"]:
		return nil, fmt.Sprintf("the activity %s exists with available: %s, which cannot be changed: choose another name", want.Name, have.Fields["Available"])
	}
	return have, ""
}

// differ is the update that makes have as wanted; without fields there is nothing to be done.
func differ(want, have Object, exist []Object) Change {
	change := Change{Action: Update, Kind: want.Kind, Name: want.Name, Object: want}
	change.Object.SID, change.Object.Fields = have.SID, map[string]string{}
	is := named(have.Fields, exist)
	for _, field := range slices.Sorted(maps.Keys(want.Fields)) {
		from, to := normal(field, is[field]), normal(field, want.Fields[field])
		if from == to {
			continue
		}
		change.Object.Fields[field] = want.Fields[field]
		change.Fields = append(change.Fields, FieldChange{Field: field, From: from, To: to})
	}
	if want.Kind == Flows && len(change.Fields) > 0 {
		change.Object.Fields["Status"] = want.Fields["Status"] // without it, no update is a revision
	}
	return change
}

// normal is a field's value in a form in which equal values are equal texts.
func normal(field, value string) string {
	if field != "EventsFilter" {
		return canonical(value)
	}
	events := strings.Split(strings.ReplaceAll(value, " ", ""), ",")
	slices.Sort(events)
	return strings.Join(events, ",")
}

// superfluous are the deletes of what Todoku has made and nobody wants, in an order in which nothing that is deleted is
// still in use. Workspaces stay: to delete one is what destroy is for.
func superfluous(exist []Object, made []Made, kept map[string]bool) []Change {
	var changes []Change
	for _, kind := range slices.Backward(Kinds) {
		if kind == Workspaces || kind == Numbers {
			continue
		}
		for _, o := range exist {
			ours := slices.ContainsFunc(made, func(m Made) bool { return m.SID == o.SID })
			if o.Kind == kind && ours && !kept[o.SID] {
				changes = append(changes, Change{Action: Delete, Kind: kind, Name: o.Name, Object: o})
			}
		}
	}
	return changes
}

// Unplan says how everything that Todoku has made is taken away again: what it has made, newest kinds first, and
// the numbers' webhooks as they were before. A workspace stays, with a note, where somebody else has made something in
// it.
func Unplan(exist []Object, made []Made) (changes []Change, notes []string) {
	changes = superfluous(exist, made, nil)
	for _, o := range exist {
		if o.Kind != Workspaces || !slices.ContainsFunc(made, func(m Made) bool { return m.SID == o.SID }) {
			continue
		}
		var strangers []string
		for _, inner := range exist {
			_, builtIn := builtIn[inner.Name]
			inside := inner.Kind != Workspaces && inner.Kind != Flows && inner.Kind != Numbers
			ours := slices.ContainsFunc(made, func(m Made) bool { return m.SID == inner.SID })
			if inside && !ours && !(inner.Kind == Activities && builtIn) {
				strangers = append(strangers, fmt.Sprintf("%s %s", inner.Kind, inner.Name))
			}
		}
		if len(strangers) > 0 {
			notes = append(notes, fmt.Sprintf("the workspace %s stays: Todoku did not make %s in it", o.Name, strings.Join(strangers, ", ")))
			continue
		}
		changes = append(changes, Change{Action: Delete, Kind: Workspaces, Name: o.Name, Object: o})
	}
	return changes, notes
}
