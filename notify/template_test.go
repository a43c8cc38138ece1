package notify

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFullWidthBracesAndPlaceholdersInBodiesAreFound(t *testing.T) {
	for _, body := range []string{"｛｛氏名｝｝様", "{｛氏名}}様", "｛{氏名}｝様", "{{氏名｝｝様", "｛ ｛氏名｝ ｝"} {
		if _, err := ParseTemplate(body); err == nil {
			t.Errorf("%s is taken as a template", body)
		}
	}
	for body, want := range map[string]bool{
		"{{氏名}}様": true, "｛｛氏名｝｝様": true, "{{ 氏名 }}": true, "{｛a｝}": true, "｛注意｝": false, "{a}": false, "{{": false, "f(){ {} }": false,
	} {
		if HasPlaceholder(body) != want {
			t.Errorf("%s: a placeholder is found: %v", body, !want)
		}
	}
}

func TestTemplatesRender(t *testing.T) {
	tests := []struct {
		body   string
		params map[string]string
		names  []string
		want   string
	}{
		{"Hello", nil, nil, "Hello"},
		{"", nil, nil, ""},
		{"Hello {{name}}!", map[string]string{"name": "Taro"}, []string{"name"}, "Hello Taro!"},
		{"{{氏名}}様、{{ 時刻 }}に{{店_名1}}でお待ちしています。", map[string]string{"氏名": "山田", "時刻": "10時", "店_名1": "渋谷店"},
			[]string{"氏名", "時刻", "店_名1"}, "山田様、10時に渋谷店でお待ちしています。"},
		{"{{b}}{{a}}{{b}}", map[string]string{"a": "1", "b": "2"}, []string{"b", "a"}, "212"},
		{"{{\u3000名前\t}}", map[string]string{"名前": "x"}, []string{"名前"}, "x"},
		{"{{〇〇}}{{1}}{{ー}}{{_}}", map[string]string{"〇〇": "a", "1": "b", "ー": "c", "_": "d"}, []string{"〇〇", "1", "ー", "_"}, "abcd"},
		{"{name} } { {", nil, nil, "{name} } { {"},
		{"a & <b> \"c\" 'd'", nil, nil, "a & <b> \"c\" 'd'"},
		{"{{name}}", map[string]string{"name": ""}, []string{"name"}, ""},
		{"{{a}}", map[string]string{"a": "<b>&\n"}, []string{"a"}, "<b>&\n"},
		{"{{ガ}}", map[string]string{"カ\u3099": "composed"}, []string{"ガ"}, "composed"},
		{"{{カ\u3099}}", map[string]string{"ガ": "decomposed"}, []string{"ガ"}, "decomposed"},
	}
	for _, tt := range tests {
		template, err := ParseTemplate(tt.body)
		if err != nil {
			t.Errorf("%q: %v", tt.body, err)
			continue
		}
		if got := template.Params(); !reflect.DeepEqual(got, tt.names) {
			t.Errorf("%q: Params() = %q, want %q", tt.body, got, tt.names)
		}
		if got, err := template.Render(tt.params); err != nil || got != tt.want {
			t.Errorf("%q: Render = %q, %v, want %q", tt.body, got, err, tt.want)
		}
		if template.String() != tt.body {
			t.Errorf("%q reads as %q", tt.body, template)
		}
	}
}

