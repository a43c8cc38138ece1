package taskrouter

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/todoku/todoku/notify"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	File   string
	Line   int // from 1; 0: the file as a whole
	Detail string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Detail)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Detail)
}

// Problems is everything that is wrong in a file, in the order of its lines.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

const (
	maxBytes    = 1 << 20
	maxValues   = 100_000 // of a file, aliases followed
	maxProblems = 50
)

// reader reads YAML and collects what is wrong with it.
type reader struct {
	file     string
	values   int
	problems Problems
}

func (r *reader) problem(line int, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{File: r.file, Line: line, Detail: fmt.Sprintf(format, args...)})
	}
}

// once refuses the second one of a name.
func (r *reader) once(lines map[string]int, what, name string, line int) {
	if name == "" {
		return // that is a problem of its own
	}
	if first, twice := lines[name]; twice {
		r.problem(line, "the %s %s is there twice: line %d has it too", what, name, first)
		return
	}
	lines[name] = line
}

// document is the value of the one document of a file, nil where there is none.
func (r *reader) document(text []byte) *yaml.Node {
	if len(text) > maxBytes {
		r.problem(0, "it is over 1 MiB long")
		return nil
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, more yaml.Node
	if err := decoder.Decode(&document); err != nil || len(document.Content) == 0 {
		r.unreadable(err)
		return nil
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		r.problem(more.Line, "there is a second document: one file describes one call centre")
	case !errors.Is(err, io.EOF):
		r.unreadable(err)
	}
	return document.Content[0]
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

func (r *reader) unreadable(err error) {
	if err == nil || err.Error() == "EOF" {
		r.problem(0, "it is empty")
		return
	}
	text, line := err.Error(), 0
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	r.problem(line, "it is not YAML: %s", strings.TrimPrefix(text, "yaml: "))
}

// field is a key of a mapping.
type field struct {
	required bool
	read     func(value)
}

type fields map[string]field

// value is one value of the file.
type value struct {
	r    *reader
	node *yaml.Node
	key  string // that it belongs to, for problems
}

func (r *reader) value(node *yaml.Node, key string) value {
	r.values++
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return value{r: r, node: node, key: key}
}

func (v value) line() int { return v.node.Line }

func (v value) problem(format string, args ...any) {
	v.r.problem(v.node.Line, format, args...)
}

// mapping reads a mapping whose keys are known; what names it in problems.
func (v value) mapping(what string, known fields) { v.r.mapping(v.node, what, known) }

func (r *reader) mapping(node *yaml.Node, what string, known fields) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		r.problem(node.Line, "%s must be a mapping of %s", what, join(known))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(node.Content) && r.values < maxValues; i += 2 {
		key := node.Content[i]
		field, ok := known[key.Value]
		switch first, twice := lines[key.Value]; {
		case !ok:
			r.problem(key.Line, "%s has no %q; it has %s", what, key.Value, join(known))
			continue
		case twice:
			r.problem(key.Line, "%s is there twice: line %d has it too", key.Value, first)
			continue
		}
		lines[key.Value] = key.Line
		field.read(r.value(node.Content[i+1], key.Value))
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, ok := lines[name]; known[name].required && !ok {
			r.problem(node.Line, "%s needs %s", what, name)
		}
	}
}

func join(known fields) string { return strings.Join(slices.Sorted(maps.Keys(known)), ", ") }

// list reads a sequence.
func list[T any](v value, read func(value) T) []T {
	if v.node.Kind != yaml.SequenceNode {
		v.problem("%s must be a list", v.key)
		return nil
	}
	var all []T
	for _, node := range v.node.Content {
		if v.r.values >= maxValues {
			v.problem("the file has over %d values", maxValues)
			break
		}
		all = append(all, read(v.r.value(node, v.key)))
	}
	return all
}

func (v value) isList() bool { return v.node.Kind == yaml.SequenceNode }

func (v value) isText() bool { return v.node.Kind == yaml.ScalarNode }

// text reads a text that is not empty.
func (v value) text() string {
	if v.node.Kind != yaml.ScalarNode || v.node.Tag == "!!null" {
		v.problem("%s must be a text", v.key)
		return ""
	}
	text := strings.TrimSpace(v.node.Value)
	switch {
	case text == "":
		v.problem("%s must not be empty", v.key)
	case strings.ContainsFunc(text, unprintable):
		v.problem("%s must not have control characters", v.key)
	}
	return text
}

// unprintable finds what neither TwiML nor the ledger can hold.
func unprintable(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
}

// spoken reads a text that a voice says to a caller.
func (v value) spoken() string { return v.message(notify.Call) }

// message reads a text that is sent on a channel.
func (v value) message(channel notify.Channel) string {
	text := v.text()
	if text == "" {
		return ""
	}
	err := notify.CheckBody(channel, text)
	if err == nil && channel == notify.Call {
		var escaped strings.Builder
		if err = xml.EscapeText(&escaped, []byte(text)); err == nil && utf8.RuneCountInString(escaped.String()) > maxSpoken {
			err = fmt.Errorf("it is over %d characters long, of which & and < count for several: shorten it", maxSpoken)
		}
	}
	if err != nil && !strings.ContainsFunc(text, unprintable) { // said by text
		v.problem("%s: %v", v.key, err)
	}
	return text
}

// maxSpoken is how much a call can say: Twilio takes 4,000 characters of TwiML, of which some frame the text
// (https://www.twilio.com/docs/api/errors/32018).
const maxSpoken = 3900

// name reads what something is called at Twilio.
func (v value) name() string {
	name := v.text()
	switch {
	case utf8.RuneCountInString(name) > maxNameCharacters:
		v.problem("%s must be at most %d characters long", v.key, maxNameCharacters)
	case strings.ContainsAny(name, "\r\n\t{}"):
		v.problem("%s must not have line breaks, tabs or braces", v.key)
	}
	return name
}

func (v value) flag() (is bool) {
	if v.node.Tag != "!!bool" || v.node.Decode(&is) != nil {
		v.problem("%s must be true or false", v.key)
	}
	return is
}

func (v value) whole(low, high int) (n int) {
	if v.node.Tag != "!!int" || v.node.Decode(&n) != nil || n < low || n > high {
		v.problem("%s must be a whole number from %d to %d", v.key, low, high)
	}
	return n
}

// seconds reads a duration as Go writes it, in whole seconds.
func (v value) seconds(low, high time.Duration) time.Duration {
	d, err := time.ParseDuration(v.node.Value)
	if err != nil || d < low || d > high || d%time.Second != 0 {
		v.problem("%s must be a time in whole seconds from %s to %s, such as 90s or 2m", v.key, low, high)
	}
	return d
}

func (v value) oneOf(words ...string) string {
	if !slices.Contains(words, v.node.Value) {
		v.problem("%s must be one of %s", v.key, strings.Join(words, ", "))
		return ""
	}
	return v.node.Value
}

// digit reads a digit that a caller presses.
func (v value) digit() string {
	if len(v.node.Value) != 1 || v.node.Value[0] < '0' || v.node.Value[0] > '9' {
		v.problem("%s must be a digit from 0 to 9", v.key)
		return ""
	}
	return v.node.Value
}

func (v value) expression() string {
	text := v.text()
	if text != "" {
		if err := checkExpression(text); err != nil {
			v.problem("%s is no expression of TaskRouter's: %v", v.key, err)
		}
	}
	return text
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

func (v value) phoneNumber() string {
	number := v.text()
	if number != "" && !e164.MatchString(number) {
		v.problem("%s must be a number in E.164 form, in quotes, such as \"+15005550006\"", v.key)
	}
	return number
}

// contact reads where an operator is reached.
func (v value) contact() string {
	uri := v.text()
	client, isClient := strings.CutPrefix(uri, "client:")
	sip, isSIP := strings.CutPrefix(uri, "sip:")
	if uri != "" && !(isClient && client != "" || isSIP && strings.Contains(sip, "@") || e164.MatchString(uri)) {
		v.problem("contact_uri must be client:NAME, sip:USER@HOST, or a number in E.164 form, in quotes")
	}
	return uri
}

func (v value) webURL() string {
	text := v.text()
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		v.problem("%s must be an https address", v.key)
	}
	return text
}

// object reads a mapping of anything that JSON has.
func (v value) object() map[string]any {
	if v.node.Kind != yaml.MappingNode {
		v.problem("%s must be a mapping", v.key)
		return nil
	}
	decoded, err := v.decode(0)
	if err != nil {
		v.problem("%s: %v", v.key, err)
	}
	object, _ := decoded.(map[string]any)
	return object
}

const (
	maxDepth = 20
	maxExact = 1<<53 - 1 // beyond it whole numbers run together in those who read JSON (RFC 8259, section 6)
)

// decode turns a value into what encoding/json makes of the same.
func (v value) decode(depth int) (any, error) {
	switch {
	case depth > maxDepth:
		return nil, errors.New("it is nested too deeply")
	case v.r.values >= maxValues:
		return nil, fmt.Errorf("the file has over %d values", maxValues)
	}
	switch v.node.Kind {
	case yaml.MappingNode:
		object := make(map[string]any)
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			key := v.node.Content[i].Value
			if strings.ContainsFunc(key, unprintable) {
				return nil, errors.New("a key has control characters")
			}
			if _, twice := object[key]; twice {
				return nil, fmt.Errorf("%s is there twice", key)
			}
			inner, err := v.r.value(v.node.Content[i+1], key).decode(depth + 1)
			if err != nil {
				return nil, err
			}
			object[key] = inner
		}
		return object, nil
	case yaml.SequenceNode:
		items := make([]any, len(v.node.Content))
		for i, node := range v.node.Content {
			var err error
			if items[i], err = v.r.value(node, v.key).decode(depth + 1); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	switch v.node.Tag {
	case "!!int", "!!float":
		var number float64
		if err := v.node.Decode(&number); err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, fmt.Errorf("%s is no number that JSON has", v.node.Value)
		}
		if v.node.Tag == "!!int" && math.Abs(number) > maxExact {
			return nil, fmt.Errorf("%s is a larger number than is kept exactly: write it in quotes", v.key)
		}
		return number, nil
	case "!!bool":
		var is bool
		err := v.node.Decode(&is)
		return is, err
	case "!!null":
		return nil, nil
	}
	if strings.ContainsFunc(v.node.Value, unprintable) {
		return nil, fmt.Errorf("%s has control characters", v.key)
	}
	return v.node.Value, nil
}
