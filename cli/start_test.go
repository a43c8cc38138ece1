package cli

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/todoku/todoku/devstack/devstacktest"
)

const (
	testHashKey = "PHONE_HASH_KEY=0123456789abcdef0123456789abcdef"
	testKey     = "not-a-key-but-32-characters-long"
)

// stands for an account that nothing is ever sent through.
var testTwilio = []string{
	"TWILIO_ACCOUNT_SID=AC00000000000000000000000000000000", "TWILIO_AUTH_TOKEN=notarealtoken",
	"TWILIO_PHONE_NUMBER=+15005550006", "TWILIO_API_URL=http://127.0.0.1:1",
}

func TestFailedStartIsOneLineThatNamesTheReason(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	unmigrated := "DATABASE_URL=" + devstacktest.Postgres(t)
	unreachable := "DATABASE_URL=postgres://u:notarealpassword@127.0.0.1:1/todoku"
	anyPort := []string{"TODOKU_ADDR=127.0.0.1:0", "TODOKU_WORKER_ADDR=127.0.0.1:0"}
	complete := append([]string{unmigrated, testHashKey}, append(testTwilio, anyPort...)...)
	with := func(more ...string) []string { return append(complete[:len(complete):len(complete)], more...) }

	for _, test := range []struct {
		name, command string
		env           []string
		names         []string
	}{
		{"no database", "api", nil, []string{"DATABASE_URL is missing"}},
		{"no database", "worker", nil, []string{"DATABASE_URL is missing"}},
		{"no database", "migrate up", nil, []string{"DATABASE_URL is missing"}},
		{"no database", "key list", nil, []string{"DATABASE_URL is missing"}},
		{"no Twilio", "api", []string{unmigrated}, []string{"TWILIO_ACCOUNT_SID is missing"}},
		{"no sender", "worker", with("TWILIO_PHONE_NUMBER="), []string{"TWILIO_PHONE_NUMBER", "TWILIO_MESSAGING_SERVICE_SID"}},
		{"no hash key", "api", with("PHONE_HASH_KEY="), []string{"PHONE_HASH_KEY is missing"}},
		{"malformed pace", "worker", with("SMS_SEND_INTERVAL=soon"), []string{"SMS_SEND_INTERVAL is not a duration"}},
		{"malformed zone", "api", with("DEFAULT_TIMEZONE=Mars"), []string{"DEFAULT_TIMEZONE"}},
		{"malformed address", "api", with("TODOKU_ADDR=here"), []string{"TODOKU_ADDR is not host:port"}},
		{"unreachable database", "api", with(unreachable), []string{"DATABASE_URL", "127.0.0.1:1", "cannot be reached"}},
		{"unreachable database", "worker", with(unreachable), []string{"DATABASE_URL", "cannot be reached"}},
		{"unreachable database", "migrate status", with(unreachable), []string{"DATABASE_URL", "cannot be reached"}},
		{"unmigrated schema", "api", complete, []string{"run `todoku migrate up`"}},
		{"unmigrated schema", "worker", complete, []string{"run `todoku migrate up`"}},
		{"callback URL not https", "api", with("TWILIO_API_URL=", "TODOKU_PUBLIC_URL=http://todoku.example.com"), []string{"TODOKU_PUBLIC_URL is not a public https address"}},
		{"callback URL not public", "worker", with("TWILIO_API_URL=", "TODOKU_PUBLIC_URL=https://localhost"), []string{"TODOKU_PUBLIC_URL is not a public https address"}},
		{"port taken", "api", with("TODOKU_ADDR=" + taken.Addr().String()), []string{"TODOKU_ADDR: another program listens on " + taken.Addr().String()}},
		{"port taken", "worker", with("TODOKU_WORKER_ADDR=" + taken.Addr().String()), []string{"TODOKU_WORKER_ADDR: another program listens on"}},
		{"port taken", "simulator --addr " + taken.Addr().String(), nil, []string{"--addr: another program listens on"}},
		{"malformed pace", "dev", []string{"SMS_SEND_INTERVAL=soon"}, []string{"SMS_SEND_INTERVAL is not a duration"}},
		{"callback URL not https", "dev", []string{testTwilio[0], testTwilio[1], testTwilio[2], "TODOKU_PUBLIC_URL=http://todoku.example.com"}, []string{"TODOKU_PUBLIC_URL is not a public https address"}},
	} {
		t.Run(test.command+" with "+test.name, func(t *testing.T) {
			cmd := program(t, test.env, strings.Fields(test.command)...)
			cmd.Dir = t.TempDir()
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
				t.Errorf("it ended with %v, want exit code %d", err, exitFailed)
			}
			line := errOut.String()
			if strings.Count(line, "\n") != 1 || out.Len() > 0 {
				t.Errorf("want one line on standard error, and nothing else; got %q and %q", line, out.String())
			}
			for _, name := range append(test.names, "todoku "+strings.Fields(test.command)[0]) {
				if !strings.Contains(line, name) {
					t.Errorf("want %q in %q", name, line)
				}
			}
			for _, secret := range []string{"notarealpassword", "notarealtoken", "AC0000"} {
				if strings.Contains(line, secret) {
					t.Errorf("%q gives away a secret", line)
				}
			}
		})
	}
}

func TestServiceThatLacksASettingSaysThatItReadsNoDotEnv(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"api", "worker"} {
		cmd := program(t, nil, command)
		cmd.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(cmd.Dir, ".env"), []byte("DATABASE_URL=postgres://u:notarealpassword@127.0.0.1:1/todoku\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		printed, _ := cmd.CombinedOutput() // that it fails is what the table above shows
		for _, want := range []string{"DATABASE_URL is missing", "services do not read the .env in this folder"} {
			if !strings.Contains(string(printed), want) {
				t.Errorf("todoku %s: want %q in %q", command, want, printed)
			}
		}
	}
}

func TestFailedDevShowsTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	cmd := program(t, []string{"DATABASE_URL=postgres://u:notarealpassword@127.0.0.1:1/todoku"}, "dev", "--ephemeral")
	cmd.Dir = t.TempDir()
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Run(); err == nil {
		t.Fatal("it starts without a database")
	}
	if said := errOut.String(); !strings.HasPrefix(said, "todoku dev: migrate failed") || !strings.Contains(said, "\n    todoku migrate up: DATABASE_URL: ") || strings.Contains(said, "notarealpassword") {
		t.Errorf("it says\n%s", said)
	}
}
