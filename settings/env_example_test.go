package settings

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// elsewhere are the settings in .env.example that other programs and the command line read, with the
// values that they have there.
var elsewhere = map[string]string{
	"TODOKU_URL":         "",
	"TEMPORAL_ADDRESS":   "",
	"TEMPORAL_NAMESPACE": "default",
}

// example is one setting of .env.example with the comment above it.
type example struct{ value, comment string }

func readExamples(t *testing.T) map[string]example {
	t.Helper()
	examples := map[string]example{}
	var comment []string
	afterSetting := false
	for _, line := range strings.Split(readFile(t, "../.env.example"), "\n") {
		if line == "" || strings.HasPrefix(line, "# ---") { // between two groups
			comment = nil
			continue
		}
		if text, ok := strings.CutPrefix(line, "# "); ok {
			if afterSetting {
				comment = nil
			}
			comment, afterSetting = append(comment, text), false
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || name != strings.TrimSpace(name) {
			t.Errorf("this line of .env.example is no setting: %q", line)
			continue
		}
		if _, twice := examples[name]; twice {
			t.Errorf(".env.example has %s twice", name)
		}
		examples[name] = example{value, strings.Join(comment, " ")}
		afterSetting = true
	}
	return examples
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// declared gives the tags of each setting by its name.
func declared() map[string]reflect.StructTag {
	tags := map[string]reflect.StructTag{}
	for f := range reflect.TypeFor[Settings]().Fields() {
		if name := f.Tag.Get("env"); name != "" {
			tags[name] = f.Tag
		}
	}
	return tags
}

func TestEnvExampleListsEverySettingWithItsDefault(t *testing.T) {
	want := maps.Clone(elsewhere)
	for name, tag := range declared() {
		want[name] = tag.Get("envDefault")
	}
	examples := readExamples(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		got, listed := examples[name]
		switch {
		case !listed:
			t.Errorf(".env.example lacks %s", name)
		case got.value != want[name]:
			t.Errorf(".env.example has %s=%s, but the default is %q", name, got.value, want[name])
		case got.comment == "":
			t.Errorf(".env.example does not say what %s is", name)
		}
		delete(examples, name)
	}
	for name := range examples {
		t.Errorf(".env.example has %s, which nothing reads", name)
	}
}

func TestEnvExampleMarksSecrets(t *testing.T) {
	examples := readExamples(t)
	for name, tag := range declared() {
		if marked, secret := strings.HasPrefix(examples[name].comment, "(secret)"), tag.Get("secret") == "true"; marked != secret {
			t.Errorf("%s: marked as a secret is %v, and it is one: %v", name, marked, secret)
		}
	}
}

func TestEnvExampleCanBeLoaded(t *testing.T) {
	environ := map[string]string{}
	for name, e := range readExamples(t) {
		environ[name] = e.value
	}
	if _, err := LoadFrom(environ, 0); err != nil {
		t.Errorf("a copy of .env.example stops the start: %v", err)
	}
}

// The tables of settings begin their rows with the name and the default.
func TestREADMEsListEverySettingWithItsDefault(t *testing.T) {
	for _, path := range []string{"../README.md", "../README.ja.md"} {
		text := readFile(t, path)
		for name, tag := range declared() {
			row := "| `" + name + "` | "
			if d := tag.Get("envDefault"); d != "" {
				row += "`" + d + "` |"
			}
			if !strings.Contains(text, "\n"+row) {
				t.Errorf("%s has no row that begins with %q", path, row)
			}
		}
	}
}
