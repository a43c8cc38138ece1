package activities

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// groupSize is how many rows are claimed at once: the larger the group, the less a row costs.
const groupSize = 64

// Send claims what is due of the workflow's notifications and posts it, each at most once, until
// nothing is due. Answers that were lost are left to LookUp. When a single has only to wait for its
// next try, the answer is an error that asks Temporal to run the activity again by then.
func (a *Activities) Send(ctx context.Context, ref Ref) (Next, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()

	var err error
	if ref.ID != nil {
		err = a.sendSingle(ctx, ref)
	} else {
		err = a.sendShard(ctx, ref)
	}
	if err != nil {
		return Next{}, err
	}
	next, err := a.next(detached(ctx), ref)
	switch {
	case err != nil:
		return Next{}, err
	case stopping(ctx) && next.Action == Send:
		return Next{}, retryAfter(0, "the worker stops: another one goes on")
	case ref.ID != nil && next.Action == Send && next.In <= longestPause:
		return Next{}, retryAfter(next.In, "waits for its next try")
	}
	return next, nil
}

// sendSingle claims and posts one notification. While all that it waits for is a slot, it waits here:
// running the activity again would cost more than the wait.
func (a *Activities) sendSingle(ctx context.Context, ref Ref) error {
	turnEnds := time.Now().Add(a.Terms.turn())
	for !stopping(ctx) && time.Now().Before(turnEnds) {
		posts := panics.NewGroup()
		n, err := a.claimAndPost(ctx, ref, 1, 0, posts, func() {})
		if err = errors.Join(err, posts.Wait()); err != nil || n > 0 || !a.awaitMore(ctx, ref, &room{}) {
			return err
		}
	}
	return nil
}

// sendShard sends what the shard owns and what it adopts, for one turn at most. Rows are claimed in groups, a few
// ahead of the connections, and from then on each goes its own way: no row waits for the answer to another.
func (a *Activities) sendShard(ctx context.Context, ref Ref) error {
	turnEnds := time.Now().Add(a.Terms.turn())
	room := &room{left: a.Terms.ShardSize, since: time.Now()}
	checking, stopChecking := context.WithCancel(ctx)
	defer stopChecking()
	checks := panics.NewGroup()
	checks.Go(func() error { a.checkBeside(checking, ref); return nil })
	posts, failed := panics.WithContext(ctx)
	var err error
	for !stopping(ctx) && time.Now().Before(turnEnds) && failed.Err() == nil {
		var n int
		if n, err = a.claimGroup(ctx, ref, room, posts); err != nil || n == 0 && !a.awaitMore(ctx, ref, room) {
			break
		}
	}
	err = errors.Join(err, posts.Wait())
	stopChecking()
	return errors.Join(err, checks.Wait())
}

// claimGroup claims rows that the shard adopts or, where there are none, its own, as soon as there is room for a group.
func (a *Activities) claimGroup(ctx context.Context, ref Ref, room *room, posts *panics.Group) (int, error) {
	c := a.connections()
	if err := c.claimable(ctx); err != nil {
		return 0, err
	}
	claim := func(limit int, adopt int64) (int, error) {
		return a.claimAndPost(ctx, ref, limit, adopt, posts, func() { c.room.Release(1) })
	}
	n, err := a.adoptGroup(ref, room, claim)
	if n == 0 && err == nil {
		n, err = claim(groupSize, 0)
	}
	c.room.Release(int64(groupSize - n))
	return n, err
}

// checkBeside asks for the shard's rows whose time to be asked for comes while others of it are still sent.
// The workflow runs one activity at a time, so that its own check would wait until this one ends.
func (a *Activities) checkBeside(ctx context.Context, ref Ref) {
	pause := min(max(a.Terms.StatusCheckDelay, time.Second), 10*time.Second)
	for sleep(ctx, pause) == nil {
		_, err := a.check(ctx, func() ([]store.Unsettled, error) {
			return a.Store.Unsettled(ctx, ref.owner(), a.Terms.StatusCheckDelay, checkLimit)
		})
		if err != nil && ctx.Err() == nil {
			a.Log.WarnContext(ctx, "status not checked while sending: the workflow checks it later", "error", err)
		}
	}
}

// room is how many singles a shard may still adopt, and since when none has come.
type room struct {
	left  int
	since time.Time
}

