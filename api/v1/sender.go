package v1

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Sender is a number or Messaging Service that notifications are sent from.
type Sender struct {
	ID             int64          `json:"id"`
	Channel        notify.Channel `json:"channel" enum:"SMS,CALL"`
	Address        string         `json:"address" doc:"The Messaging Service's SID, or the number, masked unless the key has the scope pii."`
	State          string         `json:"state" enum:"running,stopped"`
	SendIntervalMS int64          `json:"send_interval_ms" doc:"The least time between two creates, over all workers, in milliseconds; 0: no pacing."`
	NextSlotAt     *time.Time     `json:"next_slot_at" doc:"The earliest moment of its next create; null when it is free now."`
	Waiting        int64          `json:"waiting" doc:"Notifications that wait to be sent."`
	SlowedAt       *time.Time     `json:"slowed_at" doc:"When Twilio last asked it to wait, by 429 or because its queue is full."`
	SlowCode       *string        `json:"slow_code" doc:"Twilio's error code, or the HTTP status, by which it did."`
	StoppedAt      *time.Time     `json:"stopped_at"`
	StopCode       *string        `json:"stop_code" doc:"Twilio's error code, or ours, that stopped it."`
	StopReason     *string        `json:"stop_reason"`

	Queued           int64      `json:"queued" doc:"Paced notifications that are in Twilio's queue: accepted there and not yet sent on (calls: not yet initiated)."`
	QueueLimit       int64      `json:"queue_limit" doc:"How many of them there may be, so that what is not sent yet can still be stopped; 0: no limit. Batches leave a tenth to singles."`
	QueueFullAt      *time.Time `json:"queue_full_at" doc:"Since when notifications are HELD because that queue is full."`
	QueueUnlimitedAt *time.Time `json:"queue_unlimited_at" doc:"Since when the limit is off, because no status callbacks come. The next callback turns it on."`
	LastCallbackAt   *time.Time `json:"last_callback_at" doc:"When a status callback last came, to about a second."`
}

func (a *API) registerSenders(to huma.API) {
	huma.Register(to, operation("list-senders", http.MethodGet, "/senders", "Senders", ScopeRead,
		"List the senders", "Each with its pace, its queue and, where an error of the account or of the sender has stopped it, why."), a.listSenders)

	huma.Register(to, operation("resume-sender", http.MethodPost, "/senders/{id}/resume", "Senders", ScopeManage,
		"Let a stopped sender go on", "Fix the cause first. What is HELD is sent then: the first of it within 10 seconds, when the workflows have noticed. Resuming a sender that runs changes nothing. While the database lacks sends that Twilio has, it is 409.", http.StatusNotFound, http.StatusConflict), a.resumeSender)
}

func (a *API) listSenders(ctx context.Context, _ *struct{}) (*struct{ Body list[Sender] }, error) {
	senders, err := a.Store.Senders(ctx)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	show := func(s store.Sender) Sender { return a.showSender(ctx, s) }
	return &struct{ Body list[Sender] }{list[Sender]{mapped(senders, show)}}, nil
}

func (a *API) resumeSender(ctx context.Context, in *struct {
	ID int64 `path:"id"`
}) (*struct{ Body Sender }, error) {
	sender, err := a.Store.ResumeSender(ctx, in.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem.New(problem.SenderNotFound, "there is no sender with the id in the path: see GET /api/v1/senders")
	case errors.Is(err, store.ErrLedgerBehind):
		return nil, problem.New(problem.LedgerBehind, "the database went back and would send again what Twilio has: `todoku ledger reconcile` must run first")
	case err != nil:
		return nil, a.fail(ctx, err)
	}
	a.Logger.InfoContext(ctx, "sender resumed", "sender_id", sender.ID, "channel", sender.Channel)
	return &struct{ Body Sender }{a.showSender(ctx, sender)}, nil
}

func (a *API) showSender(ctx context.Context, s store.Sender) Sender {
	shown := Sender{
		ID: s.ID, Channel: s.Channel, Address: s.Address, State: "running",
		SendIntervalMS: a.Settings.SMSSendInterval.Milliseconds(), NextSlotAt: s.NextSlot, Waiting: s.Waiting,
		SlowedAt: s.SlowedAt, SlowCode: s.SlowCode,
		StoppedAt: s.StoppedAt, StopCode: s.StopCode, StopReason: s.StopReason,
		Queued: s.Queued, QueueFullAt: s.QueueFullAt, QueueUnlimitedAt: s.QueueUnlimitedAt, LastCallbackAt: s.LastCallbackAt,
	}
	if a.Settings.PublicURL != "" {
		shown.QueueLimit = int64(a.Settings.CarrierQueueLimit(s.Channel))
	}
	if s.Channel == notify.Call {
		shown.SendIntervalMS = a.Settings.CallSendInterval.Milliseconds()
	}
	if s.StoppedAt != nil {
		shown.State = "stopped"
	}
	if strings.HasPrefix(s.Address, "+") && !seesNumbers(ctx) {
		shown.Address = notify.Mask(s.Address)
	}
	return shown
}
