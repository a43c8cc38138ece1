package cli

import (
	"strings"
	"testing"
)

func TestDotEnvAddsWhatTheEnvironmentLacks(t *testing.T) {
	term := newTerminal(t)
	term.writeFile(".env", "TODOKU_A=file\nTODOKU_B=file\nTODOKU_C_FILE=file\nTODOKU_D=file\nTODOKU_E='a $b c'\n# a comment\n")
	t.Setenv("TODOKU_B", "environment")
	t.Setenv("TODOKU_C", "environment")
	t.Setenv("TODOKU_D_FILE", "environment")
	environment, err := environ()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"TODOKU_A": "file", "TODOKU_B": "environment", "TODOKU_E": "a $b c",
		"TODOKU_C": "environment", "TODOKU_C_FILE": "", // a secret has one source
		"TODOKU_D": "", "TODOKU_D_FILE": "environment",
	} {
		if environment[name] != want {
			t.Errorf("%s is %q, want %q", name, environment[name], want)
		}
	}
}

func TestUnreadableDotEnvIsNotQuoted(t *testing.T) {
	term := newTerminal(t)
	term.writeFile(".env", "TWILIO_AUTH_TOKEN='verysecret\n")
	_, err := environ()
	if err == nil || strings.Contains(err.Error(), "verysecret") || !strings.Contains(err.Error(), ".env") {
		t.Errorf("the error is %v", err)
	}
}
