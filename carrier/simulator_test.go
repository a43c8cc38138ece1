package carrier

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/simulator"
)

// rig is the simulator, a client of it, and the webhook that it reports to through what looks like
// a proxy: it is reached at an address that is not the public URL.
type rig struct {
	t        *testing.T
	twilio   *simulator.Simulator
	client   *Client
	hook     string // where callbacks are received
	receipts chan notify.Receipt
}

func startRig(t *testing.T, behaviour string) *rig {
	t.Helper()
	twilio := simulator.New(simulator.Options{})
	server := httptest.NewServer(twilio)
	t.Cleanup(func() {
		server.Close()
		twilio.Close()
	})
	r := &rig{t: t, twilio: twilio, client: newClient(t, server.URL), receipts: make(chan notify.Receipt, 100)}

	var validator *SignatureValidator
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		form, err := validator.Receive(req)
		if err != nil {
			t.Errorf("the simulator's callback: %v", err)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		receipt, err := ParseCallback(notify.Channel(req.URL.Query().Get("channel")), form, req.URL.Query().Get("id"))
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusNoContent)
		r.receipts <- receipt
	}))
	t.Cleanup(hook.Close)
	r.hook = hook.URL
	var err error
	if validator, err = NewSignatureValidator(testToken, hook.URL); err != nil {
		t.Fatal(err)
	}

	recorder := httptest.NewRecorder()
	twilio.ServeHTTP(recorder, httptest.NewRequest(http.MethodPut, "/_simulator/behaviour", strings.NewReader(behaviour)))
	if recorder.Code/100 != 2 {
		t.Fatalf("behaviour: %d %s", recorder.Code, recorder.Body)
	}
	return r
}

// reports waits for the words of n callbacks about the SID.
func (r *rig) reports(n int, sid string) (words []string, last notify.Receipt) {
	r.t.Helper()
	for range n {
		select {
		case last = <-r.receipts:
			if last.SID != sid || last.NotificationID != "n'1" {
				r.t.Errorf("a callback for %s of %q, want %s", last.SID, last.NotificationID, sid)
			}
			words = append(words, last.Word)
		case <-time.After(10 * time.Second):
			r.t.Fatalf("only %v was reported", words)
		}
	}
	return words, last
}

func TestAnSMSThroughTheSimulator(t *testing.T) {
	r := startRig(t, `{"callback_delay_ms": 1, "default_outcome": {"status": "undelivered", "error_code": 30003}}`)
	req := sms()
	req.Body = "届きました"
	req.StatusCallback = r.hook + "/sms?channel=SMS&id=n'1#rc=5&rp=all"
	receipt, err := r.client.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if receipt.Word != "queued" || receipt.Segments != 1 {
		t.Errorf("created %+v", receipt)
	}
	words, last := r.reports(2, receipt.SID)
	if strings.Join(words, " ") != "sent undelivered" || last.ErrorCode != "30003" {
		t.Errorf("reported %v, last %+v", words, last)
	}
	found, err := r.client.Fetch(t.Context(), notify.SMS, receipt.SID)
	if err != nil {
		t.Fatal(err)
	}
	if found.Word != "undelivered" || found.ErrorCode != "30003" || found.To != req.To || found.From != req.From ||
		found.Body != req.Body || found.Direction != "outbound-api" || found.CreatedAt.IsZero() || found.SentAt.IsZero() {
		t.Errorf("fetched %+v", found)
	}
}

func TestACallThroughTheSimulator(t *testing.T) {
	r := startRig(t, `{"callback_delay_ms": 1, "default_call_outcome": {"status": "completed", "duration_s": 12, "answered_by": "human"}}`)
	req := call()
	req.Body = "ご予約は10時です。"
	req.DetectMachine = true
	req.StatusCallback = r.hook + "/call?channel=CALL&id=n'1#rc=5&rp=all"
	receipt, err := r.client.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	words, last := r.reports(4, receipt.SID)
	if strings.Join(words, " ") != "initiated ringing in-progress completed" || last.Duration == nil || *last.Duration != 12 || last.AnsweredBy != "human" {
		t.Errorf("reported %v, last %+v", words, last)
	}
	found, err := r.client.Fetch(t.Context(), notify.Call, receipt.SID)
	if err != nil {
		t.Fatal(err)
	}
	if found.Word != "completed" || found.Duration == nil || *found.Duration != 12 || found.AnsweredBy != "human" || found.To != req.To || found.CreatedAt.IsZero() {
		t.Errorf("fetched %+v", found)
	}
}

