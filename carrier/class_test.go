package carrier

import (
	"strconv"
	"testing"
)

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		code, status int
		want         Class
	}{
		{21211, 400, Recipient},
		{21610, 400, Recipient},
		{21614, 400, Recipient},
		{21408, 403, Recipient},
		{21617, 400, Request},
		{32018, 400, Request},
		{20003, 401, AllSenders},
		{20003, 403, AllSenders},
		{20005, 401, AllSenders},
		{21606, 400, Sender},
		{21608, 400, Sender},
		{21660, 400, Sender},
		{20404, 404, Sender},
		{21611, 400, SafeToRetry},
		{21611, 429, SafeToRetry},
		{22005, 400, SafeToRetry},
		{10004, 429, SafeToRetry},
		{20429, 429, SafeToRetry},
		{20423, 422, SafeToRetry},
		{63038, 429, AllSenders},
		{63038, 400, AllSenders},
		{30454, 429, AllSenders},
		{30002, 400, AllSenders},
		{90010, 403, AllSenders},
		{21606, 429, Sender},
		{21610, 429, Recipient},
		{63017, 429, SafeToRetry},
		{20500, 429, SafeToRetry},
		{99999, 429, SafeToRetry},

		// After a 5xx nobody knows, whatever the code says.
		{20500, 500, Ambiguous},
		{20503, 503, Ambiguous},
		{21730, 503, Ambiguous},
		{21211, 500, Ambiguous},
		{20429, 503, Ambiguous},
		{0, 502, Ambiguous},
		{0, 408, Ambiguous},
		{0, 303, Ambiguous},

		// What is not known, by its HTTP status.
		{99999, 400, Request},
		{99999, 401, AllSenders},
		{99999, 403, Sender},
	} {
		if got := Classify(tc.code, tc.status); got != tc.want {
			t.Errorf("code %d, HTTP %d: %s, want %s", tc.code, tc.status, got, tc.want)
		}
	}
}

func TestClassOfCode(t *testing.T) {
	for code, want := range map[string]Class{
		"21610": Recipient,
		"30034": Sender,
		"30003": Undelivered,
		"20003": AllSenders,
		"21611": SafeToRetry,
		"99999": "",
		"":      "",
		"0":     "",
		"x":     "",
	} {
		if got := ClassOfCode(code); got != want {
			t.Errorf("%q: %q, want %q", code, got, want)
		}
	}
}

// A create that Twilio itself answers 4xx was never carried out.
func TestNo4xxOfTwilioIsAmbiguousExceptATimeout(t *testing.T) {
	for code := range classes {
		for status := 400; status < 500; status++ {
			class := Classify(code, status)
			ambiguous := class == Ambiguous
			if documented := status == 408 || classes[code] == Ambiguous && status != 429; ambiguous != documented {
				t.Errorf("code %d, HTTP %d: %s", code, status, class)
			}
			if ClassOfCode(strconv.Itoa(code)) == "" {
				t.Errorf("code %d has no class in a callback", code)
			}
		}
	}
}

func TestAnAnswerWithoutTwiliosCodeIsAmbiguousWhateverItsStatus(t *testing.T) {
	for status := 100; status < 600; status++ {
		if class := Classify(0, status); class != Ambiguous {
			t.Errorf("HTTP %d: %s", status, class)
		}
	}
}

func TestAnErrorOfTheAccountOrTheSenderStopsAlikeInAnswersAndCallbacks(t *testing.T) {
	for code, class := range classes {
		stops := class == Sender || class == AllSenders
		for _, status := range []int{400, 401, 403, 404, 422, 429} {
			if stops && Classify(code, status) != class {
				t.Errorf("code %d with HTTP %d is %s, want %s", code, status, Classify(code, status), class)
			}
		}
		if got, all := StopsSender(strconv.Itoa(code)); got != stops || all != (class == AllSenders) {
			t.Errorf("code %d in a callback: stops %v, all %v", code, got, all)
		}
	}
}
