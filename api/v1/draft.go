package v1

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// check turns a request into a notification that can be accepted. It adds to what is wrong already
// and answers with all of it.
func (a *API) check(ctx context.Context, req sendRequest, wrong problem.Details) (store.NewNotification, error) {
	draft := store.NewNotification{Reference: req.Reference}
	draft.Channel = checkChannel(&wrong, req.Channel)
	draft.To = a.checkNumber(&wrong, draft.Channel, req.To)
	draft.SendAt = checkSendAt(&wrong, req.SendAt, a.Store.Now(ctx))
	checkReference(&wrong, req.Reference)
	if err := a.checkContent(ctx, &wrong, req, &draft); err != nil {
		return draft, err
	}
	if err := a.checkSender(ctx, &wrong, &draft); err != nil {
		return draft, err
	}
	if err := wrong.Problem(); err != nil {
		return draft, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return draft, a.fail(ctx, fmt.Errorf("make an id: %w", err))
	}
	draft.ID = id
	draft.ToHash = draft.To.Hash([]byte(a.Settings.PhoneHashKey))
	draft.RequireHuman = draft.Channel == notify.Call && a.Settings.CallRequireHuman
	return draft, nil
}

// checkChannel returns the channel, or an empty one when it is not one that can be sent on.
func checkChannel(wrong *problem.Details, name string) notify.Channel {
	if wrong.At("/channel") {
		return ""
	}
	channel, err := notify.ParseChannel(name)
	switch {
	case err != nil:
		wrong.Add("/channel", problem.ChannelUnknown, "there is no such channel: use SMS or CALL")
	case !channel.Enabled():
		wrong.Add("/channel", problem.ChannelNotEnabled, "the channel "+string(channel)+" cannot be sent on yet: use SMS or CALL")
	default:
		return channel
	}
	return ""
}

func (a *API) checkNumber(wrong *problem.Details, channel notify.Channel, typed string) notify.PhoneNumber {
	if wrong.At("/to") {
		return notify.PhoneNumber{}
	}
	number, err := notify.ParsePhoneNumber(typed, a.Settings.DefaultRegion)
	if err == nil {
		err = number.Accepts(channel, a.Settings.AllowedCountries, a.Settings.AllowedNumberKinds...)
	}
	var invalid *notify.InvalidNumberError
	if errors.As(err, &invalid) {
		wrong.Add("/to", problem.Code(invalid.Code), invalid.Error())
	}
	return number
}

// checkContent takes the body, or the template's current version with its parameters.
func (a *API) checkContent(ctx context.Context, wrong *problem.Details, req sendRequest, draft *store.NewNotification) error {
	checkBody(wrong, req.Body, req.TemplateID, draft)
	if req.TemplateID != nil {
		return a.checkTemplate(ctx, wrong, req, draft)
	}
	if req.Params != nil && !wrong.At("/template_id") {
		wrong.Add("/params", problem.ParamsWithoutTemplate, "parameters need a template: give template_id, or leave params out")
	}
	return nil
}

// checkBody takes the text, where that is what is sent and not a template.
func checkBody(wrong *problem.Details, body *string, templateID *int64, draft *store.NewNotification) {
	hasBody, hasTemplate := body != nil || wrong.At("/body"), templateID != nil || wrong.At("/template_id")
	switch {
	case hasBody && hasTemplate:
		wrong.Add("/body", problem.BodyOrTemplate, "both body and template_id are given: keep one of them")
	case !hasBody && !hasTemplate:
		wrong.Add("/body", problem.BodyOrTemplate, "there is nothing to send: give body or template_id")
	case body != nil:
		draft.Message = body
		checkText(wrong, "/body", draft.Channel, *body)
		if notify.HasPlaceholder(*body) {
			wrong.Add("/body", notify.CodePlaceholderInBody, "the body has a placeholder, which is filled in in templates only: make a template of it and give template_id, or write single braces")
		}
	}
}

// findTemplate reads the template that something new is to be sent with, nil where there is none, and
// says what is wrong with it. The channel is empty where that is wrong itself.
func (a *API) findTemplate(ctx context.Context, wrong *problem.Details, id int64, channel notify.Channel) (*store.Template, error) {
	template, err := a.Store.Template(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong.Add("/template_id", problem.TemplateNotFound, "there is no template with this id: see GET /api/v1/templates")
		return nil, nil
	case err != nil:
		return nil, a.fail(ctx, err)
	}
	checkNotArchived(wrong, template)
	if channel != "" && template.Channel != channel {
		wrong.Add("/template_id", problem.TemplateChannelMismatch, fmt.Sprintf("the template is for the channel %s: use one for %s", template.Channel, channel))
	}
	return &template, nil
}

