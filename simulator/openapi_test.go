package simulator_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// specs are Twilio's own descriptions of its APIs, https://github.com/twilio/twilio-oai, by the beginning of the paths
// that each is about. They are data of another project, so they are not kept here: TODOKU_TWILIO_OAI names a folder
// that has them.
var specs = map[string]func() (*openapi3.T, error){
	"/2010-04-01/": sync.OnceValues(func() (*openapi3.T, error) { return loadSpec("twilio_api_v2010.json") }),
	"/v1/":         sync.OnceValues(func() (*openapi3.T, error) { return loadSpec("twilio_taskrouter_v1.json") }),
	"/v2/":         sync.OnceValues(func() (*openapi3.T, error) { return loadSpec("twilio_studio_v2.json") }),
}

// loadSpec returns nil, and the reason, where the file is absent.
func loadSpec(file string) (*openapi3.T, error) {
	folders := []string{os.Getenv("TODOKU_TWILIO_OAI"), "../../shared/twilio-oai"}
	for _, folder := range folders {
		path := filepath.Join(folder, file)
		if _, err := os.Stat(path); folder == "" || err != nil {
			continue
		}
		spec, err := openapi3.NewLoader().LoadFromFile(path)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
		// Twilio's examples do not keep to its own schemas.
		return spec, spec.Validate(openapi3.NewLoader().Context, openapi3.DisableExamplesValidation())
	}
	return nil, fmt.Errorf("no %s: set TODOKU_TWILIO_OAI to the folder of github.com/twilio/twilio-oai's spec/json"+
		" that has it, and every exchange with the simulator is held against it", file)
}

// specOf is the description of the API that a path belongs to.
func specOf(path string) (*openapi3.T, error) {
	for prefix, load := range specs {
		if strings.HasPrefix(path, prefix) {
			return load()
		}
	}
	return nil, nil
}

func requireSpec(t *testing.T, path string) *openapi3.T {
	t.Helper()
	spec, err := specOf(path)
	if spec == nil {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// specChecker is a transport that holds every exchange on Twilio's paths against the document: what was answered
// with success must be a request that it allows and an answer that it describes, and what it does not allow must
// not have been answered with success. Errors are not in the document.
type specChecker struct {
	t    *testing.T
	next http.RoundTripper
}

func newSpecChecker(t *testing.T, next http.RoundTripper) specChecker {
	return specChecker{t: t, next: next}
}

func (c specChecker) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := c.next.RoundTrip(r)
	spec, _ := specOf(r.URL.Path) // absent: TestSpec… says so
	if err != nil || spec == nil {
		return response, err
	}
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(received))
	if response.StatusCode < 300 {
		if err := checkExchange(spec, r, sent, response, received); err != nil {
			c.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
	}
	return response, nil
}

func checkExchange(spec *openapi3.T, r *http.Request, sent []byte, response *http.Response, received []byte) error {
	input, err := requestInput(spec, r, sent)
	if err != nil {
		return err
	}
	if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
		return fmt.Errorf("was accepted although the document does not allow the request: %w", err)
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 response.StatusCode,
		Header:                 response.Header,
		Options:                input.Options,
	}
	output.SetBodyBytes(received)
	if err := openapi3filter.ValidateResponse(r.Context(), output); err != nil {
		return fmt.Errorf("the answer is not what the document describes: %w", err)
	}
	return nil
}

// requestInput finds the operation that the request is for.
func requestInput(spec *openapi3.T, r *http.Request, sent []byte) (*openapi3filter.RequestValidationInput, error) {
	paths := spec.Paths.Map()
	for path, item := range paths {
		params, ok := matchPath(path, r.URL.Path)
		if _, literal := paths[r.URL.Path]; literal && path != r.URL.Path {
			continue
		}
		operation := item.GetOperation(r.Method)
		if !ok || operation == nil {
			continue
		}
		request := r.Clone(r.Context())
		request.Body = io.NopCloser(bytes.NewReader(sent))
		return &openapi3filter.RequestValidationInput{
			Request:    request,
			PathParams: params,
			Route: &routers.Route{
				Spec: spec, Path: path, PathItem: item, Method: r.Method, Operation: operation,
			},
			Options: &openapi3filter.Options{
				AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
				IncludeResponseStatus: true,
				// A flow's definition has no type, and a form's field of no type is always null to kin-openapi.
				ExcludeRequestBody: strings.HasPrefix(path, "/v2/"),
			},
		}, nil
	}
	return nil, fmt.Errorf("the document has no such path")
}

