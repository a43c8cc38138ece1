package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func seconds(n int) *int { return &n }

// What the carrier may say of one notification, and the row that must result, whatever the order.
var receiptSets = []struct {
	name         string
	channel      notify.Channel
	requireHuman bool
	receipts     []notify.Receipt
	want         string
}{
	{"SMS delivered", notify.SMS, false, []notify.Receipt{
		{Word: "queued"}, {Word: "sending"}, {Word: "sent", Segments: 2}, {Word: "delivered"},
	}, "SUCCESS delivered segments=2"},
	{"SMS still on its way", notify.SMS, false, []notify.Receipt{{Word: "accepted"}, {Word: "queued"}, {Word: "sent"}}, "PENDING sent"},
	{"SMS undelivered, once without its code", notify.SMS, false, []notify.Receipt{
		{Word: "sent"}, {Word: "undelivered", ErrorCode: "30003"}, {Word: "undelivered"},
	}, "FAILED undelivered code=30003"},
	{"SMS with two finals", notify.SMS, false, []notify.Receipt{
		{Word: "sent"}, {Word: "undelivered", ErrorCode: "30008"}, {Word: "delivered"},
	}, "SUCCESS delivered"},
	{"SMS with two codes", notify.SMS, false, []notify.Receipt{
		{Word: "failed", ErrorCode: "9999"}, {Word: "failed", ErrorCode: "30008"},
	}, "FAILED failed code=30008"},
	{"SMS whose code comes with the lower word", notify.SMS, false, []notify.Receipt{
		{Word: "sent"}, {Word: "failed", ErrorCode: "30003"}, {Word: "undelivered"},
	}, "FAILED undelivered code=30003"},
	{"SMS whose code comes before it fails", notify.SMS, false, []notify.Receipt{
		{Word: "sent", ErrorCode: "30008"}, {Word: "undelivered"},
	}, "FAILED undelivered code=30008"},
	{"SMS with a code for each of three words", notify.SMS, false, []notify.Receipt{
		{Word: "sent", ErrorCode: "30009"}, {Word: "failed", ErrorCode: "30003"}, {Word: "canceled", ErrorCode: "30008"}, {Word: "undelivered"},
	}, "FAILED undelivered code=30003"},
	{"SMS delivered with a code", notify.SMS, false, []notify.Receipt{
		{Word: "sent"}, {Word: "delivered", ErrorCode: "30008"},
	}, "SUCCESS delivered"},
	{"SMS on its way with a code", notify.SMS, false, []notify.Receipt{{Word: "queued"}, {Word: "sent", ErrorCode: "30008"}}, "PENDING sent"},
	{"SMS with a word never heard of", notify.SMS, false, []notify.Receipt{{Word: "teleported"}, {Word: "sent"}}, "PENDING sent"},
	{"call answered", notify.Call, false, []notify.Receipt{
		{Word: "initiated"}, {Word: "ringing"}, {Word: "in-progress"}, {Word: "completed", Duration: seconds(12)},
	}, "SUCCESS completed duration=12"},
	{"call whose duration is not told", notify.Call, false, []notify.Receipt{{Word: "ringing"}, {Word: "completed"}}, "PENDING completed"},
	{"call whose duration is told by one of two", notify.Call, false, []notify.Receipt{
		{Word: "completed"}, {Word: "completed", Duration: seconds(7)}, {Word: "ringing"},
	}, "SUCCESS completed duration=7"},
	{"call that ended after 0 s", notify.Call, false, []notify.Receipt{
		{Word: "in-progress"}, {Word: "completed", Duration: seconds(0)},
	}, "FAILED completed failure=NOT_ANSWERED duration=0"},
	{"call that a machine took", notify.Call, false, []notify.Receipt{
		{Word: "in-progress", AnsweredBy: "machine_start"}, {Word: "completed", Duration: seconds(9)},
	}, "SUCCESS completed duration=9 answered_by=machine_start"},
	{"call for a person that a machine took", notify.Call, true, []notify.Receipt{
		{Word: "in-progress", AnsweredBy: "machine_start"}, {Word: "completed", Duration: seconds(9)},
	}, "FAILED completed failure=ANSWERED_BY_MACHINE duration=9 answered_by=machine_start"},
	{"call for a person that a person took", notify.Call, true, []notify.Receipt{
		{Word: "in-progress", AnsweredBy: "unknown"}, {Word: "completed", Duration: seconds(9), AnsweredBy: "human"},
	}, "SUCCESS completed duration=9 answered_by=human"},
	{"call for a person of which it is not told who took it", notify.Call, true, []notify.Receipt{
		{Word: "completed", Duration: seconds(9)},
	}, "PENDING completed duration=9"},
	{"busy call", notify.Call, false, []notify.Receipt{{Word: "ringing"}, {Word: "busy", Duration: seconds(0)}}, "FAILED busy duration=0"},
	{"unanswered call", notify.Call, false, []notify.Receipt{{Word: "initiated"}, {Word: "no-answer"}}, "FAILED no-answer"},
	{"canceled call", notify.Call, false, []notify.Receipt{{Word: "queued"}, {Word: "canceled"}}, "FAILED canceled"},
}

