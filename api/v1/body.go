package v1

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/todoku/todoku/api/problem"
)

// Format reads and writes JSON for huma. It reads only into a body of this package.
var Format = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		if err := json.MarshalWrite(w, v); err != nil {
			return err
		}
		_, err := w.Write([]byte{'\n'})
		return err
	},
	Unmarshal: func(data []byte, v any) error {
		v.(interface{ read([]byte) }).read(data)
		return nil
	},
}

// byteOrderMark begins what editors and shells of Windows write.
var byteOrderMark = []byte("\uFEFF")

// body is a request's JSON object. It is read to its end whatever is wrong with it, so that one
// answer says all of it: what is no JSON object ends the request before the handler is called; what
// is wrong with the object's members is in Wrong, for the handler to add to.
type body[T any] struct {
	Value T
	Wrong problem.Details

	unreadable *problem.Problem
}

func (b *body[T]) read(data []byte) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if b.unreadable = checkJSON(data); b.unreadable != nil {
		return
	}
	members, ok := object(data)
	if !ok {
		b.unreadable = problem.Only("", problem.WrongType, "expected an object")
		return
	}
	b.Wrong = readMembers(members, &b.Value)
}

// Resolve ends the request when the body is no object.
func (b *body[T]) Resolve(huma.Context) []error {
	if b.unreadable != nil {
		return []error{b.unreadable}
	}
	return nil
}

// Schema is that of T.
func (*body[T]) Schema(r huma.Registry) *huma.Schema { return r.Schema(reflect.TypeFor[T](), true, "") }

// onlyJSON refuses bodies of another type or encoding, those that are too large by their own account,
// and those that nobody would read.
func onlyJSON(ctx huma.Context, next func(huma.Context)) {
	request := humagin.Unwrap(ctx).Request
	if ctx.Operation().RequestBody == nil {
		if hasFields(request) {
			refuse(ctx, problem.Only("", problem.UnknownField, "this address takes no body: leave it out, and see /docs for what goes into the query"))
			return
		}
		next(ctx)
		return
	}
	if request.ContentLength > problem.MaxBodyBytes {
		refuse(ctx, problem.TooLarge())
		return
	}
	if sent := request.Header.Get("Content-Type"); sent != "" && !isJSON(sent) {
		refuse(ctx, problem.New(problem.UnsupportedMediaType, "the body's type is not understood: send Content-Type: application/json"))
		return
	}
	if request.Header.Get("Content-Encoding") != "" {
		refuse(ctx, problem.New(problem.UnsupportedMediaType, "the body is encoded: send it as it is, without Content-Encoding"))
		return
	}
	request.Header.Set("Content-Type", "application/json")
	next(ctx)
}

// hasFields reports whether a request that needs no body has one with something in it, which would be
// lost. Reading is left out: many clients and proxies attach something to it.
func hasFields(r *http.Request) bool {
	if r.ContentLength == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	const enough = 64 // an empty object has no more
	start, err := io.ReadAll(io.LimitReader(r.Body, enough))
	fields := strings.Join(strings.Fields(string(start)), "")
	return err == nil && fields != "" && fields != "{}"
}

func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset, named := params["charset"]
	return err == nil && media == "application/json" && (!named || strings.EqualFold(charset, "utf-8"))
}

// checkJSON reports why data is not one JSON value that can be stored.
func checkJSON(data []byte) *problem.Problem {
	if len(bytes.TrimSpace(data)) == 0 {
		return problem.New(problem.RequestEmpty, "the request has no body: send a JSON object")
	}
	if !utf8.Valid(data) {
		return problem.New(problem.InvalidUTF8, "the body is not UTF-8: encode it as UTF-8")
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return unreadable(err, decoder.InputOffset())
		}
		if token.Kind() == '"' && strings.ContainsRune(token.String(), 0) {
			return problem.New(problem.NULCharacter, "a string of the body has a NUL character: remove it, also where it is written as \\u0000")
		}
		if decoder.StackDepth() == 0 {
			break
		}
	}
	if rest := data[decoder.InputOffset():]; len(bytes.Trim(rest, " \t\r\n")) > 0 {
		return problem.Newf(problem.TrailingData, "something follows the JSON value at byte %d: send one JSON object and nothing after it", decoder.InputOffset())
	}
	return nil
}

