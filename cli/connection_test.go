package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// connect finds a connection as a client command with these flags does.
func connect(t *testing.T, flags ...string) (found connection, err error) {
	t.Helper()
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
		found, err = findConnection(cmd)
		return nil
	}}
	addConnectionFlags(cmd)
	cmd.SetArgs(flags)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	return found, err
}

const devURL = "http://127.0.0.1:18080"

// devRuns leaves what a `todoku dev` that runs in this folder leaves.
func (term *terminal) devRuns() {
	term.t.Helper()
	if err := os.Mkdir(devFolder, 0o755); err != nil {
		term.t.Fatal(err)
	}
	term.writeFile(filepath.Join(devFolder, devReady), `{"api":"`+devURL+`","api_key":"devkey","database_url":"postgres://dev"}`)
}

func TestConnectionIsFound(t *testing.T) {
	for _, test := range []struct {
		name  string
		dev   bool
		env   map[string]string
		file  string // .env
		flags []string

		url, key string
		fails    string
	}{
		{name: "by what dev left", dev: true, url: devURL, key: "devkey"},
		{name: "by the environment", env: map[string]string{"TODOKU_URL": "https://api.test/", "TODOKU_API_KEY": "k"}, url: "https://api.test", key: "k"},
		{name: "by the environment before dev", dev: true, env: map[string]string{"TODOKU_URL": "https://api.test", "TODOKU_API_KEY": "k"}, url: "https://api.test", key: "k"},
		{name: "by .env", file: "TODOKU_URL=https://api.test\nTODOKU_API_KEY=k", url: "https://api.test", key: "k"},
		{name: "by the environment before .env", env: map[string]string{"TODOKU_URL": "https://one.test"}, file: "TODOKU_URL=https://two.test\nTODOKU_API_KEY=k", url: "https://one.test", key: "k"},
		{name: "by the flag before the environment", env: map[string]string{"TODOKU_URL": "https://one.test", "TODOKU_API_KEY": "k"}, flags: []string{"--api-url", "https://two.test"}, url: "https://two.test", key: "k"},
		{name: "with the key in a file", env: map[string]string{"TODOKU_URL": "https://api.test", "TODOKU_API_KEY": "k"}, flags: []string{"--api-key-file", "key"}, url: "https://api.test", key: "from-file"},
		{name: "with the key in a file of the environment", env: map[string]string{"TODOKU_URL": "https://api.test", "TODOKU_API_KEY_FILE": "key"}, url: "https://api.test", key: "from-file"},
		{name: "with another key for dev", dev: true, env: map[string]string{"TODOKU_API_KEY": "k"}, url: devURL, key: "k"},
		{name: "with dev's own address given", dev: true, flags: []string{"--api-url", devURL + "/"}, url: devURL, key: "devkey"},
		{name: "at the usual place", env: map[string]string{"TODOKU_API_KEY": "k"}, url: defaultURL, key: "k"},

		{name: "over http in this machine's network", env: map[string]string{"TODOKU_URL": "http://[::1]:8080", "TODOKU_API_KEY": "k"}, url: "http://[::1]:8080", key: "k"},
		{name: "over http where it is allowed", env: map[string]string{"TODOKU_URL": "http://api:8080", "TODOKU_API_KEY": "k", "TODOKU_ALLOW_HTTP": "api"}, url: "http://api:8080", key: "k"},
		{name: "over http where the flag allows it", env: map[string]string{"TODOKU_URL": "http://api:8080", "TODOKU_API_KEY": "k"}, flags: []string{"--allow-http", "API"}, url: "http://api:8080", key: "k"},

		{name: "over http to another host", env: map[string]string{"TODOKU_URL": "http://api.test", "TODOKU_API_KEY": "k"}, fails: "unencrypted: write https, or allow it with --allow-http api.test"},
		{name: "over http to another host than is allowed", env: map[string]string{"TODOKU_URL": "http://api.test", "TODOKU_API_KEY": "k", "TODOKU_ALLOW_HTTP": "other.test"}, fails: "unencrypted"},
		{name: "over http to a name that begins like this machine's", env: map[string]string{"TODOKU_URL": "http://localhost.api.test", "TODOKU_API_KEY": "k"}, fails: "unencrypted"},
		{name: "not at all", fails: "run `todoku dev` in this folder, or set TODOKU_URL and TODOKU_API_KEY"},
		{name: "without a key", env: map[string]string{"TODOKU_URL": "https://api.test"}, fails: "no API key for https://api.test"},
		{name: "elsewhere without dev's key", dev: true, env: map[string]string{"TODOKU_URL": "https://api.test"}, fails: "no API key for https://api.test"},
		{name: "without a scheme", env: map[string]string{"TODOKU_URL": "127.0.0.1:8080", "TODOKU_API_KEY": "k"}, fails: "TODOKU_URL is no base URL"},
		{name: "without the key's file", flags: []string{"--api-key-file", "nowhere"}, fails: "--api-key-file: open nowhere"},
		{name: "with an empty key's file", flags: []string{"--api-key-file", "empty"}, fails: "empty is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			term := newTerminal(t)
			term.writeFile("key", "from-file\n")
			term.writeFile("empty", "\n")
			if test.dev {
				term.devRuns()
			}
			if test.file != "" {
				term.writeFile(".env", test.file)
			}
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			found, err := connect(t, test.flags...)
			switch {
			case test.fails == "" && err != nil:
				t.Fatal(err)
			case test.fails == "" && (found.url != test.url || found.key != test.key):
				t.Errorf("found %q with key %q, want %q with %q", found.url, found.key, test.url, test.key)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Errorf("the error is %v, want %q", err, test.fails)
			}
		})
	}
}

func TestMessageLanguageIsThatOfTheMachine(t *testing.T) {
	for _, test := range []struct{ all, messages, lang, want string }{
		{"", "", "", "en"},
		{"", "", "C.UTF-8", "en"},
		{"", "", "ja_JP.UTF-8", "ja-JP"},
		{"", "ja_JP", "en_US.UTF-8", "ja-JP"},
		{"de_DE@euro", "ja_JP", "en_US", "de-DE"},
		{"POSIX", "", "ja_JP.UTF-8", "en"},
	} {
		t.Setenv("LC_ALL", test.all)
		t.Setenv("LC_MESSAGES", test.messages)
		t.Setenv("LANG", test.lang)
		if got := messageLanguage(); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}