// matchPath matches a path such as /Accounts/{AccountSid}/Messages/{Sid}.json.
func matchPath(template, path string) (map[string]string, bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params := make(map[string]string)
	for i, part := range want {
		name, suffix, isParam := strings.Cut(strings.TrimPrefix(part, "{"), "}")
		switch {
		case !isParam && part != got[i]:
			return nil, false
		case isParam:
			value, ok := strings.CutSuffix(got[i], suffix)
			if !ok {
				return nil, false
			}
			params[name] = value
		}
	}
	return params, true
}

// TestSpecRefusalsAreRefused sends what the document does not allow, and what it allows, one field at a time.
func TestSpecRefusalsAreRefused(t *testing.T) {
	spec := requireSpec(t, "/2010-04-01/")
	rig := start(t)
	account := "/2010-04-01/Accounts/" + testAccount
	message := "To=%2B15550100001&From=%2B15005550006&Body=hello"
	phoneCall := "To=%2B15550100001&From=%2B15005550006&Twiml=%3CResponse%2F%3E"
	for _, test := range []struct{ method, path, form string }{
		{"POST", "/Messages.json", "From=%2B15005550006&Body=hello"},
		{"POST", "/Messages.json", message + "&ValidityPeriod=abc"},
		{"POST", "/Messages.json", message + "&ValidityPeriod=1.5"},
		{"POST", "/Messages.json", message + "&Attempt=first"},
		{"POST", "/Messages.json", message + "&MaxPrice=cheap"},
		{"POST", "/Messages.json", message + "&ProvideFeedback=perhaps"},
		{"POST", "/Messages.json", message + "&ForceDelivery=perhaps"},
		{"POST", "/Messages.json", message + "&SmartEncoded=perhaps"},
		{"POST", "/Messages.json", message + "&ShortenUrls=perhaps"},
		{"POST", "/Messages.json", message + "&SendAsMms=perhaps"},
		{"POST", "/Messages.json", message + "&ContentRetention=forever"},
		{"POST", "/Messages.json", message + "&AddressRetention=forever"},
		{"POST", "/Messages.json", message + "&TrafficType=paid"},
		{"POST", "/Messages.json", message + "&RiskCheck=perhaps"},
		{"POST", "/Messages.json", message + "&ScheduleType=daily"},
		{"POST", "/Messages.json", message + "&SendAt=tomorrow"},
		{"POST", "/Messages.json", message + "&MessagingServiceSid=MG1"},
		{"POST", "/Messages.json", message + "&ContentSid=HX1"},
		{"POST", "/Messages.json", message + "&ApplicationSid=AP1"},
		{"GET", "/Messages.json?PageSize=0", ""},
		{"GET", "/Messages.json?PageSize=1001", ""},
		{"GET", "/Messages.json?PageSize=ten", ""},
		{"GET", "/Messages.json?Page=-1", ""},
		{"GET", "/Messages.json?DateSent%3E=yesterday", ""},
		{"GET", "/Messages/SM1.json", ""},
		{"POST", "/Calls.json", "From=%2B15005550006&Twiml=%3CResponse%2F%3E"},
		{"POST", "/Calls.json", "To=%2B15550100001&Twiml=%3CResponse%2F%3E"},
		{"POST", "/Calls.json", phoneCall + "&Timeout=long"},
		{"POST", "/Calls.json", phoneCall + "&TimeLimit=long"},
		{"POST", "/Calls.json", phoneCall + "&Record=perhaps"},
		{"POST", "/Calls.json", phoneCall + "&MachineDetectionTimeout=long"},
		{"POST", "/Calls.json", phoneCall + "&MachineDetectionSpeechThreshold=long"},
		{"POST", "/Calls.json", phoneCall + "&MachineDetectionSpeechEndThreshold=long"},
		{"POST", "/Calls.json", phoneCall + "&MachineDetectionSilenceTimeout=long"},
		{"POST", "/Calls.json", phoneCall + "&StatusCallbackMethod=PUT"},
		{"POST", "/Calls.json", phoneCall + "&Method=PUT"},
		{"POST", "/Calls.json", phoneCall + "&FallbackMethod=PUT"},
		{"POST", "/Calls.json", phoneCall + "&RecordingStatusCallbackMethod=PUT"},
		{"POST", "/Calls.json", phoneCall + "&AsyncAmdStatusCallbackMethod=PUT"},
		{"POST", "/Calls.json", phoneCall + "&Byoc=BY1"},
		{"POST", "/Calls.json", phoneCall + "&ApplicationSid=AP1"},
		{"GET", "/Calls.json?Status=talking", ""},
		{"GET", "/Calls.json?ParentCallSid=CA1", ""},
		{"GET", "/Calls.json?StartTime=yesterday", ""},
		{"GET", "/Calls.json?EndTime%3C=yesterday", ""},
	} {
		t.Run(test.method+test.path+" "+test.form, func(t *testing.T) {
			request := rig.request(test.method, account+test.path, test.form)
			input, err := requestInput(spec, request, []byte(test.form))
			if err != nil {
				t.Fatal(err)
			}
			if err := openapi3filter.ValidateRequest(t.Context(), input); err == nil {
				t.Error("the document allows this request: it does not belong into this table")
			}
			if status, body := rig.do(request); status < 400 || status >= 500 {
				t.Errorf("answered %d %v, want a refusal", status, body)
			}
		})
	}
}

