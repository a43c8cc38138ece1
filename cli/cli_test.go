package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBadUsageEndsWithTwoAndSaysWhy(t *testing.T) {
	term := newTerminal(t)
	for _, test := range []struct {
		args string
		says string
	}{
		{"bogus", `todoku: unknown command "bogus"`},
		{"sned", "Did you mean this?\n\tsend"},
		{"--bogus", "unknown flag: --bogus"},
		{"send", "say which: sms, call"},
		{"send fax", `unknown command "fax": there are sms, call`},
		{"send cal", "did you mean call?"},
		{"send sms", "missing: --to"},
		{"send sms --to 1", "give --body TEXT, or --template ID"},
		{"send sms --to 1 --body x --template 1", "--body and --template are both given"},
		{"send sms --to 1 --body x --param a=b", "--param is for the placeholders of a template"},
		{"send sms --to 1 --template 1 --param a", "write NAME=VALUE"},
		{"send sms --to 1 --template 1 --param a=1 --param a=2", "--param a is given twice"},
		{"send sms --to 1 --template x", "--template must be a whole number"},
		{"send sms --to 1 --body x --wait --timeout 3", "--timeout must be a duration such as 30s or 2m"},
		{"send sms --to 1 --body x --bdy y", "unknown flag: --bdy"},
		{"send sms --to", "flag needs an argument: --to"},
		{"send sms 090-1234-5678 --to 1 --body x", "it takes no arguments, only flags"},
		{"send sms --to 1 --body x --api-url ftp://host", "--api-url is no base URL"},
		{"send sms --to 1 --body x --send-at tomorrow", "is no time: write"},
		{"send sms --to 1 --body x --idempotency-key=", "--idempotency-key is empty"},
		{"notification list --limit 0", "--limit must be from 1 to 200"},
		{"notification list --from yesterday", "is no time: write"},
		{"notification cancel", "an argument is missing: the id"},
		{"notification reschedule 0190b0a0-0000-7000-8000-000000000000", "missing: --send-at"},
		{"template update 1", "what to change is missing"},
		{"notification show", "an argument is missing: the id"},
		{"notification show 5", "is not the id of a notification"},
		{"notification show 1 2", "2 arguments are too many"},
		{"template create --name x", "missing: --channel, --body"},
		{"template create --name x --channel fax --body x", "--channel must be sms or call"},
		{"template show abc", `"abc" is not an id`},
		{"template render 0", `"0" is not an id`},
		{"sender resume", "an argument is missing"},
		{"schedule sync --api-url http://127.0.0.1:1", "unknown flag: --api-url"},
		{"schedule --api-url ftp://host list", "--api-url is no base URL"},
		{"key add --name x", "missing: --scope"},
		{"key add --name x --scope send,fly", `--scope "fly" is none of send, read, manage, pii`},
		{"key add --name x --scope=", "--scope is empty"},
		{"key add --name= --scope send", "--name is empty"},
		{"key revoke x", `"x" is not an id`},
		{"migrate sideways", "there are up, down, status"},
		{"dev --workers -1", "--workers is how many workers run"},
		{"dev --ephemeral --dir x", "--ephemeral keeps no data"},
		{"ready here", "the URL given is no base URL: write http://HOST:PORT"},
		{"ready http://a http://b", "2 arguments are too many"},
		{"version now", "it takes no arguments"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, out, errOut := term.run(strings.Fields(test.args)...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if !strings.Contains(errOut, test.says) || !strings.Contains(errOut, "--help") {
				t.Errorf("it says\n%s\nand not %q with a hint to --help", errOut, test.says)
			}
			if out != "" {
				t.Errorf("it prints %q to standard output", out)
			}
		})
	}
}

func TestBadUsageIsJSONWhereJSONIsAskedFor(t *testing.T) {
	_, _, errOut := newTerminal(t).run("send", "sms", "--bogus", "--json")
	var failure struct{ Title, Detail, Code string }
	if err := json.Unmarshal([]byte(errOut), &failure); err != nil {
		t.Fatalf("%v in %s", err, errOut)
	}
	if failure.Code != "bad_usage" || failure.Detail != "unknown flag: --bogus" {
		t.Errorf("it says %+v", failure)
	}
}

func TestHelpIsNoFailureAndEachCommandHasExamples(t *testing.T) {
	term := newTerminal(t)
	if out := term.succeeds(); !strings.Contains(out, "todoku dev") {
		t.Errorf("todoku alone prints\n%s", out)
	}
	for _, command := range []string{
		"send", "send sms", "send call", "notification", "notification show", "notification list", "notification cancel",
		"notification reschedule", "template", "template create", "template update", "template list",
		"template show", "template render", "sender", "sender list", "sender resume", "dev", "api", "worker", "simulator", "ready",
		"migrate", "migrate up", "migrate down", "migrate status", "key", "key add", "key list", "key revoke", "version",
	} {
		out := term.succeeds(append(strings.Fields(command), "--help")...)
		if !strings.Contains(out, "Examples:\n  ") || !strings.Contains(out, "--json") {
			t.Errorf("todoku %s --help lacks examples or --json:\n%s", command, out)
		}
	}
}

func TestVersion(t *testing.T) {
	term := newTerminal(t)
	byFlag, byCommand := term.succeeds("--version"), term.succeeds("version")
	if byFlag != byCommand || !strings.HasPrefix(byFlag, "todoku ") || strings.Count(byFlag, "\n") != 1 {
		t.Errorf("--version prints %q, version %q", byFlag, byCommand)
	}
	var v version
	if err := json.Unmarshal([]byte(term.succeeds("version", "--json")), &v); err != nil || v.Go == "" || v.Version == "" {
		t.Errorf("version --json gives %+v, %v", v, err)
	}
}
