package devstack

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSecretComesFromItsVariableOrItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, want string
		lines      []string
		fails      bool
	}{
		{name: "neither", want: ""},
		{name: "variable", lines: []string{"KEY=from the variable"}, want: "from the variable"},
		{name: "file", lines: []string{"KEY_FILE=" + file}, want: "from the file"},
		{name: "both", lines: []string{"KEY_FILE=" + file, "KEY=from the variable"}, want: "from the variable"},
		{name: "no such file", lines: []string{"KEY_FILE=" + file + ".gone"}, fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := newEnvironment(test.lines).secret("KEY")
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestSetTakesAwayTheFileThatWouldContradict(t *testing.T) {
	e := newEnvironment([]string{"KEY_FILE=/somewhere", "OTHER=1"})
	e.setDefault("KEY", "default")
	if e["KEY"] != "" {
		t.Errorf("a default took the place of a file: %v", e)
	}
	changed := e.with("KEY", "new")
	if got := changed.lines(); !slices.Equal(got, []string{"KEY=new", "OTHER=1"}) {
		t.Errorf("lines %q", got)
	}
	if e["KEY_FILE"] != "/somewhere" {
		t.Error("with changed the original")
	}
}
