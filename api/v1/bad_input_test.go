package v1_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
)

// The codes that are answered elsewhere, and the test that shows them.
var shownElsewhere = map[problem.Code]string{
	problem.InvalidUTF8:          "TestWhatIsNoObject",
	problem.RequestTimeout:       "problem",
	problem.KeyMissing:           "TestKeys",
	problem.KeyInvalid:           "TestKeys",
	problem.ScopeMissing:         "TestKeys",
	problem.TooManyWrongKeys:     "TestAddressThatGuessesKeysHasToWait",
	problem.LedgerBehind:         "TestSenderIsNotResumedWhileTheLedgerIsBehind",
	problem.UploadsBusy:          "TestOneKeyLeavesRoomForUploadsOfOthers",
	problem.ReadsBusy:            "TestReadThatFindsNoPlaceIsRefused",
	problem.ChannelNotConfigured: "TestCallsNeedANumber",
	problem.MalformedCallback:    "webhook",
	problem.UnsignedCallback:     "webhook",
	problem.ForgedCallback:       "webhook",
	problem.CallbacksOff:         "webhook",
	problem.RouteNotFound:        "api",
	problem.MethodNotAllowed:     "api",
	problem.Internal:             "api",
	problem.DatabaseUnavailable:  "TestWithoutItsDatabaseTheAPISaysSo",
	problem.TimeLimit:            "TestALargeScheduleMayBeTriggeredForLong",
	problem.Stopping:             "api",
	problem.AlreadyClaimed:       "TestTimesChangeUntilTheFirstClaim",
	problem.AlreadySent:          "TestCancelSaysHowFarItHasCome",
	problem.AlreadyFinal:         "TestCancelSaysHowFarItHasCome",
	problem.IdempotencyKeyInUse:  "TestARequestUnderWayIsNotDoneTwice",
	problem.IdempotencyKeyReused: "TestAKeyBelongsToOneRequest",
	problem.UploadIncomplete:     "TestAnUploadThatIsCutOffLeavesNothing",
	problem.BatchFinished:        "TestAFinishedBatchIsNotControlled",
	problem.BatchCanceled:        "TestABatchIsControlled",
	problem.TooManyRecipients:    "TestABatchHasAtMostAMillionRows",
	problem.SendIntervalInvalid:  "TestABatchIsControlled",
	problem.TemplateArchived:     "TestWhatWasUsedIsArchived",
	problem.ListInUse:            "TestAListInUseIsNotDeleted",
	problem.TemplateInUse:        "TestATemplateOfAScheduleIsKept",
	problem.MemberExists:         "TestAMemberIsChangedAndTakenOff",

	problem.InboundCallNotFound:   "TestBadQuestionsAboutCalls",
	problem.TaskRouterRunNotFound: "TestRunsThatMakeNoSense",
	problem.TaskRouterAction:      "TestRunsThatMakeNoSense",
	problem.TaskRouterFile:        "TestRunsThatMakeNoSense",
}

// batchCodes are answered to bulk requests only, and shown by TestBadBatches.
var batchCodes = []problem.Code{
	problem.BatchNotFound, problem.BatchEmpty, problem.TemplateColumnMissing, problem.ParameterNotUTF8, problem.CarrierCheckNotFound, problem.RecipientsOrList,
	notify.CSVEmpty, notify.CSVUnclosedQuote, notify.CSVRowTooLong, notify.CSVUnknownEncoding, notify.CSVWithoutTo, notify.CSVDuplicateColumn,
	notify.CSVTooManyColumns, notify.CSVRowColumnCount, notify.CSVRowMisplacedMark, notify.CSVRowEncoding, notify.CSVRowUnnamedValue, notify.CSVRowSeveralRows,
}

// listCodes are answered about lists only, and shown by TestBadLists.
var listCodes = []problem.Code{
	problem.ListNotFound, problem.MemberNotFound, problem.ImportEmpty, problem.TimezoneUnknown, problem.LocaleUnknown,
	problem.ParamNameInvalid, problem.ParamInvalid,
}

// A number that no answer may repeat.
const typed = "090-1234-567890"

