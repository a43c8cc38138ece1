package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Behaviour is the body of PUT /_simulator/behaviour: how the simulator answers, and what becomes of what was
// created, from now on. A key that is left out has its default. It holds for what is created after it; records
// that are on their way keep the behaviour that they were created under.
type Behaviour struct {
	// LatencyMS is how long, in milliseconds, every answer on Twilio's paths is held back. A create counts,
	// and exists, from its arrival; what follows from it starts with the answer.
	LatencyMS int `json:"latency_ms"`
	// ClockOffsetMS is how many milliseconds Twilio's clock is ahead: its Date headers and all dates that it writes
	// are off by so much. Less than 0 is behind; 0 by default.
	ClockOffsetMS int `json:"clock_offset_ms"`
	// CallbackDelayMS is the time in milliseconds from the answer to the first status, and from each status to
	// the next one; 50 by default.
	CallbackDelayMS int `json:"callback_delay_ms"`
	// DrainPerSecond is how many messages, and how many calls, of each sender leave Twilio's queue in a second, which
	// is when they become sent or initiated; 0, the default, for no limit.
	DrainPerSecond float64 `json:"drain_per_second"`
	// Callbacks is how callbacks arrive; ordered by default.
	Callbacks CallbackMode `json:"callbacks"`
	// DefaultOutcome is what becomes of a message; delivered by default.
	DefaultOutcome MessageOutcome `json:"default_outcome"`
	// DefaultCallOutcome is what becomes of a call; completed after 12 s by default.
	DefaultCallOutcome CallOutcome `json:"default_call_outcome"`
	// Outcomes are outcomes for single numbers in E.164, each like one of the defaults. Its status tells whether
	// it is for messages, for calls or, where both know the word, for both.
	Outcomes map[string]json.RawMessage `json:"outcomes"`
	// Fault hits the next creates, those at TaskRouter and Studio included; none by default.
	Fault *Fault `json:"fault"`
	// TaskListLagMS is how many milliseconds TaskRouter's list of tasks is behind: tasks that are younger are not in it.
	// 0 by default.
	TaskListLagMS int `json:"task_list_lag_ms"`
	// SecondMS is how many milliseconds a second of inbound calls and of TaskRouter's time-outs lasts; 1000 by
	// default. Less makes everybody hurry.
	SecondMS int `json:"second_ms"`
	// MaxQueueSize is how many callers may wait for one workflow; further ones are told that it is full. 1000 by
	// default.
	MaxQueueSize int `json:"max_queue_size"`
	// Operators is what TaskRouter's workers do when a call rings; all answer by default.
	Operators Operators `json:"operators"`

	messageOutcomes map[string]*MessageOutcome
	callOutcomes    map[string]*CallOutcome
}

// CallbackMode is how the callbacks of one record arrive. The record's own status always moves in order.
type CallbackMode string

const (
	// Ordered callbacks come as the status moves, each after the one before it was answered.
	Ordered CallbackMode = "ordered"
	// Reversed callbacks come together after the last status, that one first.
	Reversed CallbackMode = "reversed"
	// Shuffled callbacks come together after the last status, in random order.
	Shuffled CallbackMode = "shuffled"
	// Repeated callbacks come in order, and after the last one all of them once more.
	Repeated CallbackMode = "repeated"
	// Lost callbacks never come.
	Lost CallbackMode = "lost"
	// BeforeAnswer callbacks all come, in order and without delay, before the answer to the create.
	BeforeAnswer CallbackMode = "before_answer"
)

var callbackModes = []CallbackMode{Ordered, Reversed, Shuffled, Repeated, Lost, BeforeAnswer}

// MessageOutcome is the last status of a message: queued, sent, delivered, undelivered, failed or read. The
// statuses before it come too; `sent` means that no receipt ever comes.
type MessageOutcome struct {
	Status string `json:"status"`
	// ErrorCode goes with undelivered and failed, and, where it has five digits as Twilio's have, with delivered;
	// null for none.
	ErrorCode *int `json:"error_code"`
}

// CallOutcome is the last status of a call: queued, ringing, in-progress, completed, busy, no-answer, failed or
// canceled.
type CallOutcome struct {
	Status string `json:"status"`
	// DurationS is the length in seconds of a completed call; null for one whose length is not known.
	DurationS *int `json:"duration_s"`
	// AnsweredBy is what machine detection, where the create asked for it, finds; human when null.
	AnsweredBy *string `json:"answered_by"`
}

// answeredByWords are what machine detection can say.
var answeredByWords = []string{
	"human", "machine_start", "machine_end_beep", "machine_end_silence", "machine_end_other", "fax", "unknown",
}

// defaultCallSeconds is how long a completed call lasts where an outcome does not say.
const defaultCallSeconds = 12

// DefaultBehaviour is the behaviour of a new simulator, and of one that was reset.
func DefaultBehaviour() Behaviour {
	return Behaviour{
		CallbackDelayMS:    50,
		Callbacks:          Ordered,
		DefaultOutcome:     MessageOutcome{Status: "delivered"},
		DefaultCallOutcome: CallOutcome{Status: "completed", DurationS: new(defaultCallSeconds)},
		Outcomes:           map[string]json.RawMessage{},
		SecondMS:           1000,
		MaxQueueSize:       1000,
		Operators:          defaultOperators,
	}
}

