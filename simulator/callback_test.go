package simulator_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/simulator"
)

// callbackStatuses are the statuses and answers of a message's callbacks, as /_simulator/messages lists them.
func callbackStatuses(m item) string {
	var list []string
	for _, c := range m.Callbacks {
		answer := "none"
		if c.HTTPStatus != nil {
			answer = fmt.Sprint(*c.HTTPStatus)
		}
		list = append(list, c.Status+":"+answer)
	}
	return strings.Join(list, " ")
}

func TestCallbackModes(t *testing.T) {
	for mode, want := range map[string]string{
		"ordered":       "initiated ringing in-progress completed",
		"reversed":      "completed in-progress ringing initiated",
		"repeated":      "initiated ringing in-progress completed initiated ringing in-progress completed",
		"before_answer": "initiated ringing in-progress completed",
		"lost":          "",
	} {
		t.Run(mode, func(t *testing.T) {
			rig, hook := start(t), newHook(t)
			rig.behave(`{"callback_delay_ms": 1, "callbacks": "` + mode + `"}`)
			form := callForm(map[string]string{"StatusCallback": hook.url})
			form["StatusCallbackEvent"] = allEvents
			created := rig.mustCreate("/Calls.json", form)
			if got := hook.statuses(len(strings.Fields(want))); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
			eventually(t, "completed", func() bool { return rig.call(created["sid"])["status"] == "completed" })
			hook.nothing()
		})
	}
}

func TestShuffledCallbacksComeInManyOrders(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 0, "callbacks": "shuffled"}`)
	form := callForm(map[string]string{"StatusCallback": hook.url})
	form["StatusCallbackEvent"] = allEvents
	orders := make(map[string]bool)
	for range 30 {
		rig.mustCreate("/Calls.json", form)
		order := strings.Fields(hook.statuses(4))
		orders[strings.Join(order, " ")] = true
		if slices.Sort(order); strings.Join(order, " ") != "completed in-progress initiated ringing" {
			t.Errorf("told %v", order)
		}
	}
	if len(orders) < 3 {
		t.Errorf("30 calls were told in %d orders only", len(orders))
	}
}

func TestCallbacksBeforeTheAnswer(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 3600000, "callbacks": "before_answer"}`)
	created := rig.sendMessage(map[string]string{"StatusCallback": hook.url})
	if created["status"] != "queued" {
		t.Errorf("the answer says %v, want what a message is when it is created", created["status"])
	}
	select {
	case first := <-hook.told:
		if second := <-hook.told; first.status() != "sent" || second.status() != "delivered" {
			t.Errorf("told %s, %s", first.status(), second.status())
		}
	default:
		t.Error("nothing was told when the answer was read")
	}
	if got := callbackStatuses(rig.items("messages")[0]); got != "sent:204 delivered:204" {
		t.Errorf("callbacks are %s", got)
	}
}

func TestCallbacksFollowTheAnswer(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"latency_ms": 30, "callback_delay_ms": 0}`)
	rig.sendMessage(map[string]string{"StatusCallback": hook.url})
	hook.statuses(2)
	eventually(t, "both noted", func() bool { return len(rig.items("messages")[0].Callbacks) == 2 })
	m := rig.items("messages")[0]
	created, err := time.Parse(time.RFC3339, m.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	first, err := time.Parse(time.RFC3339, m.Callbacks[0].At)
	if err != nil {
		t.Fatal(err)
	}
	if after := first.Sub(created); after < 30*time.Millisecond {
		t.Errorf("the first callback came %s after the create, before its answer", after)
	}
}

func TestStatusMovesWithoutAnybodyBeingTold(t *testing.T) {
	for name, behaviour := range map[string]string{
		"callbacks lost":  `{"callback_delay_ms": 1, "callbacks": "lost"}`,
		"no callback URL": `{"callback_delay_ms": 1}`,
		"before answer":   `{"callback_delay_ms": 1, "callbacks": "before_answer"}`,
		"only at the end": `{"callback_delay_ms": 1, "callbacks": "reversed"}`,
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			rig.behave(behaviour)
			sid := rig.sendMessage(nil)["sid"]
			eventually(t, "delivered", func() bool { return rig.message(sid)["status"] == "delivered" })
		})
	}
}

func TestRepeatedCallbackHasTheSameToken(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1, "callbacks": "repeated"}`)
	rig.sendMessage(map[string]string{"StatusCallback": hook.url})
	tokens := make(map[string][]string)
	for range 4 {
		c := hook.next()
		tokens[c.status()] = append(tokens[c.status()], c.header.Get("I-Twilio-Idempotency-Token"))
	}
	for status, got := range tokens {
		if len(got) != 2 || got[0] != got[1] || got[0] == "" {
			t.Errorf("%s came with the tokens %v", status, got)
		}
	}
}

