package simulator

import (
	"fmt"
	"strconv"
	"strings"
)

// expression is one of TaskRouter's SQL-like conditions, such as
//
//	(skills HAS "sales") AND language IN ["ja", "en"]
//
// which picks workers by their attributes, or tasks by theirs.
// https://www.twilio.com/docs/taskrouter/expression-syntax
type expression interface {
	// holds evaluates the condition over attributes, in which keys are looked up along their dots. A comparison
	// with a key that is not there does not hold, unless it is != or NOT IN.
	holds(attributes map[string]any) bool
}

// parseExpression reads a condition. Its errors say at which character it stops making sense.
func parseExpression(text string) (expression, error) {
	p := &expressionParser{text: text}
	p.next()
	e, err := p.either()
	if err == nil && p.token != "" {
		err = p.unexpected("AND, OR or the end")
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

type (
	either     struct{ left, right expression }
	both       struct{ left, right expression }
	not        struct{ inner expression }
	comparison struct {
		left, right operand
		operator    string
	}
)

func (e either) holds(a map[string]any) bool { return e.left.holds(a) || e.right.holds(a) }
func (e both) holds(a map[string]any) bool   { return e.left.holds(a) && e.right.holds(a) }
func (e not) holds(a map[string]any) bool    { return !e.inner.holds(a) }

func (e comparison) holds(attributes map[string]any) bool {
	left, right := e.left(attributes), e.right(attributes)
	switch e.operator {
	case "==", "=":
		return left != nil && same(left, right)
	case "!=":
		return !same(left, right)
	case "HAS":
		return among(right, left)
	case "CONTAINS":
		whole, isText := left.(string)
		part, isPart := right.(string)
		return isText && isPart && strings.Contains(whole, part)
	case "IN":
		return among(left, right)
	case "NOT IN":
		return !among(left, right)
	}
	order, ordered := compare(left, right)
	switch e.operator {
	case "<":
		return ordered && order < 0
	case "<=":
		return ordered && order <= 0
	case ">":
		return ordered && order > 0
	default: // ">="
		return ordered && order >= 0
	}
}

func same(a, b any) bool {
	switch a.(type) {
	case []any, map[string]any:
		return false
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// among reports whether a list, or one value in its place, has the value.
func among(value, list any) bool {
	items, isList := list.([]any)
	if !isList {
		return value != nil && same(value, list)
	}
	for _, item := range items {
		if same(item, value) {
			return true
		}
	}
	return false
}

func compare(a, b any) (order int, ordered bool) {
	switch left := a.(type) {
	case float64:
		right, ok := b.(float64)
		switch {
		case left < right:
			return -1, ok
		case left > right:
			return 1, ok
		}
		return 0, ok
	case string:
		right, ok := b.(string)
		return strings.Compare(left, right), ok
	}
	return 0, false
}

// operand is one side of a comparison: a constant, a list of them, or a key.
type operand func(attributes map[string]any) any

func constant(value any) operand { return func(map[string]any) any { return value } }

func key(path string) operand {
	parts := strings.Split(path, ".")
	return func(attributes map[string]any) any {
		var value any = attributes
		for _, part := range parts {
			object, ok := value.(map[string]any)
			if !ok {
				return nil
			}
			value = object[part]
		}
		return value
	}
}

// expressionParser reads from left to right, one token ahead.
type expressionParser struct {
	text  string
	at    int    // behind the token
	start int    // of the token
	token string // empty at the end; a string constant begins with its quote
}

const (
	keyCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
	spaces        = " \t\r\n"
)

func (p *expressionParser) next() {
	p.at += len(p.text[p.at:]) - len(strings.TrimLeft(p.text[p.at:], spaces))
	p.start = p.at
	rest := p.text[p.at:]
	length := 1
	switch {
	case rest == "":
		length = 0
	case rest[0] == '"' || rest[0] == '\'':
		if end := strings.IndexByte(rest[1:], rest[0]); end >= 0 {
			length = end + 2
		} else {
			length = len(rest)
		}
	case strings.HasPrefix(rest, "==") || strings.HasPrefix(rest, "!=") ||
		strings.HasPrefix(rest, "<=") || strings.HasPrefix(rest, ">="):
		length = 2
	case strings.ContainsRune(keyCharacters, rune(rest[0])) || rest[0] == '-':
		for length < len(rest) && strings.IndexByte(keyCharacters, rest[length]) >= 0 {
			length++
		}
	}
	p.token = rest[:length]
	p.at += length
}

func (p *expressionParser) take(word string) bool {
	if !strings.EqualFold(p.token, word) {
		return false
	}
	p.next()
	return true
}

func (p *expressionParser) unexpected(want string) error {
	if p.token == "" {
		return fmt.Errorf("it ends where %s must follow", want)
	}
	return fmt.Errorf("at character %d there is %s where %s must follow", p.start+1, p.token, want)
}

func (p *expressionParser) either() (expression, error) {
	left, err := p.both()
	for err == nil && p.take("OR") {
		var right expression
		right, err = p.both()
		left = either{left, right}
	}
	return left, err
}

func (p *expressionParser) both() (expression, error) {
	left, err := p.single()
	for err == nil && p.take("AND") {
		var right expression
		right, err = p.single()
		left = both{left, right}
	}
	return left, err
}

func (p *expressionParser) single() (expression, error) {
	switch {
	case p.take("NOT"):
		inner, err := p.single()
		return not{inner}, err
	case p.take("("):
		inner, err := p.either()
		if err == nil && !p.take(")") {
			err = p.unexpected(")")
		}
		return inner, err
	}
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	operator, err := p.operator()
	if err != nil {
		return nil, err
	}
	right, err := p.operand()
	return comparison{left: left, operator: operator, right: right}, err
}

func (p *expressionParser) operator() (string, error) {
	for _, operator := range []string{"==", "=", "!=", "<=", "<", ">=", ">", "HAS", "CONTAINS", "IN"} {
		if p.take(operator) {
			return operator, nil
		}
	}
	if p.take("NOT") && p.take("IN") {
		return "NOT IN", nil
	}
	return "", p.unexpected("a comparison such as ==, HAS or IN")
}

func (p *expressionParser) operand() (operand, error) {
	token := p.token
	switch {
	case p.take("["):
		return p.list()
	case p.take("true"):
		return constant(true), nil
	case p.take("false"):
		return constant(false), nil
	case p.take("null"):
		return constant(nil), nil
	case token == "":
	case token[0] == '"' || token[0] == '\'':
		if len(token) < 2 || token[len(token)-1] != token[0] {
			return nil, fmt.Errorf("the text that begins at character %d has no end", p.start+1)
		}
		p.next()
		return constant(token[1 : len(token)-1]), nil
	default:
		if number, err := strconv.ParseFloat(token, 64); err == nil {
			p.next()
			return constant(number), nil
		}
		if strings.IndexByte(keyCharacters, token[0]) >= 0 && !isWord(token) {
			p.next()
			return key(token), nil
		}
	}
	return nil, p.unexpected("a key, a text, a number or a list")
}

// isWord reports whether the token means something of its own, and so is no key.
func isWord(token string) bool {
	switch strings.ToUpper(token) {
	case "AND", "OR", "NOT", "IN", "HAS", "CONTAINS":
		return true
	}
	return false
}

func (p *expressionParser) list() (operand, error) {
	var items []operand
	for !p.take("]") {
		if len(items) > 0 && !p.take(",") {
			return nil, p.unexpected(", or ]")
		}
		item, err := p.operand()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return func(attributes map[string]any) any {
		values := make([]any, len(items))
		for i, item := range items {
			values[i] = item(attributes)
		}
		return values
	}, nil
}
