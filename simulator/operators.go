package simulator

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"
)

// Operators is what the people behind TaskRouter's workers do when a call is put through to them.
type Operators struct {
	// Answer, Reject and Vanish are shares: of so many calls one is answered, one declined, and one rings until
	// its reservation times out. 1, 0 and 0 by default.
	Answer int `json:"answer"`
	Reject int `json:"reject"`
	Vanish int `json:"vanish"`
	// AnswerAfterMS is how many milliseconds it rings; 200 by default.
	AnswerAfterMS Span `json:"answer_after_ms"`
	// TalkMS is how many milliseconds a conversation lasts; 3000 by default.
	TalkMS Span `json:"talk_ms"`
	// WrapUpMS is after how many milliseconds an operator leaves the activity that follows a call, where there is
	// one; 1000 by default.
	WrapUpMS Span `json:"wrap_up_ms"`
	// ReturnAfterMS is after how many milliseconds one who has vanished is available again; null, the default:
	// never.
	ReturnAfterMS *int `json:"return_after_ms"`
}

var defaultOperators = Operators{
	Answer: 1, AnswerAfterMS: Span{200, 200}, TalkMS: Span{3000, 3000}, WrapUpMS: Span{1000, 1000},
}

func (o *Operators) validate() error {
	switch {
	case o.Answer < 0 || o.Reject < 0 || o.Vanish < 0:
		return errors.New("answer, reject and vanish must not be negative")
	case o.Answer+o.Reject+o.Vanish == 0:
		return errors.New("one of answer, reject and vanish must be over 0")
	case o.ReturnAfterMS != nil && *o.ReturnAfterMS < 0:
		return errors.New("return_after_ms must not be negative")
	}
	return nil
}

// Span is a number of milliseconds, or the least and the most of one: in JSON 500 or [200, 900].
type Span struct{ LeastMS, MostMS int }

// UnmarshalJSON reads both forms.
func (s *Span) UnmarshalJSON(text []byte) error {
	var both []int
	if err := json.Unmarshal(text, &s.LeastMS); err == nil {
		s.MostMS = s.LeastMS
	} else if err := json.Unmarshal(text, &both); err != nil || len(both) != 2 {
		return errors.New("a span of milliseconds is a number, such as 500, or [least, most], such as [200, 900]")
	} else {
		s.LeastMS, s.MostMS = both[0], both[1]
	}
	if s.LeastMS < 0 || s.MostMS < s.LeastMS {
		return errors.New("a span of milliseconds must not be negative, nor its most less than its least")
	}
	return nil
}

// MarshalJSON writes [least, most].
func (s Span) MarshalJSON() ([]byte, error) { return json.Marshal([]int{s.LeastMS, s.MostMS}) }

// pick is one of the span's lengths, at random.
func (s Span) pick() time.Duration {
	return milliseconds(s.LeastMS + rand.IntN(s.MostMS-s.LeastMS+1))
}
