package simulator

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// verb is one element of a TwiML document: what to do with a call, in order.
type verb struct {
	name       string
	attributes map[string]string
	text       string
	inner      []verb
}

// knownVerbs are the verbs that callers here can follow.
var knownVerbs = []string{
	"Say", "Play", "Pause", "Gather", "Enqueue", "Leave", "Redirect", "Hangup", "Reject",
}

// waitVerbs are those that a document for callers in a queue may have.
// https://www.twilio.com/docs/voice/twiml/enqueue#waiturl
var waitVerbs = []string{"Say", "Play", "Pause", "Gather", "Leave", "Redirect", "Hangup"}

// parseDocument reads TwiML: the verbs inside of <Response>.
func parseDocument(body []byte, allowed []string) ([]verb, error) {
	decoder := xml.NewDecoder(strings.NewReader(string(body)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil, errors.New("it is not an XML document (Twilio's error 12100)")
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "Response" {
			return nil, fmt.Errorf("it begins with <%s>, not <Response> (Twilio's error 12100)", start.Name.Local)
		}
		response, err := readVerb(decoder, start)
		if err != nil {
			return nil, err
		}
		for _, v := range response.inner {
			if !slices.Contains(allowed, v.name) {
				return nil, fmt.Errorf("<%s> is not allowed there (Twilio's error 12200)", v.name)
			}
		}
		return response.inner, nil
	}
}

func readVerb(decoder *xml.Decoder, start xml.StartElement) (verb, error) {
	v := verb{name: start.Name.Local, attributes: make(map[string]string, len(start.Attr))}
	for _, a := range start.Attr {
		v.attributes[a.Name.Local] = a.Value
	}
	for {
		token, err := decoder.Token()
		if err != nil {
			return v, errors.New("its XML ends early or is broken (Twilio's error 12100)")
		}
		switch token := token.(type) {
		case xml.StartElement:
			inner, err := readVerb(decoder, token)
			if err != nil {
				return v, err
			}
			v.inner = append(v.inner, inner)
		case xml.CharData:
			v.text += string(token)
		case xml.EndElement:
			v.text = strings.TrimSpace(v.text)
			return v, nil
		}
	}
}

// attribute is an attribute, or what stands for one that is missing.
func (v verb) attribute(name, otherwise string) string {
	if value, ok := v.attributes[name]; ok && value != "" {
		return value
	}
	return otherwise
}

// seconds is an attribute in seconds, or its default.
func (v verb) seconds(name string, otherwise int) int {
	if n, err := strconv.Atoi(v.attributes[name]); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

// How long it takes to hear something, in seconds: nobody speaks here, but a document takes its time.
const (
	saySeconds    = 1
	playSeconds   = 2
	recordSeconds = 3
)

// resolve is the URL that a document at base means by reference.
func resolve(base, reference string) string {
	from, err := url.Parse(base)
	if err != nil {
		return reference
	}
	to, err := from.Parse(reference)
	if err != nil {
		return reference
	}
	return to.String()
}