// adoptGroup claims singles of the sender that wait, as far as the shard has room. A shard that adopts none has no
// sender for that.
func (a *Activities) adoptGroup(ref Ref, room *room, claim func(limit int, adopt int64) (int, error)) (int, error) {
	limit := min(groupSize, room.left)
	if limit <= 0 || ref.Adopt == 0 {
		return 0, nil
	}
	n, err := claim(limit, ref.Adopt)
	if room.left -= n; n > 0 {
		room.since = time.Now()
	}
	return n, err
}

// How long a shard waits for more to adopt, and how often it looks.
const (
	linger     = 500 * time.Millisecond
	lingerLook = 20 * time.Millisecond
)

// queueLook is how often a shard, or a batch, looks whether the carrier's queue has room.
const queueLook = 250 * time.Millisecond

// awaitMore waits until the shard may have something to claim again, and reports whether it may: its
// sender gets a slot before long, or it has room and something came lately.
func (a *Activities) awaitMore(ctx context.Context, ref Ref, room *room) bool {
	left, err := a.Store.Outstanding(ctx, ref.owner(), a.Terms.StatusCheckDelay, ref.ahead(), a.Terms.SendDeadline)
	switch {
	case err != nil || left.Held:
		return false // an error is met again, and returned, by whoever reads what comes next
	case left.Accepted > 0 && left.Queued:
		// A batch has few rows under way, which take what room there is; of singles there may be any number.
		return (ref.ID == nil || ref.owner().OfBatch()) && sleep(ctx, queueLook) == nil
	case left.Accepted > 0 && left.SendIn <= SlotAhead:
		return sleep(ctx, max(left.SendIn, 5*time.Millisecond)) == nil
	case ref.Adopt == 0 || room.left <= 0:
		return false
	}
	if full, err := a.Store.QueueIsFull(ctx, ref.Adopt); err == nil && full {
		return sleep(ctx, queueLook) == nil
	}
	patience := max(linger, 2*a.Terms.SMSSendInterval, 2*a.Terms.CallSendInterval)
	return time.Since(room.since) < patience && sleep(ctx, lingerLook) == nil
}

// claimAndPost claims up to limit of the owner's notifications or, where adopt is not 0, of the waiting singles of that
// sender. Each is posted by posts, in its slot, and its answer written down; done is called at its end. It returns how
// many it claimed.
func (a *Activities) claimAndPost(ctx context.Context, ref Ref, limit int, adopt int64, posts *panics.Group, done func()) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	claimedAt := time.Now() // before the database's clock starts the lease, so we never believe it longer than it is
	claims, err := a.Store.Claim(ctx, store.ClaimTerms{
		Owner: ref.owner(), Adopt: adopt, Limit: limit, Lease: a.Terms.lease(), Ahead: ref.ahead(),
		SMSInterval: a.Terms.SMSSendInterval, CallInterval: a.Terms.CallSendInterval,
		SMSQueue: a.Terms.QueueLimit(notify.SMS), CallQueue: a.Terms.QueueLimit(notify.Call),
	})
	if err != nil {
		return 0, err
	}
	for _, claim := range claims {
		posts.Go(func() error {
			defer done()
			receipt, err := a.post(ctx, claim, claimedAt)
			if err != nil || receipt == nil {
				return err
			}
			return a.settleAnswer(ctx, *receipt)
		})
	}
	return len(claims), nil
}

// post makes the SMS or the call, and returns the carrier's receipt; nil when the claim was ended
// without one, or is left to LookUp.
func (a *Activities) post(ctx context.Context, claim store.Claim, claimedAt time.Time) (receipt *notify.Receipt, err error) {
	posting := false
	err = panics.Catch(func() (err error) {
		receipt, err = a.postOnce(ctx, claim, claimedAt, &posting)
		return err
	})
	if panicked, ok := errors.AsType[*panics.Error](err); ok {
		return nil, a.panicked(ctx, claim, panicked, posting)
	}
	return receipt, err
}