func TestBadInput(t *testing.T) {
	a := apitest.Start(t)
	create := func(body string) string {
		t.Helper()
		created := a.Do("POST", "/api/v1/templates", body)
		if created.Status != http.StatusCreated {
			t.Fatal(created.Text)
		}
		return strings.TrimPrefix(created.Header.Get("Location"), "/api/v1/templates/")
	}
	sms := create(`{"name": "reminder", "channel": "SMS", "body": "{{name}}様、{{time}}です。"}`)
	call := create(`{"name": "spoken", "channel": "CALL", "body": "Hello"}`)
	timed := create(`{"name": "timed", "channel": "SMS", "body": "{{date}} {{time}}", "kinds": {"date": "date", "time": "time"}}`)
	anything := create(`{"name": "anything", "channel": "SMS", "body": "{{text}}"}`)

	send, templates := "/api/v1/notifications", "/api/v1/templates"
	with := func(fields string) string { return `{"channel": "SMS", "to": "090-1234-5678", ` + fields + `}` }
	to := func(number string) string { return `{"channel": "SMS", "to": "` + number + `", "body": "x"}` }

	seen := make(map[problem.Code]bool)
	for _, test := range []struct {
		name, path, body string
		status           int
		want             string // "code" or "code at pointer" or several of them
	}{
		{"no body", send, ``, 400, "request_empty"},
		{"not JSON", send, `to=` + typed, 400, "malformed_json"},
		{"a key twice", send, `{"to": "` + typed + `", "to": "1"}`, 400, "duplicate_key"},
		{"a NUL", send, with(`"body": "a\u0000b"`), 400, "nul_character"},
		{"more after the object", send, to("090-1234-5678") + "x", 400, "trailing_data"},
		{"10 MB", send, with(`"body": "` + strings.Repeat("x", 10<<20) + `"`), 413, "request_too_large"},
		{"1 MB and a byte", send, `{"a": "` + strings.Repeat("x", 1<<20-9) + `"} `, 413, "request_too_large"},

		{"no object", send, `[]`, 422, "wrong_type at "},
		{"nothing given", send, `{}`, 422, "required at /channel, required at /to, body_or_template at /body"},
		{"an unknown channel", send, `{"channel": "FAX", "to": "090-1234-5678", "body": "x"}`, 422, "channel_unknown at /channel"},
		{"a channel in small letters", send, `{"channel": "sms", "to": "090-1234-5678", "body": "x"}`, 422, "channel_unknown at /channel"},
		{"LINE", send, `{"channel": "LINE_TEXT", "to": "090-1234-5678", "body": "x"}`, 422, "channel_not_enabled at /channel"},
		{"a wrong type", send, `{"channel": "SMS", "to": 9012345678, "body": "x"}`, 422, "wrong_type at /to"},
		{"an unknown field", send, with(`"body": "x", "templateid": 1`), 422, "unknown_field at /templateid"},
		{"a time in words", send, with(`"body": "x", "send_at": "tomorrow at ten"`), 422, "send_at_invalid at /send_at"},
		{"a time without an offset", send, with(`"body": "x", "send_at": "2026-04-01T10:00:00"`), 422, "send_at_invalid at /send_at"},
		{"a time of the past", send, with(`"body": "x", "send_at": "2026-04-01T10:00:00+09:00"`), 422, "send_at_past at /send_at"},
		{"a time too far ahead", send, with(`"body": "x", "send_at": "2099-01-01T00:00:00Z"`), 422, "send_at_too_far at /send_at"},
		{"a time in seconds", send, with(`"body": "x", "send_at": 1790000000`), 422, "wrong_type at /send_at"},
		{"all at once", send, `{"channel": "FAX", "to": "` + typed + `", "body": "", "x": 1}`, 422,
			"unknown_field at /x, channel_unknown at /channel, phone_number_too_long at /to, body_empty at /body"},

		{"an empty number", send, to(" "), 422, "phone_number_empty at /to"},
		{"words", send, to("call me"), 422, "phone_number_unparsable at /to"},
		{"a number that a spreadsheet rounded", send, to("8.19E+11"), 422, "phone_number_rounded at /to"},
		{"a short number", send, to("110"), 422, "phone_number_too_short at /to"},
		{"a long number", send, to(typed), 422, "phone_number_too_long at /to"},
		{"a range without numbers", send, to("+1 212 155 0123"), 422, "phone_number_invalid at /to"},
		{"an extension", send, to("03-1234-5678 ext. 12"), 422, "phone_number_has_extension at /to"},
		{"a number that a spreadsheet calculated", send, to("0312345678.5"), 422, "phone_number_decimal at /to"},
		{"a placeholder in a body", send, `{"channel": "SMS", "to": "090-1234-5678", "body": "{{氏名}}様"}`, 422, "body_has_placeholder at /body"},
		{"two numbers", send, to("03-1234-5678/9"), 422, "phone_number_several at /to"},
		{"no such country", send, to("+999 12345678"), 422, "phone_number_country_unknown at /to"},
		{"another country", send, to("+44 20 7946 0958"), 422, "country_not_allowed at /to"},
		{"an SMS to a landline", send, to("(03) 1234-5678"), 422, "landline_cannot_receive_sms at /to"},
		{"an SMS to a free number", send, to("0120-123-456"), 422, "number_cannot_receive_sms at /to"},
		{"a call to a premium-rate number", send, `{"channel": "CALL", "to": "0990-123-456", "body": "x"}`, 422, "number_kind_not_allowed at /to"},
		{"a call to a company-wide number", send, `{"channel": "CALL", "to": "0570-012-345", "body": "x"}`, 422, "number_kind_not_allowed at /to"},
		{"a call to a pager", send, `{"channel": "CALL", "to": "020-1234-5678", "body": "x"}`, 422, "number_kind_not_allowed at /to"},

		{"neither body nor template", send, `{"channel": "SMS", "to": "090-1234-5678"}`, 422, "body_or_template at /body"},
		{"both body and template", send, with(`"body": "x", "template_id": ` + anything + `, "params": {"text": "x"}`), 422, "body_or_template at /body"},
		{"an empty body", send, with(`"body": ""`), 422, "body_empty at /body"},
		{"a blank body", send, with(`"body": " \n　"`), 422, "body_empty at /body"},
		{"1,601 characters", send, with(`"body": "` + strings.Repeat("あ", 1601) + `"`), 422, "body_too_long at /body"},
		{"control characters", send, with(`"body": "a\u001bb"`), 422, "body_has_control_characters at /body"},
		{"too much to speak", send, `{"channel": "CALL", "to": "03-1234-5678", "body": "` + strings.Repeat("&", 900) + `"}`, 422, "twiml_too_long at /body"},
		{"a long reference", send, with(`"body": "x", "reference": "` + strings.Repeat("r", 256) + `"`), 422, "reference_too_long at /reference"},
		{"a reference of two lines", send, with(`"body": "x", "reference": "a\nb"`), 422, "reference_has_control_characters at /reference"},

		{"no such template", send, with(`"template_id": 999999`), 422, "template_not_found at /template_id"},
		{"a template for calls", send, with(`"template_id": ` + call), 422, "template_channel_mismatch at /template_id"},
		{"parameters alone", send, with(`"body": "x", "params": {"a": "b"}`), 422, "params_without_template at /params"},
		{"a parameter too few", send, with(`"template_id": ` + sms + `, "params": {"name": "山田"}`), 422, "param_missing at /params/time"},
		{"a parameter too many", send, with(`"template_id": ` + sms + `, "params": {"name": "山田", "time": "10時", "x": "y"}`), 422, "param_unknown at /params/x"},
		{"a parameter that is no text", send, with(`"template_id": ` + sms + `, "params": {"name": "山田", "time": 10}`), 422, "wrong_type at /params/time"},
		{"an empty parameter", send, with(`"template_id": ` + sms + `, "params": {"name": "", "time": "10時"}`), 422, "param_missing at /params/name"},
		{"parameters that nobody sees", send, with(`"template_id": ` + sms + `, "params": {"name": " \t\u00a0\u3000", "time": "\u200b\ufeff"}`), 422, "param_missing at /params/name, param_missing at /params/time"},
		{"a blank parameter beside a missing and an unknown one", send, with(`"template_id": ` + sms + `, "params": {"time": "", "x": ""}`), 422, "param_missing at /params/name, param_missing at /params/time, param_unknown at /params/x"},
		{"a blank parameter of a kind", send, with(`"template_id": ` + timed + `, "params": {"date": "2026-04-01", "time": "　"}`), 422, "param_missing at /params/time"},
		{"too much rendered", send, with(`"template_id": ` + anything + `, "params": {"text": "` + strings.Repeat("x", 1601) + `"}`), 422, "body_too_long at /params"},

		{"a template without a name", templates, `{"name": " ", "channel": "SMS", "body": "x"}`, 422, "name_empty at /name"},
		{"a template with a long name", templates, `{"name": "` + strings.Repeat("n", 101) + `", "channel": "SMS", "body": "x"}`, 422, "name_too_long at /name"},
		{"a template's name of two lines", templates, `{"name": "a\nb", "channel": "SMS", "body": "x"}`, 422, "name_has_control_characters at /name"},
		{"a template's name again", templates, `{"name": "reminder", "channel": "SMS", "body": "x"}`, 409, "name_taken"},
		{"full-width braces", templates, `{"name": "t", "channel": "SMS", "body": "｛｛name｝｝"}`, 422, "placeholder_full_width_braces at /body"},
		{"an open placeholder", templates, `{"name": "t", "channel": "SMS", "body": "{{name"}`, 422, "placeholder_unclosed at /body"},
		{"a closed placeholder", templates, `{"name": "t", "channel": "SMS", "body": "name}}"}`, 422, "placeholder_unopened at /body"},
		{"an empty placeholder", templates, `{"name": "t", "channel": "SMS", "body": "{{ }}"}`, 422, "placeholder_empty at /body"},
		{"a placeholder with a dot", templates, `{"name": "t", "channel": "SMS", "body": "{{a.b}}"}`, 422, "placeholder_bad_name at /body"},
		{"a kind for no placeholder", templates, `{"name": "t", "channel": "SMS", "body": "x", "kinds": {"time": "time"}}`, 422, "param_unknown at /kinds/time"},
		{"a kind that is none", templates, `{"name": "t", "channel": "SMS", "body": "{{time}}", "kinds": {"time": "clock"}}`, 422, "param_kind_unknown at /kinds/time"},
		{"a time that is none", templates + "/" + timed + "/render", `{"params": {"time": "25:00", "date": "2026-02-31"}}`, 422, "param_kind at /params/date, param_kind at /params/time"},
		{"a preview of no version", templates + "/" + sms + "/render", `{"version": 9}`, 422, "template_version_not_found at /version"},
		{"a preview of nothing", templates + "/999999/render", `{}`, 404, "template_not_found"},
		{"a preview with a blank parameter", templates + "/" + sms + "/render", `{"params": {"name": "　", "time": "10時"}}`, 422, "param_missing at /params/name"},
		{"an example with a blank parameter", templates + "/" + sms + "/render", `{"params": {"name": ""}, "example": true}`, 422, "param_missing at /params/name"},
		{"a preview without parameters", templates + "/" + sms + "/render", `{}`, 422, "param_missing at /params/name, param_missing at /params/time"},

		{"a query that nobody knows", send + "?dry_run=1", with(`"body": "x"`), 422, "parameter_invalid"},
		{"no such sender", "/api/v1/senders/999999/resume", ``, 404, "sender_not_found"},
		{"a sender's id that is none", "/api/v1/senders/" + typed + "/resume", ``, 404, "not_found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := a.Do("POST", test.path, test.body, "Content-Type: application/json")
			checkProblem(t, answer, test.status, test.want, seen)
		})
	}
	for name, test := range map[string]struct {
		answer apitest.Answer
		status int
		want   string
	}{
		"a form":                      {a.Do("POST", send, "to="+typed, "Content-Type: application/x-www-form-urlencoded"), 415, "unsupported_media_type"},
		"JSON in Shift JIS":           {a.Do("POST", send, "{}", "Content-Type: application/json; charset=shift_jis"), 415, "unsupported_media_type"},
		"compressed JSON":             {a.Do("POST", send, "{}", "Content-Encoding: gzip"), 415, "unsupported_media_type"},
		"an empty key":                {a.Do("POST", send, to("090-1234-5678"), "Idempotency-Key:  "), 400, "idempotency_key_malformed"},
		"a long key":                  {a.Do("POST", send, to("090-1234-5678"), "Idempotency-Key: "+strings.Repeat("k", 256)), 400, "idempotency_key_malformed"},
		"a key that is not ASCII":     {a.Do("POST", send, to("090-1234-5678"), "Idempotency-Key: 鍵"), 400, "idempotency_key_malformed"},
		"a status that is none":       {a.Do("GET", send+"?status=FAILED,LOST", ""), 422, "parameter_invalid"},
		"a channel that is none":      {a.Do("GET", send+"?channel=FAX", ""), 422, "parameter_invalid"},
		"a time that is none":         {a.Do("GET", send+"?created_from=yesterday", ""), 422, "parameter_invalid"},
		"a number that is none":       {a.Do("GET", send+"?phone="+typed, ""), 422, "parameter_invalid"},
		"a place that is none":        {a.Do("GET", send+"?cursor="+typed, ""), 422, "parameter_invalid"},
		"a place in no time":          {a.Do("GET", send+"?cursor="+base64.RawURLEncoding.EncodeToString([]byte("-220000000000000000 "+uuid.NewString())), ""), 422, "parameter_invalid"},
		"a reference with NUL":        {a.Do("GET", send+"?reference=%00", ""), 422, "parameter_invalid"},
		"a reference in no encoding":  {a.Do("GET", send+"?reference=%ff%fe", ""), 422, "parameter_invalid"},
		"a page too long":             {a.Do("GET", send+"?limit=201", ""), 422, "parameter_invalid"},
		"a new time for nothing":      {a.Do("PATCH", send+"/0190b0a0-0000-7000-8000-000000000000", `{"send_at": "`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`), 404, "notification_not_found"},
		"no new time":                 {a.Do("PATCH", send+"/0190b0a0-0000-7000-8000-000000000000", `{}`), 422, "required at /send_at"},
		"an end of nothing":           {a.Do("POST", send+"/0190b0a0-0000-7000-8000-000000000000/cancel", ""), 404, "notification_not_found"},
		"an id that is none":          {a.Do("GET", send+"/"+typed, ""), 404, "not_found"},
		"an id that nothing has":      {a.Do("GET", send+"/0190b0a0-0000-7000-8000-000000000000", ""), 404, "notification_not_found"},
		"the timeline of nothing":     {a.Do("GET", send+"/0190b0a0-0000-7000-8000-000000000000/events", ""), 404, "notification_not_found"},
		"no such template":            {a.Do("GET", templates+"/999999", ""), 404, "template_not_found"},
		"no versions":                 {a.Do("GET", templates+"/999999/versions", ""), 404, "template_not_found"},
		"a difference of nothing":     {a.Do("GET", templates+"/999999/diff", ""), 404, "template_not_found"},
		"a difference to no version":  {a.Do("GET", templates+"/"+sms+"/diff?to=9", ""), 422, "template_version_not_found"},
		"an end of nothing at all":    {a.Do("DELETE", templates+"/999999", ""), 404, "template_not_found"},
		"a change of nothing":         {a.Do("PATCH", templates+"/999999", `{"name": "x"}`, "If-Match: *"), 404, "template_not_found"},
		"a change to a name taken":    {a.Do("PATCH", templates+"/"+sms, `{"name": "spoken"}`, "If-Match: *"), 409, "name_taken"},
		"a change of the channel":     {a.Do("PATCH", templates+"/"+sms, `{"channel": "CALL"}`, "If-Match: *"), 422, "unknown_field at /channel"},
		"a change to an empty body":   {a.Do("PATCH", templates+"/"+sms, `{"body": ""}`, "If-Match: *"), 422, "body_empty at /body"},
		"a page of nothing":           {a.Do("GET", templates+"?limit=0", ""), 422, "parameter_invalid"},
		"a page of words":             {a.Do("GET", templates+"?limit=many", ""), 422, "parameter_invalid"},
		"a cursor that is none":       {a.Do("GET", templates+"?cursor="+typed, ""), 422, "parameter_invalid"},
		"a parameter that is unknown": {a.Do("GET", templates+"?"+typed+"=1", ""), 422, "parameter_invalid"},
	} {
		t.Run(name, func(t *testing.T) { checkProblem(t, test.answer, test.status, test.want, seen) })
	}

	seen[problem.ValidationFailed] = true // by "all at once"
	for _, e := range problem.Codes {
		if _, elsewhere := shownElsewhere[e.Code]; !seen[e.Code] && !elsewhere && !slices.Contains(batchCodes, e.Code) && !slices.Contains(listCodes, e.Code) && !slices.Contains(scheduleCodes, e.Code) {
			t.Errorf("no test shows the code %s", e.Code)
		}
	}
	if got := a.Log(); strings.Contains(got, "567890") || strings.Contains(got, "5678 ") {
		t.Error("the log repeats a number")
	}
	if started := a.Workflows.Started(); len(started) > 0 {
		t.Errorf("%d workflows were started for requests that are wrong", len(started))
	}
}

// checkProblem wants the code, or, of a body, every code with its pointer in this order.
func checkProblem(t *testing.T, answer apitest.Answer, status int, want string, seen map[problem.Code]bool) {
	t.Helper()
	got := answer.Code()
	var all []string
	details, _ := answer.Body["errors"].([]any)
	for _, d := range details {
		detail := d.(map[string]any)
		seen[problem.Code(detail["code"].(string))] = true
		all = append(all, detail["code"].(string)+" at "+detail["pointer"].(string))
	}
	seen[problem.Code(got)] = true
	if len(all) > 0 {
		got = strings.Join(all, ", ")
	}
	if answer.Status != status || got != want {
		t.Errorf("answer = %d %s, want %d %s\n%.500s", answer.Status, got, status, want, answer.Text)
	}
	if got := answer.Header.Get("Content-Type"); got != problem.ContentType {
		t.Errorf("Content-Type = %q, want %q", got, problem.ContentType)
	}
	if detail, _ := answer.Body["detail"].(string); detail == "" || answer.Body["title"] == "" || answer.Body["status"] != float64(status) {
		t.Errorf("the problem lacks something: %.500s", answer.Text)
	}
	if strings.Contains(answer.Text, "567890") || strings.Contains(answer.Text, "1234-5678") {
		t.Errorf("the answer repeats a number: %s", answer.Text)
	}
}
