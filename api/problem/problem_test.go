package problem

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

func TestEachCodeIsExplainedOnce(t *testing.T) {
	form := regexp.MustCompile(`^[a-z][a-z0-9_]+$`)
	seen := make(map[Code]bool)
	for _, e := range Codes {
		if !form.MatchString(string(e.Code)) || seen[e.Code] {
			t.Errorf("code %q is no code, or occurs twice", e.Code)
		}
		seen[e.Code] = true
		if http.StatusText(e.Status) == "" || e.Title == "" || e.Advice == "" {
			t.Errorf("code %s is not explained: %+v", e.Code, e)
		}
	}
}

func TestHumasErrorsBecomeProblemsThatDoNotRepeatValues(t *testing.T) {
	at := func(location, message string) error {
		return &huma.ErrorDetail{Location: location, Message: message, Value: "09012345678"}
	}
	ours := New(DuplicateKey, "ours")
	for name, test := range map[string]struct {
		status int
		errs   []error
		code   Code
		want   int
		detail string
	}{
		"no body":               {400, nil, RequestEmpty, 400, "the request has no body: send a JSON object"},
		"a slow body":           {408, nil, RequestTimeout, 408, "the body did not arrive in time: send it again"},
		"a large body":          {413, nil, RequestTooLarge, 413, "the body is over 1048576 bytes (1 MB), the most that is read: send less"},
		"an id":                 {422, []error{at("path.id", "invalid integer")}, NotFound, 404, "the id in the path cannot be one: check it"},
		"a query":               {422, []error{at("query.limit", "expected number >= 1"), at("query.x", "invalid integer")}, ParameterInvalid, 422, "limit: expected number >= 1; x: invalid integer"},
		"an unknown parameter":  {422, []error{at("query.09012345678", "unknown query parameter")}, ParameterInvalid, 422, "the query has a parameter that this address does not know: remove it"},
		"a problem of our own":  {422, []error{ours}, DuplicateKey, 400, "ours"},
		"an error of a handler": {500, []error{errors.New("connect to 09012345678")}, Internal, 500, "something went wrong: try again"},
	} {
		t.Run(name, func(t *testing.T) {
			got := huma.NewError(test.status, "09012345678", test.errs...).(*Problem)
			if got.Code != test.code || got.Status != test.want || got.Detail != test.detail || len(got.Errors) > 0 {
				t.Errorf("problem = %+v", got)
			}
		})
	}
}

func TestDetailsKnowTheirFields(t *testing.T) {
	var d Details
	if d.Problem() != nil {
		t.Error("nothing wrong is a problem")
	}
	d.Add("/params/a", WrongType, "expected string")
	for pointer, want := range map[string]bool{"/params": true, "/params/a": true, "/param": false, "/params/ab": false, "/to": false} {
		if d.At(pointer) != want {
			t.Errorf("At(%q) = %v", pointer, !want)
		}
	}
	var p *Problem
	if !errors.As(d.Problem(), &p) || p.Code != WrongType || p.Status != 422 || len(p.Errors) != 1 {
		t.Errorf("one thing wrong: %+v", p)
	}
	d.Add("/to", Required, "add it")
	if !errors.As(d.Problem(), &p) || p.Code != ValidationFailed || len(p.Errors) != 2 {
		t.Errorf("two things wrong: %+v", p)
	}
	if !errors.As(error(Only("/template_id", TemplateNotFound, "none")), &p) || p.Status != 422 {
		t.Errorf("one detail: %+v", p)
	}
}

func TestWriteAnswersWithHeadersAndTypes(t *testing.T) {
	w := httptest.NewRecorder()
	Write(w, Unavailable())
	if w.Code != 503 || w.Header().Get("Content-Type") != ContentType || w.Header().Get("Retry-After") != "5" {
		t.Errorf("answer = %d %v", w.Code, w.Header())
	}
	const want = `{"type":"/docs#database_unavailable","title":"The database cannot be reached","status":503,` +
		`"detail":"the database cannot be reached: try again in a few seconds","code":"database_unavailable"}` + "\n"
	if got := w.Body.String(); got != want {
		t.Errorf("body = %s", got)
	}
}