// panicked ends the claim of a row whose handling panicked. It gets one more try; what panics twice would
// do so for ever, and is BAD_ROW. Once the carrier was called the request may be on the wire, so that the row
// is looked for first, and LookUp decides.
func (a *Activities) panicked(ctx context.Context, claim store.Claim, err *panics.Error, posting bool) error {
	rowPanics.Inc()
	a.Log.ErrorContext(ctx, "the handling of a notification panicked", "notification_id", claim.ID, "posting", posting, "error", err)
	const detail = "an internal error of the worker"
	if posting {
		return a.Store.NotePanicked(detached(ctx), claim.ID, claim.Token, detail)
	}
	before, failure := a.Store.Panics(detached(ctx), claim.ID)
	switch {
	case failure != nil:
		return failure
	case before > 0:
		return a.refuse(ctx, claim, badRow)
	}
	return a.giveBack(ctx, claim, store.Retry{Kind: store.EventPanicked, Detail: detail, After: pause(claim.Attempts)})
}

var badRow = store.Failure{Kind: store.EventPanicked, FailureCode: notify.CodeBadRow, Detail: "an internal error of the worker, for the second time"}

// postOnce is post. posting tells whether the carrier was called.
func (a *Activities) postOnce(ctx context.Context, claim store.Claim, claimedAt time.Time, posting *bool) (*notify.Receipt, error) {
	if claim.SinceFirst > a.Terms.SendDeadline {
		return nil, a.refuse(ctx, claim, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeSendDeadline})
	}
	if claim.Channel == notify.Call {
		if err := notify.CallableKind(claim.To, a.Terms.NumberKinds...); err != nil {
			return nil, a.refuse(ctx, claim, store.Failure{Kind: store.EventRefused, FailureCode: notify.CodeNumberKind, Detail: err.Error()})
		}
	}
	body, err := claim.Body()
	if err != nil {
		return nil, a.refuse(ctx, claim, store.Failure{Kind: store.EventRefused, FailureCode: notify.CodeBadTemplate, Detail: err.Error()})
	}
	request := a.create(claim, body, claimedAt)
	if err := a.awaitTurn(ctx, claim, claimedAt); err != nil {
		return nil, a.giveBack(ctx, claim, store.Retry{Kind: store.EventTryFailed, Uncounted: true, Detail: err.Error()})
	}
	*posting = true
	receipt, err := a.createAndRelease(ctx, request)
	if err != nil {
		return nil, a.failed(ctx, claim, err)
	}
	a.gateways.twilioAnswered(claim.SenderID)
	receipt.NotificationID, receipt.Source = claim.ID.String(), notify.FromCreate
	receipt.SentAt = a.Store.AtDatabase(receipt.SentAt)
	return &receipt, nil
}

// createAndRelease makes the SMS or the call, and gives back the connection that awaitTurn has acquired.
func (a *Activities) createAndRelease(ctx context.Context, request carrier.Create) (receipt notify.Receipt, err error) {
	answered := false
	defer func() { a.connections().release(answered) }()
	receipt, err = a.Carrier.Create(ctx, request)
	answered = err == nil
	return receipt, err
}

// awaitTurn waits for the claim's slot and acquires a connection. One that was kept from its slot, by
// a busy machine or one that slept, would post at the same time as the one that has the slot after it: it reserves
// another slot, once. The error says why nothing may be posted; no connection is kept then.
func (a *Activities) awaitTurn(ctx context.Context, claim store.Claim, claimedAt time.Time) (err error) {
	errStopped := errors.New("the worker stopped before it posted")
	if sleep(ctx, time.Until(claim.StartsAt)) != nil || a.connections().acquire(ctx) != nil {
		return errStopped
	}
	defer func() {
		if err != nil {
			a.connections().release(false)
		}
	}()
	interval := a.Terms.interval(claim.Channel)
	if interval < slotMinded || time.Since(claim.StartsAt) <= slotMissed {
		return nil
	}
	missedSlots.WithLabelValues(string(claim.Channel)).Inc()
	next, err := a.Store.NextSlot(detached(ctx), claim, interval)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errors.New("its slot was missed, and the sender is stopped")
	case err != nil:
		return err
	case next.After(claimedAt.Add(a.Terms.lease() / 2)):
		return errors.New("its slot was missed, and the sender has none before the claim runs out")
	case sleep(ctx, time.Until(next)) != nil:
		return errStopped
	}
	return nil
}

