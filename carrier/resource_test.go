package carrier

import (
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

func TestFetchReadsTwiliosTypes(t *testing.T) {
	seconds := func(n int) *int { return &n }
	for name, tc := range map[string]struct {
		channel notify.Channel
		sid     string
		answer  string
		want    Resource
	}{
		"message, delivered": {
			notify.SMS, testMessage,
			`{"body":"hello","num_segments":"2","direction":"outbound-api","from":"+15005550006","to":"+15555550123",
			  "date_updated":"Thu, 24 Aug 2023 05:01:46 +0000","price":"-0.00750","error_message":null,"uri":"/2010-04-01/x.json",
			  "account_sid":"` + testAccount + `","num_media":"0","status":"delivered","messaging_service_sid":"` + testService + `",
			  "sid":"` + testMessage + `","date_sent":"Thu, 24 Aug 2023 05:01:45 +0000","date_created":"Thu, 24 Aug 2023 05:01:44 +0000",
			  "error_code":null,"price_unit":"USD","api_version":"2010-04-01","subresource_uris":{"media":"/x"}}`,
			Resource{
				Receipt: notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "delivered", Segments: 2,
					SentAt: time.Date(2023, 8, 24, 5, 1, 45, 0, time.UTC), Source: notify.FromPoll},
				To: testTo, From: testFrom, MessagingServiceSID: testService, Body: "hello", Direction: "outbound-api",
				CreatedAt: time.Date(2023, 8, 24, 5, 1, 44, 0, time.UTC),
			},
		},
		"message, undelivered": {
			notify.SMS, testMessage,
			`{"sid":"` + testMessage + `","status":"undelivered","error_code":30003,"error_message":"Unreachable destination handset"}`,
			Resource{Receipt: notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "undelivered", ErrorCode: "30003", Source: notify.FromPoll}},
		},
		"message, not sent yet, with nonsense": {
			notify.SMS, testMessage,
			`{"sid":"` + testMessage + `","status":"queued","error_code":0,"date_sent":null,"date_created":"yesterday","num_segments":"many","from":null}`,
			Resource{Receipt: notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "queued", Source: notify.FromPoll}},
		},
		"message, with other types": {
			notify.SMS, testMessage,
			`{"sid":"` + testMessage + `","status":"delivered","error_code":"none","num_segments":2}`,
			Resource{Receipt: notify.Receipt{Channel: notify.SMS, SID: testMessage, Word: "delivered", UnknownCode: "none", Source: notify.FromPoll}},
		},
		"call, with other types": {
			notify.Call, testCall, `{"sid":"` + testCall + `","status":"completed","duration":15,"answered_by":{}}`,
			Resource{Receipt: notify.Receipt{Channel: notify.Call, SID: testCall, Word: "completed", Source: notify.FromPoll}},
		},
		"call, completed": {
			notify.Call, testCall,
			`{"sid":"` + testCall + `","status":"completed","duration":"15","answered_by":"machine_start","queue_time":"1000",
			  "to":"+15555550123","from":"+15005550006","direction":"outbound-api",
			  "start_time":"Tue, 31 Aug 2010 20:36:29 +0000","date_created":"Tue, 31 Aug 2010 20:36:28 +0000"}`,
			Resource{
				Receipt: notify.Receipt{Channel: notify.Call, SID: testCall, Word: "completed", Duration: seconds(15), AnsweredBy: "machine_start",
					SentAt: time.Date(2010, 8, 31, 20, 36, 29, 0, time.UTC), Source: notify.FromPoll},
				To: testTo, From: testFrom, Direction: "outbound-api",
				CreatedAt: time.Date(2010, 8, 31, 20, 36, 28, 0, time.UTC),
			},
		},
		"call, completed after nothing": {
			notify.Call, testCall, `{"sid":"` + testCall + `","status":"completed","duration":"0"}`,
			Resource{Receipt: notify.Receipt{Channel: notify.Call, SID: testCall, Word: "completed", Duration: seconds(0), Source: notify.FromPoll}},
		},
		"call, completed, duration not known yet": {
			notify.Call, testCall, `{"sid":"` + testCall + `","status":"completed","duration":null}`,
			Resource{Receipt: notify.Receipt{Channel: notify.Call, SID: testCall, Word: "completed", Source: notify.FromPoll}},
		},
		"call, busy": {
			notify.Call, testCall, `{"sid":"` + testCall + `","status":"busy","duration":""}`,
			Resource{Receipt: notify.Receipt{Channel: notify.Call, SID: testCall, Word: "busy", Source: notify.FromPoll}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				folder := map[notify.Channel]string{notify.SMS: "Messages", notify.Call: "Calls"}[tc.channel]
				if want := "/2010-04-01/Accounts/" + testAccount + "/" + folder + "/" + tc.sid + ".json"; r.Method != http.MethodGet || r.URL.String() != want {
					t.Errorf("%s %s, want GET %s", r.Method, r.URL, want)
				}
				answer(w, http.StatusOK, tc.answer)
			})
			got, err := c.Fetch(t.Context(), tc.channel, tc.sid)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestFetchTellsNotFoundFromElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		status   int
		body     string
		class    Class
		notFound bool
	}{
		"Twilio has none":         {404, `{"code":20404,"message":"The requested resource was not found","status":404}`, Sender, true},
		"a proxy has no page":     {404, `<html>`, SafeToRetry, false},
		"a gateway has none":      {404, `{"code":404,"message":"Not Found","status":404}`, SafeToRetry, false},
		"a code without its form": {404, `{"code":20404}`, SafeToRetry, false},
		"another message's SID":   {200, `{"sid":"SM00000000000000000000000000000002","status":"sent"}`, SafeToRetry, false},
		"no status in the answer": {200, `{"sid":"` + testMessage + `"}`, SafeToRetry, false},
		"a list":                  {200, `[]`, SafeToRetry, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(w, tc.status, tc.body) })
			_, err := c.Fetch(t.Context(), notify.SMS, testMessage)
			expect(t, err, tc.class, nil)
			if failed, ok := errors.AsType[*Error](err); !ok || failed.NotFound() != tc.notFound {
				t.Errorf("%v: not found is not %v", err, tc.notFound)
			}
		})
	}
}

func TestFetchAsksForSIDsOnly(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("a request was sent") })
	for _, tc := range []struct {
		channel notify.Channel
		sid     string
	}{
		{notify.SMS, ""}, {notify.SMS, testCall}, {notify.Call, testMessage}, {notify.SMS, "../Calls"},
		{notify.SMS, testMessage + "/Media"}, {notify.LINECard, testMessage + "0"},
	} {
		_, err := c.Fetch(t.Context(), tc.channel, tc.sid)
		expect(t, err, Request, nil)
	}
}
