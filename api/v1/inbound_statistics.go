package v1

import (
	"context"
	"time"

	"github.com/todoku/todoku/store"
)

// InboundStatistics say how the queue and the operators are doing.
type InboundStatistics struct {
	Now       InboundNow        `json:"now"`
	Lately    InboundLately     `json:"lately"`
	Operators []InboundOperator `json:"operators" nullable:"false" doc:"Those who answered a call lately, or whose phones ring."`
}

// InboundNow is what is happening at this moment.
type InboundNow struct {
	Received           int64   `json:"received" doc:"Calls that hear the greeting."`
	Waiting            int64   `json:"waiting" doc:"Calls in the queue."`
	Reserved           int64   `json:"reserved" doc:"Calls for which an operator's phone rings."`
	Answered           int64   `json:"answered" doc:"Calls that speak with an operator."`
	LongestWaitSeconds float64 `json:"longest_wait_seconds" doc:"How long the caller has waited who waits the longest."`
}

// InboundLately is what became of the calls that came in within the time that was asked for.
type InboundLately struct {
	WithinMinutes           int     `json:"within_minutes"`
	Calls                   int64   `json:"calls"`
	Offered                 int64   `json:"offered" doc:"Of them, let into the queue."`
	Handled                 int64   `json:"handled" doc:"Spoke or speak with an operator."`
	Abandoned               int64   `json:"abandoned" doc:"Hung up before anybody answered."`
	TimedOut                int64   `json:"timed_out" doc:"Left the queue because nobody answered in time."`
	CallbackRequested       int64   `json:"callback_requested" doc:"Asked to be called back."`
	TurnedAway              int64   `json:"turned_away" doc:"Heard a message and were not let into the queue."`
	Missed                  int64   `json:"missed" doc:"Came in while Todoku could not be reached, and were found afterwards."`
	FollowedUp              int64   `json:"followed_up" doc:"Got an SMS, a call or a task of calling back."`
	ServiceLevel            float64 `json:"service_level" minimum:"0" maximum:"1" doc:"The share of calls that were answered within the threshold, of those that were answered or left the queue unanswered; 1 when there were none."`
	ServiceThresholdSeconds float64 `json:"service_threshold_seconds"`
	AbandonmentRate         float64 `json:"abandonment_rate" minimum:"0" maximum:"1" doc:"The share of calls that were abandoned, of those in the queue."`
	AverageSpeedOfAnswer    float64 `json:"average_speed_of_answer_seconds" doc:"From the queue to an operator."`
	AverageTalkSeconds      float64 `json:"average_talk_seconds" doc:"Of the calls that are over."`
}

// InboundOperator is what one operator has done.
type InboundOperator struct {
	SID                string     `json:"sid" example:"WK00000000000000000000000000000001"`
	Name               *string    `json:"name"`
	Busy               bool       `json:"busy" doc:"Speaks with a caller, or the phone rings."`
	Answered           int64      `json:"answered" doc:"Calls."`
	AverageTalkSeconds float64    `json:"average_talk_seconds"`
	LastAnsweredAt     *time.Time `json:"last_answered_at"`
}

func (a *API) inboundStatistics(ctx context.Context, in *struct {
	WithinMinutes int `query:"within_minutes" minimum:"1" maximum:"10080" default:"60" doc:"How far back the calls came in that count, up to a week."`
}) (*struct{ Body InboundStatistics }, error) {
	policy, err := a.Store.InboundPolicy(ctx)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	within := time.Duration(in.WithinMinutes) * time.Minute
	f, err := a.Store.InboundFigures(ctx, within, policy.ServiceThreshold())
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	operators, err := a.Store.InboundOperators(ctx, within)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return &struct{ Body InboundStatistics }{InboundStatistics{
		Now: InboundNow{f.Received, f.Waiting, f.Reserved, f.Answered, seconds(f.LongestWait)},
		Lately: InboundLately{
			WithinMinutes: in.WithinMinutes, Calls: f.Calls, Offered: f.Offered, Handled: f.Handled, Abandoned: f.Abandoned, TimedOut: f.TimedOut,
			CallbackRequested: f.Callbacks, TurnedAway: f.TurnedAway, Missed: f.Missed, FollowedUp: f.FollowedUp,
			ServiceLevel: f.ServiceLevel(), ServiceThresholdSeconds: seconds(policy.ServiceThreshold()), AbandonmentRate: f.AbandonmentRate(),
			AverageSpeedOfAnswer: seconds(f.AverageAnswer), AverageTalkSeconds: seconds(f.AverageTalk),
		},
		Operators: mapped(operators, showInboundOperator),
	}}, nil
}

func showInboundOperator(o store.InboundOperator) InboundOperator {
	return InboundOperator{SID: o.SID, Name: o.Name, Busy: o.Busy, Answered: o.Answered, AverageTalkSeconds: seconds(o.AverageTalk), LastAnsweredAt: o.LastAt}
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