// create fills the carrier's request from the claim.
func (a *Activities) create(claim store.Claim, body string, claimedAt time.Time) carrier.Create {
	req := carrier.Create{Channel: claim.Channel, To: claim.To, Body: body, DetectMachine: claim.RequireHuman,
		Deadline: claimedAt.Add(a.Terms.lease()), Held: func() bool { return a.stops.since(claim.SenderID, claimedAt) }}
	if strings.HasPrefix(claim.From, "MG") {
		req.MessagingServiceSID = claim.From
	} else {
		req.From = claim.From
	}
	if a.Terms.CallbackURL != nil {
		req.StatusCallback = a.Terms.CallbackURL(claim.Channel, claim.ID)
	}
	return req
}

// failed ends the claim as the class of the carrier's error demands.
func (a *Activities) failed(ctx context.Context, claim store.Claim, err error) error {
	failure, ok := errors.AsType[*carrier.Error](err)
	if !ok {
		return err // not from the carrier: the row stays SENDING, to be looked up
	}
	var code string
	if failure.Code != 0 {
		code = strconv.Itoa(failure.Code)
	}
	if a.gateways.answered(claim.SenderID, failure) {
		reason := notify.LedgerMessage(notify.CodeGatewayAnswered, claim.Channel, "") + " (" + failure.Gateway + ")"
		if err := a.stop(ctx, claim.SenderID, false, notify.CodeGatewayAnswered, reason); err != nil {
			return err
		}
	}
	switch failure.Class {
	case carrier.SafeToRetry:
		return a.tryAgain(ctx, claim, failure, code)
	case carrier.Sender, carrier.AllSenders:
		return a.stopSender(ctx, claim, failure, code)
	case carrier.Ambiguous:
		return a.ambiguous(ctx, claim, failure, code)
	default:
		refusal := store.Failure{Kind: store.EventRefused, ErrorCode: code, Detail: failure.Error()}
		if code == "" { // refused here, before anything was written
			refusal.FailureCode = notify.CodeBadRow
		}
		return a.refuse(ctx, claim, refusal)
	}
}

func (a *Activities) tryAgain(ctx context.Context, claim store.Claim, failure *carrier.Error, code string) error {
	retry := store.Retry{Kind: store.EventTryFailed, ErrorCode: code, Detail: failure.Error(), After: pause(claim.Attempts)}
	switch {
	case errors.Is(failure, carrier.ErrHeld):
		retry.Kind, retry.Uncounted, retry.After = store.EventStopped, true, 0
	case errors.Is(failure, carrier.ErrDeadline), ctx.Err() != nil:
		retry.Uncounted, retry.After = true, 0 // nothing was written
	case failure.HTTPStatus == http.StatusTooManyRequests:
		retry.Uncounted, retry.After = true, min(max(failure.RetryAfter, time.Second), longestSlowing)
		if failure.Code == tooManyRequests {
			a.lowerConnections(ctx)
			if failure.RetryAfter == 0 {
				break
			}
		}
		fallthrough
	case queueFull[failure.Code]:
		if err := a.slowSender(ctx, claim, failure, code, retry.After); err != nil {
			return err
		}
	}
	return a.giveBack(ctx, claim, retry)
}

// tooManyRequests is the code by which Twilio says that an account has too many requests in flight:
// https://www.twilio.com/docs/api/errors/20429.
const tooManyRequests = 20429

// lowerConnections keeps fewer creates in flight. They recover with the answers.
func (a *Activities) lowerConnections(ctx context.Context) {
	if left, lowered := a.connections().lower(); lowered {
		a.Log.WarnContext(ctx, "the carrier says that too many requests are in flight: fewer connections are used", "connections", left)
	}
}

// longestSlowing bounds what one answer of the carrier can hold up.
const longestSlowing = 15 * time.Minute

// queueFull are the codes by which Twilio says that the sender is faster than what it may send:
// 21611 for messages, 22005 for calls.
var queueFull = map[int]bool{21611: true, 22005: true}

// slowSender keeps the whole sender from posting for a while, as the carrier demands.
func (a *Activities) slowSender(ctx context.Context, claim store.Claim, failure *carrier.Error, code string, pause time.Duration) error {
	slowed.WithLabelValues(string(claim.Channel)).Inc()
	a.Log.WarnContext(ctx, "the carrier is asked for more than it takes: the sender waits",
		"sender_id", claim.SenderID, "pause", pause, "error_code", code, "http_status", failure.HTTPStatus)
	return a.Store.DelaySender(detached(ctx), claim.SenderID, pause, cmp.Or(code, strconv.Itoa(failure.HTTPStatus)))
}

