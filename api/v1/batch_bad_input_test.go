package v1_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/api/problem"
)

func TestBadBatches(t *testing.T) {
	a := apitest.Start(t)
	sms := template(t, a, "{{name}}, {{time}}")
	spoken := strings.TrimPrefix(a.Do("POST", "/api/v1/templates", `{"name": "spoken", "channel": "CALL", "body": "Hello"}`).Header.Get("Location"), "/api/v1/templates/")
	wide := "to"
	for i := range 199 {
		wide += fmt.Sprintf(",c%d", i)
	}
	const plain, one = "?channel=SMS&body=x", `"recipients": [{"to": "09012345678"}]`
	seen := map[problem.Code]bool{}
	for _, test := range []struct {
		name, query, file string
		status            int
		want              string
	}{
		{"no file", plain, "", 400, "request_empty"},
		{"a file of spaces", plain, "\n\n", 400, "csv_empty"},
		{"a header only", plain, "to\n", 422, "batch_has_no_recipients"},
		{"bad rows only", plain, "to\nx\n1\n\n8.19E+11\n", 422, "phone_number_unparsable at /recipients/0, phone_number_too_short at /recipients/1, phone_number_rounded at /recipients/3"},
		{"no column of numbers", plain, "phone\n09012345678\n", 422, "csv_without_to"},
		{"a column twice", plain, "to,a,a\n1,2,3\n", 422, "csv_duplicate_column"},
		{"a value in a column without a name", plain, "to,,a\n1,2,3\n", 422, "row_unnamed_column at /recipients/0"},
		{"a byte that is no character", plain, "\uFEFFto,a\n09012345678,\xff\n", 422, "row_encoding at /recipients/0"},
		{"a cell of several rows", plain, "to,a\n09012345678,\"x\n09012345679\"\n", 422, "row_number_behind_line_break at /recipients/0"},
		{"200 columns", plain, wide + "\n", 422, "csv_too_many_columns"},
		{"an open quote", plain, "to,a\n09012345678,\"x\n", 400, "csv_unclosed_quote"},
		{"an endless row", plain, "to,a\n09012345678,\"" + strings.Repeat("x", 2<<20), 400, "csv_row_too_long"},
		{"no encoding", plain, "to,a\n09012345678,\xff\xff\x81\n", 400, "csv_unknown_encoding"},
		{"a missing parameter", "?channel=SMS&template_id=" + sms, "to,name\n09012345678,x\n", 422, "template_column_missing"},
		{"a misplaced quote only", plain, "to,a\n09012345678,x\"y\n", 422, "row_misplaced_quote at /recipients/0"},
		{"a row too long only", plain, "to,a\n09012345678,b,c\n", 422, "row_column_count at /recipients/0"},
		{"blank parameters only", "?channel=SMS&template_id=" + sms, "to,name,time\n09012345678,,10:00\n", 422, "param_missing at /recipients/0"},
		{"no channel", "?body=x", "to\n09012345678\n", 422, "required at /channel"},
		{"another channel's template", "?channel=SMS&template_id=" + spoken, "to\n09012345678\n", 422, "template_channel_mismatch at /template_id"},
		{"a template that is none", "?channel=SMS&template_id=x", "to\n09012345678\n", 422, "wrong_type at /template_id"},
		{"a template that nobody made", "?channel=SMS&template_id=999999", "to\n09012345678\n", 422, "template_not_found at /template_id"},
		{"neither text nor template", "?channel=SMS", "to\n09012345678\n", 422, "body_or_template at /body"},
		{"a time that has passed", plain + "&send_at=2020-01-01T00:00:00Z", "to\n09012345678\n", 422, "send_at_past at /send_at"},
		{"a list beside a file", plain + "&list_id=1", "to\n09012345678\n", 422, "recipients_or_list at /list_id"},
		{"an unknown parameter", plain + "&x=y", "to\n09012345678\n", 422, "parameter_invalid"},
		{"a name in another encoding", plain + "&name=%FF", "to\n09012345678\n", 400, "parameter_not_utf8"},
		{"a parameter that is cut off by a semicolon", plain + "&dry_run=true;", "to\n09012345678\n", 422, "parameter_invalid"},
		{"a percent sign as it is", plain + "&name=100%", "to\n09012345678\n", 422, "parameter_invalid"},
		{"a dry run of null", plain + "&dry_run=null", "to\n09012345678\n", 422, "wrong_type at /dry_run"},
		{"a time of null", plain + "&send_at=null", "to\n09012345678\n", 422, "send_at_invalid at /send_at"},
		{"a parameter twice", plain + "&body=y", "to\n09012345678\n", 422, "parameter_invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkProblem(t, a.Do("POST", batches+test.query, test.file, asCSV), test.status, test.want, seen)
		})
	}
	for name, test := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no object":                     {`[]`, 422, "wrong_type at "},
		"no JSON":                       {`{"channel": `, 400, "malformed_json"},
		"recipients cut off":            {`{"channel": "SMS", "body": "x", "recipients": [{"to": "0901`, 400, "malformed_json"},
		"something behind it":           {`{"channel": "SMS", "body": "x", ` + one + `} {}`, 400, "trailing_data"},
		"a field twice":                 {`{"channel": "SMS", "channel": "SMS", "body": "x", ` + one + `}`, 400, "duplicate_key"},
		"no recipients":                 {`{"channel": "SMS", "body": "x"}`, 422, "required at /recipients"},
		"recipients that are no list":   {`{"channel": "SMS", "body": "x", "recipients": {}}`, 422, "wrong_type at /recipients"},
		"recipients and a list":         {`{"channel": "SMS", "body": "x", "list_id": 1, ` + one + `}`, 422, "recipients_or_list at /list_id"},
		"no recipients and no list":     {`{"channel": "SMS", "body": "x", "recipients": null, "list_id": null}`, 422, "required at /recipients"},
		"neither, and a wrong channel":  {`{"channel": "FAX", "body": 5}`, 422, "wrong_type at /body, channel_unknown at /channel, required at /recipients"},
		"a list and no recipients":      {`{"channel": "SMS", "body": "x", "recipients": null, "list_id": 999}`, 422, "list_not_found at /list_id"},
		"a long text":                   {`{"channel": "SMS", "body": "` + strings.Repeat("x", 3<<20) + `", ` + one + `}`, 413, "request_too_large"},
		"a long recipient":              {`{"channel": "SMS", "body": "x", "recipients": [{"to": "1"}, {"to": "` + strings.Repeat("1", 3<<20) + `"}]}`, 413, "request_too_large"},
		"a long name of a field":        {`{"` + strings.Repeat("x", 3<<20) + `": 1, "channel": "SMS", "body": "x", ` + one + `}`, 413, "request_too_large"},
		"a list that nobody made":       {`{"channel": "SMS", "body": "x", "list_id": 999}`, 422, "list_not_found at /list_id"},
		"a list that is none":           {`{"channel": "SMS", "body": "x", "list_id": "x"}`, 422, "wrong_type at /list_id"},
		"an empty list":                 {`{"channel": "SMS", "body": "x", "recipients": []}`, 422, "batch_has_no_recipients"},
		"an unknown field":              {`{"channel": "SMS", "body": "x", "to": "1", ` + one + `}`, 422, "unknown_field at /to"},
		"a name of control characters":  {`{"channel": "SMS", "body": "x", "name": "a\u0000b", ` + one + `}`, 422, "name_has_control_characters at /name"},
		"everything at once":            {`{"channel": "FAX", "body": "", "send_at": "x", ` + one + `}`, 422, "channel_unknown at /channel, send_at_invalid at /send_at, body_empty at /body"},
		"parameters without a template": {`{"channel": "SMS", "body": "x", "recipients": [{"to": "09012345678", "params": {"a": "b"}}]}`, 422, "params_without_template at /recipients/0"},
	} {
		t.Run(name, func(t *testing.T) { checkProblem(t, a.Do("POST", batches, test.body), test.status, test.want, seen) })
	}
	nothing := batches + "/0190b0a0-0000-7000-8000-000000000000"
	for name, test := range map[string]struct {
		answer apitest.Answer
		status int
		want   string
	}{
		"another type":                   {a.Do("POST", batches, "x", "Content-Type: text/plain"), 415, "unsupported_media_type"},
		"no batch":                       {a.Do("GET", nothing, ""), 404, "batch_not_found"},
		"the progress of none":           {a.Do("GET", nothing+"/progress", ""), 404, "batch_not_found"},
		"the results of none":            {a.Do("GET", nothing+"/results.csv", ""), 404, "batch_not_found"},
		"the results of no id":           {a.Do("GET", batches+"/x/results.csv", ""), 404, "not_found"},
		"a pause of none":                {a.Do("POST", nothing+"/pause", ""), 404, "batch_not_found"},
		"a resumption of none":           {a.Do("POST", nothing+"/resume", ""), 404, "batch_not_found"},
		"an end of none":                 {a.Do("POST", nothing+"/cancel", ""), 404, "batch_not_found"},
		"a check of none":                {a.Do("POST", nothing+"/carrier-check", ""), 404, "batch_not_found"},
		"the result of none":             {a.Do("GET", nothing+"/carrier-check", ""), 404, "batch_not_found"},
		"a reason in another encoding":   {a.Do("POST", nothing+"/pause?reason=%FF", ""), 400, "parameter_not_utf8"},
		"a reason of control characters": {a.Do("POST", nothing+"/pause?reason=%00", ""), 422, "parameter_invalid"},
		"a change of none":               {a.Do("PATCH", nothing, `{"send_interval_ms": 5}`), 404, "batch_not_found"},
		"a key that is none":             {a.Do("POST", batches+plain, "to\n09012345678\n", asCSV, "Idempotency-Key: "+strings.Repeat("x", 256)), 400, "idempotency_key_malformed"},
		"no key":                         {a.Do("POST", batches+plain, "to\n09012345678\n", asCSV, "Authorization: "), 401, "key_missing"},
		"a list of no batch":             {a.Do("GET", "/api/v1/notifications?batch_id=x", ""), 422, "parameter_invalid"},
		"a list by half a parameter":     {a.Do("GET", "/api/v1/notifications?status=FAILED&batch_id=%zz", ""), 422, "parameter_invalid"},
		"a page of batches, wrong":       {a.Do("GET", batches+"?cursor=x", ""), 422, "parameter_invalid"},
	} {
		t.Run(name, func(t *testing.T) { checkProblem(t, test.answer, test.status, test.want, seen) })
	}
	if items := a.Do("GET", batches, "").Body["items"].([]any); len(items) != 0 {
		t.Errorf("%d batches were accepted that are wrong", len(items))
	}
	if got := a.Log(); strings.Contains(got, "12345678") {
		t.Error("the log repeats a number")
	}
	seen[problem.CarrierCheckNotFound] = true // by TestACarrierCheckIsAskedForAndRead
	for _, code := range batchCodes {
		if !seen[code] {
			t.Errorf("no test shows the code %s", code)
		}
	}
}

func TestATimeWhosePlusIsASpaceIsExplained(t *testing.T) {
	a := apitest.Start(t)
	refused := a.Do("POST", batches+"?channel=SMS&body=x&send_at=2099-01-01T00:00:00+09:00", "to\n09012345678\n", asCSV)
	if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.Text, "with + as %2B") {
		t.Errorf("answer = %d %s", refused.Status, refused.Text)
	}
}