func TestReceiptsInAnyOrderAndGroupingEndInTheSameRow(t *testing.T) {
	s := openStore(t)
	for _, set := range receiptSets {
		t.Run(set.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				id := accept(t, s, set.channel, set.requireHuman)
				repeats := rapid.SliceOfN(rapid.SampledFrom(set.receipts), 0, 3).Draw(t, "repeats")
				order := rapid.Permutation(append(repeats, set.receipts...)).Draw(t, "order")
				for i := range order {
					order[i].NotificationID, order[i].Channel = id.String(), set.channel
					order[i].Source = rapid.SampledFrom([]notify.Source{notify.FromWebhook, notify.FromPoll}).Draw(t, "source")
				}
				for first := 0; first < len(order); {
					n := rapid.IntRange(1, len(order)-first).Draw(t, "group")
					settle(t, s, order[first:first+n]...)
					first += n
				}
				if got := outcome(t, s, id); got != set.want {
					t.Fatalf("the row is\n%s, want\n%s", got, set.want)
				}
				events, err := s.Events(context.Background(), id)
				if err != nil {
					t.Fatal(err)
				}
				if len(events) != len(order)+1 {
					t.Fatalf("the timeline has %d entries: want the acceptance and all %d receipts", len(events), len(order))
				}
			})
		})
	}
}

// The same things are said of three rows: by callbacks only, of which some come before the send
// returns; by asking for each SID; and by lists, which have no ids.
func TestCallbacksPollsAndListsEndInTheSameRow(t *testing.T) {
	s, db := openLedger(t)
	rapid.Check(t, func(t *rapid.T) {
		set := rapid.SampledFrom(receiptSets).Draw(t, "set")
		repeats := rapid.SliceOfN(rapid.SampledFrom(set.receipts), 0, 3).Draw(t, "repeats")
		order := rapid.Permutation(append(repeats, set.receipts...)).Draw(t, "order")
		answered := rapid.IntRange(0, len(order)).Draw(t, "callbacks before the answer")

		rows := map[string]string{}
		for _, way := range []string{"callbacks", "polls", "lists"} {
			id, sid := accept(t, s, set.channel, set.requireHuman), newSID(map[notify.Channel]string{notify.SMS: "SM", notify.Call: "CA"}[set.channel])
			if _, err := s.Claim(context.Background(), terms(id)); err != nil {
				t.Fatal(err)
			}
			answer := notify.Receipt{NotificationID: id.String(), Channel: set.channel, SID: sid, Word: "queued", Source: notify.FromCreate}
			if way != "callbacks" {
				settle(t, s, answer) // nobody can ask without the SID
			}
			for i, r := range order {
				if way == "callbacks" && i == answered {
					settle(t, s, answer)
				}
				r.Channel, r.SID, r.Source = set.channel, sid, notify.FromPoll
				switch way {
				case "callbacks":
					r.NotificationID, r.Source = id.String(), notify.FromWebhook
					settle(t, s, r)
				case "polls":
					r.NotificationID = id.String()
					settle(t, s, r)
				case "lists":
					settleListed(t, s, r)
				}
			}
			if way == "callbacks" && answered == len(order) {
				settle(t, s, answer)
			}
			if got := outcome(t, s, id); got != set.want {
				t.Fatalf("%s: the row is\n%s, want\n%s", way, got, set.want)
			}
			rows[way] = wholeRow(t, db, id)
		}
		if rows["callbacks"] != rows["polls"] || rows["polls"] != rows["lists"] {
			t.Fatalf("the rows differ:\n%s\n%s\n%s", rows["callbacks"], rows["polls"], rows["lists"])
		}
	})
}

