package workflows

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// InboundSignal tells the workflow of a call what the ledger has learnt of it; it carries an
// InboundMoment. Like the others it never starts a workflow.
const InboundSignal = "call"

// InboundInput names a call that came in, and where it stood when its workflow was started. Numbers
// never enter a history.
type InboundInput struct {
	ID         uuid.UUID
	Now        InboundMoment
	CheckAfter time.Duration // without news, before the call is looked at
}

// InboundMoment is where a call stands.
type InboundMoment struct {
	State    notify.InboundState
	Operator string `json:",omitempty"` // the SID of the one who answered, or whose phone rings
}

// InboundOutcome is how a call ended, and what was done about the caller.
type InboundOutcome struct {
	State    notify.InboundState
	Operator string                `json:",omitempty"`
	FollowUp notify.FollowUpAction `json:",omitempty"`
}

// InboundCall follows one call from its first ring until nothing is left to be done about it: it hears
// what TaskRouter tells, and comes back to a caller with whom nobody has spoken.
func InboundCall(ctx workflow.Context, in InboundInput) (InboundOutcome, error) {
	c := inboundCall{id: in.ID, now: in.Now, wait: in.CheckAfter, news: workflow.GetSignalChannel(ctx, InboundSignal)}
	defer drain(c.news) // what was told too late to matter
	return c.run(ctx)
}

type inboundCall struct {
	id   uuid.UUID
	now  InboundMoment
	wait time.Duration // for news
	news workflow.ReceiveChannel
}

func (c *inboundCall) run(ctx workflow.Context) (InboundOutcome, error) {
	for {
		c.show(ctx)
		for !c.now.State.Final() && c.hear(ctx) {
			c.show(ctx)
		}
		// It is over, or nothing was heard of it for long.
		next, err := c.follow(ctx)
		if err != nil {
			return InboundOutcome{}, err
		}
		c.now = InboundMoment{next.State, next.Operator}
		if next.Done {
			c.show(ctx)
			return InboundOutcome{next.State, next.Operator, next.FollowUp}, nil
		}
		if c.wait = next.In; c.now.State.Final() {
			c.hear(ctx)
		}
	}
}

// hear waits for news and reports whether there was any.
func (c *inboundCall) hear(ctx workflow.Context) (heard bool) {
	for c.take() {
		heard = true
	}
	return heard || waitForSignal(ctx, c.wait, c.news) != nil && c.take()
}

// take takes one piece of news. A call that is over stays so: what says otherwise was overtaken.
func (c *inboundCall) take() bool {
	var moment InboundMoment
	if !c.news.ReceiveAsync(&moment) {
		return false
	}
	if moment.State.Final() || !c.now.State.Final() {
		c.now = moment
	}
	return true
}

// show tells people who look at the workflow where the call stands.
func (c *inboundCall) show(ctx workflow.Context) {
	details := string(c.now.State)
	if c.now.Operator != "" {
		details = fmt.Sprintf("%s, operator %s", details, c.now.Operator)
	}
	workflow.SetCurrentDetails(ctx, details)
}

// follow looks at the call in the ledger, and does what is due.
func (c *inboundCall) follow(ctx workflow.Context) (next activities.InboundNext, err error) {
	err = workflow.ExecuteActivity(inboundOptions.apply(ctx), a.FollowInbound, c.id).Get(ctx, &next)
	return next, err
}
