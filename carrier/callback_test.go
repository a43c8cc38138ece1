package carrier

import (
	"reflect"
	"strings"
	"testing"

	"github.com/todoku/todoku/notify"
)

func TestParseCallbackReadsRealPayloads(t *testing.T) {
	seconds := func(n int) *int { return &n }
	for name, tc := range map[string]struct {
		channel notify.Channel
		payload string
		want    notify.Receipt
	}{
		// https://github.com/department-of-veterans-affairs/notification-api/pull/1376
		"SMS undelivered": {
			notify.SMS,
			"ErrorCode=30034&SmsSid=" + testMessage + "&SmsStatus=undelivered&MessageStatus=undelivered&To=%2B15555550123&MessageSid=" + testMessage + "&AccountSid=" + testAccount + "&From=%2B15005550006&ApiVersion=2010-04-01",
			notify.Receipt{SID: testMessage, Word: "undelivered", ErrorCode: "30034"},
		},
		"SMS delivered": {
			notify.SMS,
			"SmsSid=" + testMessage + "&SmsStatus=delivered&MessageStatus=delivered&To=%2B15555550123&MessageSid=" + testMessage + "&RawDlrDoneDate=2601020304",
			notify.Receipt{SID: testMessage, Word: "delivered"},
		},
		"SMS under the older names": {
			notify.SMS, "SmsSid=" + testMessage + "&SmsStatus=sent", notify.Receipt{SID: testMessage, Word: "sent"},
		},
		"SMS with an error code that is none": {
			notify.SMS, "MessageSid=" + testMessage + "&MessageStatus=sent&ErrorCode=0", notify.Receipt{SID: testMessage, Word: "sent"},
		},
		"SMS with a status and fields never heard of": {
			notify.SMS, "MessageSid=" + testMessage + "&MessageStatus=half-delivered&Mood=good", notify.Receipt{SID: testMessage, Word: "half-delivered"},
		},
		// https://github.com/somleng/somleng-switch/issues/7
		"call completed": {
			notify.Call,
			"CallSid=" + testCall + "&Timestamp=Sun%2C+25+Mar+2018+09%3A53%3A19+%2B0000&CallbackSource=call-progress-events&SequenceNumber=3&CallStatus=completed&Duration=1&CallDuration=49&AnsweredBy=human",
			notify.Receipt{SID: testCall, Word: "completed", Duration: seconds(49), AnsweredBy: "human"},
		},
		"call busy": {
			notify.Call, "CallSid=" + testCall + "&SipResponseCode=486&SequenceNumber=2&CallStatus=busy&Duration=0&CallDuration=0",
			notify.Receipt{SID: testCall, Word: "busy", Duration: seconds(0)},
		},
		"call not answered": {
			notify.Call, "CallSid=" + testCall + "&SipResponseCode=487&SequenceNumber=0&CallStatus=no-answer&Duration=0&CallDuration=0",
			notify.Receipt{SID: testCall, Word: "no-answer", Duration: seconds(0)},
		},
		"call answered, which has no duration yet": {
			notify.Call, "CallSid=" + testCall + "&SequenceNumber=2&CallStatus=in-progress",
			notify.Receipt{SID: testCall, Word: "in-progress"},
		},
		"call completed, with minutes only": {
			notify.Call, "CallSid=" + testCall + "&CallStatus=completed&Duration=1",
			notify.Receipt{SID: testCall, Word: "completed"},
		},
		"call completed, with nonsense": {
			notify.Call, "CallSid=" + testCall + "&CallStatus=completed&CallDuration=-1&AnsweredBy=%00",
			notify.Receipt{SID: testCall, Word: "completed"},
		},
		"call completed, longer than any call": {
			notify.Call, "CallSid=" + testCall + "&CallStatus=completed&CallDuration=2147483648",
			notify.Receipt{SID: testCall, Word: "completed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := ParseForm(tc.payload)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseCallback(tc.channel, form, "an id")
			if err != nil {
				t.Fatal(err)
			}
			tc.want.NotificationID, tc.want.Channel, tc.want.Source = "an id", tc.channel, notify.FromWebhook
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestParseCallbackRefusesWhatIsNotOne(t *testing.T) {
	for name, tc := range map[string]struct {
		channel notify.Channel
		payload string
		says    string
	}{
		"nothing":                  {notify.SMS, "", "MessageSid"},
		"no SID":                   {notify.SMS, "MessageStatus=sent", "MessageSid"},
		"a short SID":              {notify.SMS, "MessageSid=SM1&MessageStatus=sent", "MessageSid"},
		"a SID with SQL":           {notify.SMS, "MessageSid=" + testMessage + "'--&MessageStatus=sent", "MessageSid"},
		"a call's SID for an SMS":  {notify.SMS, "MessageSid=" + testCall + "&MessageStatus=sent", "MessageSid"},
		"an SMS's SID for a call":  {notify.Call, "CallSid=" + testMessage + "&CallStatus=completed", "CallSid"},
		"no status":                {notify.SMS, "MessageSid=" + testMessage, "MessageStatus"},
		"a status with NUL":        {notify.Call, "CallSid=" + testCall + "&CallStatus=busy%00", "CallStatus"},
		"a status that is a novel": {notify.Call, "CallSid=" + testCall + "&CallStatus=" + strings.Repeat("a", 65), "CallStatus"},
		"LINE":                     {notify.LINEText, "MessageSid=" + testMessage + "&MessageStatus=sent", "channel"},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := ParseForm(tc.payload)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ParseCallback(tc.channel, form, "an id")
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, want an error about %s", err, tc.says)
			}
			if strings.Contains(err.Error(), "0000000") || strings.Contains(err.Error(), "--") {
				t.Errorf("%q repeats the value", err)
			}
		})
	}
}
