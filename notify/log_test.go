package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/slogtest"
	"time"
)

// logged runs a function with a logger and returns the record that it wrote, without time and level.
func logged(t *testing.T, write func(*slog.Logger)) (record map[string]any, line string) {
	t.Helper()
	var out bytes.Buffer
	write(slog.New(NewLogHandler(slog.NewJSONHandler(&out, nil), fakeToken)))
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	delete(record, "time")
	delete(record, "level")
	return record, out.String()
}

func TestLogHandlerKeepsTheContractOfSlog(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return NewLogHandler(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) map[string]any {
		var record map[string]any
		if err := json.Unmarshal(out.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		return record
	})
}

type sentMessage struct {
	To, Body string
	Retries  int
	At       time.Time
	hidden   string
}

type recipient struct{ number string }

func (r recipient) String() string { return "recipient " + r.number }

type valued struct{ number string }

func (v valued) LogValue() slog.Value {
	return slog.GroupValue(slog.String("phone_number", v.number), slog.Int("n", 1))
}

type panicking struct{}

func (panicking) String() string { panic("oh +819012345678") }

func TestAttributesByName(t *testing.T) {
	number, body := "+819012345678", "ご予約は明日です。"+strings.Repeat("あ", 60)
	at := time.Date(2026, 11, 29, 16, 11, 0, 90123456, time.UTC)
	tests := []struct {
		attr slog.Attr
		want any
	}{
		{slog.String("to", number), "*********5678"},
		{slog.String("From", "090-1234-5678"), "*******5678"},
		{slog.String("to", "０９０ー１２３４ー５６７８"), "*******5678"},
		{slog.String("to", "taro@example.jp"), "**************"},
		{slog.String("phone", number), "*********5678"},
		{slog.String("phoneNumber", number), "*********5678"},
		{slog.String("recipient_phone", number), "*********5678"},
		{slog.String("number", "1234567"), "*******"},
		{slog.Int64("to", 819012345678), "********5678"},
		{slog.Any("to", []string{number, number}), []any{"*********5678", "*********5678"}},
		{slog.String("from", "ACCEPTED"), "ACCEPTED"},
		{slog.String("to", fakeMessage), fakeMessage},
		{slog.Int("from", 1000), 1000.0},
		{slog.Time("from", at), "2026-11-29T16:11:00.090123456Z"},
		{slog.String("from", "2026-11-29T16:11:00+09:00"), "2026-11-29T16:11:00+09:00"},
		{slog.Duration("to", time.Second), 1e9},

		{slog.String("body", body), "ご予約は明日です。" + strings.Repeat("あ", 40) + "…"},
		{slog.String("message_body", "短い"), "短い"},
		{slog.String("text", "call 090-1234-5678\nnow"), "call *******5678 now"},
		{slog.Any("Body", []byte("短い")), "短い"},

		{slog.String("password", "hunter2"), redacted},
		{slog.String("db_password", "hunter2"), redacted},
		{slog.String("token", "x"), redacted},
		{slog.String("claimToken", "x"), redacted},
		{slog.String("client-secret", "x"), redacted},
		{slog.String("Authorization", "x"), redacted},
		{slog.String("API-Key", "x"), redacted},
		{slog.String("phone_hash_key", "x"), redacted},
		{slog.Int("token", 5), redacted},
		{slog.Any("params", map[string]string{"氏名": "山田"}), redacted},
		{slog.Group("params", slog.String("name", "山田"), slog.Int("n", 1)), map[string]any{"name": redacted, "n": redacted}},
		{slog.String("account_sid", "x"), redacted},

		{slog.String("url", "postgres://u:hunter2@h/d"), "postgres://u:[redacted]@h/d"},
		{slog.Any("url", &url.URL{Scheme: "https", Host: "h", RawQuery: "To=%2B819012345678"}), "https://h?To=*********5678"},
		{slog.Any("error", fmt.Errorf("create: %w", errors.New("no route to "+number))), "create: no route to ********5678"},
		{slog.Any("error", error(nil)), nil},
		{slog.Any("error", (*InvalidNumberError)(nil)), "<nil>"},
		{slog.Any("who", recipient{number}), "recipient ********5678"},
		{slog.Any("who", []recipient{{number}}), []any{"recipient ********5678"}},
		{slog.Any("who", valued{number}), map[string]any{"phone_number": "*********5678", "n": 1.0}},
		{slog.Any("who", []valued{{number}}), []any{map[string]any{"phone_number": "*********5678", "n": 1.0}}},
		{slog.Any("message", sentMessage{To: number, Body: body, Retries: 3, At: at, hidden: number}),
			map[string]any{"To": "*********5678", "Body": "ご予約は明日です。" + strings.Repeat("あ", 40) + "…", "Retries": 3.0, "At": "2026-11-29T16:11:00.090123456Z"}},
		{slog.Any("message", &sentMessage{}), map[string]any{"To": "", "Body": "", "Retries": 0.0, "At": "0001-01-01T00:00:00Z"}},
		{slog.Any("header", http.Header{"Authorization": {"x"}, "Accept": {"*/*"}}),
			map[string]any{"Authorization": redacted, "Accept": []any{"*/*"}}},
		{slog.Any("form", url.Values{"To": {number}, "N": {"1"}}), map[string]any{"To": []any{"*********5678"}, "N": []any{"1"}}},
		{slog.Any("outcomes", map[string]int{number: 1}), map[string]any{"********5678": 1.0}},
		{slog.Any("raw", json.RawMessage(`{"to":"+819012345678"}`)), `{"to":"********5678"}`},
		{slog.Any("raw", []byte{0xff, 0xfe}), "[2 bytes]"},
		{slog.Any("f", func() {}), "func()"},
		{slog.Any("nothing", nil), nil},
		{slog.String(number, "x"), nil}, // the name is scrubbed too; see below

		{slog.String("id", "01920000-0123-7456-8901-098765432101"), "01920000-0123-7456-8901-098765432101"},
		{slog.String("sid", fakeMessage), fakeMessage},
		{slog.Int64("rows", 819012345678), 819012345678.0},
		{slog.Uint64("rows", 9012345678), 9012345678.0},
		{slog.Float64("rate", 0.1234567890), 0.123456789},
		{slog.Bool("ok", true), true},
		{slog.Duration("took", 1500*time.Millisecond), 1.5e9},
		{slog.Time("sent_at", at), "2026-11-29T16:11:00.090123456Z"},
		{slog.String("workflow_id", "batch/12/0"), "batch/12/0"},
		{slog.String("code", "30003"), "30003"},
	}
	for _, tt := range tests {
		record, _ := logged(t, func(l *slog.Logger) { l.LogAttrs(context.Background(), slog.LevelInfo, "m", tt.attr) })
		got := record[tt.attr.Key]
		if collapseStars(fmt.Sprintf("%#v", got)) != collapseStars(fmt.Sprintf("%#v", tt.want)) {
			t.Errorf("%v was logged as %#v, want %#v", tt.attr, got, tt.want)
		}
	}
}