// ambiguous leaves the row to LookUp. What the answer says of the sender holds nevertheless.
func (a *Activities) ambiguous(ctx context.Context, claim store.Claim, failure *carrier.Error, code string) error {
	if err := a.Store.NoteAmbiguous(detached(ctx), claim.ID, claim.Token, failure.Error()); err != nil {
		return err
	}
	if stops, all := carrier.StopsSender(code); stops {
		return a.stop(ctx, claim.SenderID, all, code, stopReason(claim, failure, code))
	}
	if failure.HTTPStatus == http.StatusTooManyRequests { // of a gateway: it may have forwarded the request
		return a.slowSender(ctx, claim, failure, code, min(max(failure.RetryAfter, time.Second), longestSlowing))
	}
	return nil
}

// stopReason explains the code, and says in what words it came.
func stopReason(claim store.Claim, failure *carrier.Error, code string) string {
	if carrier.ClassOfCode(code) == "" {
		return failure.Error()
	}
	return notify.LedgerMessage(code, claim.Channel, "") + " (" + failure.Error() + ")"
}

// stop stops the sender, or all senders, and says so.
func (a *Activities) stop(ctx context.Context, sender int64, all bool, code, reason string) error {
	a.stops.note(sender, all)
	if err := a.Store.StopSender(detached(ctx), sender, all, code, reason); err != nil {
		return err
	}
	a.Log.ErrorContext(ctx, "sender stopped: resume it when the cause is fixed",
		"sender_id", sender, "all", all, "error_code", code, "reason", reason)
	return nil
}

func (a *Activities) stopSender(ctx context.Context, claim store.Claim, failure *carrier.Error, code string) error {
	if err := a.stop(ctx, claim.SenderID, failure.Class == carrier.AllSenders, code, stopReason(claim, failure, code)); err != nil {
		return err
	}
	return a.giveBack(ctx, claim, store.Retry{Kind: store.EventStopped, Uncounted: true, ErrorCode: code, Detail: failure.Error()})
}

// stops remembers when the carrier's answers last stopped senders, so that what was claimed before and
// not yet written is given back. What is claimed later has read the ledger.
type stops struct{ at sync.Map } // by sender, 0 for all of them: time.Time

func (s *stops) note(sender int64, all bool) {
	if all {
		sender = 0
	}
	s.at.Store(sender, time.Now())
}

// since reports whether the sender was stopped after the moment.
func (s *stops) since(sender int64, moment time.Time) bool {
	for _, id := range []int64{sender, 0} {
		if at, ok := s.at.Load(id); ok && at.(time.Time).After(moment) {
			return true
		}
	}
	return false
}

// giveBack returns the row to the ledger, unless a receipt was faster.
func (a *Activities) giveBack(ctx context.Context, claim store.Claim, retry store.Retry) error {
	_, err := a.Store.GiveBack(detached(ctx), claim.ID, claim.Token, retry)
	return err
}

// refuse ends the row for good, unless a receipt was faster.
func (a *Activities) refuse(ctx context.Context, claim store.Claim, failure store.Failure) error {
	failure.Message = notify.LedgerMessage(failure.ErrorCode+failure.FailureCode, claim.Channel, "")
	_, err := a.Store.Refuse(detached(ctx), claim.ID, claim.Token, failure)
	return err
}

// pause is how long to wait after the n-th counted try: 2, 4 and 8 s for the three retries, then
// twice as long each time, up to longestPause, until SEND_DEADLINE.
func pause(attempts int32) time.Duration {
	return min(time.Second<<min(max(attempts, 1), 10), longestPause)
}

const longestPause = time.Minute

// stopping reports whether the worker has begun to stop: what is in flight is finished, and nothing
// new is claimed.
func stopping(ctx context.Context) bool {
	if !activity.IsActivity(ctx) {
		return false
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// HeartbeatTimeout is how long after its last sign of life a worker counts as dead.
const HeartbeatTimeout = 6 * time.Second

// heartbeat tells Temporal that the worker lives, until stop is called.
func heartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	learnTemporalClock(ctx)
	ended := make(chan struct{})
	var once sync.Once
	go func() {
		beat := time.NewTicker(HeartbeatTimeout / 3)
		defer beat.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ctx.Done():
				return
			case <-beat.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() { once.Do(func() { close(ended) }) }
}
