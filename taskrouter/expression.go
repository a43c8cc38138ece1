package taskrouter

import (
	"fmt"
	"regexp"
	"strings"
)

// token is a text in quotes, a comparison's sign, a number, a key along its dots, or any other single character.
var token = regexp.MustCompile(`"[^"]*"|'[^']*'|==|!=|<=|>=|-?[0-9]+(?:\.[0-9]+)?|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*|\S`)

// checkExpression says where a text stops being one of TaskRouter's conditions
// (https://www.twilio.com/docs/taskrouter/expression-syntax), or nil. What it lets through, Twilio may still refuse.
func checkExpression(text string) error {
	e := &expression{text: text, tokens: token.FindAllStringIndex(text, -1)}
	if err := e.either(); err != nil {
		return err
	}
	if len(e.tokens) > 0 {
		return e.unexpected("AND, OR or the end")
	}
	return nil
}

// expression is what of a condition is still to be read.
type expression struct {
	text   string
	tokens [][]int
	depth  int
}

// maxNesting keeps parentheses from filling the stack.
const maxNesting = 100

func (e *expression) next() string {
	if len(e.tokens) == 0 {
		return ""
	}
	return e.text[e.tokens[0][0]:e.tokens[0][1]]
}

func (e *expression) take(words ...string) bool {
	for _, word := range words {
		if strings.EqualFold(e.next(), word) {
			e.tokens = e.tokens[1:]
			return true
		}
	}
	return false
}

func (e *expression) unexpected(want string) error {
	if len(e.tokens) == 0 {
		return fmt.Errorf("it ends where %s must follow", want)
	}
	return fmt.Errorf("at character %d there is %s where %s must follow", len([]rune(e.text[:e.tokens[0][0]]))+1, e.next(), want)
}

func (e *expression) either() error {
	for {
		if err := e.single(); err != nil {
			return err
		}
		if !e.take("AND", "OR") {
			return nil
		}
	}
}

func (e *expression) single() error {
	if e.depth++; e.depth > maxNesting {
		return fmt.Errorf("it is nested over %d times", maxNesting)
	}
	defer func() { e.depth-- }()
	switch {
	case e.take("NOT"):
		return e.single()
	case e.take("("):
		if err := e.either(); err != nil {
			return err
		}
		if !e.take(")") {
			return e.unexpected(")")
		}
		return nil
	}
	if err := e.operand(); err != nil {
		return err
	}
	if !e.take("==", "=", "!=", "<=", "<", ">=", ">", "HAS", "CONTAINS", "IN") && !(e.take("NOT") && e.take("IN")) {
		return e.unexpected("a comparison such as ==, HAS or IN")
	}
	return e.operand()
}

var operand = regexp.MustCompile(`^(?:"[^"]*"|'[^']*'|-?[0-9.]+|[A-Za-z_][A-Za-z0-9_.]*)$`)

func (e *expression) operand() error {
	if e.take("[") {
		for first := true; !e.take("]"); first = false {
			if !first && !e.take(",") {
				return e.unexpected(", or ]")
			}
			if err := e.constant(); err != nil {
				return err
			}
		}
		return nil
	}
	return e.constant()
}

func (e *expression) constant() error {
	switch word := e.next(); strings.ToUpper(word) {
	case "AND", "OR", "NOT", "IN", "HAS", "CONTAINS":
	default:
		if operand.MatchString(word) {
			e.tokens = e.tokens[1:]
			return nil
		}
	}
	return e.unexpected("a key, a text, a number or a list")
}
