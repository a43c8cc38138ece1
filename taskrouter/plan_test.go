package taskrouter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/todoku/todoku/notify"
)

var testURLs = URLs{
	Voice: "https://t.example.com/voice", VoiceStatus: "https://t.example.com/status", Wait: "https://t.example.com/wait",
	Assignment: "https://t.example.com/assign", Events: "https://t.example.com/events",
}

const centre = `workspace: Support
activities: [{name: Wrap-up, available: false}]
queues:
- {name: Sales, workers: 'skills HAS "sales"'}
- {name: Everyone}
operators:
- {name: aoi, contact_uri: 'client:aoi', attributes: {skills: [sales], level: 3}}
routing:
  name: Reception
  filters:
  - {name: Sales, when: 'topic == "sales"', targets: [{queue: Sales, timeout: 30s, priority: 0, skip_if: workers.available == 0, workers: worker.level > 2}]}
  default: {queue: Everyone}
calls: {number: '+15005550006', greeting: hello, busy: sorry, after_call: Wrap-up}
`

func wanted(t *testing.T, text string) []Object {
	t.Helper()
	f, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := f.Objects(testURLs)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// applied is what exists once the objects were made.
func applied(t *testing.T, objects []Object) []Object {
	t.Helper()
	exist := []Object{
		{Kind: Activities, Name: "Offline", SID: "WA-off", Fields: map[string]string{"Available": "false"}},
		{Kind: Activities, Name: "Available", SID: "WA-on", Fields: map[string]string{"Available": "true"}},
	}
	for i, o := range objects {
		o.SID = fmt.Sprintf("SID-%02d", i)
		if o.Kind == Flows {
			o.URL = "https://webhooks.example.com/" + o.SID
		}
		var err error
		if o.Fields, err = Resolve(o.Fields, exist); err != nil {
			t.Fatal(err)
		}
		exist = append(exist, o)
	}
	return exist
}

func brief(changes []Change) string {
	var words []string
	for _, c := range changes {
		word := fmt.Sprintf("%s %s %s", c.Action, c.Kind, c.Name)
		for _, f := range c.Fields {
			if c.Action == Update {
				word += " " + f.Field
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

func TestEverythingIsMadeInTheOrderInWhichItIsNeeded(t *testing.T) {
	exist := []Object{{Kind: Numbers, Name: "+15005550006", SID: "PN1"}}
	changes, err := Plan("f", wanted(t, centre), exist, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "create workspace Support; create activity Wrap-up; create task queue Sales; create task queue Everyone; " +
		"create worker aoi; create workflow Reception; create studio flow Support fallback; update phone number +15005550006 StatusCallback " +
		"StatusCallbackMethod VoiceFallbackMethod VoiceFallbackUrl VoiceMethod VoiceUrl"
	if got := brief(changes); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatIsAsTheFileSaysIsLeftAlone(t *testing.T) {
	for name, text := range map[string]string{"webhook": centre, "studio": strings.Replace(centre, "{number", "{answered_by: studio, number", 1)} {
		objects := wanted(t, text)
		exist := applied(t, objects)
		for i, o := range exist { // Twilio gives JSON back in its own way
			for _, field := range []string{"Attributes", "Configuration", "Definition"} {
				if o.Fields[field] != "" {
					exist[i].Fields[field] = strings.ReplaceAll(o.Fields[field], `,"`, `, "`)
				}
			}
		}
		changes, err := Plan("f", objects, exist, nil)
		if err != nil || len(changes) != 0 {
			t.Errorf("%s: %s, error %v", name, brief(changes), err)
		}
	}
}

// JSON writes some characters in its own way, which a name in a reference must survive.
func TestNamesMayHaveAnyMark(t *testing.T) {
	for _, mark := range []string{`R&D`, `a"b`, `a\b`, `<x>`, `50%`, `%22`, "a\u2028b", "☎️"} {
		text := strings.NewReplacer("Everyone", fmt.Sprintf("%q", mark), "Reception", fmt.Sprintf("%q", mark), "{number", "{answered_by: studio, number").Replace(centre)
		objects := wanted(t, text)
		if changes, err := Plan("f", objects, applied(t, objects), nil); err != nil || len(changes) != 0 {
			t.Errorf("%s: %s, error %v", mark, brief(changes), err)
		}
	}
}

func TestOnlyWhatDiffersIsUpdated(t *testing.T) {
	exist := applied(t, wanted(t, centre))
	for change, want := range map[string]string{
		"level: 3 -> level: 4":                              "update worker aoi Attributes",
		"timeout: 30s -> timeout: 40s":                      "update workflow Reception Configuration",
		"{name: Everyone} -> {name: Everyone, order: LIFO}": "update task queue Everyone TaskOrder",
		"greeting: hello -> greeting: hi":                   "", // our webhook says it
		"{number -> {answered_by: studio, number":           "create studio flow Support; update phone number +15005550006 VoiceUrl",
	} {
		from, to, _ := strings.Cut(change, " -> ")
		changes, err := Plan("f", wanted(t, strings.Replace(centre, from, to, 1)), exist, nil)
		if got := brief(changes); err != nil || got != want {
			t.Errorf("%s: %s, error %v: want %s", change, got, err, want)
		}
	}
}

func TestAPlanShowsNamesInThePlaceOfSIDs(t *testing.T) {
	exist := applied(t, wanted(t, centre))
	changes, err := Plan("f", wanted(t, strings.Replace(centre, "30s", "40s", 1)), exist, nil)
	if err != nil || len(changes) != 1 {
		t.Fatal(brief(changes), err)
	}
	field := changes[0].Fields[0]
	if strings.Contains(field.From, "SID-") || !strings.Contains(field.From, `"queue":"{task queue:Sales}"`) || !strings.Contains(field.To, `"timeout":40`) {
		t.Errorf("from %s\nto   %s", field.From, field.To)
	}
}

func TestNothingIsDeletedThatWeDidNotMake(t *testing.T) {
	exist := applied(t, wanted(t, centre))
	smaller := `workspace: Support
queues: [{name: Everyone}]
routing: {name: Reception, default: {queue: Everyone}}
`
	changes, err := Plan("f", wanted(t, smaller), exist, nil)
	if got, want := brief(changes), "update workflow Reception Configuration"; err != nil || got != want {
		t.Errorf("%s, error %v: want %s", got, err, want)
	}
	var made []Made
	for _, o := range exist {
		if o.Name == "Sales" || o.Name == "aoi" || o.Name == "Wrap-up" {
			made = append(made, Made{Kind: o.Kind, Name: o.Name, SID: o.SID})
		}
	}
	changes, err = Plan("f", wanted(t, smaller), exist, made)
	const want = "update workflow Reception Configuration; delete worker aoi; delete task queue Sales; delete activity Wrap-up"
	if got := brief(changes); err != nil || got != want {
		t.Errorf("%s, error %v: want %s", got, err, want)
	}
}

func TestNamesThatDoNotStandForOneThing(t *testing.T) {
	for name, test := range map[string]struct {
		more Object
		want string
	}{
		"two queues":              {Object{Kind: Queues, Name: "Sales", SID: "WQ-2"}, "f:4: there are 2 of the task queue Sales at Twilio (SID-02, WQ-2): rename or delete all but one"},
		"two flows":               {Object{Kind: Workspaces, Name: "Support", SID: "WS-2"}, "f: there are 2 of the workspace Support at Twilio"},
		"other cases":             {Object{Kind: Workers, Name: "AOI", SID: "WK-2"}, "f:7: the worker aoi exists as AOI"},
		"another kind":            {Object{Kind: Workflows, Name: "Sales", SID: "WW-2"}, ""},
		"other letters elsewhere": {Object{Kind: Queues, Name: "SALES", SID: "WQ-2"}, ""},
	} {
		exist := applied(t, wanted(t, centre))
		if name == "other cases" {
			exist = slices.DeleteFunc(exist, func(o Object) bool { return o.Name == "aoi" })
		}
		_, err := Plan("f", wanted(t, centre), append(exist, test.more), nil)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestWhatCannotBeMade(t *testing.T) {
	exist := applied(t, wanted(t, centre))
	for name, test := range map[string]struct {
		spoil func()
		want  string
	}{
		"a number of somebody else's": {func() { exist = exist[:len(exist)-1] }, "f: the account has no number +15005550006"},
		"an activity that exists otherwise": {func() {
			i := slices.IndexFunc(exist, func(o Object) bool { return o.Name == "Wrap-up" })
			exist[i].Fields["Available"] = "true"
		}, "f:2: the activity Wrap-up exists with available: true, which cannot be changed"},
	} {
		exist = applied(t, wanted(t, centre))
		test.spoil()
		if _, err := Plan("f", wanted(t, centre), exist, nil); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	f, err := Parse("f", []byte(centre))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Objects(URLs{}); err != ErrNoPublicURL {
		t.Errorf("without a public URL: %v", err)
	}
	if _, err := Resolve(map[string]string{"x": "{worker:ren}"}, exist); err == nil || err.Error() != "x: worker:ren is not there" {
		t.Errorf("a name that stands for nothing: %v", err)
	}
}

func TestAWorkspaceOfOthersStays(t *testing.T) {
	exist := applied(t, wanted(t, centre))
	var made []Made
	for _, o := range exist {
		if !strings.HasPrefix(o.SID, "WA-") && o.Kind != Numbers {
			made = append(made, Made{Kind: o.Kind, Name: o.Name, SID: o.SID})
		}
	}
	changes, notes := Unplan(exist, made)
	const all = "delete studio flow Support fallback; delete workflow Reception; delete worker aoi; delete task queue Sales; delete task queue Everyone; delete activity Wrap-up"
	if got := brief(changes); got != all+"; delete workspace Support" || len(notes) != 0 {
		t.Errorf("%s, notes %v", got, notes)
	}
	changes, notes = Unplan(append(exist, Object{Kind: Workers, Name: "ren", SID: "WK-2"}), made)
	if got := brief(changes); got != all || len(notes) != 1 || notes[0] != "the workspace Support stays: Todoku did not make worker ren in it" {
		t.Errorf("%s, notes %v", got, notes)
	}
}

func TestThePolicyHasTheSIDs(t *testing.T) {
	f, err := Parse("f", []byte(centre))
	if err != nil {
		t.Fatal(err)
	}
	p := f.Policy(applied(t, wanted(t, centre)))
	if p.WorkspaceSID != "SID-00" || p.WorkflowSID != "SID-05" || p.PostWorkActivitySID != "SID-01" {
		t.Errorf("the policy is %+v", p)
	}
}

func TestThePolicyIsPlannedWithoutItsSIDs(t *testing.T) {
	f, err := Parse("f", []byte(centre))
	if err != nil {
		t.Fatal(err)
	}
	exist := applied(t, wanted(t, centre))
	if change, needed := PlanPolicy(notify.InboundPolicy{}, f.Policy(nil)); !needed || change.Action != Create {
		t.Errorf("at first it is %+v, %t", change, needed)
	}
	have := f.Policy(exist)
	if change, needed := PlanPolicy(have, f.Policy(nil)); needed {
		t.Errorf("unchanged it is %+v", change)
	}
	have.Greeting.Say, have.MaxWaiting = "good morning", 3
	change, needed := PlanPolicy(have, f.Policy(exist))
	if got := fmt.Sprint(change.Action, change.Fields); !needed || got != `update[{Greeting {"Play":"","Say":"good morning"} {"Play":"","Say":"hello"}} {MaxWaiting 3 0}]` {
		t.Errorf("changed it is %s", got)
	}
}
