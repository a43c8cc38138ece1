package simulator

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// phoneNumber is a number of an account. Any number belongs to every account, as any sender does, as soon as somebody
// asks for it; only the numbers that Twilio's test credentials cannot buy belong to nobody.
// https://www.twilio.com/docs/phone-numbers/api/incomingphonenumber-resource
type phoneNumber struct {
	identity                // its name is the number
	friendlyName            string
	voiceURL, voiceMethod   string
	voiceFallbackURL        string
	voiceFallbackMethod     string
	statusCallback          string
	statusMethod            string
	smsURL, smsMethod       string
	voiceApplication, trunk string
	token                   string // of a copy that is rung
}

const (
	numberUnavailable = "+15005550000"
	numberInvalid     = "+15005550001"
)

var numberFields = []field{
	webURL("VoiceUrl", 21402), webURL("VoiceFallbackUrl", 21402), webURL("StatusCallback", 21402),
	webURL("SmsUrl", 21402),
	httpMethod("VoiceMethod"), httpMethod("VoiceFallbackMethod"), httpMethod("StatusCallbackMethod"),
	httpMethod("SmsMethod"),
	sidOf("VoiceApplicationSid", "AP", 0), sidOf("TrunkSid", "TK", 0),
}

// number is the account's number, made when it is first asked for. The world is locked.
func (a *account) number(number string) (*phoneNumber, bool) {
	if !isNumber(number) || number == numberUnavailable || number == numberInvalid {
		return nil, false
	}
	sid := phoneNumberSID(number)
	n, ok := a.numbers[sid]
	if !ok {
		now := time.Now()
		n = &phoneNumber{
			identity:     identity{sid: sid, account: a.sid, name: number, createdAt: now, updatedAt: now},
			friendlyName: formatted(number), voiceMethod: "POST", voiceFallbackMethod: "POST", statusMethod: "POST",
			smsMethod: "POST",
		}
		a.numbers[sid] = n
	}
	return n, true
}

// serveNumbers answers for /2010-04-01/Accounts/{AC}/IncomingPhoneNumbers(/{PN}).json.
func (s *Simulator) serveNumbers(w *world, rw http.ResponseWriter, r *http.Request, t target) {
	who, failed := s.authenticate(r, t.account)
	if failed != nil {
		refusal(failed).write(rw)
		return
	}
	answer := w.numbers(r.Method, t, readQueryOrForm(r), who)
	w.pause(r.Context())
	answer.write(rw)
}

func (w *world) numbers(method string, t target, f *form, who caller) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.account(who)
	if f.failed != nil {
		return refusal(f.failed)
	}
	n, ok := a.numbers[t.sid]
	switch {
	case t.sid != "" && !ok:
		return refusal(notFound(t.uri()))
	case t.sid == "" && method == http.MethodGet:
		return a.numberPage(t, f)
	case method == http.MethodGet:
		return jsonAnswer(http.StatusOK, n.show())
	case t.sid != "" && method == http.MethodPost:
		if n.change(f); f.failed != nil {
			return refusal(f.failed)
		}
		w.writes++
		return jsonAnswer(http.StatusOK, n.show())
	}
	return refusal(methodNotAllowed()) // numbers are neither bought nor released here
}

func (n *phoneNumber) change(f *form) {
	f.check(numberFields)
	if f.failed != nil {
		return
	}
	f.take("FriendlyName", &n.friendlyName)
	f.take("VoiceUrl", &n.voiceURL)
	f.take("VoiceMethod", &n.voiceMethod)
	f.take("VoiceFallbackUrl", &n.voiceFallbackURL)
	f.take("VoiceFallbackMethod", &n.voiceFallbackMethod)
	f.take("StatusCallback", &n.statusCallback)
	f.take("StatusCallbackMethod", &n.statusMethod)
	f.take("SmsUrl", &n.smsURL)
	f.take("SmsMethod", &n.smsMethod)
	f.take("VoiceApplicationSid", &n.voiceApplication)
	f.take("TrunkSid", &n.trunk)
	n.updatedAt = time.Now()
}

// numberPage lists the number that PhoneNumber names, or those that were asked for so far.
func (a *account) numberPage(t target, f *form) answer {
	f.check(pageFields)
	if f.failed != nil {
		return refusal(f.failed)
	}
	shown := []any{}
	if f.has("PhoneNumber") {
		if n, ok := a.number(f.text("PhoneNumber")); ok {
			shown = append(shown, n.show())
		}
	} else {
		for _, n := range a.numbers {
			shown = append(shown, n.show())
		}
	}
	size := integerOf(cmp.Or(f.text("PageSize"), strconv.Itoa(defaultPageSize)))
	uri := strings.TrimSuffix(t.uri(), "/")
	return jsonAnswer(http.StatusOK, map[string]any{
		"incoming_phone_numbers": shown, "page": 0, "page_size": size, "start": 0, "end": max(0, len(shown)-1),
		"uri": uri, "first_page_uri": uri + "?Page=0", "next_page_uri": nil, "previous_page_uri": nil,
	})
}

func (n *phoneNumber) show() any {
	return map[string]any{
		"account_sid": n.account, "sid": n.sid, "phone_number": n.name, "friendly_name": n.friendlyName,
		"date_created": twilioDate(n.createdAt), "date_updated": twilioDate(n.updatedAt), "api_version": apiVersion,
		"voice_url": n.voiceURL, "voice_method": n.voiceMethod, "voice_fallback_url": n.voiceFallbackURL,
		"voice_fallback_method": n.voiceFallbackMethod, "voice_application_sid": orNull(n.voiceApplication),
		"voice_caller_id_lookup": false, "voice_receive_mode": "voice",
		"status_callback": n.statusCallback, "status_callback_method": n.statusMethod,
		"sms_url": n.smsURL, "sms_method": n.smsMethod, "sms_fallback_url": "", "sms_fallback_method": "POST",
		"sms_application_sid": nil, "trunk_sid": orNull(n.trunk), "address_sid": nil, "address_requirements": "none",
		"beta": false, "identity_sid": nil, "bundle_sid": nil, "origin": "twilio", "status": "in-use", "type": "local",
		"capabilities":     map[string]bool{"voice": true, "sms": true, "mms": true, "fax": false},
		"emergency_status": "Inactive", "emergency_address_sid": nil, "emergency_address_status": "unregistered",
		"uri": target{account: n.account, channel: numbers, sid: n.sid}.uri(),
	}
}
