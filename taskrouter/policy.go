package taskrouter

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/todoku/todoku/notify"
)

// Policy is how calls are received, once everything has its SID.
func (f *File) Policy(exist []Object) notify.InboundPolicy {
	sids := sidsOf(exist)
	policy := f.Calls.Policy
	policy.Number, policy.Asked = f.Calls.Number, f.Calls.Number != "" && f.Calls.AnsweredBy == Webhook
	policy.WorkspaceSID = sids[reference(Workspaces, f.Workspace)]
	policy.WorkflowSID = sids[reference(Workflows, f.Routing.Name)]
	policy.PostWorkActivitySID = sids[reference(Activities, f.Calls.AfterCall)]
	return policy
}

// PlanPolicy is the change that makes the policy as it is wanted, and reports whether there is one. SIDs are left out
// of it: they follow from the other changes.
func PlanPolicy(have, want notify.InboundPolicy) (change Change, needed bool) {
	change = Change{Action: Update, Kind: Policies, Name: "calls"}
	if !have.SetUp() {
		change.Action = Create
	}
	from, to := parts(have), parts(want)
	for _, field := range slices.Sorted(maps.Keys(to)) {
		if from[field] != to[field] {
			change.Fields = append(change.Fields, FieldChange{Field: field, From: from[field], To: to[field]})
		}
	}
	return change, change.Action == Create || len(change.Fields) > 0
}

// parts are the policy's own fields, as JSON.
func parts(policy notify.InboundPolicy) map[string]string {
	policy.WorkspaceSID, policy.WorkflowSID, policy.PostWorkActivitySID = "", "", ""
	var fields map[string]any
	_ = json.Unmarshal([]byte(compact(policy)), &fields) // it was just written
	texts := make(map[string]string, len(fields))
	for field, value := range fields {
		texts[field] = compact(value)
	}
	return texts
}
