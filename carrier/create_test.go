package carrier

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

const callbackURL = "https://todoku.example.com/api/twilio/webhook/sms-status?id=7c0e#rc=5&rp=all"

func TestCreatePostsWhatTwilioDocuments(t *testing.T) {
	for name, tc := range map[string]struct {
		request Create
		path    string
		form    url.Values
	}{
		"SMS from a number": {
			Create{Channel: notify.SMS, To: testTo, From: testFrom, Body: "届きました & 100% <ok>", StatusCallback: callbackURL},
			"Messages.json",
			url.Values{"To": {testTo}, "From": {testFrom}, "Body": {"届きました & 100% <ok>"}, "StatusCallback": {callbackURL}},
		},
		"SMS from a Messaging Service": {
			Create{Channel: notify.SMS, To: testTo, MessagingServiceSID: testService, Body: "hello", ValidityPeriod: time.Hour},
			"Messages.json",
			url.Values{"To": {testTo}, "MessagingServiceSid": {testService}, "Body": {"hello"}, "ValidityPeriod": {"3600"}},
		},
		"call": {
			Create{Channel: notify.Call, To: testTo, From: testFrom, Body: "hello", StatusCallback: callbackURL},
			"Calls.json",
			url.Values{
				"To": {testTo}, "From": {testFrom}, "StatusCallback": {callbackURL},
				"Twiml":               {`<Response><Say language="en-US" voice="Polly.Joanna">hello</Say></Response>`},
				"StatusCallbackEvent": {"initiated", "ringing", "answered", "completed"},
			},
		},
		"call that detects machines, without reports": {
			Create{Channel: notify.Call, To: testTo, From: testFrom, Body: "hello", DetectMachine: true},
			"Calls.json",
			url.Values{
				"To": {testTo}, "From": {testFrom}, "MachineDetection": {"Enable"},
				"Twiml": {`<Response><Say language="en-US" voice="Polly.Joanna">hello</Say></Response>`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.Path != "/2010-04-01/Accounts/"+testAccount+"/"+tc.path || r.URL.RawQuery != "" {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				if err := r.ParseForm(); err != nil || !reflect.DeepEqual(r.PostForm, tc.form) {
					t.Errorf("form %v, %v\nwant %v", r.PostForm, err, tc.form)
				}
				sid := map[notify.Channel]string{notify.SMS: testMessage, notify.Call: testCall}[tc.request.Channel]
				answer(w, http.StatusCreated, `{"sid":"`+sid+`","status":"queued"}`)
			})
			if _, err := c.Create(t.Context(), tc.request); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTheAnswerToACreateIsAReceipt(t *testing.T) {
	for name, tc := range map[string]struct {
		request Create
		answer  string
		want    notify.Receipt
	}{
		"SMS from a number": {
			sms(),
			`{"sid":"` + testMessage + `","status":"queued","num_segments":"3","error_code":null,"date_sent":null}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued", Segments: 3},
		},
		"SMS from a Messaging Service": {
			sms(),
			`{"sid":"` + testMessage + `","status":"accepted","num_segments":"0","from":null}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "accepted"},
		},
		"refused at once": {
			sms(),
			`{"sid":"` + testMessage + `","status":"failed","num_segments":"1","error_code":30007}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "failed", ErrorCode: "30007", Segments: 1},
		},
		"a status never heard of": {
			sms(),
			`{"sid":"` + testMessage + `","status":"teleported","news":{"a":1}}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "teleported"},
		},
		"something of another type that nobody reads": {
			sms(),
			`{"sid":"` + testMessage + `","status":"queued","price":0.01,"subresource_uris":[]}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued"},
		},
		"segments and an error code of other types": {
			sms(),
			`{"sid":"` + testMessage + `","status":"queued","num_segments":2,"error_code":"30007"}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued", ErrorCode: "30007"},
		},
		"segments and an error code of types that are none": {
			sms(),
			`{"sid":"` + testMessage + `","status":"queued","num_segments":{"x":[1]},"error_code":[30007.5]}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued", UnknownCode: "[30007.5]"},
		},
		"a name twice, and a text that is not UTF-8": {
			sms(),
			`{"sid":"` + testMessage + `","status":"queued","body":"` + "\xff" + `","price":1,"price":2}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued"},
		},
		"half an error code": {
			sms(),
			`{"sid":"` + testMessage + `","status":"queued","num_segments":"1","error_code":30007.5}`,
			notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued", UnknownCode: "30007.5", Segments: 1},
		},
		"call": {
			call(),
			`{"sid":"` + testCall + `","status":"queued","duration":null,"start_time":null,"answered_by":null}`,
			notify.Receipt{Channel: notify.Call, SID: testCall, Word: "queued"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusCreated, tc.answer) })
			before := time.Now()
			got, err := c.Create(t.Context(), tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if got.SentAt.Before(before) || got.SentAt.After(time.Now()) {
				t.Errorf("sent at %s, which is not when the request was written", got.SentAt)
			}
			tc.want.Source, got.SentAt = notify.FromCreate, time.Time{}
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestWhatCannotBeSentIsRefusedHere(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("a request was sent") })
	changed := func(req Create, change func(*Create)) Create {
		change(&req)
		return req
	}
	for name, tc := range map[string]struct {
		request Create
		says    string
	}{
		"LINE":                           {changed(sms(), func(r *Create) { r.Channel = notify.LINEText }), "channel"},
		"no channel":                     {changed(sms(), func(r *Create) { r.Channel = "" }), "channel"},
		"no recipient":                   {changed(sms(), func(r *Create) { r.To = "" }), "recipient"},
		"no body":                        {changed(sms(), func(r *Create) { r.Body = "" }), "body"},
		"no sender":                      {changed(sms(), func(r *Create) { r.From = "" }), "Messaging Service"},
		"call from a service":            {changed(call(), func(r *Create) { r.From, r.MessagingServiceSID = "", testService }), "number to call from"},
		"validity over 10 hours":         {changed(sms(), func(r *Create) { r.ValidityPeriod = 11 * time.Hour }), "validity"},
		"validity of half a second":      {changed(sms(), func(r *Create) { r.ValidityPeriod = 500 * time.Millisecond }), "validity"},
		"negative validity":              {changed(sms(), func(r *Create) { r.ValidityPeriod = -time.Second }), "validity"},
		"a call that says far too much":  {changed(call(), func(r *Create) { r.Body = strings.Repeat("あ", 4000) }), "shorten"},
		"a call that is escaped to long": {changed(call(), func(r *Create) { r.Body = strings.Repeat("&", 900) }), "shorten"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Create(t.Context(), tc.request)
			expect(t, err, Request, nil)
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not speak of the %s", err, tc.says)
			}
			if _, tooLong := errors.AsType[*TooLongError](err); tooLong != (tc.says == "shorten") {
				t.Errorf("%v is a *TooLongError: %v", err, tooLong)
			}
		})
	}
}
