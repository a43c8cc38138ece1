package notify

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// NewLogHandler wraps a handler so that a secret, an account SID, a phone number or a body is hard
// to log by accident. Every record passes through it:
//
//   - Attributes whose names say so (password, token, api_key, authorization, params, …) become
//     "[redacted]"; to, from, phone and the like keep the last 4 digits; body and text keep an
//     [Excerpt].
//   - In everything else that is text (the message, errors, URLs, Stringers, the fields of structs
//     and maps), what looks like a secret, an account SID or a number is replaced, and so is each of
//     the given secrets wherever it stands. Secrets shorter than 4 characters are not looked for.
//
// SIDs of messages and calls, UUIDs, times, durations and numbers that are not phone numbers stay.
// It is a safety net, not a licence: what it cannot recognise by name or looks, it lets through.
func NewLogHandler(inner slog.Handler, secrets ...string) slog.Handler {
	return &logHandler{inner: inner, scrub: newScrubber(secrets)}
}

type logHandler struct {
	inner slog.Handler
	scrub scrubber
	group privacy // of the group that attributes are in
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, h.scrub.text(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.scrub.attr(h.group, a))
		return true
	})
	return h.inner.Handle(ctx, clean)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.scrub.attr(h.group, a)
	}
	return &logHandler{inner: h.inner.WithAttrs(clean), scrub: h.scrub, group: h.group}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &logHandler{inner: h.inner.WithGroup(name), scrub: h.scrub, group: max(h.group, privacyOf(name))}
}

// privacy says what an attribute's name promises about its value. What is inside of it is at least
// as private.
type privacy int

const (
	public privacy = iota
	bodyText
	phoneNumber
	secret
)

// Names are compared in lower case and without separators: "Auth-Token" is "authtoken".
var (
	secretNames  = []string{"auth", "cookie", "key", "params", "pass", "pwd", "setcookie", "variables"}
	secretParts  = []string{"password", "passwd", "passphrase", "secret", "credential", "apikey", "authtoken", "authorization", "accountsid", "privatekey", "hashkey"}
	secretEnds   = []string{"token", "bearer"}
	phoneNames   = []string{"to", "from", "tonumber", "fromnumber", "number", "numbers", "national", "recipient", "recipients", "caller", "called", "callerid", "e164", "msisdn", "tel", "contacturi"}
	phoneParts   = []string{"phone"}
	bodyNames    = []string{"body", "messagebody", "smsbody", "callbody", "text", "twiml", "rendered"}
	nameFlattens = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
)

func privacyOf(name string) privacy {
	name = nameFlattens.Replace(strings.ToLower(name))
	switch {
	case equalsAny(name, secretNames), matchesAny(strings.Contains, name, secretParts), matchesAny(strings.HasSuffix, name, secretEnds):
		return secret
	case equalsAny(name, phoneNames), matchesAny(strings.Contains, name, phoneParts):
		return phoneNumber
	case equalsAny(name, bodyNames):
		return bodyText
	}
	return public
}

func equalsAny(name string, list []string) bool {
	return matchesAny(func(a, b string) bool { return a == b }, name, list)
}

func matchesAny(match func(s, part string) bool, name string, list []string) bool {
	for _, part := range list {
		if match(name, part) {
			return true
		}
	}
	return false
}

func (s scrubber) attr(around privacy, a slog.Attr) slog.Attr {
	if a.Equal(slog.Attr{}) {
		return a // handlers leave the empty attribute out
	}
	return slog.Attr{Key: s.text(a.Key), Value: s.value(max(around, privacyOf(a.Key)), a.Value)}
}

func (s scrubber) value(p privacy, v slog.Value) slog.Value {
	v = v.Resolve()
	if v.Kind() == slog.KindGroup {
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, a := range group {
			clean[i] = s.attr(p, a)
		}
		return slog.GroupValue(clean...)
	}
	if p == secret {
		return slog.StringValue(redacted)
	}
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(s.string(p, v.String()))
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64:
		if digits := v.String(); p == phoneNumber && looksAddressed(digits) {
			return slog.StringValue(maskNumber(digits))
		}
		return v
	case slog.KindAny:
		return slog.AnyValue(s.plain(p, reflect.ValueOf(v.Any()), 0))
	}
	return v // a bool, a duration or a time
}

func (s scrubber) string(p privacy, t string) string {
	switch p {
	case secret:
		return redacted
	case phoneNumber:
		return s.phone(t)
	case bodyText:
		return s.body(t)
	}
	return s.text(t)
}

const (
	maxDepth    = 6   // of a logged value; deeper is left out, and so is a cycle
	maxElements = 100 // of a logged slice or map
)

// plain turns any value into strings, numbers, slices and maps that hold nothing private. A value
// that knows how to describe itself is asked; the rest is taken apart, so that the names of fields
// and keys count as those of attributes do.
func (s scrubber) plain(p privacy, v reflect.Value, depth int) any {
	if !v.IsValid() {
		return nil
	}
	if p == secret {
		return redacted
	}
	if depth > maxDepth {
		return "…"
	}
	if v.CanInterface() {
		switch described := v.Interface().(type) {
		case *slog.Source, time.Time:
			return described
		case slog.LogValuer:
			return s.fromLogValuer(p, described, depth)
		case error, fmt.Stringer:
			return s.string(p, fmt.Sprint(described)) // fmt survives a nil receiver and a panic
		}
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		if text := v.Bytes(); utf8.Valid(text) {
			return s.string(p, string(text))
		}
		return fmt.Sprintf("[%d bytes]", v.Len())
	}
	switch v.Kind() {
	case reflect.String:
		return s.string(p, v.String())
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return s.value(p, slog.Int64Value(v.Int())).Any()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return s.value(p, slog.Uint64Value(v.Uint())).Any()
	case reflect.Float32, reflect.Float64:
		return s.value(p, slog.Float64Value(v.Float())).Any()
	case reflect.Pointer, reflect.Interface:
		return s.plain(p, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		list := make([]any, 0, min(v.Len(), maxElements))
		for i := range min(v.Len(), maxElements) {
			list = append(list, s.plain(p, v.Index(i), depth+1))
		}
		return list
	case reflect.Map:
		entries := make(map[string]any)
		for keys := v.MapRange(); keys.Next() && len(entries) < maxElements; {
			name := fmt.Sprint(s.plain(public, keys.Key(), depth+1))
			entries[name] = s.plain(max(p, privacyOf(name)), keys.Value(), depth+1)
		}
		return entries
	case reflect.Struct:
		fields := make(map[string]any)
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				fields[field.Name] = s.plain(max(p, privacyOf(field.Name)), v.Field(i), depth+1)
			}
		}
		return fields
	}
	return v.Type().String() // a function or a channel
}

// fromLogValuer asks a value inside of another one for what it wants to show. As an attribute's
// whole value it was asked already.
func (s scrubber) fromLogValuer(p privacy, valuer slog.LogValuer, depth int) any {
	shown := slog.AnyValue(valuer).Resolve()
	if shown.Kind() != slog.KindGroup {
		return s.plain(p, reflect.ValueOf(shown.Any()), depth+1)
	}
	fields := make(map[string]any)
	for _, a := range shown.Group() {
		fields[a.Key] = s.plain(max(p, privacyOf(a.Key)), reflect.ValueOf(a.Value.Resolve().Any()), depth+1)
	}
	return fields
}
