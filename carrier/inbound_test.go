package carrier

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

var (
	now         = time.Date(2026, 4, 1, 1, 0, 0, 0, time.UTC)
	someCallSID = "CA" + strings.Repeat("1", 32)
	someTaskSID = "WT" + strings.Repeat("1", 32)
)

func form(fields ...string) Form {
	values := url.Values{}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		values.Set(name, value)
	}
	form, _ := ParseForm(values.Encode())
	return form
}

// taskForm is what TaskRouter tells of a call's task.
func taskForm(fields ...string) Form {
	return form(append([]string{"TaskSid=" + someTaskSID, `TaskAttributes={"call_sid": "` + someCallSID + `", "from": "+819012345678", "to": "+15005550006"}`}, fields...)...)
}

func TestTaskEventsMeanWhatTaskRouterDocuments(t *testing.T) {
	for kind, want := range map[string]notify.InboundWord{
		"task.created": notify.WordWaiting, "task-queue.entered": notify.WordWaiting, "workflow.target-matched": notify.WordNoted, "task.updated": notify.WordNoted,
		"reservation.created": notify.WordReserved, "reservation.accepted": notify.WordAnswered, "reservation.rejected": notify.WordReleased,
		"reservation.timeout": notify.WordReleased, "reservation.canceled": notify.WordReleased, "reservation.rescinded": notify.WordReleased,
		"reservation.wrapup": notify.WordFinished, "reservation.completed": notify.WordFinished, "task.wrapup": notify.WordWrapUp, "task.completed": notify.WordFinished,
		"workflow.timeout": notify.WordTimedOut, "task.canceled": notify.WordTimedOut, "task.deleted": notify.WordNoted, "novelty": notify.WordNoted,
	} {
		e, about, err := ParseTaskEvent(taskForm("EventType="+kind), now)
		if err != nil || !about || e.Word != want || e.CallSID != someCallSID || e.CallID != notify.InboundID(someCallSID) || e.From != "+819012345678" {
			t.Errorf("%s: %+v, %v, %v", kind, e, about, err)
		}
	}
	for _, reason := range []string{"hangup", "Caller hung up"} {
		if e, _, _ := ParseTaskEvent(taskForm("EventType=task.canceled", "TaskCanceledReason="+reason), now); e.Word != notify.WordHungUp || e.Reason != reason {
			t.Errorf("%q: %+v", reason, e)
		}
	}
}

func TestATaskIsFoundByItsCallWhateverItsOtherAttributesAre(t *testing.T) {
	for _, more := range []string{`"from": 5`, `"to": ["x"]`, `"todoku_callback_for": "x"`, `"todoku_callback_for": {}`, `"from": null`, `"call": {"deep": [1]}`} {
		e, _, err := ParseTaskEvent(taskForm("EventType=task.created", `TaskAttributes={`+more+`, "call_sid": "`+someCallSID+`"}`), now)
		if err != nil || e.CallSID != someCallSID || e.Word != notify.WordWaiting {
			t.Errorf("%s: %+v, %v", more, e, err)
		}
	}
}

func TestWhenItHappened(t *testing.T) {
	for name, test := range map[string]struct {
		fields []string
		want   time.Time
	}{
		"in milliseconds":         {[]string{"TimestampMs=1775005190123", "Timestamp=1775005100"}, time.UnixMilli(1775005190123)},
		"in seconds":              {[]string{"Timestamp=1775005190"}, time.Unix(1775005190, 0)},
		"in words":                {[]string{"Timestamp=2026-04-01T00:59:30Z"}, now.Add(-30 * time.Second)},
		"not at all":              {nil, now},
		"absurdly late":           {[]string{"TimestampMs=99999999999999999"}, now},
		"before there was Twilio": {[]string{"Timestamp=0"}, now},
		"in no form known":        {[]string{"Timestamp=yesterday"}, now},
	} {
		if e, _, err := ParseTaskEvent(taskForm(append(test.fields, "EventType=task.created")...), now); err != nil || !e.At.Equal(test.want) {
			t.Errorf("%s: %v, want %v; %v", name, e.At, test.want, err)
		}
	}
}

func TestDeliveriesOfOneEventHaveOneKey(t *testing.T) {
	key := func(fields ...string) string {
		e, _, err := ParseTaskEvent(taskForm(fields...), now)
		if err != nil {
			t.Fatal(err)
		}
		return e.Key
	}
	if got := key("EventType=task.created", "Sid=EV"+strings.Repeat("a", 32)); got != "EV"+strings.Repeat("a", 32) {
		t.Errorf("the key is %s", got)
	}
	first := key("EventType=task.created", "TimestampMs=1775005190123")
	if again := key("EventType=task.created", "TimestampMs=1775005190123"); again != first {
		t.Errorf("%s and %s", first, again)
	}
	for _, other := range [][]string{{"EventType=task.updated", "TimestampMs=1775005190123"}, {"EventType=task.created", "TimestampMs=1775005190124"}} {
		if key(other...) == first {
			t.Errorf("%v has the same key", other)
		}
	}
}

func TestFormsAboutCallsThatCannotBeRead(t *testing.T) {
	reservation := []string{"ReservationSid=WR" + strings.Repeat("1", 32), "WorkerSid=WK" + strings.Repeat("1", 32)}
	for name, read := range map[string]func() error{
		"a call without a SID": func() error { _, err := ParseInboundCall(form("From=+819012345678"), now); return err },
		"a status of no call": func() error {
			_, err := ParseInboundStatus(form("CallSid=SM"+strings.Repeat("1", 32)), now)
			return err
		},
		"a queue without a result": func() error { _, err := ParseQueueResult(form("CallSid="+someCallSID), now); return err },
		"a key of no call":         func() error { _, _, err := ParseKeyPressed(form("Digits=1"), now); return err },
		"an event without a type":  func() error { _, _, err := ParseTaskEvent(taskForm(), now); return err },
		"an event of no task": func() error {
			_, _, err := ParseTaskEvent(form("EventType=task.created", "TaskSid=x"), now)
			return err
		},
		"an assignment of nothing":   func() error { _, err := ParseAssignment(form(reservation...), now); return err },
		"an assignment to nobody":    func() error { _, err := ParseAssignment(taskForm(reservation[0]), now); return err },
		"an assignment without name": func() error { _, err := ParseAssignment(taskForm(reservation[1]), now); return err },
	} {
		if err := read(); err == nil || strings.Contains(err.Error(), "8190") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, about, err := ParseTaskEvent(form("EventType=worker.created"), now); about || err != nil {
		t.Errorf("an event of a worker: %v, %v", about, err)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for digits, want := range map[string]string{"1": "1", "0": "0", "": "", "12": "", "#": "", "１": ""} {
		if _, key, err := ParseKeyPressed(form("CallSid="+someCallSID, "Digits="+digits), now); err != nil || key != want {
			t.Errorf("%q is the key %q, error %v", digits, key, err)
		}
	}
}

func TestTextsOfOthersAreMadeFitForTheLedger(t *testing.T) {
	e, _, err := ParseTaskEvent(taskForm("EventType=task.canceled", "TaskCanceledReason=\x00bad\nnews\xff"+strings.Repeat("長", 500),
		"WorkerSid=WK"+strings.Repeat("1", 32), "WorkerName=Ma\x07ri"), now)
	if err != nil || !strings.HasPrefix(e.Reason, "badnews長") || len([]rune(e.Reason)) != 200 || e.Operator.Name != "Mari" {
		t.Errorf("%+v, %v", e, err)
	}
}