// wholeRow writes everything of a row that receipts decide.
func wholeRow(t rapid.TB, db *pgx.Conn, id uuid.UUID) string {
	t.Helper()
	var row string
	err := db.QueryRow(context.Background(), `
		SELECT concat_ws(' ', status, carrier_rank, twilio_status, twilio_error_code, failure_code, error_message, segments,
			duration_seconds, answered_by, sent_at IS NOT NULL, settled_at IS NOT NULL, claim_token, twilio_sid IS NOT NULL)
		FROM notifications
		WHERE id = $1`, id).Scan(&row)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func settleListed(t rapid.TB, s *store.Store, receipts ...notify.Receipt) store.Listed {
	t.Helper()
	listed, err := s.SettleListed(context.Background(), receipts, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

func TestAListTellsTheTimelineOnlyWhatIsNew(t *testing.T) {
	s := openStore(t)
	id, sid, stray := accept(t, s, notify.SMS, false), newSID("SM"), newSID("SM")
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: "queued", Source: notify.FromCreate})
	list := []notify.Receipt{
		{Channel: notify.SMS, SID: sid, Word: "delivered", Segments: 1, Source: notify.FromPoll},
		{Channel: notify.SMS, SID: stray, Word: "delivered", Source: notify.FromPoll},
	}
	first := settleListed(t, s, list...)
	if len(first.Settled) != 1 || !first.Settled[0].JustSettled() || len(first.Unowned) != 1 || first.Unowned[0] != stray {
		t.Errorf("the first list did %+v: want one row settled and one SID without a row", first)
	}
	if again := settleListed(t, s, list...); len(again.Settled) != 0 {
		t.Errorf("the second list did %+v: want nothing settled", again)
	}
	events, err := s.Events(t.Context(), id)
	if err != nil || len(events) != 3 {
		t.Errorf("the timeline has %d entries, error %v: want acceptance, answer and one poll", len(events), err)
	}
}

func TestAReceiptBeatsWhatWeDecidedOurselves(t *testing.T) {
	s := openStore(t)
	tests := []struct {
		name    string
		decide  func(testing.TB, uuid.UUID)
		receipt notify.Receipt
		want    string
	}{
		{"ACCEPTED", func(testing.TB, uuid.UUID) {}, notify.Receipt{Word: "delivered"}, "SUCCESS delivered"},
		{"SENDING", func(t testing.TB, id uuid.UUID) { claim(t, s, id) }, notify.Receipt{Word: "sent"}, "PENDING sent"},
		{"CANCELED", func(t testing.TB, id uuid.UUID) { cancel(t, s, id) }, notify.Receipt{Word: "sent"}, "PENDING sent"},
		{"FAILED by us", func(t testing.TB, id uuid.UUID) { expire(t, s, id) },
			notify.Receipt{Word: "delivered"}, "SUCCESS delivered"},
		{"refused by the carrier's answer", func(t testing.TB, id uuid.UUID) {
			if held, err := s.Refuse(t.Context(), id, claim(t, s, id).Token, store.Failure{Kind: store.EventRefused, ErrorCode: "21610"}); err != nil || !held {
				t.Fatal(held, err)
			}
		}, notify.Receipt{Word: "delivered"}, "SUCCESS delivered"},
		{"UNKNOWN because ambiguous", func(t testing.TB, id uuid.UUID) {
			if held, err := s.Doubt(t.Context(), id, claim(t, s, id).Token, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeAmbiguousSend}); err != nil || !held {
				t.Fatal(held, err)
			}
		}, notify.Receipt{Word: "queued"}, "PENDING queued"},
		{"UNKNOWN without a receipt, by a final word", func(t testing.TB, id uuid.UUID) { forsake(t, s, id) }, notify.Receipt{Word: "delivered"}, "SUCCESS delivered"},
		{"but not UNKNOWN without a receipt, by a word on the way", func(t testing.TB, id uuid.UUID) { forsake(t, s, id) },
			notify.Receipt{Word: "sent"}, "UNKNOWN sent failure=NO_RECEIPT"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id := accept(t, s, notify.SMS, false)
			test.decide(t, id)
			test.receipt.NotificationID, test.receipt.Channel, test.receipt.Source = id.String(), notify.SMS, notify.FromWebhook
			settle(t, s, test.receipt)
			if got := outcome(t, s, id); got != test.want {
				t.Errorf("the row is %s, want %s", got, test.want)
			}
		})
	}
}