func TestTheSimulatorsListsAreReadToTheEnd(t *testing.T) {
	// Nothing is sent while the lists are read, so no row moves.
	r := startRig(t, `{"default_outcome": {"status": "queued"}, "default_call_outcome": {"status": "queued"}}`)
	for _, ch := range []notify.Channel{notify.SMS, notify.Call} {
		made := map[string]bool{}
		for n := range 7 {
			req := map[notify.Channel]Create{notify.SMS: sms(), notify.Call: call()}[ch]
			if n == 6 {
				req.To = "+15555550199"
			}
			receipt, err := r.client.Create(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			made[receipt.SID] = n != 6
		}
		found := 0
		for page, err := range r.client.List(t.Context(), ch, Filter{To: testTo, PageSize: 2}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, resource := range page {
				if !made[resource.SID] || resource.To != testTo {
					t.Errorf("listed %+v", resource)
				}
				found++
			}
		}
		if found != 6 {
			t.Errorf("%s: %d of 6 were listed", ch, found)
		}
	}
}

func TestTheSimulatorsFaultsHaveTheirClass(t *testing.T) {
	for fault, want := range map[string]struct {
		class Class
		made  int
	}{
		"accept_then_drop":      {Ambiguous, 1},
		"refuse":                {Ambiguous, 0},
		"http_500":              {Ambiguous, 0},
		"http_500_after_accept": {Ambiguous, 1},
		"html_503":              {Ambiguous, 0},
		"html_503_after_accept": {Ambiguous, 1},
		"rate_limited":          {SafeToRetry, 0},
	} {
		t.Run(fault, func(t *testing.T) {
			r := startRig(t, `{"fault": {"kind": "`+fault+`", "count": 1, "retry_after_s": 2}}`)
			_, err := r.client.Create(t.Context(), sms())
			expect(t, err, want.class, nil)
			leaksNothing(t, err, sms())
			if failed := err.(*Error); fault == "rate_limited" && (failed.RetryAfter != 2*time.Second || failed.Code != 20429) {
				t.Errorf("Retry-After %s, code %d", failed.RetryAfter, failed.Code)
			}
			made := 0
			for page, err := range r.client.List(t.Context(), notify.SMS, Filter{To: testTo}) {
				if err != nil {
					t.Fatal(err)
				}
				made += len(page)
			}
			if made != want.made {
				t.Errorf("%d messages were made, want %d", made, want.made)
			}
			if _, err := r.client.Create(t.Context(), sms()); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

func TestMagicNumbersHaveTheirClass(t *testing.T) {
	r := startRig(t, `{}`)
	for _, tc := range []struct {
		channel  notify.Channel
		to, from string
		code     int
		class    Class
	}{
		{notify.SMS, "+15005550001", testFrom, 21211, Recipient},
		{notify.SMS, "+15005550003", testFrom, 21408, Recipient},
		{notify.SMS, "+15005550004", testFrom, 21610, Recipient},
		{notify.SMS, "+15005550009", testFrom, 21614, Recipient},
		{notify.SMS, testTo, "+15005550001", 21212, Sender},
		{notify.SMS, testTo, "+15005550007", 21606, Sender},
		{notify.SMS, testTo, "+15005550008", 21611, SafeToRetry},
		{notify.Call, "+15005550001", testFrom, 21217, Recipient},
		{notify.Call, testTo, "+15005550001", 21212, Sender},
	} {
		req := Create{Channel: tc.channel, To: tc.to, From: tc.from, Body: "a body that stays private"}
		_, err := r.client.Create(t.Context(), req)
		expect(t, err, tc.class, nil)
		leaksNothing(t, err, req)
		if failed := err.(*Error); failed.Code != tc.code || failed.HTTPStatus != http.StatusBadRequest && failed.HTTPStatus != http.StatusForbidden {
			t.Errorf("%s from %s to %s: %v, want code %d", tc.channel, tc.from, tc.to, err, tc.code)
		}
	}
	_, err := r.client.Fetch(t.Context(), notify.SMS, testMessage)
	if failed, ok := err.(*Error); !ok || !failed.NotFound() {
		t.Errorf("fetching what does not exist: %v", err)
	}
}