func unreadable(err error, offset int64) *problem.Problem {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return problem.Newf(problem.DuplicateKey, "an object of the body has the same key twice, the second time at byte %d: keep one of the two", offset)
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		offset = syntax.ByteOffset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return problem.Newf(problem.MalformedJSON, "the JSON ends too early, at byte %d: close what is open", offset)
	}
	return problem.Newf(problem.MalformedJSON, "the body is not JSON at byte %d: mend its syntax there", offset)
}

// readMembers fills the struct that into points to from the members of an object, which it uses up,
// and reports what does not fit. A null is an absent field.
func readMembers(members map[string]jsontext.Value, into any) (wrong problem.Details) {
	value := reflect.ValueOf(into).Elem()
	var names []string
	for i := range value.NumField() {
		name, options, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		raw, given := members[name]
		delete(members, name)
		switch {
		case given && raw.Kind() != 'n':
			readField(&wrong, pointerTo("", name), raw, value.Field(i))
		case options == "": // no omitempty: required, as huma's schemas have it
			wrong.Add(pointerTo("", name), problem.Required, "the field "+name+" is missing: add it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		wrong.Add(pointerTo("", name), problem.UnknownField, unknownField(name, names))
	}
	return wrong
}

// object splits an object into its members.
func object(data jsontext.Value) (map[string]jsontext.Value, bool) {
	var members map[string]jsontext.Value
	if data.Kind() != '{' {
		return nil, false
	}
	return members, json.Unmarshal(data, &members) == nil
}

// readField reads one field: text, a number, or an object of texts.
func readField(wrong *problem.Details, pointer string, raw jsontext.Value, field reflect.Value) {
	texts, isTexts := field.Addr().Interface().(*map[string]string)
	if !isTexts {
		if json.Unmarshal(raw, field.Addr().Interface()) != nil {
			field.SetZero() // nothing more is said about what could not be read
			wrong.Add(pointer, problem.WrongType, "expected "+typeName(field.Type()))
		}
		return
	}
	members, ok := object(raw)
	if !ok {
		wrong.Add(pointer, problem.WrongType, "expected an object")
		return
	}
	*texts = make(map[string]string, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var text string
		if members[name].Kind() != '"' || json.Unmarshal(members[name], &text) != nil {
			wrong.Add(pointerTo(pointer, name), problem.WrongType, "expected string")
			continue
		}
		(*texts)[name] = text
	}
}

func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Int64, reflect.Int32:
		return "integer"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Int {
			return "array of integers"
		}
		return "array of strings"
	}
	return "string"
}

// longestName is how much of a name that came from outside goes into an answer.
const longestName = 64

// pointerTo points to a member. A name too long to be one of ours is left out.
func pointerTo(parent, name string) string {
	if len(name) > longestName {
		return parent
	}
	return string(jsontext.Pointer(parent).AppendToken(name))
}

func unknownField(name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return "there is no such field: did you mean " + near + "?"
	}
	return "there is no such field: the fields are " + strings.Join(known, ", ")
}

// nearest finds the known name that a typing mistake may have become name, or nothing.
func nearest(name string, known []string) string {
	if len(name) > longestName {
		return ""
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	best, fewest := "", 3
	for _, candidate := range known {
		edits := distance(plain.Replace(strings.ToLower(name)), plain.Replace(candidate))
		if edits < fewest && edits*2 < len(candidate) {
			best, fewest = candidate, edits
		}
	}
	return best
}

// distance is how many letters must be added, removed or changed to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