func TestReceiptBeforeSendReturns(t *testing.T) {
	s := openStore(t)
	id, sid := accept(t, s, notify.SMS, false), newSID("SM")
	token := claim(t, s, id).Token
	settled := settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: "delivered", Source: notify.FromWebhook})
	if len(settled) != 1 || !settled[0].JustSettled() || settled[0].WorkflowID == nil {
		t.Fatalf("settled %+v: want the row just settled, with its workflow to signal", settled)
	}
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: "queued", Segments: 3, Source: notify.FromCreate})
	if got, want := outcome(t, s, id), "SUCCESS delivered segments=3"; got != want {
		t.Errorf("the row is %s, want %s", got, want)
	}
	if held, err := s.Refuse(t.Context(), id, token, store.Failure{Kind: store.EventRefused, ErrorCode: "21610"}); held || err != nil {
		t.Errorf("an error answer moved a row that no longer holds its token: %v %v", held, err)
	}
}

func TestWhatTheTimelineMarks(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	receipt := func(word, sid string) store.Settled {
		got := settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: word, Source: notify.FromWebhook})
		if len(got) != 1 {
			t.Fatalf("settled %d rows, want 1", len(got))
		}
		return got[0]
	}
	first, second := newSID("SM"), newSID("SM")
	receipt("sent", first)
	receipt("teleported", first)
	receipt("delivered", first)
	if !receipt("undelivered", first).Conflict {
		t.Error("two finals that disagree are not marked")
	}
	if receipt("delivered", first).Conflict {
		t.Error("a repeat is marked as a conflict")
	}
	together := accept(t, s, notify.SMS, false)
	if got := settle(t, s,
		notify.Receipt{NotificationID: together.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook},
		notify.Receipt{NotificationID: together.String(), Channel: notify.SMS, Word: "failed", Source: notify.FromWebhook},
	); !got[0].Conflict {
		t.Error("two finals that disagree and come together are not marked")
	}
	if !receipt("sent", second).SecondSID {
		t.Error("a second SID is not marked")
	}
	events, err := s.Events(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, string(e.Kind))
	}
	if got, want := strings.Join(kinds, " "), "accepted receipt unknown_word receipt conflicting_final receipt second_sid"; got != want {
		t.Errorf("the timeline is\n%s, want\n%s", got, want)
	}
}

func TestReceiptsThatNoRowWaitsForAreRecorded(t *testing.T) {
	s := openStore(t)
	unknown := uuid.New()
	if settled := settle(t, s, notify.Receipt{NotificationID: unknown.String(), Channel: notify.SMS, SID: newSID("SM"), Word: "sent", Source: notify.FromWebhook}); len(settled) != 0 {
		t.Errorf("settled %+v: want nothing", settled)
	}
	events, err := s.Events(t.Context(), unknown)
	if err != nil || len(events) != 1 || events[0].Kind != store.EventUnknownID {
		t.Errorf("events %+v, error %v: want the receipt recorded", events, err)
	}
	if _, err := s.Settle(t.Context(), notify.Receipt{NotificationID: "x", Channel: notify.SMS, SID: "y", Word: "sent"}); err == nil {
		t.Error("a receipt without a usable id was taken")
	}
	sms := accept(t, s, notify.SMS, false)
	if settled := settle(t, s, notify.Receipt{NotificationID: sms.String(), Channel: notify.Call, SID: newSID("CA"), Word: "completed", Source: notify.FromWebhook}); len(settled) != 0 {
		t.Errorf("a call's receipt settled an SMS: %+v", settled)
	}
}

