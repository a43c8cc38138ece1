package v1_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/todoku/todoku/api/apitest"
)

func TestKeys(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("onlyread", "read")
	a.AddKey("onlysend", "send")
	a.AddKey("onlypii", "pii")
	revoked := a.AddKey("revoked", "read")
	if _, err := a.Store.RevokeKey(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	const sms = `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`
	for name, test := range map[string]struct {
		authorization, method, path, body string
		status                            int
		code, challenge                   string
	}{
		"none":                      {"", "GET", "/api/v1/senders", "", 401, "key_missing", `Bearer realm="todoku"`},
		"none for a bad body":       {"", "POST", send, "x", 401, "key_missing", `Bearer realm="todoku"`},
		"another scheme":            {"Basic YTpi", "GET", "/api/v1/senders", "", 401, "key_missing", `Bearer realm="todoku"`},
		"an empty one":              {"Bearer ", "GET", "/api/v1/senders", "", 401, "key_missing", `Bearer realm="todoku"`},
		"a wrong one":               {"Bearer nonsense", "GET", "/api/v1/senders", "", 401, "key_invalid", `Bearer realm="todoku", error="invalid_token"`},
		"the beginning of ours":     {"Bearer " + apitest.Key[:5], "GET", "/api/v1/senders", "", 401, "key_invalid", `Bearer realm="todoku", error="invalid_token"`},
		"a revoked one":             {"Bearer revoked", "GET", "/api/v1/senders", "", 401, "key_invalid", `Bearer realm="todoku", error="invalid_token"`},
		"ours":                      {"Bearer " + apitest.Key, "GET", "/api/v1/senders", "", 200, "", ""},
		"a scheme in small letters": {"bearer " + apitest.Key, "GET", "/api/v1/senders", "", 200, "", ""},
		"read may read":             {"Bearer onlyread", "GET", "/api/v1/templates", "", 200, "", ""},
		"read may not send":         {"Bearer onlyread", "POST", send, sms, 403, "scope_missing", `Bearer realm="todoku", error="insufficient_scope", scope="send"`},
		"read may not manage":       {"Bearer onlyread", "POST", "/api/v1/templates", "{}", 403, "scope_missing", `Bearer realm="todoku", error="insufficient_scope", scope="manage"`},
		"send may send":             {"Bearer onlysend", "POST", send, sms, 202, "", ""},
		"send may not read":         {"Bearer onlysend", "GET", "/api/v1/templates", "", 403, "scope_missing", `Bearer realm="todoku", error="insufficient_scope", scope="read"`},
		"pii alone may not read":    {"Bearer onlypii", "GET", "/api/v1/templates", "", 403, "scope_missing", `Bearer realm="todoku", error="insufficient_scope", scope="read"`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := a.Do(test.method, test.path, test.body, "Authorization: "+test.authorization)
			if answer.Status != test.status || answer.Code() != test.code || answer.Header.Get("WWW-Authenticate") != test.challenge {
				t.Errorf("answer = %d %s %q, want %d %s %q", answer.Status, answer.Code(), answer.Header.Get("WWW-Authenticate"), test.status, test.code, test.challenge)
			}
		})
	}
	if strings.Contains(a.Log(), apitest.Key) || strings.Contains(a.Log(), "onlyread") {
		t.Error("the log has a key")
	}
}

func TestAKnownKeyIsNotLookedForAtEachRequest(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("partner", "read")
	ask := func() apitest.Answer {
		return a.Do("GET", "/api/v1/templates/1/versions", "", "Authorization: Bearer partner")
	}
	if answer := ask(); answer.Status != http.StatusNotFound {
		t.Fatal(answer.Text)
	}
	a.Database.Cut()
	// Without the memory the first thing to fail would be the key, with the same answer; so the
	// scope is asked for, which needs the key but not the database.
	if answer := a.Do("POST", send, "{}", "Authorization: Bearer partner"); answer.Code() != "scope_missing" {
		t.Errorf("answer = %s", answer.Text)
	}
	if answer := a.Do("POST", send, "{}", "Authorization: Bearer stranger"); answer.Code() != "database_unavailable" {
		t.Errorf("a key never seen: %s", answer.Text)
	}
}

func TestAddressThatGuessesKeysHasToWait(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("partner", "read")
	ask := func(key string) apitest.Answer {
		return a.Do("GET", "/api/v1/templates", "", "Authorization: Bearer "+key)
	}
	if answer := ask("partner"); answer.Status != http.StatusOK {
		t.Fatalf("answered %d", answer.Status)
	}
	var answer apitest.Answer
	for guess := 0; answer.Status != http.StatusTooManyRequests; guess++ {
		if guess > 10_000 {
			t.Fatal("it may guess for ever")
		}
		answer = ask("guess" + strconv.Itoa(guess))
	}
	if answer.Code() != "too_many_wrong_keys" || answer.Header.Get("Retry-After") == "" {
		t.Errorf("answered %s, Retry-After %q", answer.Code(), answer.Header.Get("Retry-After"))
	}
	if answer := ask("partner"); answer.Status != http.StatusOK {
		t.Errorf("a key that is valid is kept out: %d", answer.Status)
	}
}
