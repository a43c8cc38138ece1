package v1

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Preview is what a recipient would get of a template.
type Preview struct {
	TemplateID int64          `json:"template_id"`
	Version    int32          `json:"version"`
	Channel    notify.Channel `json:"channel" enum:"SMS,CALL"`
	Text       string         `json:"text" doc:"The words that are read, or spoken."`
	Characters int            `json:"characters"`

	Encoding notify.Encoding `json:"encoding,omitzero" enum:"GSM-7,UCS-2" doc:"SMS: one character outside GSM-7 makes the whole text UCS-2."`
	Segments int             `json:"segments,omitzero" doc:"SMS: what Twilio charges for."`
	Units    int             `json:"units,omitzero" doc:"SMS: septets (GSM-7) or UTF-16 code units (UCS-2)."`

	Language        string `json:"language,omitzero" example:"ja-JP" doc:"CALL: the language that the text is spoken in."`
	Voice           string `json:"voice,omitzero" example:"Polly.Mizuki" doc:"CALL."`
	TwiMLCharacters int    `json:"twiml_characters,omitzero" doc:"CALL: of at most 4,000."`
}

type renderRequest struct {
	Params  map[string]string `json:"params,omitempty" doc:"A value for each placeholder, and no others. A blank one counts as missing."`
	Version *int32            `json:"version,omitempty" doc:"One of its versions; by default the present one."`
	Example *bool             `json:"example,omitempty" doc:"true: placeholders that params leaves out are filled by example."`
}

func (a *API) renderTemplate(ctx context.Context, in *struct {
	ID   int64 `path:"id"`
	Body body[renderRequest]
}) (*struct{ Body Preview }, error) {
	t, err := a.Store.Template(ctx, in.ID)
	if err != nil {
		return nil, a.templateProblem(ctx, err)
	}
	req, wrong := in.Body.Value, in.Body.Wrong
	if req.Version != nil {
		t, err = a.Store.TemplateAt(ctx, in.ID, *req.Version)
		switch {
		case errors.Is(err, store.ErrNotFound):
			wrong.Add("/version", problem.VersionNotFound, "the template has no such version: see its versions")
			return nil, wrong.Problem()
		case err != nil:
			return nil, a.fail(ctx, err)
		}
	}
	var text string
	if !wrong.At("/params") {
		params := req.Params
		if req.Example != nil && *req.Example {
			params = exampleOf(t, params)
		}
		if text, err = a.fill(ctx, &wrong, t, params); err != nil {
			return nil, err
		}
	}
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	preview := Preview{TemplateID: t.ID, Version: t.Version, Channel: t.Channel, Text: text, Characters: utf8.RuneCountInString(text)}
	switch t.Channel {
	case notify.SMS:
		info := notify.Segments(text)
		preview.Encoding, preview.Segments, preview.Units = info.Encoding, info.Segments, info.Units
	case notify.Call:
		preview.Language, preview.Voice = notify.SpeechLanguage(text)
		twiml, err := carrier.TwiML(text)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		preview.TwiMLCharacters = utf8.RuneCountInString(twiml)
	}
	return &struct{ Body Preview }{preview}, nil
}

// exampleOf has a value for each placeholder that is not given one. A blank one is given, and wrong.
func exampleOf(t store.Template, given map[string]string) map[string]string {
	params := make(map[string]string, len(t.Params))
	for _, name := range t.Params {
		params[name] = t.Kinds[name].Example(name)
	}
	for typed, value := range given {
		name, _ := notify.ParamName(typed)
		params[name] = value
	}
	return params
}