func TestASIDAloneFindsItsRow(t *testing.T) {
	s := openStore(t)
	id, sid := accept(t, s, notify.Call, false), newSID("CA")
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.Call, SID: sid, Word: "queued", Source: notify.FromCreate})
	settle(t, s, notify.Receipt{Channel: notify.Call, SID: sid, Word: "busy", Source: notify.FromPoll})
	if got, want := outcome(t, s, id), "FAILED busy"; got != want {
		t.Errorf("the row is %s, want %s", got, want)
	}
}

func TestTwoRowsNeverShareASID(t *testing.T) {
	s := openStore(t)
	one, other, sid := accept(t, s, notify.SMS, false), accept(t, s, notify.SMS, false), newSID("SM")
	for _, id := range []uuid.UUID{one, other} {
		settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: "sent", Source: notify.FromWebhook})
	}
	n, err := s.Notification(t.Context(), other)
	if err != nil || n.TwilioSID != nil || n.Status != notify.Pending {
		t.Errorf("the second row is %+v, error %v: want it PENDING, without the first one's SID", n, err)
	}
	third, fourth, sid := accept(t, s, notify.SMS, false), accept(t, s, notify.SMS, false), newSID("SM")
	if settled := settle(t, s,
		notify.Receipt{NotificationID: third.String(), Channel: notify.SMS, SID: sid, Word: "sent", Source: notify.FromWebhook},
		notify.Receipt{NotificationID: fourth.String(), Channel: notify.SMS, SID: sid, Word: "sent", Source: notify.FromWebhook},
	); len(settled) != 2 {
		t.Errorf("settled %+v of a group in which two rows are told one SID", settled)
	}
}

func TestConcurrentGroupsDoNotDeadlock(t *testing.T) {
	s := openStore(t)
	var ids []uuid.UUID
	for range 40 {
		ids = append(ids, accept(t, s, notify.SMS, false))
	}
	errs := make(chan error)
	for writer := range 8 {
		go func() {
			var err error
			for round := range 20 {
				group := make([]notify.Receipt, len(ids))
				for i := range ids {
					at := (i*7 + writer*13 + round) % len(ids) // every writer in an order of its own
					word := notify.CarrierWords(notify.SMS)[(i+round)%11].Name
					group[i] = notify.Receipt{NotificationID: ids[at].String(), Channel: notify.SMS, Word: word, Source: notify.FromWebhook}
				}
				if _, settleErr := s.Settle(context.Background(), group...); settleErr != nil {
					err = settleErr
				}
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func newSID(prefix string) string { return prefix + strings.ReplaceAll(uuid.NewString(), "-", "") }

func settle(t rapid.TB, s *store.Store, receipts ...notify.Receipt) []store.Settled {
	t.Helper()
	settled, err := s.Settle(context.Background(), receipts...)
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

// outcome writes what of a row depends on its receipts.
func outcome(t rapid.TB, s *store.Store, id uuid.UUID) string {
	t.Helper()
	n, err := s.Notification(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	text := string(n.Status) + " " + *n.TwilioStatus
	text += field("code", n.TwilioErrorCode) + field("failure", n.FailureCode)
	return text + field("duration", n.DurationSeconds) + field("answered_by", n.AnsweredBy) + field("segments", n.Segments)
}

func field[T any](name string, value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprintf(" %s=%v", name, *value)
}

func TestOneSIDToldOfManyRowsAtOnceIsNoError(t *testing.T) {
	s := openStore(t)
	sid := newSID("SM")
	errs := make(chan error)
	for range 10 {
		id := accept(t, s, notify.SMS, false)
		go func() {
			_, err := s.Settle(context.Background(), notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: "sent", Source: notify.FromWebhook})
			errs <- err
		}()
	}
	for range 10 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
