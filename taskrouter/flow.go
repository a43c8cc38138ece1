package taskrouter

import (
	"strconv"
	"time"

	"github.com/todoku/todoku/notify"
)

// flowDefinition is what a Studio flow does (https://www.twilio.com/docs/studio/rest-api/v2/flow-definition): its
// widgets, in the order in which they are drawn.
type flowDefinition struct {
	states []map[string]any
}

func (d *flowDefinition) add(name, kind string, properties map[string]any, transitions ...map[string]any) {
	properties["offset"] = map[string]any{"x": 0, "y": 200 * len(d.states)}
	d.states = append(d.states, map[string]any{
		"name": name, "type": kind, "properties": properties, "transitions": transitions,
	})
}

// trigger begins the flow: a call goes to the first widget.
func (d *flowDefinition) trigger(first string) {
	d.add("Trigger", "trigger", map[string]any{}, to("incomingMessage", ""), to("incomingCall", first),
		to("incomingConversationMessage", ""), to("incomingRequest", ""), to("incomingParent", ""))
}

func (d *flowDefinition) json() string {
	return compact(map[string]any{
		"description":   "Made by Todoku: change taskrouter.yaml, not this.",
		"initial_state": "Trigger", "states": d.states, "flags": map[string]any{"allow_concurrent_calls": true},
	})
}

// to leads from an event to the next widget; empty: to the end of the flow.
func to(event, next string) map[string]any {
	if next == "" {
		return map[string]any{"event": event}
	}
	return map[string]any{"event": event, "next": next}
}

// definition is a Studio flow that greets and enqueues: Incoming Call, Say/Play, Enqueue Call. A call that cannot be
// enqueued hears the words for when everybody is busy.
func (f *File) definition(urls URLs) string {
	var d flowDefinition
	policy := f.Calls.Policy
	first := "enqueue"
	if policy.Greeting != (notify.Prompt{}) {
		first = "greeting"
	}
	d.trigger(first)
	if first == "greeting" {
		d.add("greeting", "say-play", heard(policy.Greeting), to("audioComplete", "enqueue"))
	}
	attributes := policy.TaskAttributes
	if attributes == nil {
		attributes = map[string]any{}
	}
	sorry := ""
	if policy.Busy != (notify.Prompt{}) {
		sorry = "busy"
	}
	d.add("enqueue", "enqueue-call", map[string]any{
		"workflow_sid": reference(Workflows, f.Routing.Name), "task_attributes": compact(attributes),
		"wait_url": urls.Wait, "wait_url_method": "POST",
	}, to("callComplete", ""), to("failedToEnqueue", sorry), to("callFailure", sorry))
	if sorry != "" {
		d.add("busy", "say-play", heard(policy.Busy), to("audioComplete", ""))
	}
	return d.json()
}

func heard(p notify.Prompt) map[string]any {
	if p.Play != "" {
		return map[string]any{"play": p.Play, "loop": 1}
	}
	language, voice := notify.SpeechLanguage(p.Say)
	return map[string]any{"say": p.Say, "language": language, "voice": voice, "loop": 1}
}

// Away is what callers hear while Todoku cannot be reached. A Studio flow says it, so Twilio needs nobody else for it.
type Away struct {
	Say       []string      // one after the other, each in the language that it is written in; none: sentences of ours
	Voicemail time.Duration // how long a message may be left; 0: none may
}

// Sentences of ours for callers who come in while Todoku cannot be reached.
var (
	awaySentences = []string{
		"申し訳ございません。ただいまお電話をおつなぎできません。恐れ入りますが、しばらくしてからおかけ直しください。",
		"We are sorry, we cannot take your call right now. Please call again later.",
	}
	voicemailSentences = []string{
		"申し訳ございません。ただいまお電話をおつなぎできません。発信音のあとにお名前とご用件をお話しください。終わりましたら、シャープを押してください。",
		"We are sorry, we cannot take your call right now. " +
			"Please leave your name and a message after the tone, and press pound.",
	}
)

// definition is a Studio flow that says so and may record a message, which is kept at Twilio: Incoming Call, Say/Play,
// Record Voicemail.
func (a Away) definition() string {
	say := a.Say
	switch {
	case len(say) == 0 && a.Voicemail > 0:
		say = voicemailSentences
	case len(say) == 0:
		say = awaySentences
	}
	var d flowDefinition
	name := func(i int) string {
		switch {
		case i < len(say):
			return "away_" + strconv.Itoa(i+1)
		case a.Voicemail > 0:
			return "voicemail"
		}
		return ""
	}
	d.trigger(name(0))
	for i, text := range say {
		d.add(name(i), "say-play", heard(notify.Prompt{Say: text}), to("audioComplete", name(i+1)))
	}
	if a.Voicemail > 0 {
		d.add("voicemail", "record-voicemail", map[string]any{
			"transcribe": false, "trim": "trim-silence", "play_beep": "true", "finish_on_key": "#", "timeout": 5,
			"max_length": int(a.Voicemail / time.Second),
		}, to("recordingComplete", ""), to("noAudio", ""), to("hangup", ""))
	}
	return d.json()
}

// fallbackName is the flow that answers the number while Todoku cannot be reached.
func (f *File) fallbackName() string { return f.Workspace + " fallback" }

// FlowNames are the flows that the file may need.
func (f *File) FlowNames() []string { return []string{f.Workspace, f.fallbackName()} }
