package simulator_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/twilio/twilio-go/client"
	api "github.com/twilio/twilio-go/rest/api/v2010"
)

// redirected is a transport that sends what is meant for Twilio to the simulator.
type redirected struct {
	to   *url.URL
	next http.RoundTripper
}

func (r redirected) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host = r.to.Scheme, r.to.Host
	return r.next.RoundTrip(request)
}

// redirected is the way to the simulator for a client that means Twilio.
func (r *rig) redirected() http.RoundTripper {
	r.t.Helper()
	to, err := url.Parse(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	return redirected{to: to, next: r.client.Transport}
}

// twilioGo is Twilio's own Go client, pointed at the simulator.
func (r *rig) twilioGo() *api.ApiService {
	r.t.Helper()
	c := &client.Client{
		Credentials: client.NewCredentials(testAccount, testToken),
		HTTPClient:  &http.Client{Transport: r.redirected()},
	}
	c.SetAccountSid(testAccount)
	return api.NewApiServiceWithClient(c)
}

func TestTwilioGoSendsAndReads(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1, "default_outcome": {"status": "undelivered", "error_code": 30003}}`)
	twilio := rig.twilioGo()
	for i := range 5 {
		params := &api.CreateMessageParams{}
		params.SetTo(fmt.Sprintf("+155501%05d", i)).SetFrom(goodSender).SetBody("届きました")
		params.SetStatusCallback(hook.url + "#rc=5&rp=all").SetValidityPeriod(36000)
		message, err := twilio.CreateMessage(params)
		if err != nil {
			t.Fatal(err)
		}
		if *message.Status != "queued" || *message.NumSegments != "1" {
			t.Errorf("created %+v", message)
		}
		hook.statuses(2)
		if message, err = twilio.FetchMessage(*message.Sid, nil); err != nil {
			t.Fatal(err)
		}
		if *message.Status != "undelivered" || *message.ErrorCode != 30003 {
			t.Errorf("fetched %+v", message)
		}
	}
	params := &api.ListMessageParams{}
	params.SetDateSentAfter(time.Now().Add(-time.Hour).UTC()).SetDateSentBefore(time.Now().Add(time.Hour).UTC())
	params.SetPageSize(2)
	messages, err := twilio.ListMessage(params)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 5 || *messages[0].To != "+15550100004" {
		t.Errorf("listed %d messages", len(messages))
	}
	redact := &api.UpdateMessageParams{}
	redact.SetBody("")
	if message, err := twilio.UpdateMessage(*messages[0].Sid, redact); err != nil || *message.Body != "" {
		t.Errorf("redacted: %v, %v", message, err)
	}
	if err := twilio.DeleteMessage(*messages[0].Sid, nil); err != nil {
		t.Error(err)
	}
}

func TestTwilioGoCalls(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1}`)
	twilio := rig.twilioGo()
	params := &api.CreateCallParams{}
	params.SetTo(someone).SetFrom(goodSender).SetTwiml("<Response><Say>hello</Say></Response>")
	params.SetStatusCallback(hook.url).SetStatusCallbackEvent(allEvents).SetMachineDetection("Enable")
	call, err := twilio.CreateCall(params)
	if err != nil {
		t.Fatal(err)
	}
	if told := hook.statuses(4); told != "initiated ringing in-progress completed" {
		t.Errorf("told %s", told)
	}
	if call, err = twilio.FetchCall(*call.Sid, nil); err != nil {
		t.Fatal(err)
	}
	if *call.Status != "completed" || *call.Duration != "12" || *call.AnsweredBy != "human" {
		t.Errorf("fetched %+v", call)
	}
	list := &api.ListCallParams{}
	list.SetStatus("completed").SetStartTimeAfter(time.Now().Add(-time.Hour).UTC())
	if calls, err := twilio.ListCall(list); err != nil || len(calls) != 1 {
		t.Errorf("listed %d calls: %v", len(calls), err)
	}
	hangUp := &api.UpdateCallParams{}
	hangUp.SetStatus("completed")
	var refused *client.TwilioRestError
	if _, err := twilio.UpdateCall(*call.Sid, hangUp); !errors.As(err, &refused) || refused.Code != 21220 || refused.Status != 400 {
		t.Errorf("hanging up twice: %v", err)
	}
}
