package taskrouter

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

func TestTheExampleIsRead(t *testing.T) {
	text, err := os.ReadFile("../taskrouter.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("taskrouter.example.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if f.Workspace != "Todoku support" || len(f.Queues) != 2 || f.Queues[1].Workers != "1==1" || len(f.Operators) != 2 ||
		f.Operators[0].ContactURI != "client:aoi" || f.Routing.ReservationTimeout != 20*time.Second ||
		*f.Routing.Filters[0].Targets[0].Priority != 5 || f.Routing.Default.Queue != "Everyone" {
		t.Errorf("the call centre is %+v", f)
	}
	p := f.Calls.Policy
	if p.Greeting.Say == "" || p.CallbackKey != "1" || len(p.Hours) != 2 || p.Hours[1].Days[0] != time.Saturday ||
		p.FollowUps.Abandoned.Action != notify.FollowUpSMS || p.FollowUps.TimedOut.Action != notify.FollowUpTask ||
		p.FollowUps.Closed.Action != notify.FollowUpNone || p.ServiceLevel != 20*time.Second || p.MaxWaiting != 200 {
		t.Errorf("the policy is %+v", p)
	}
}

// small is the least that a file can say.
const small = `workspace: Support
queues: [{name: Sales}]
routing: {default: {queue: Sales}}
`

func TestTheLeastThatAFileCanSay(t *testing.T) {
	f, err := Parse("f", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if f.Routing.Name != "Todoku" || f.Routing.ReservationTimeout != 20*time.Second || f.Calls.AnsweredBy != Webhook {
		t.Errorf("the defaults are %+v", f)
	}
}

func TestProblemsNameFileAndLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":          {"", "f.yaml: it is empty"},
		"only a comment":   {"# nothing\n", "f.yaml: it is empty"},
		"no YAML":          {"workspace: [", "f.yaml:1: it is not YAML: did not find expected node content"},
		"a tab":            {"workspace: x\n\tqueues: []", "f.yaml:2: it is not YAML: found a tab character that violates indentation"},
		"a list":           {"- a\n", "f.yaml:1: the file must be a mapping of activities, calls"},
		"two documents":    {small + "---\n" + small, "f.yaml:4: there is a second document"},
		"an unknown field": {small + "color: red\n", `f.yaml:4: the file has no "color"; it has activities, calls, operators`},
		"an unknown field inside": {small + "operators:\n- {name: a, contact_uri: 'client:a'}\n- name: b\n  contact_uri: client:b\n  phone: 1\n",
			`f.yaml:8: an operator has no "phone"; it has activity, attributes, contact_uri, name`},
		"a key twice":        {small + "workspace: y\n", "f.yaml:4: workspace is there twice: line 1 has it too"},
		"no workspace":       {"queues: [{name: a}]\nrouting: {default: {queue: a}}\n", "f.yaml:1: the file needs workspace"},
		"an empty name":      {strings.Replace(small, "Support", `" "`, 1), "f.yaml:1: workspace must not be empty"},
		"a name of null":     {strings.Replace(small, "Support", `null`, 1), "f.yaml:1: workspace must be a text"},
		"a long name":        {strings.Replace(small, "Support", strings.Repeat("x", 65), 1), "f.yaml:1: workspace must be at most 64 characters long"},
		"a name with braces": {strings.Replace(small, "Support", "'{x}'", 1), "f.yaml:1: workspace must not have line breaks, tabs or braces"},
		"a queue twice": {"workspace: x\nqueues:\n- name: a\n- name: a\nrouting: {default: {queue: a}}\n",
			"f.yaml:4: the queue a is there twice: line 3 has it too"},
		"an operator twice, in other letters": {small + "operators:\n- {name: a, contact_uri: 'client:a'}\n- {name: A, contact_uri: 'client:b'}\n",
			"f.yaml:6: the operator a is there twice: line 5 has it too"},
		"an operator without contact": {small + "operators:\n- name: a\n", "f.yaml:5: an operator needs contact_uri"},
		"a contact that is none":      {small + "operators:\n- {name: a, contact_uri: '0312345678'}\n", "f.yaml:5: contact_uri must be client:NAME"},
		"a number without quotes":     {small + "calls: {number: +15005550006}\n", ""},
		"a contact inside attributes": {small + "operators:\n- {name: a, contact_uri: 'client:a', attributes: {contact_uri: x}}\n", "f.yaml:5: contact_uri stands beside attributes"},
		"attributes of a list":        {small + "operators:\n- {name: a, contact_uri: 'client:a', attributes: [x]}\n", "f.yaml:5: attributes must be a mapping"},
		"attributes that are no number": {small + "operators:\n- {name: a, contact_uri: 'client:a', attributes: {x: .inf}}\n",
			"f.yaml:5: attributes: .inf is no number that JSON has"},
		"an activity that is none": {small + "operators:\n- {name: a, contact_uri: 'client:a', activity: Lunch}\n", `f.yaml:5: the operator a begins in "Lunch"`},
		"a bad expression":         {strings.Replace(small, "Sales}", "Sales, workers: 'skills LIKE 1'}", 1), "f.yaml:2: workers is no expression of TaskRouter's: at character 8 there is LIKE"},
		"a bad number":             {strings.Replace(small, "Sales}", "Sales, max_reserved_workers: 51}", 1), "f.yaml:2: max_reserved_workers must be a whole number from 1 to 50"},
		"a bad word":               {strings.Replace(small, "Sales}", "Sales, order: RANDOM}", 1), "f.yaml:2: order must be one of FIFO, LIFO"},
		"a built-in changed":       {small + "activities: [{name: Offline, available: true}]\n", "f.yaml:4: the activity Offline is in every workspace with available: false"},
		"a flag that is a text":    {small + "activities: [{name: x, available: 'yes'}]\n", "f.yaml:4: available must be true or false"},
		"a queue that is none":     {strings.Replace(small, "{queue: Sales}", "{queue: Sale}", 1), `f.yaml:3: there is no queue "Sale" in this file`},
		"no default":               {"workspace: x\nqueues: [{name: a}]\nrouting: {}\n", "f.yaml:3: routing needs default"},
		"a filter without targets": {"workspace: x\nqueues: [{name: a}]\nrouting:\n  default: {queue: a}\n  filters:\n  - {name: y, when: 1==1, targets: []}\n",
			"f.yaml:6: a filter needs a target at least"},
		"a target that is never left": {"workspace: x\nqueues: [{name: a}]\nrouting:\n  default: {queue: a}\n  filters:\n  - name: y\n    when: 1==1\n    targets:\n    - {queue: a}\n    - {queue: a}\n",
			"f.yaml:9: the target a has no timeout, so those after it never have their turn"},
		"a time that is none":                 {strings.Replace(small, "{default", "{reservation_timeout: 20, default", 1), "f.yaml:3: reservation_timeout must be a time in whole seconds"},
		"a time of milliseconds":              {strings.Replace(small, "{default", "{reservation_timeout: 1500ms, default", 1), "f.yaml:3: reservation_timeout must be a time in whole seconds"},
		"a zone that is none":                 {small + "calls:\n  hours: {timezone: Tokyo, open: []}\n", `f.yaml:5: "Tokyo" is no time zone: write one such as Asia/Tokyo`},
		"hours that are none":                 {small + "calls:\n  hours:\n    timezone: UTC\n    open:\n    - {days: [mon], from: 9, until: '18:00'}\n", `f.yaml:8: "9" is no time of day`},
		"a day that is none":                  {small + "calls:\n  hours:\n    timezone: UTC\n    open:\n    - {days: [monday], from: '09:00', until: '18:00'}\n", "f.yaml:8: days must be one of mon, tue"},
		"both of say and play":                {small + "calls: {greeting: {say: hi, play: 'https://example.com/a.mp3'}}\n", "f.yaml:4: what is heard is one of say and play"},
		"a play that is no URL":               {small + "calls: {greeting: {play: 'a.mp3'}}\n", "f.yaml:4: play must be an https address"},
		"a key that is none":                  {small + "calls: {callback_key: '12'}\n", "f.yaml:4: callback_key must be a digit from 0 to 9"},
		"a follow-up that is none":            {small + "calls: {follow_up: {abandoned: fax}}\n", "f.yaml:4: abandoned must be one of none, task"},
		"two follow-ups":                      {small + "calls: {follow_up: {abandoned: {sms: a, call: b}}}\n", "f.yaml:4: a follow-up is none, task, {sms: TEXT} or {call: TEXT}"},
		"an activity after calls":             {small + "calls: {after_call: Lunch}\n", `f.yaml: calls: after_call is "Lunch"`},
		"a text with a NUL":                   {small + `calls: {greeting: "a\0b"}`, "f.yaml:4: greeting must not have control characters"},
		"an attribute with a NUL":             {small + `calls: {task_attributes: {topic: "a\0b"}}`, "f.yaml:4: task_attributes: topic has control characters"},
		"a key with a NUL":                    {small + `calls: {task_attributes: {"a\0b": 1}}`, "f.yaml:4: task_attributes: a key has control characters"},
		"a number that JSON's readers change": {small + "calls: {task_attributes: {id: 9007199254740993}}", "f.yaml:4: task_attributes: id is a larger number than is kept exactly: write it in quotes"},
		"an SMS that is too long":             {small + "calls: {follow_up: {full: {sms: " + strings.Repeat("x", 1601) + "}}}", "f.yaml:4: sms: the body has 1601 characters, and SMS allows 1600"},
		"a call that is too long":             {small + "calls: {follow_up: {full: {call: " + strings.Repeat("x", 4001) + "}}}", "f.yaml:4: call: the body has 4001 characters, and CALL allows 4000"},
		"a call whose marks are too long":     {small + "calls: {follow_up: {full: {call: '" + strings.Repeat("&", 1000) + "'}}}", "f.yaml:4: call: it is over 3900 characters long"},
		"a greeting of a book":                {small + "calls: {greeting: " + strings.Repeat("x", 4001) + "}", "f.yaml:4: greeting: the body has 4001 characters"},
		"an attribute of Twilio's":            {small + "calls: {task_attributes: {call_sid: x}}", "f.yaml:4: task_attributes must not have call_sid"},
		"an attribute of ours":                {small + "calls: {task_attributes: {todoku_callback_for: x}}", "f.yaml:4: task_attributes must not have todoku_callback_for"},
		"a promise that nobody keeps": {small + "calls:\n  callback_key: '1'\n  follow_up: {requested: none}\n",
			"f.yaml:5: callback_key promises a callback that nobody makes"},
		"a promise of nothing":           {small + "calls: {callback_key: '1'}", "f.yaml:4: callback_key promises a callback that nobody makes"},
		"hours that are never":           {small + "calls: {hours: {timezone: UTC, open: []}}", "f.yaml:4: open must have hours at least once"},
		"hours on no day":                {small + "calls: {hours: {timezone: UTC, open: [{days: [], from: '09:00', until: '18:00'}]}}", "f.yaml:4: days must name a day at least"},
		"a second document that is none": {small + "---\n[", "f.yaml:5: it is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(test.text))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%v, want none", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestAllProblemsAreSaidAtOnceInTheOrderOfLines(t *testing.T) {
	_, err := Parse("f", []byte("workspace: ''\nqueues: [{name: a, order: x}]\nrouting: {default: {queue: b}}\nfoo: 1\n"))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 4 {
		t.Fatalf("%v, want four problems", err)
	}
	for i, p := range problems {
		if p.Line != i+1 {
			t.Errorf("problem %d is in line %d: %s", i, p.Line, p.Detail)
		}
	}
}

func TestAHugeFileIsRefused(t *testing.T) {
	if _, err := Parse("f", []byte(strings.Repeat("#", 1<<20+1))); err == nil || err.Error() != "f: it is over 1 MiB long" {
		t.Error(err)
	}
}

// A file of aliases of aliases would be billions of values.
func TestAliasesDoNotBlowUp(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		name, before := string(rune('0'+i)), string(rune('0'+i-1))
		bomb.WriteString("a" + name + ": &a" + name + " [" + strings.Repeat("*a"+before+", ", 10) + "]\n")
	}
	text := small + "operators:\n- name: a\n  contact_uri: client:a\n  attributes:\n    " + strings.ReplaceAll(strings.TrimSpace(bomb.String()), "\n", "\n    ") + "\n"
	if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), "the file has over 100000 values") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("workspace: &a x\nqueues: *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if file, err := Parse("f", text); err == nil {
			if _, err := file.Objects(URLs{Voice: "https://todoku.example.com/voice"}); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestExpressionsThatTaskRouterTakes(t *testing.T) {
	for _, text := range []string{
		`1==1`, `skills HAS "sales"`, `(a == 'x' OR b.c != 2.5) AND NOT (d IN ["x", 'y', 3])`, `a NOT IN ["x"]`,
		`worker.language == task.language`, `level >= -1`, `name CONTAINS "x"`, `a = true`,
	} {
		if err := checkExpression(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		``:                             "it ends where a key",
		`skills`:                       "it ends where a comparison",
		`a == `:                        "it ends where a key",
		`(a == 1`:                      "it ends where ) must follow",
		`a == 1 b`:                     "at character 8 there is b where AND, OR or the end must follow",
		`a == "x`:                      `at character 6 there is "`,
		`日本 == 1`:                      "at character 1 there is 日",
		`a IN ["x" "y"]`:               `at character 11 there is "y" where , or ] must follow`,
		strings.Repeat("(", 200) + "a": "it is nested over 100 times",
	} {
		if err := checkExpression(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestAFileMayBeginWithAByteOrderMark(t *testing.T) {
	if _, err := Parse("f", []byte("\uFEFF"+small)); err != nil {
		t.Error(err)
	}
}