func TestFailedCallbacksAreTriedAgainAsTheURLSays(t *testing.T) {
	for _, test := range []struct {
		name, fragment string
		answers        []int // to the first callback, then 204
		want           string
	}{
		{"not by default", "", []int{500}, "sent:500 delivered:204"},
		{"once without a count", "#rp=5xx", []int{500, 500}, "sent:500 sent:500 delivered:204"},
		{"until it works", "#rc=5&rp=all", []int{500, 403}, "sent:500 sent:403 sent:204 delivered:204"},
		{"only what the policy names", "#rc=5&rp=4xx", []int{500}, "sent:500 delivered:204"},
		{"several policies", "#rc=2&rp=4xx,5xx", []int{404, 503}, "sent:404 sent:503 sent:204 delivered:204"},
		{"never more than the count", "#rc=1&rp=all", []int{500, 500}, "sent:500 sent:500 delivered:204"},
		{"no retries", "#rc=0&rp=all", []int{500}, "sent:500 delivered:204"},
		{"a count that makes no sense", "#rc=9&rp=all", []int{500}, "sent:500 sent:204 delivered:204"},
		{"not past the total time-out", "#rc=5&rp=all&tt=100", []int{500}, "sent:500 delivered:204"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rig, hook := start(t), newHook(t)
			answers := make(chan int, len(test.answers))
			for _, answer := range test.answers {
				answers <- answer
			}
			tokens := make(chan string, 20)
			hook.answerWith(func(c told) int {
				if c.status() != "sent" {
					return http.StatusNoContent
				}
				tokens <- c.header.Get("I-Twilio-Idempotency-Token")
				select {
				case answer := <-answers:
					return answer
				default:
					return http.StatusNoContent
				}
			})
			rig.behave(`{"callback_delay_ms": 1}`)
			rig.sendMessage(map[string]string{"StatusCallback": hook.url + test.fragment})

			// A repeat does not hold up the next status, so the order in which they end is not looked at.
			want := strings.Fields(test.want)
			slices.Sort(want)
			eventually(t, test.want, func() bool {
				return len(rig.items("messages")[0].Callbacks) >= len(want)
			})
			time.Sleep(150 * time.Millisecond) // one more try, which must not be, would have come by now
			got := strings.Fields(callbackStatuses(rig.items("messages")[0]))
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("callbacks are %v, want %v", got, want)
			}
			first := <-tokens
			for len(tokens) > 0 {
				if token := <-tokens; token != first {
					t.Errorf("a repeat has the token %s, the first one %s", token, first)
				}
			}
		})
	}
}

func TestCallbackThatCannotConnectIsTriedOnceMore(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + ln.Addr().String()
	ln.Close()
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 1, "default_outcome": {"status": "sent"}}`)
	rig.sendMessage(map[string]string{"StatusCallback": nobody})
	eventually(t, "tried twice", func() bool {
		return callbackStatuses(rig.items("messages")[0]) == "sent:none sent:none"
	})
}

func TestCallbackThatIsNotAnsweredInTime(t *testing.T) {
	rig, hook := start(t), newHook(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hook.answerWith(func(told) int { <-release; return http.StatusNoContent })
	rig.behave(`{"callback_delay_ms": 1, "default_outcome": {"status": "sent"}}`)
	rig.sendMessage(map[string]string{"StatusCallback": hook.url + "#rt=100&rc=1&rp=rt"})
	eventually(t, "given up twice", func() bool {
		return callbackStatuses(rig.items("messages")[0]) == "sent:none sent:none"
	})
}

func TestFixedAuthTokenSigns(t *testing.T) {
	rig, hook := startWith(t, simulator.Options{AuthToken: testToken}), newHook(t)
	rig.behave(`{"callback_delay_ms": 1}`)
	request := rig.request("POST", "/2010-04-01/Accounts/"+testAccount+"/Messages.json",
		messageForm(map[string]string{"StatusCallback": hook.url}).Encode())
	request.SetBasicAuth("SK"+strings.Repeat("0", 32), "secretofthekey")
	if status, body := rig.do(request); status != http.StatusCreated {
		t.Fatalf("answered %d %v", status, body)
	}
	hook.next() // the hook checks the signature with testToken
}
