package v1

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/todoku/todoku/api/problem"
)

// jsonMembers reads the members of the object but for those of one field, which has many: it must be an
// array, and its syntax is checked. A null is an absent field.
func jsonMembers(body *spool, many string) (members map[string]jsontext.Value, hasMany bool, err error) {
	if err := body.skipMark(); err != nil {
		return nil, false, err
	}
	decoder := newUploadDecoder(body)
	malformed := func(err error) error {
		if errors.As(err, new(*problem.Problem)) {
			return err
		}
		return unreadable(err, decoder.InputOffset())
	}
	switch kind := decoder.PeekKind(); kind {
	case '{':
	case 0:
		_, err := decoder.ReadToken()
		return nil, false, malformed(err)
	default:
		return nil, false, problem.Only("", problem.WrongType, "expected an object")
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, false, malformed(err)
	}
	members = map[string]jsontext.Value{}
	kept := 0 // bytes of members, all in memory
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, false, malformed(err)
		}
		name := token.String()
		if name == many && decoder.PeekKind() == '[' {
			hasMany = true
			if err := decoder.skipArray(); err != nil {
				return nil, false, malformed(err)
			}
			continue
		}
		value, err := decoder.ReadValue()
		switch {
		case err != nil:
			return nil, false, malformed(err)
		case name != many && kept+len(name)+len(value) > maxUploadValue:
			return nil, false, problem.Newf(problem.RequestTooLarge, "the fields of the body beside %s are over %d bytes together: shorten them", many, maxUploadValue)
		case name != many:
			kept += len(name) + len(value)
			members[name] = value.Clone()
		case value.Kind() != 'n':
			return nil, false, problem.Only(pointerTo("", many), problem.WrongType, "expected an array")
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, false, malformed(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, false, problem.Newf(problem.TrailingData, "something follows the JSON value at byte %d: send one JSON object and nothing after it", decoder.InputOffset())
	}
	return members, hasMany, body.skipMark()
}

// maxUploadValue is how long a member of an uploaded object, or one of its many rows, may be, in bytes:
// as long as a body that is read at once. Each is in memory as a whole.
const maxUploadValue = problem.MaxBodyBytes

// uploadDecoder reads JSON of any length in values of at most maxUploadValue.
type uploadDecoder struct {
	*jsontext.Decoder
	source *valueLimit
}

func newUploadDecoder(r io.Reader) uploadDecoder {
	source := &valueLimit{r: r}
	return uploadDecoder{jsontext.NewDecoder(source), source}
}

// PeekKind looks at what comes next.
func (d uploadDecoder) PeekKind() jsontext.Kind {
	d.source.left = maxUploadValue
	return d.Decoder.PeekKind()
}

// ReadToken reads a name, a bracket or a value that has no parts.
func (d uploadDecoder) ReadToken() (jsontext.Token, error) {
	d.source.left = maxUploadValue
	return d.Decoder.ReadToken()
}

// ReadValue reads a whole value.
func (d uploadDecoder) ReadValue() (jsontext.Value, error) {
	d.source.left = maxUploadValue
	return d.Decoder.ReadValue()
}

// skipArray reads over an array, however many elements it has.
func (d uploadDecoder) skipArray() error {
	if _, err := d.ReadToken(); err != nil { // [
		return err
	}
	for d.PeekKind() != ']' {
		d.source.left = maxUploadValue
		if err := d.SkipValue(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// valueLimit bounds what is read for one value. What the decoder reads ahead counts for that value, and
// not for the next.
type valueLimit struct {
	r    io.Reader
	left int
}

func (l *valueLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, problem.Newf(problem.RequestTooLarge, "a value of the body is over %d bytes: shorten it, or write what it has as several rows", maxUploadValue)
	}
	n, err := l.r.Read(p)
	l.left -= n
	return n, err
}