func TestNothingPrivateLeavesByAnyDoor(t *testing.T) {
	number, body := "+819012345678", "your code is 4711, do not tell"
	account, token := fakeAccount, fakeToken
	doors := map[string]func(*slog.Logger, string){
		"message":            func(l *slog.Logger, s string) { l.Info("it is " + s) },
		"attribute":          func(l *slog.Logger, s string) { l.Info("m", "x", s) },
		"attribute's name":   func(l *slog.Logger, s string) { l.Info("m", s, 1) },
		"bad key":            func(l *slog.Logger, s string) { l.Info("m", []any{s}...) },
		"group":              func(l *slog.Logger, s string) { l.Info("m", slog.Group("g", slog.Group("h", "x", s))) },
		"inline group":       func(l *slog.Logger, s string) { l.Info("m", slog.Group("", "x", s)) },
		"With":               func(l *slog.Logger, s string) { l.With("x", s).Info("m") },
		"WithGroup":          func(l *slog.Logger, s string) { l.WithGroup("g").Info("m", "x", s) },
		"WithGroup and With": func(l *slog.Logger, s string) { l.WithGroup("g").With("x", s).WithGroup("h").Info("m", "y", s) },
		"error":              func(l *slog.Logger, s string) { l.Error("m", "err", errors.New(s)) },
		"joined errors":      func(l *slog.Logger, s string) { l.Error("m", "err", errors.Join(errors.New("a"), errors.New(s))) },
		"url error": func(l *slog.Logger, s string) {
			l.Error("m", "err", &url.Error{Op: "Post", URL: "https://h/" + s, Err: errors.New("refused")})
		},
		"Stringer":      func(l *slog.Logger, s string) { l.Info("m", "x", recipient{s}) },
		"LogValuer":     func(l *slog.Logger, s string) { l.Info("m", "x", valued{s}) },
		"struct":        func(l *slog.Logger, s string) { l.Info("m", "x", struct{ A, B any }{s, []any{&s}}) },
		"printed value": func(l *slog.Logger, s string) { l.Info(fmt.Sprintf("%+v", sentMessage{To: s, Body: s})) },
		"map":           func(l *slog.Logger, s string) { l.Info("m", "x", map[string]any{"a": map[any]any{1: s, s: 2}}) },
		"bytes":         func(l *slog.Logger, s string) { l.Info("m", "x", []byte(s)) },
		"array":         func(l *slog.Logger, s string) { l.Info("m", "x", [1]string{s}) },
		"attrs":         func(l *slog.Logger, s string) { l.Info("m", "x", []slog.Attr{slog.String("y", s)}) },
		"JSON":          func(l *slog.Logger, s string) { l.Info("m", "x", fmt.Sprintf(`{"a":%q}`, s)) },
	}
	for name, door := range doors {
		for _, private := range []string{number, account, token, "090-1234-5678", "Bearer " + "abcDEF123456", "postgres://u:hunter2pass@h/d"} {
			_, line := logged(t, func(l *slog.Logger) { door(l, private) })
			for _, leak := range []string{number, "9012345678", "1234-5678", account[2:], token, "abcDEF123456", "hunter2pass"} {
				if strings.Contains(line, leak) {
					t.Errorf("%s: %q leaked: %s", name, private, line)
				}
			}
		}
	}
	bodies := map[string]func(*slog.Logger){
		"attribute":     func(l *slog.Logger) { l.Info("m", "params", map[string]string{"x": body}) },
		"group":         func(l *slog.Logger) { l.WithGroup("params").With("x", body).Info("m", "y", body) },
		"nested":        func(l *slog.Logger) { l.WithGroup("params").Info("m", slog.Group("g", "y", body)) },
		"printed value": func(l *slog.Logger) { l.Info(fmt.Sprintf("sending %+v", sentMessage{Body: body})) },
		"Go syntax":     func(l *slog.Logger) { l.Info(fmt.Sprintf("sending %#v", sentMessage{Body: body})) },
		"JSON":          func(l *slog.Logger) { l.Info(`{"body":"` + body + `"}`) },
		"form":          func(l *slog.Logger) { l.Info(url.Values{"Body": {body}}.Encode()) },
	}
	for name, door := range bodies {
		if _, line := logged(t, door); strings.Contains(line, "4711") {
			t.Errorf("%s: the body leaked: %s", name, line)
		}
	}
}

func TestValuesThatMisbehaveAreLogged(t *testing.T) {
	type node struct{ Next *node }
	cycle := &node{}
	cycle.Next = cycle
	wide := make([]int, 100_000)
	for _, value := range []any{panicking{}, []any{panicking{}}, cycle, wide, (*recipient)(nil), make(chan int), map[string]any{"a": nil}} {
		_, line := logged(t, func(l *slog.Logger) { l.Info("m", "x", value) })
		if len(line) > 2000 || strings.Contains(line, "9012345678") {
			t.Errorf("%T: %.300s", value, line)
		}
	}
}

func TestDisabledLevelsStayDisabled(t *testing.T) {
	handler := NewLogHandler(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if ctx := context.Background(); handler.Enabled(ctx, slog.LevelInfo) || !handler.Enabled(ctx, slog.LevelWarn) {
		t.Error("the handler does not ask the one that it wraps")
	}
}

func TestRecordsKeepTheirTimeLevelAndSource(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(NewLogHandler(slog.NewJSONHandler(&out, &slog.HandlerOptions{AddSource: true})))
	logger.Warn("m")
	for _, want := range []string{`"level":"WARN"`, `"time":"`, "log_test.go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}
