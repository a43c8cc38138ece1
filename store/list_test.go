package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func list(t testing.TB, s *store.Store, filter store.Filter, after *store.Place, limit int) []store.Notification {
	t.Helper()
	page, _, err := s.Notifications(t.Context(), filter, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func ids(page []store.Notification) []uuid.UUID {
	all := make([]uuid.UUID, len(page))
	for i, n := range page {
		all[i] = n.ID
	}
	return all
}

func TestPagesHaveEachNotificationOnceNewestFirst(t *testing.T) {
	s := openStore(t)
	var want []uuid.UUID
	for range 7 {
		want = slices.Insert(want, 0, accept(t, s, notify.SMS, false))
	}
	// Those of one group have the same time.
	for _, a := range acceptAll(t, s, plain(t, s), plain(t, s), plain(t, s), plain(t, s), plain(t, s)) {
		want = slices.Insert(want, 0, a.Notification.ID)
	}
	slices.SortStableFunc(want[:5], func(a, b uuid.UUID) int { return -slices.Compare(a[:], b[:]) })
	var got []uuid.UUID
	for after := (*store.Place)(nil); ; {
		page := list(t, s, store.Filter{}, after, 3)
		got = append(got, ids(page)...)
		if len(page) < 3 {
			break
		}
		last := page[2].Place()
		after = &last
		accept(t, s, notify.SMS, false) // what comes meanwhile moves nothing
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages have\n%v, want\n%v", got, want)
	}
}

// plain is a notification without a key.
func plain(t testing.TB, s *store.Store) store.NewNotification {
	t.Helper()
	n := under(t, s, 0, "", "hello", nil)
	n.Once = nil
	return n
}

func TestFiltersChooseWhatFitsAllOfThem(t *testing.T) {
	s := openStore(t)
	stopped, err := s.EnsureSender(t.Context(), notify.Call, "+15005550007")
	if err != nil {
		t.Fatal(err)
	}
	reference, otherNumber := "order-1", []byte("another number")
	add := func(change func(*store.NewNotification)) uuid.UUID {
		t.Helper()
		n := plain(t, s)
		change(&n)
		acceptAll(t, s, n)
		return n.ID
	}
	accepted := add(func(*store.NewNotification) {})
	held := add(func(n *store.NewNotification) { n.Channel, n.SenderID = notify.Call, stopped })
	named := add(func(n *store.NewNotification) { n.Reference = &reference })
	elsewhere := add(func(n *store.NewNotification) { n.ToHash = otherNumber })
	failed := add(func(*store.NewNotification) {})
	expire(t, s, failed)
	canceled := add(func(*store.NewNotification) {})
	cancel(t, s, canceled)
	if err := s.StopSender(t.Context(), stopped, false, "21606", "it cannot call"); err != nil {
		t.Fatal(err)
	}
	at := read(t, s, named).CreatedAt
	for name, test := range map[string]struct {
		filter store.Filter
		want   []uuid.UUID
	}{
		"nothing":              {store.Filter{}, []uuid.UUID{canceled, failed, elsewhere, named, held, accepted}},
		"a status":             {store.Filter{Statuses: []notify.Status{notify.Failed}}, []uuid.UUID{failed}},
		"two statuses":         {store.Filter{Statuses: []notify.Status{notify.Canceled, notify.Failed}}, []uuid.UUID{canceled, failed}},
		"a status twice":       {store.Filter{Statuses: []notify.Status{notify.Failed, notify.Failed}}, []uuid.UUID{failed}},
		"held":                 {store.Filter{Statuses: []notify.Status{notify.Held}}, []uuid.UUID{held}},
		"accepted":             {store.Filter{Statuses: []notify.Status{notify.Accepted}}, []uuid.UUID{elsewhere, named, accepted}},
		"accepted or held":     {store.Filter{Statuses: []notify.Status{notify.Accepted, notify.Held}}, []uuid.UUID{elsewhere, named, held, accepted}},
		"a channel":            {store.Filter{Channel: notify.Call}, []uuid.UUID{held}},
		"a number":             {store.Filter{ToHash: otherNumber}, []uuid.UUID{elsewhere}},
		"a reference":          {store.Filter{Reference: &reference}, []uuid.UUID{named}},
		"from a time on":       {store.Filter{CreatedFrom: at}, []uuid.UUID{canceled, failed, elsewhere, named}},
		"before a time":        {store.Filter{CreatedTo: at}, []uuid.UUID{held, accepted}},
		"a number at a time":   {store.Filter{ToHash: otherNumber, CreatedTo: at}, nil},
		"a status of a number": {store.Filter{ToHash: otherNumber, Statuses: []notify.Status{notify.Accepted, notify.Failed}}, []uuid.UUID{elsewhere}},
	} {
		t.Run(name, func(t *testing.T) {
			page := list(t, s, test.filter, nil, 10)
			if !slices.Equal(ids(page), test.want) && len(page)+len(test.want) > 0 {
				t.Errorf("the list has\n%v, want\n%v", ids(page), test.want)
			}
			for _, n := range page {
				if want := n.ID == held; (n.Status == notify.Held) != want {
					t.Errorf("%s reads %s", n.ID, n.Status)
				}
			}
		})
	}
}

func TestWhateverIsAcceptedIsFoundByItsNumber(t *testing.T) {
	s := openStore(t)
	someone := named(1, 1, "A")
	hash := someone.ToHash
	var want []uuid.UUID
	for _, once := range []*store.Once{nil, {Key: "k", Answer: func(store.Notification) (store.Answer, error) { return store.Answer{}, nil }}} {
		n := plain(t, s)
		n.ToHash, n.Once = hash, once
		acceptAll(t, s, n)
		want = append(want, n.ID)
	}
	b := acceptBatch(t, s, 3, 3, func(n *store.NewBatch) {
		next := n.Recipients
		n.Recipients = func() (store.BatchRecipient, bool, error) {
			to, ok, err := next()
			if to.Row == 2 {
				to.ToHash, want = hash, append(want, to.ID)
			}
			return to, ok, err
		}
	})
	terms, due := dueNow(daily(t, s, someone, named(2, 2, "B")))
	run, _, err := s.RunSchedule(t.Context(), createSchedule(t, s, terms).ID, due, settings(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range s.BatchResults(t.Context(), *run.BatchID) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Row == 1 {
			want = append(want, row.ID)
		}
	}
	slices.Reverse(want)
	if got := ids(list(t, s, store.Filter{ToHash: hash}, nil, 10)); !slices.Equal(got, want) {
		t.Errorf("the number's notifications are\n%v, want\n%v", got, want)
	}
	place := read(t, s, want[1]).Place()
	if got := ids(list(t, s, store.Filter{ToHash: hash}, &place, 10)); !slices.Equal(got, want[2:]) {
		t.Errorf("after a page they are\n%v, want\n%v", got, want[2:])
	}
	if got := ids(list(t, s, store.Filter{ToHash: hash, BatchID: &b.ID}, nil, 10)); !slices.Equal(got, want[1:2]) {
		t.Errorf("in the batch they are\n%v, want\n%v", got, want[1:2])
	}
}

const planRows = 100_000

// Every page is found along an index, also with the statistics of a large ledger, in which nearly
// all is delivered.
func TestNoPageReadsTheWholeLedger(t *testing.T) {
	url := devstacktest.Ledger(t)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	if _, err := db.Exec(t.Context(), `
		INSERT INTO senders (channel, address, stopped_at, stop_code) VALUES ('SMS', '+15005550006', NULL, NULL), ('CALL', '+15005550006', now(), '21606')`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `
		INSERT INTO notifications (id, channel, status, claim_token, reference, to_number, to_national, to_hash, message, sender_id, created_at)
		SELECT gen_random_uuid(), CASE WHEN i % 20 = 0 THEN 'CALL' ELSE 'SMS' END::channel, status::notification_status,
			CASE status WHEN 'SENDING' THEN gen_random_uuid() END, 'order-' || i,
			'+12025550143', '(202) 555-0143', decode(md5((i % $1 / 4)::text), 'hex'), 'hello', CASE WHEN i % 20 = 0 THEN 2 ELSE 1 END,
			now() - i * interval '10 s'
		FROM generate_series(1, $1) AS i,
			LATERAL (SELECT CASE WHEN i < $1 / 100 THEN (ARRAY ['ACCEPTED', 'SENDING', 'PENDING'])[1 + i % 3]
				WHEN i % 40 = 0 THEN (ARRAY ['FAILED', 'UNKNOWN', 'SKIPPED', 'CANCELED'])[1 + i / 40 % 4] ELSE 'SUCCESS' END AS status) AS s`, planRows); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	reference, hour := "order-7", time.Hour
	after := &store.Place{CreatedAt: time.Now().Add(-hour), ID: uuid.New()}
	filters := map[string]store.Filter{
		"all":                {},
		"an hour":            {CreatedFrom: time.Now().Add(-2 * hour), CreatedTo: time.Now().Add(-hour)},
		"calls":              {Channel: notify.Call},
		"a number":           {ToHash: []byte("0123456789abcdef")},
		"failed to it":       {ToHash: []byte("0123456789abcdef"), Statuses: []notify.Status{notify.Failed}},
		"a reference":        {Reference: &reference},
		"a batch":            {BatchID: &after.ID},
		"failed in a batch":  {BatchID: &after.ID, Statuses: []notify.Status{notify.Failed}},
		"a schedule":         {ScheduleID: new(int64(1))},
		"what went wrong":    {Statuses: []notify.Status{notify.Failed, notify.Unknown}},
		"everything by name": {Statuses: notify.Statuses},
	}
	for _, status := range notify.Statuses {
		filters[string(status)] = store.Filter{Statuses: []notify.Status{status}}
	}
	explain := func(sql string, args []any) string {
		t.Helper()
		rows, err := db.Query(t.Context(), "EXPLAIN "+sql, args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(lines, "\n")
	}
	windows := 0
	for name, filter := range filters {
		for _, from := range []*store.Place{nil, after} {
			sql, args := filter.Query(from, 51)
			plan := explain(sql, args)
			if strings.Contains(plan, "Seq Scan on notifications") {
				t.Errorf("%s, after a page: %v:\n%s", name, from != nil, plan)
			}
			sql, args = filter.WindowQuery(from, 2000)
			if sql == "" {
				continue
			}
			windows++
			plan = explain(sql, args)
			if strings.Contains(plan, "Seq Scan on notifications") || strings.Contains(plan, "Filter: ") {
				t.Errorf("the window of %s, after a page: %v:\n%s", name, from != nil, plan)
			}
		}
	}
	if windows == 0 {
		t.Error("no filter needs windows")
	}
}

// Nearly all of the ledger is SMS, and the calls are its oldest rows: no index has them.
func TestPagesOfWhatNoIndexHasGoOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s, db := openLedger(t)
	execute(t, db, `INSERT INTO senders (channel, address) VALUES ('SMS', '+15005550006'), ('CALL', '+15005550006')`)
	execute(t, db, `
		INSERT INTO notifications (id, channel, status, to_number, to_national, to_hash, message, sender_id, settled_at, created_at)
		SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, CASE WHEN i <= 3 THEN 'CALL' ELSE 'SMS' END::channel, 'SUCCESS',
			'+12025550143', '(202) 555-0143', '\x00', 'hello', CASE WHEN i <= 3 THEN 2 ELSE 1 END, now(), now()
		FROM generate_series(1, 40000) AS i`)
	for _, filter := range []store.Filter{
		{Channel: notify.Call},
		{Channel: notify.Call, Statuses: []notify.Status{notify.Success, notify.Failed}},
		{Channel: notify.Call, ToHash: []byte{0}},
	} {
		var found []uuid.UUID
		pages := 0
		for after := (*store.Place)(nil); ; pages++ {
			page, next, err := s.Notifications(t.Context(), filter, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if found = append(found, ids(page)...); next == nil {
				break
			}
			if after != nil && slices.Compare(next.ID[:], after.ID[:]) >= 0 {
				t.Fatalf("%+v: after %s a page leads to %s", filter, after.ID, next.ID)
			}
			after = next
		}
		if len(found) != 3 || !slices.IsSortedFunc(found, func(a, b uuid.UUID) int { return slices.Compare(b[:], a[:]) }) {
			t.Errorf("%+v: %d pages have %v, want the three calls", filter, pages+1, found)
		}
	}
}
