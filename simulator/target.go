package simulator

import (
	"net/http"
	"strings"
)

// channel is one of the two things that can be created, a message or a call; or numbers, which the account has.
type channel string

const (
	sms     channel = "SMS"
	call    channel = "CALL"
	numbers channel = "NUMBERS"
)

// collection is the channel's name in Twilio's paths, with a capital, and in its pages, without.
func (c channel) collection() string {
	switch c {
	case call:
		return "Calls"
	case numbers:
		return "IncomingPhoneNumbers"
	default:
		return "Messages"
	}
}

// target is what a path of Twilio's API names: a channel's list, or, with a sid, one record of it.
type target struct {
	account string
	channel channel
	sid     string
}

const apiPrefix = "/2010-04-01/Accounts/"

// parseTarget reads /2010-04-01/Accounts/{AC}/Messages.json, …/Messages/{SM}.json and the same for Calls and
// IncomingPhoneNumbers.
func parseTarget(path string) (target, bool) {
	rest, ok := strings.CutPrefix(path, apiPrefix)
	if !ok {
		return target{}, false
	}
	if rest, ok = strings.CutSuffix(rest, ".json"); !ok {
		return target{}, false
	}
	account, rest, _ := strings.Cut(rest, "/")
	if !isSID(account, "AC") {
		return target{}, false
	}
	collection, sid, single := strings.Cut(rest, "/")
	t := target{account: account, sid: sid}
	switch collection {
	case sms.collection():
		t.channel = sms
	case call.collection():
		t.channel = call
	case numbers.collection():
		t.channel = numbers
	default:
		return target{}, false
	}
	return t, single == (sid != "") && !strings.Contains(sid, "/")
}

// uri is the target's path, as Twilio writes it into resources.
func (t target) uri() string {
	uri := apiPrefix + t.account + "/" + t.channel.collection()
	if t.sid != "" {
		uri += "/" + t.sid
	}
	return uri + ".json"
}

// caller is who makes a request: the account it acts for, and the token that signs callbacks to it.
type caller struct {
	account string
	token   string
}

// authenticate takes any credentials, as long as there are some and an account's SID is not used to reach
// another account (Twilio's code 20003).
func (s *Simulator) authenticate(r *http.Request, account string) (caller, *failure) {
	user, password, ok := r.BasicAuth()
	if !ok || user == "" || (strings.HasPrefix(user, "AC") && user != account) {
		return caller{}, &failure{Code: 20003, Message: "Authenticate", Status: http.StatusUnauthorized}
	}
	if s.options.AuthToken != "" {
		password = s.options.AuthToken
	}
	return caller{account: account, token: password}, nil
}
