package notify

import (
	"slices"
	"strings"
	"time"
)

// Source says how we learnt what a receipt says.
type Source string

const (
	FromCreate  Source = "create"  // the carrier's answer to our create
	FromWebhook Source = "webhook" // a status callback
	FromPoll    Source = "poll"    // we asked: fetched by SID or listed
)

// Receipt is what the carrier said of one notification at one moment. Answers to creates,
// callbacks and polled resources all become receipts, and one SQL statement settles rows by them.
type Receipt struct {
	NotificationID string // empty when the carrier's report does not carry our id: then the SID finds the row
	Channel        Channel
	SID            string
	Word           string // the carrier's status, as it writes it: "delivered", "no-answer"
	ErrorCode      string // the carrier's code in decimal digits, or empty
	UnknownCode    string // what stood in the code's place and is no code, as QuotableCode has it; or empty
	Segments       int    // SMS only; 0 when not told
	Duration       *int   // calls: seconds; nil when not told, which is not 0
	AnsweredBy     string // calls with machine detection: "human", "machine_start", …
	SentAt         time.Time
	Source         Source
}

// Word is one of the carrier's statuses: its place in the channel's total order and what it means
// for us. A row moves only to a word of higher rank, so any permutation of the same receipts, with
// repeats, ends in the same row.
type Word struct {
	Name    string
	Rank    int // 1 and up; 0 is a row that never heard from the carrier
	Outcome Status
}

// Final reports whether the carrier says nothing more after this word, short of correcting itself.
func (w Word) Final() bool { return w.Outcome.Final() }

// A completed call is a success only when it lasted (see the settle statement in the store):
// Outcome holds for a completed call with a duration above 0.
var words = map[Channel][]Word{
	SMS: ranked(
		Word{Name: "accepted", Outcome: Pending},
		Word{Name: "scheduled", Outcome: Pending},
		Word{Name: "queued", Outcome: Pending},
		Word{Name: "sending", Outcome: Pending},
		Word{Name: "sent", Outcome: Pending},
		Word{Name: "canceled", Outcome: Failed},
		Word{Name: "failed", Outcome: Failed},
		Word{Name: "undelivered", Outcome: Failed},
		Word{Name: "partially_delivered", Outcome: Failed},
		Word{Name: "delivered", Outcome: Success},
		Word{Name: "read", Outcome: Success},
	),
	Call: ranked(
		Word{Name: "queued", Outcome: Pending},
		Word{Name: "initiated", Outcome: Pending},
		Word{Name: "ringing", Outcome: Pending},
		Word{Name: "in-progress", Outcome: Pending},
		Word{Name: "canceled", Outcome: Failed},
		Word{Name: "failed", Outcome: Failed},
		Word{Name: "busy", Outcome: Failed},
		Word{Name: "no-answer", Outcome: Failed},
		Word{Name: "completed", Outcome: Success},
	),
}

func ranked(list ...Word) []Word {
	for i := range list {
		list[i].Rank = i + 1
	}
	return list
}

// CarrierWords lists the words of a channel from the lowest rank to the highest. The statuses are
// those of Twilio's Message and Call resources and of their callbacks.
func CarrierWords(c Channel) []Word { return slices.Clone(words[c]) }

// LookupWord finds a carrier's word. A word never heard of is recorded in the timeline and moves no row.
func LookupWord(c Channel, name string) (Word, bool) {
	for _, w := range words[c] {
		if w.Name == name {
			return w, true
		}
	}
	return Word{}, false
}

// A SID is two letters that say what it names, and so many digits.
const (
	sidDigits  = 32
	hexDigits  = "0123456789abcdefABCDEF"
	codeDigits = 10 // at most, of an error code

	longestCode = 64 // characters that are kept of what is no code
)

// ValidSID reports whether s is the SID of a message (SM or MM) on SMS or of a call (CA) on CALL.
func ValidSID(c Channel, s string) bool {
	if len(s) != 2+sidDigits || strings.Trim(s[2:], hexDigits) != "" {
		return false
	}
	switch s[:2] {
	case "CA":
		return c == Call
	case "SM", "MM":
		return c != Call
	}
	return false
}

// CarrierErrorCode returns s if it can be an error code of the carrier (decimal digits, not zero),
// and an empty string otherwise.
func CarrierErrorCode(s string) string {
	if len(s) > codeDigits || strings.Trim(s, "0123456789") != "" || strings.Trim(s, "0") == "" {
		return ""
	}
	return s
}

// QuotableCode returns what is worth keeping of s, which stands in the place of the carrier's error code: nothing if
// it is a code, is empty or says that there is no code; else s itself, or "unprintable" if it is not 1 to 64
// printable ASCII characters.
func QuotableCode(s string) string {
	switch {
	case CarrierErrorCode(s) != "", strings.Trim(s, "0") == "":
		return ""
	case len(s) > longestCode || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }):
		return "unprintable"
	}
	return s
}
