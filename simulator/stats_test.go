package simulator_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"
)

func TestStats(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1}`)
	changes := map[string]string{"StatusCallback": hook.url}
	rig.sendMessage(changes)
	rig.sendMessage(changes)
	rig.sendMessage(map[string]string{"To": "+15550100002"})
	rig.makeCall(nil)
	rig.sendMessage(map[string]string{"From": "", "MessagingServiceSid": testService})
	rig.api("POST", "/Messages.json", messageForm(map[string]string{"To": "1"})) // refused: counts nowhere
	hook.statuses(4)

	var stats map[string]any
	eventually(t, "4 callbacks", func() bool {
		_, stats = rig.control("GET", "stats", "")
		return stats["callbacks"] == 4.0
	})
	if stats["creates"] != 5.0 || stats["recipients"] != 3.0 || stats["duplicates"] != 2.0 {
		t.Errorf("stats are %v", stats)
	}
	gaps := stats["min_gap_ms"].(map[string]any)
	sender := gaps[goodSender].(map[string]any)
	if gap, ok := sender["SMS"].(float64); !ok || gap <= 0 || gap > float64(soon.Milliseconds()) {
		t.Errorf("the smallest gap is %v", sender)
	}
	if _, ok := sender["CALL"]; ok {
		t.Errorf("one call has a gap: %v", sender)
	}
	if service, ok := gaps[testService].(map[string]any); !ok || len(service) > 0 {
		t.Errorf("the service, which sent once, has %v", service)
	}
}

var microseconds = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

func TestItems(t *testing.T) {
	rig, hook := start(t), newHook(t)
	hook.answerWith(func(c told) int {
		if c.status() == "sent" {
			return 500
		}
		return 204
	})
	rig.behave(`{"callback_delay_ms": 1}`)
	sid := rig.sendMessage(map[string]string{
		"From": "", "MessagingServiceSid": testService, "StatusCallback": hook.url,
	})["sid"]
	eventually(t, "three callbacks", func() bool { return len(rig.items("messages")[0].Callbacks) == 3 })
	m := rig.items("messages")[0]
	if m.SID != sid || m.To != someone || m.From != testService || m.Body != "hello" || m.Status != "delivered" {
		t.Errorf("the message is %+v", m)
	}
	if got := callbackStatuses(m); got != "queued:204 sent:500 delivered:204" {
		t.Errorf("its callbacks are %s", got)
	}
	for _, at := range []string{m.CreatedAt, m.Callbacks[0].At} {
		if !microseconds.MatchString(at) {
			t.Errorf("%s is not RFC 3339 with microseconds", at)
		}
	}
	if calls := rig.items("calls"); calls == nil || len(calls) > 0 {
		t.Errorf("there are calls: %v", calls)
	}
}

func TestResetForgetsEverything(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 30, "fault": {"kind": "http_500_after_accept"}}`)
	var senders sync.WaitGroup
	for i := range 20 {
		senders.Go(func() {
			rig.api("POST", "/Messages.json", messageForm(map[string]string{
				"To": fmt.Sprintf("+155501%05d", i), "StatusCallback": hook.url,
			}))
		})
	}
	senders.Wait()
	hook.next() // callbacks are on their way
	if status, _ := rig.control("POST", "reset", ""); status != 204 {
		t.Errorf("reset is answered %d", status)
	}
	before := len(hook.told)
	_, stats := rig.control("GET", "stats", "")
	if stats["creates"] != 0.0 || stats["callbacks"] != 0.0 || len(stats["min_gap_ms"].(map[string]any)) > 0 {
		t.Errorf("stats are %v", stats)
	}
	if messages := rig.items("messages"); len(messages) > 0 {
		t.Errorf("%d messages are left", len(messages))
	}

	// A message of after the reset, under the default behaviour, outlives what was pending before it.
	rig.sendMessage(map[string]string{"StatusCallback": hook.url})
	eventually(t, "delivered", func() bool { return rig.items("messages")[0].Status == "delivered" })
	eventually(t, "told twice", func() bool { return len(rig.items("messages")[0].Callbacks) == 2 })
	if came := len(hook.told) - before; came != 2 {
		t.Errorf("%d callbacks came after the reset, want the new message's 2", came)
	}
}

func TestResetDoesNotWaitForACallbackThatHangs(t *testing.T) {
	rig, hook := start(t), newHook(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hook.answerWith(func(told) int { <-release; return 204 })
	rig.behave(`{"callback_delay_ms": 0}`)
	rig.sendMessage(map[string]string{"StatusCallback": hook.url})
	hook.next()
	answered := make(chan int, 1)
	go func() {
		status, _ := rig.control("POST", "reset", "")
		answered <- status
	}()
	select {
	case status := <-answered:
		if status != 204 {
			t.Errorf("reset is answered %d", status)
		}
	case <-time.After(soon):
		t.Error("reset waits")
	}
}