// readBehaviour reads the JSON of a Behaviour, with nothing in it that is not known.
func readBehaviour(r io.Reader) (*Behaviour, error) {
	b := DefaultBehaviour()
	usual := b.DefaultOutcome.Status
	b.DefaultOutcome.Status = "" // a code without a status is refused
	if err := strictly(r, &b); err != nil {
		return nil, err
	}
	if b.DefaultOutcome.Status == "" && b.DefaultOutcome.ErrorCode == nil {
		b.DefaultOutcome.Status = usual
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	b.messageOutcomes = make(map[string]*MessageOutcome)
	b.callOutcomes = make(map[string]*CallOutcome)
	for number, raw := range b.Outcomes {
		if err := b.addOutcome(number, raw); err != nil {
			return nil, fmt.Errorf("outcomes of %q: %w", number, err)
		}
	}
	return &b, nil
}

func (b *Behaviour) validate() error {
	switch {
	case b.LatencyMS < 0:
		return errors.New("latency_ms must not be negative")
	case b.TaskListLagMS < 0:
		return errors.New("task_list_lag_ms must not be negative")
	case b.CallbackDelayMS < 0:
		return errors.New("callback_delay_ms must not be negative")
	case b.DrainPerSecond < 0:
		return errors.New("drain_per_second must not be negative")
	case b.SecondMS < 1:
		return errors.New("second_ms must be at least 1")
	case b.MaxQueueSize < 0:
		return errors.New("max_queue_size must not be negative")
	case !slices.Contains(callbackModes, b.Callbacks):
		return fmt.Errorf("callbacks must be one of %s", join(callbackModes))
	}
	if err := b.DefaultOutcome.validate(); err != nil {
		return fmt.Errorf("default_outcome: %w", err)
	}
	if err := b.DefaultCallOutcome.validate(); err != nil {
		return fmt.Errorf("default_call_outcome: %w", err)
	}
	if err := b.Operators.validate(); err != nil {
		return fmt.Errorf("operators: %w", err)
	}
	if b.Fault != nil {
		if err := b.Fault.validate(); err != nil {
			return fmt.Errorf("fault: %w", err)
		}
	}
	return nil
}

// addOutcome reads the outcome of one number, which its status makes one for messages, for calls or for both.
func (b *Behaviour) addOutcome(number string, raw json.RawMessage) error {
	outcome := struct {
		Status     string  `json:"status"`
		ErrorCode  *int    `json:"error_code"`
		DurationS  *int    `json:"duration_s"`
		AnsweredBy *string `json:"answered_by"`
	}{DurationS: new(defaultCallSeconds)}
	if err := strictly(bytes.NewReader(raw), &outcome); err != nil {
		return err
	}
	_, isMessage := messageSteps[outcome.Status]
	_, isCall := callSteps[outcome.Status]
	if !isMessage && !isCall {
		return fmt.Errorf("status must be one of %s, %s", join(messageOutcomeWords), join(callOutcomeWords))
	}
	if isMessage {
		o := &MessageOutcome{Status: outcome.Status, ErrorCode: outcome.ErrorCode}
		if err := o.validate(); err != nil {
			return err
		}
		b.messageOutcomes[number] = o
	}
	if isCall {
		o := &CallOutcome{Status: outcome.Status, DurationS: outcome.DurationS, AnsweredBy: outcome.AnsweredBy}
		if err := o.validate(); err != nil {
			return err
		}
		b.callOutcomes[number] = o
	}
	return nil
}

func (o *MessageOutcome) validate() error {
	if o.Status == "" && o.ErrorCode != nil {
		return errors.New("error_code goes with a status, which is missing")
	}
	if _, ok := messageSteps[o.Status]; !ok {
		return fmt.Errorf("status must be one of %s", join(messageOutcomeWords))
	}
	failed := o.Status == "undelivered" || o.Status == "failed"
	if o.ErrorCode != nil && !failed && (o.Status != "delivered" || *o.ErrorCode < 10000) {
		return errors.New("error_code goes with the statuses undelivered and failed and, of five digits, with delivered")
	}
	return nil
}

func (o *CallOutcome) validate() error {
	if _, ok := callSteps[o.Status]; !ok {
		return fmt.Errorf("status must be one of %s", join(callOutcomeWords))
	}
	if o.DurationS != nil && *o.DurationS < 0 {
		return errors.New("duration_s must not be negative")
	}
	if o.AnsweredBy != nil && !slices.Contains(answeredByWords, *o.AnsweredBy) {
		return fmt.Errorf("answered_by must be null or one of %s", join(answeredByWords))
	}
	return nil
}

// messageOutcome is what will become of a message to the number.
func (b *Behaviour) messageOutcome(to string) *MessageOutcome {
	if o, ok := b.messageOutcomes[to]; ok {
		return o
	}
	return &b.DefaultOutcome
}

// callOutcome is what will become of a call to the number.
func (b *Behaviour) callOutcome(to string) *CallOutcome {
	if o, ok := b.callOutcomes[to]; ok {
		return o
	}
	return &b.DefaultCallOutcome
}

func (b *Behaviour) callbackDelay() time.Duration { return milliseconds(b.CallbackDelayMS) }

// strictly decodes one JSON value without unknown keys, and says in plain words what is wrong with it.
func strictly(r io.Reader, into any) error {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		name := wrongType.Field
		if name == "" {
			name = "it"
		}
		return fmt.Errorf("%s must be %s, not %s", name, jsonKind(wrongType.Type), wrongType.Value)
	case errors.Is(err, io.EOF):
		return errors.New("a JSON object is missing; {} means all defaults")
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the JSON object")
	}
	return nil
}

func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	default:
		return "an object"
	}
}

func join[S ~string](words []S) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return strings.Join(list, ", ")
}