func TestValuesAreNotExpandedAgain(t *testing.T) {
	template, err := ParseTemplate("{{a}} {{b}}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.Render(map[string]string{"a": "{{b}}", "b": "{{a}} }} {{"})
	if want := "{{b}} {{a}} }} {{"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestMalformedPlaceholders(t *testing.T) {
	tests := []struct {
		body     string
		code     string
		position int
	}{
		{"{{name", CodePlaceholderUnclosed, 1},
		{"Hello {{", CodePlaceholderUnclosed, 7},
		{"こんにちは{{氏名", CodePlaceholderUnclosed, 6},
		{"{{a {{b}}", CodePlaceholderUnclosed, 1},
		{"{{a}} {{b", CodePlaceholderUnclosed, 7},
		{"{{a}", CodePlaceholderUnclosed, 1},
		{"name}}", CodePlaceholderUnopened, 5},
		{"様}} {{a}}", CodePlaceholderUnopened, 2},
		{"{{a}}}}", CodePlaceholderUnopened, 6},
		{`{"a":{"b":1}}`, CodePlaceholderUnopened, 12},
		{"{{}}", CodePlaceholderEmpty, 1},
		{"a {{ \u3000 }}", CodePlaceholderEmpty, 3},
		{"{{first name}}", CodePlaceholderBadName, 1},
		{"{{first-name}}", CodePlaceholderBadName, 1},
		{"{{#if a}}", CodePlaceholderBadName, 1},
		{"{{&a}}", CodePlaceholderBadName, 1},
		{"{{.Name}}", CodePlaceholderBadName, 1},
		{"{{> partial}}", CodePlaceholderBadName, 1},
		{"{{{a}}", CodePlaceholderBadName, 1},
		{"{{a\n}}", CodePlaceholderBadName, 1},
		{"{{a\u200b}}", CodePlaceholderBadName, 1},
		{"{{\xff}}", CodePlaceholderBadName, 1},
		{"{{" + strings.Repeat("a", 65) + "}}", CodePlaceholderBadName, 1},
	}
	for _, tt := range tests {
		var wrong *TemplateError
		template, err := ParseTemplate(tt.body)
		if !errors.As(err, &wrong) || wrong.Code != tt.code || wrong.Position != tt.position {
			t.Errorf("%q: %+v, want %s at %d", tt.body, wrong, tt.code, tt.position)
			continue
		}
		if template.Params() != nil || template.String() != "" {
			t.Errorf("%q: a template beside an error", tt.body)
		}
		if !strings.HasPrefix(err.Error(), "template, character ") {
			t.Errorf("%q: %v", tt.body, err)
		}
	}
}

func TestParametersMustFitTheTemplate(t *testing.T) {
	template, err := ParseTemplate("{{a}} {{氏名}} {{c}}")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name             string
		params           map[string]string
		missing, unknown []string
		text             string
	}{
		{"none", nil, []string{"a", "氏名", "c"}, nil,
			"the parameters do not fit the template: give the missing parameters: a, 氏名, c"},
		{"one missing", map[string]string{"a": "", "c": ""}, []string{"氏名"}, nil,
			"the parameters do not fit the template: give the missing parameters: 氏名"},
		{"too many", map[string]string{"a": "", "氏名": "", "c": "", "z": "secret", "d": ""}, nil, []string{"d", "z"},
			"the parameters do not fit the template: remove those that the template does not have: d, z"},
		{"a typo", map[string]string{"a": "", "氏名": "", "C": ""}, []string{"c"}, []string{"C"},
			"the parameters do not fit the template: give the missing parameters: c; remove those that the template does not have: C"},
	}
	for _, tt := range tests {
		var wrong *ParamsError
		got, err := template.Render(tt.params)
		if !errors.As(err, &wrong) || got != "" {
			t.Errorf("%s: %q, %v", tt.name, got, err)
			continue
		}
		if !reflect.DeepEqual(wrong.Missing, tt.missing) || !reflect.DeepEqual(wrong.Unknown, tt.unknown) || err.Error() != tt.text {
			t.Errorf("%s: %+v %q", tt.name, wrong, err)
		}
	}

	many := map[string]string{"a": "", "氏名": "", "c": "", strings.Repeat("x", 1_000_000): ""}
	for _, name := range strings.Split("0123456789", "") {
		many[name] = ""
	}
	if _, err := template.Render(many); err == nil || len(err.Error()) > 500 || !strings.HasSuffix(err.Error(), "and 6 more") {
		t.Errorf("a long error: %.600v", err)
	}
	twice := map[string]string{"a": "", "氏名": "", "c": "", " a": ""}
	if _, err := template.Render(twice); err == nil {
		t.Error("one placeholder took two parameters")
	}
}

func TestABlankValueFillsNoPlaceholder(t *testing.T) {
	template, err := ParseTemplate("{{氏名}}様、{{time}}です。")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name                    string
		params                  map[string]string
		missing, blank, unknown []string
		text                    string
	}{
		{"an empty one", map[string]string{"氏名": "", "time": "10時"}, nil, []string{"氏名"}, nil,
			"the parameters do not fit the template: fill in those that are blank: 氏名"},
		{"spaces", map[string]string{"氏名": " \u3000\u00a0\t", "time": "\u200b"}, nil, []string{"氏名", "time"}, nil,
			"the parameters do not fit the template: fill in those that are blank: 氏名, time"},
		{"under a name that is typed with spaces", map[string]string{"\u3000氏名 ": "", "time": "10時"}, nil, []string{"氏名"}, nil,
			"the parameters do not fit the template: fill in those that are blank: 氏名"},
		{"beside a missing and an unknown one", map[string]string{"time": "", "memo": ""}, []string{"氏名"}, []string{"time"}, []string{"memo"},
			"the parameters do not fit the template: give the missing parameters: 氏名; fill in those that are blank: time; remove those that the template does not have: memo"},
	}
	for _, tt := range tests {
		var wrong *ParamsError
		got, err := template.Fill(tt.params)
		if !errors.As(err, &wrong) || got != "" {
			t.Errorf("%s: %q, %v", tt.name, got, err)
			continue
		}
		if !reflect.DeepEqual(wrong.Missing, tt.missing) || !reflect.DeepEqual(wrong.Blank, tt.blank) || !reflect.DeepEqual(wrong.Unknown, tt.unknown) || err.Error() != tt.text {
			t.Errorf("%s: %+v %q", tt.name, wrong, err)
		}
	}
	seen := map[string]string{"氏名": " 山田\u3000", "time": "-"}
	if got, err := template.Fill(seen); err != nil || got != " 山田\u3000様、-です。" {
		t.Errorf("values with something to see: %q, %v", got, err)
	}
	accepted := map[string]string{"氏名": "", "time": "\u3000"}
	if got, err := template.Render(accepted); err != nil || got != "様、\u3000です。" {
		t.Errorf("what was accepted before renders as %q, %v", got, err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "a", "{{a}}", "{{a}}{{b}} {{ a }}", "{{氏名}}様", "{{", "}}", "{{}}", "{{{a}}}", "\xff{{a}}", "{{カ\u3099}}"} {
		f.Add(seed, "{{a}}")
	}
	f.Fuzz(func(t *testing.T, body, value string) {
		template, err := ParseTemplate(body)
		if err != nil {
			var wrong *TemplateError
			if !errors.As(err, &wrong) || wrong.Position < 1 || wrong.Position > utf8.RuneCountInString(body) {
				t.Fatalf("%q: %#v", body, err)
			}
			return
		}
		params := map[string]string{}
		for _, name := range template.Params() {
			params[name] = value
		}
		got, err := template.Render(params)
		if err != nil {
			t.Fatalf("%q with %q: %v", body, params, err)
		}
		placeholders := strings.Count(body, "{{")
		texts := 0
		for _, p := range template.parts {
			texts += len(p.text)
		}
		if len(got) != texts+placeholders*len(value) {
			t.Fatalf("%q with %q became %q", body, value, got)
		}
		if filled, err := template.Fill(params); placeholders > 0 && IsBlank(value) != (err != nil) || err == nil && filled != got {
			t.Fatalf("%q with %q was filled: %q, %v", body, value, filled, err)
		}
		params["no such name"] = ""
		if _, err := template.Render(params); err == nil {
			t.Fatalf("%q took an unknown parameter", body)
		}
	})
}