// TestSpecFieldsAreAllThere holds the fields of our resources, none of which the documents require, against them.
func TestSpecFieldsAreAllThere(t *testing.T) {
	rig := start(t)
	centre := rig.callCentre("http://127.0.0.1:1")
	task := rig.mustPost(centre.path("/Tasks"), url.Values{"WorkflowSid": {centre.workflow}})
	reservations := rig.mustGet(centre.path("/Tasks/" + task["sid"].(string) + "/Reservations"))
	for _, test := range []struct {
		path, name string
		resource   map[string]any
	}{
		{"/2010-04-01/", "api.v2010.account.message", rig.sendMessage(nil)},
		{"/2010-04-01/", "api.v2010.account.call", rig.makeCall(nil)},
		{"/2010-04-01/", "api.v2010.account.incoming_phone_number", rig.phoneNumber(goodSender)},
		{"/v1/", "taskrouter.v1.workspace", rig.mustGet(centre.path(""))},
		{"/v1/", "taskrouter.v1.workspace.activity", rig.mustGet(centre.path("/Activities/" + centre.available))},
		{"/v1/", "taskrouter.v1.workspace.task_queue", rig.mustGet(centre.path("/TaskQueues/" + centre.queue))},
		{"/v1/", "taskrouter.v1.workspace.worker", rig.mustGet(centre.path("/Workers/" + centre.worker))},
		{"/v1/", "taskrouter.v1.workspace.workflow", rig.mustGet(centre.path("/Workflows/" + centre.workflow))},
		{"/v1/", "taskrouter.v1.workspace.task", task},
		{"/v1/", "taskrouter.v1.workspace.task.task_reservation",
			reservations["reservations"].([]any)[0].(map[string]any)},
		{"/v2/", "studio.v2.flow", rig.mustPost("/v2/Flows", url.Values{"FriendlyName": {"Reception"},
			"Status": {"draft"}, "Definition": {receptionFlow("WW1")}})},
	} {
		t.Run(test.name, func(t *testing.T) {
			schema := requireSpec(t, test.path).Components.Schemas[test.name].Value.Properties
			for field := range schema {
				if _, ok := test.resource[field]; !ok {
					t.Errorf("there is no %s", field)
				}
			}
			for field := range test.resource {
				if _, ok := schema[field]; !ok {
					t.Errorf("there is %s, which Twilio does not know", field)
				}
			}
		})
	}
}