func (a *API) checkTemplate(ctx context.Context, wrong *problem.Details, req sendRequest, draft *store.NewNotification) error {
	template, err := a.findTemplate(ctx, wrong, *req.TemplateID, draft.Channel)
	if template == nil {
		return err
	}
	draft.TemplateID, draft.TemplateVersion, draft.Params = &template.ID, &template.Version, req.Params
	if draft.Params == nil {
		draft.Params = map[string]string{}
	}
	if !wrong.At("/params") {
		_, err = a.fill(ctx, wrong, *template, draft.Params)
	}
	return err
}

// fill puts parameters into a template and checks what comes out.
func (a *API) fill(ctx context.Context, wrong *problem.Details, template store.Template, params map[string]string) (string, error) {
	parsed, err := notify.ParseTemplate(template.Body)
	if err != nil {
		return "", a.fail(ctx, fmt.Errorf("read template %d: %w", template.ID, err))
	}
	text, err := parsed.Fill(params)
	var misfit *notify.ParamsError
	if errors.As(err, &misfit) {
		for _, name := range misfit.Missing {
			wrong.Add(pointerTo("/params", name), problem.ParamMissing, "the template needs this parameter: add it")
		}
		for _, name := range misfit.Blank {
			wrong.Add(pointerTo("/params", name), problem.ParamMissing, "the value is blank, and the template needs one: write it")
		}
		for _, name := range misfit.Unknown {
			wrong.Add(pointerTo("/params", name), problem.ParamUnknown, "the template has no such parameter: remove it")
		}
		return "", nil
	}
	for _, misfit := range notify.CheckKinds(template.Kinds, params) {
		wrong.Add(pointerTo("/params", misfit.Name), notify.CodeParamKind, misfit.Error())
	}
	checkText(wrong, "/params", template.Channel, text)
	return text, nil
}

// checkNotArchived refuses a template for anything new.
const archivedTemplate = "the template is archived: use another one, or bring it back"

func checkNotArchived(wrong *problem.Details, template store.Template) {
	if template.ArchivedAt != nil {
		wrong.Add("/template_id", problem.TemplateArchived, archivedTemplate)
	}
}

// checkText refuses what cannot be sent or spoken.
func checkText(wrong *problem.Details, pointer string, channel notify.Channel, text string) {
	err := notify.CheckBody(channel, text)
	if err == nil && channel == notify.Call {
		_, err = carrier.TwiML(text)
	}
	var body *notify.BodyError
	switch {
	case errors.As(err, &body):
		wrong.Add(pointer, problem.Code(body.Code), body.Error())
	case err != nil:
		wrong.Add(pointer, problem.TwiMLTooLong, err.Error())
	}
}

// checkSender finds what the notification is sent from.
func (a *API) checkSender(ctx context.Context, wrong *problem.Details, draft *store.NewNotification) error {
	if draft.Channel == "" {
		return nil
	}
	address := a.Settings.Sender(draft.Channel)
	if address == "" {
		wrong.Add("/channel", problem.ChannelNotConfigured, "the channel "+string(draft.Channel)+" has no number to send from: set TWILIO_PHONE_NUMBER")
		return nil
	}
	id, err := a.senders.find(ctx, a.Store, draft.Channel, address)
	if err != nil {
		return a.fail(ctx, err)
	}
	draft.SenderID = id
	return nil
}

// senderIDs remembers the ids of the senders: each channel has one, and ids never change.
type senderIDs struct {
	mu  sync.Mutex
	ids map[notify.Channel]int64
}

func (s *senderIDs) find(ctx context.Context, ledger *store.Store, channel notify.Channel, address string) (int64, error) {
	s.mu.Lock()
	id, ok := s.ids[channel]
	s.mu.Unlock()
	if ok {
		return id, nil
	}
	id, err := ledger.EnsureSender(ctx, channel, address)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = make(map[notify.Channel]int64)
	}
	s.ids[channel] = id
	return id, nil
}
