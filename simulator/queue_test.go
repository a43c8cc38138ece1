package simulator_test

import (
	"fmt"
	"testing"
	"time"
)

func TestASendersQueueDrainsAtItsRate(t *testing.T) {
	t.Parallel()
	rig := start(t)
	rig.behave(`{"drain_per_second": 20, "callback_delay_ms": 1}`)
	began := time.Now()
	var last string
	for i := range 11 {
		last = rig.sendMessage(map[string]string{"To": fmt.Sprintf("+1202555%04d", 100+i)})["sid"].(string)
	}
	for rig.message(last)["status"] == "queued" {
		if time.Since(began) > time.Minute {
			t.Fatal("it never leaves the queue")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("11 messages left the queue within %v, want 20 a second", took)
	}
}
