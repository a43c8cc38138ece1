package taskrouter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// steps are a flow's widgets in the order in which a call goes through them, with what they say.
func steps(t *testing.T, definition string) string {
	t.Helper()
	var flow struct {
		Initial string `json:"initial_state"`
		States  []struct {
			Name, Type  string
			Properties  map[string]any
			Transitions []struct{ Event, Next string }
		}
	}
	if err := json.Unmarshal([]byte(definition), &flow); err != nil {
		t.Fatal(err)
	}
	var words []string
	for at := flow.Initial; at != ""; {
		next := ""
		for _, s := range flow.States {
			if s.Name != at {
				continue
			}
			word := s.Type
			for _, property := range []string{"language", "say", "max_length"} {
				if value, ok := s.Properties[property]; ok {
					word += fmt.Sprint(" ", value)
				}
			}
			words = append(words, word)
			for _, transition := range s.Transitions {
				if transition.Next != "" {
					next = transition.Next
				}
			}
		}
		at = next
	}
	return strings.Join(words, "; ")
}

func TestWhatACallerHearsWhileTodokuIsAway(t *testing.T) {
	usual := func(sentences []string) string {
		return "trigger; say-play ja-JP " + sentences[0] + "; say-play en-US " + sentences[1]
	}
	for away, want := range map[string]string{
		"":                               usual(awaySentences),
		"away: sorry":                    "trigger; say-play en-US sorry",
		"away: [ごめんなさい, sorry]":          "trigger; say-play ja-JP ごめんなさい; say-play en-US sorry",
		"away: {voicemail: 2m}":          usual(voicemailSentences) + "; record-voicemail 120",
		"away: {say: no, voicemail: 5s}": "trigger; say-play en-US no; record-voicemail 5",
	} {
		text := centre
		if away != "" {
			text = strings.Replace(centre, "{number", "{"+away+", number", 1)
		}
		objects := wanted(t, text)
		flow := objects[len(objects)-2]
		if got := steps(t, flow.Fields["Definition"]); flow.Kind != Flows || flow.Name != "Support fallback" || got != want {
			t.Errorf("%s: %s %s: %s\nwant %s", away, flow.Kind, flow.Name, got, want)
		}
		if number := objects[len(objects)-1]; number.Fields["VoiceFallbackUrl"] != "{studio flow:Support fallback}" {
			t.Errorf("the number's fallback is %s", number.Fields["VoiceFallbackUrl"])
		}
	}
}

func TestWhatNobodyCanHear(t *testing.T) {
	for away, want := range map[string]string{
		"{say: []}":                     "",
		"{say: [a, b, c, d, e, f]}":     "say must be at most 5 texts",
		"{say: ''}":                     "say must not be empty",
		"{voicemail: 1s}":               "voicemail must be a time in whole seconds from 5s to 10m0s",
		"{play: https://x.example.com}": `away has no "play"`,
	} {
		_, err := Parse("f", []byte(strings.Replace(centre, "{number", "{away: "+away+", number", 1)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", away, err, want)
		}
	}
}
