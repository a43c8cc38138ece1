package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// member is one with the number 090-1234-nnnn.
func member(row, n int, params map[string]string) store.NewMember {
	number := notify.PhoneNumber{E164: fmt.Sprintf("+819012%06d", n), National: fmt.Sprintf("090-12-%06d", n), Region: "JP", Kind: notify.Mobile}
	key := []byte("key")
	all := number.E164
	for _, name := range slices.Sorted(maps.Keys(params)) {
		all += "\x00" + name + "\x00" + params[name]
	}
	sum := sha256.Sum256([]byte(all))
	return store.NewMember{Row: row, Key: sum[:16], To: number, ToHash: number.Hash(key), TailHash: number.TailHash(key), Params: params}
}

func named(row, n int, name string) store.NewMember {
	return member(row, n, map[string]string{"name": name})
}

// each gives members one by one, as an import asks for them.
func each(members ...store.NewMember) func() (store.NewMember, bool, error) {
	return func() (m store.NewMember, ok bool, err error) {
		if len(members) == 0 {
			return m, false, nil
		}
		m, members = members[0], members[1:]
		return m, true, nil
	}
}

func createList(t testing.TB, s *store.Store, members ...store.NewMember) int64 {
	t.Helper()
	done, err := s.CreateListOf(t.Context(), uuid.NewString(), each(members...))
	if err != nil {
		t.Fatal(err)
	}
	return done.List.ID
}

// wantMembers checks who is on a list, in order, and that they are counted.
func wantMembers(t testing.TB, s *store.Store, list int64, want ...string) {
	t.Helper()
	var got []string
	for m, err := range s.ListSnapshot(t.Context(), list) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.To[len(m.To)-1:]+m.Params["name"])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the members are %v, want %v", got, want)
	}
	if l, err := s.RecipientList(t.Context(), list); err != nil || int(l.Members) != len(want) {
		t.Errorf("%d members are counted, error %v, want %d", l.Members, err, len(want))
	}
}

func TestAnImportReportsWhatItDid(t *testing.T) {
	s := openStore(t)
	tokyo, seoul := "Asia/Tokyo", "Asia/Seoul"
	in := func(zone *string, m store.NewMember) store.NewMember {
		m.Timezone = zone
		return m
	}
	list := createList(t, s, named(1, 1, "A"), named(2, 1, "B"), in(&tokyo, named(3, 2, "C")), named(4, 2, "C"))
	wantMembers(t, s, list, "1A", "1B", "2C")
	other := createList(t, s, named(1, 1, "A"))
	for _, test := range []struct {
		name                                           string
		replace                                        bool
		members                                        []store.NewMember
		added, changed, unchanged, removed, duplicates int64
		want                                           []string
	}{
		{"the same again", false, []store.NewMember{named(1, 1, "A"), named(2, 1, "B"), named(3, 2, "C")}, 0, 0, 3, 0, 0, []string{"1A", "1B", "2C"}},
		{"another zone", false, []store.NewMember{in(&seoul, named(1, 2, "C"))}, 0, 1, 0, 0, 0, []string{"1A", "1B", "2C"}},
		{"a relative, twice", false, []store.NewMember{named(1, 2, "D"), named(2, 2, "D"), named(3, 1, "A")}, 1, 0, 1, 0, 1, []string{"1A", "1B", "2C", "2D"}},
		{"another name in its place", true, []store.NewMember{named(1, 1, "A"), named(2, 1, "X"), named(3, 2, "C"), named(4, 2, "D")}, 0, 2, 2, 0, 0, []string{"1A", "1X", "2C", "2D"}},
		{"one less, one more", true, []store.NewMember{named(1, 2, "D"), named(2, 1, "X"), named(3, 3, "E"), named(4, 2, "C")}, 1, 0, 3, 1, 0, []string{"1X", "2C", "2D", "3E"}},
		{"all others", true, []store.NewMember{named(1, 9, "Z"), named(2, 8, "Y")}, 2, 0, 0, 4, 0, []string{"9Z", "8Y"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			done, err := s.ImportMembers(t.Context(), store.MembersImport{ListID: list, Replace: test.replace, Members: each(test.members...)})
			if err != nil {
				t.Fatal(err)
			}
			got := [5]int64{done.Added, done.Changed, done.Unchanged, done.Removed, done.Duplicates}
			if want := [5]int64{test.added, test.changed, test.unchanged, test.removed, test.duplicates}; got != want {
				t.Errorf("added, changed, unchanged, removed, duplicates = %v, want %v", got, want)
			}
			wantMembers(t, s, list, test.want...)
		})
	}
	wantMembers(t, s, other, "1A")
}

func TestAReplaceWithRejectedRowsRemovesNobody(t *testing.T) {
	s := openStore(t)
	list := createList(t, s, named(1, 1, "A"), named(2, 1, "B"), named(3, 2, "C"), named(4, 3, "D"))
	in := store.MembersImport{ListID: list, Replace: true, Keep: func() bool { return true },
		Members: each(named(1, 1, "X"), named(2, 2, "Y"))}
	done, err := s.ImportMembers(t.Context(), in)
	if err != nil || done.Removed != 0 || done.Kept != 3 || done.List.Members != 5 {
		t.Errorf("removed %d, kept %d, members %d, error %v", done.Removed, done.Kept, done.List.Members, err)
	}
	wantMembers(t, s, list, "1A", "1B", "2Y", "3D", "1X")
	in.Keep, in.Members = nil, each(named(1, 1, "X"), named(2, 2, "Y"))
	if done, err = s.ImportMembers(t.Context(), in); err != nil || done.Removed != 3 || done.Kept != 0 {
		t.Errorf("removed %d, kept %d, error %v", done.Removed, done.Kept, err)
	}
	wantMembers(t, s, list, "2Y", "1X")
}

func TestASnapshotOfAListIsOfOneMoment(t *testing.T) {
	s := openStore(t)
	var members []store.NewMember
	for i := range 9000 {
		members = append(members, named(i+1, i+1, "A"))
	}
	list := createList(t, s, members...)
	read := 0
	for m, err := range s.ListSnapshot(t.Context(), list) {
		if err != nil || m.Params["name"] != "A" {
			t.Fatalf("member %d: %v, error %v", read, m.Params, err)
		}
		if read++; read == 1 {
			if _, err := s.ImportMembers(t.Context(), store.MembersImport{ListID: list, Replace: true, Members: each(named(1, 1, "B"))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read != len(members) {
		t.Errorf("%d members are read, want %d", read, len(members))
	}
}

func TestAnImportThatFailsChangesNothing(t *testing.T) {
	s := openStore(t)
	list := createList(t, s, named(1, 1, "A"))
	broken := errors.New("broken")
	next := each(named(1, 2, "B"))
	_, err := s.ImportMembers(t.Context(), store.MembersImport{ListID: list, Replace: true, Members: func() (store.NewMember, bool, error) {
		if m, ok, _ := next(); ok {
			return m, true, nil
		}
		return store.NewMember{}, false, broken
	}})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	wantMembers(t, s, list, "1A")
	if _, err := s.ImportMembers(t.Context(), store.MembersImport{ListID: list + 1, Members: each(named(1, 2, "B"))}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if _, err := s.CreateListOf(t.Context(), "x", func() (store.NewMember, bool, error) { return store.NewMember{}, false, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if lists, err := s.RecipientLists(t.Context(), store.MemberFilter{}, 0, 10); err != nil || len(lists) != 1 {
		t.Errorf("the lists are %+v, error %v", lists, err)
	}
}

func TestMembersAreFoundWithoutAnIndexOfNumbers(t *testing.T) {
	s, db := openLedger(t)
	list := createList(t, s, named(1, 15678, "A"), named(2, 25678, "B"), named(3, 3, "C"))
	createList(t, s, named(1, 3, "C"))
	third := named(0, 3, "")
	for _, test := range []struct {
		name   string
		filter store.MemberFilter
		want   int
		lists  int
	}{
		{"all", store.MemberFilter{}, 3, 2},
		{"the last digits", store.MemberFilter{TailHash: notify.TailHash("5678", []byte("key"))}, 2, 1},
		{"the whole number", store.MemberFilter{ToHash: third.ToHash}, 1, 2},
		{"both", store.MemberFilter{ToHash: third.ToHash, TailHash: third.TailHash}, 1, 2},
		{"nobody", store.MemberFilter{TailHash: notify.TailHash("9999", []byte("key"))}, 0, 0},
	} {
		found, err := s.ListMembers(t.Context(), list, test.filter, 0, 10)
		if err != nil || len(found) != test.want {
			t.Errorf("%s: %d members, error %v, want %d", test.name, len(found), err, test.want)
		}
		lists, err := s.RecipientLists(t.Context(), test.filter, 0, 10)
		if err != nil || len(lists) != test.lists {
			t.Errorf("%s: %d lists, error %v, want %d", test.name, len(lists), err, test.lists)
		}
	}
	var indexes []string
	rows, err := db.Query(t.Context(), `SELECT indexdef FROM pg_indexes WHERE tablename = 'list_members' AND indexdef ~ 'to_number|to_national|params'`)
	if err == nil {
		indexes, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil || len(indexes) > 0 {
		t.Errorf("indexes with numbers that can be read: %v, error %v", indexes, err)
	}
}

func TestMembersAreChangedOneByOne(t *testing.T) {
	s := openStore(t)
	list := createList(t, s, named(1, 1, "A"), named(2, 2, "B"))
	members, err := s.ListMembers(t.Context(), list, store.MemberFilter{}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	first, second := members[0].ID, members[1].ID
	changed, err := s.ReplaceMember(t.Context(), list, first, named(0, 3, "C"))
	if err != nil || changed.ID != first || changed.Params["name"] != "C" {
		t.Errorf("changed is %+v, error %v", changed, err)
	}
	if _, err := s.ReplaceMember(t.Context(), list, first, named(0, 2, "B")); !errors.Is(err, store.ErrMemberExists) {
		t.Errorf("error %v, want ErrMemberExists", err)
	}
	if _, err := s.ReplaceMember(t.Context(), list+1, first, named(0, 4, "D")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if err := s.DeleteMember(t.Context(), list, second); err != nil {
		t.Error(err)
	}
	if err := s.DeleteMember(t.Context(), list, second); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	wantMembers(t, s, list, "3C")
}

func TestAListInUseIsNotDeleted(t *testing.T) {
	s, db := openLedger(t)
	list := createList(t, s, named(1, 1, "A"))
	execute(t, db, `CREATE TABLE uses (list_id bigint REFERENCES lists)`)
	execute(t, db, `INSERT INTO uses VALUES ($1)`, list)
	if err := s.DeleteList(t.Context(), list); !errors.Is(err, store.ErrInUse) {
		t.Errorf("error %v, want ErrInUse", err)
	}
	wantMembers(t, s, list, "1A")
	execute(t, db, `DELETE FROM uses`)
	if err := s.DeleteList(t.Context(), list); err != nil {
		t.Error(err)
	}
	if err := s.DeleteList(t.Context(), list); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}

// listBatch writes a batch to a list in a transaction of its own.
func listBatch(t testing.TB, s *store.Store, db *pgx.Conn, list int64, channel notify.Channel, params []string) (store.Batch, error) {
	t.Helper()
	sender, err := s.EnsureSender(t.Context(), channel, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	body := "Your prescription is ready."
	n := store.NewBatch{ID: uuid.Must(uuid.NewV7()), Channel: channel, Message: &body, SenderID: sender, ShardSize: 2}
	if params != nil {
		template, err := s.CreateTemplate(t.Context(), uuid.NewString(), channel, store.TemplateText{Body: "x", Params: params})
		if err != nil {
			t.Fatal(err)
		}
		n.Message, n.TemplateID, n.TemplateVersion = nil, &template.ID, &template.Version
	}
	err = pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		return store.WriteListBatch(t.Context(), tx, n, store.ListRecipients{ListID: list, Params: params, Allowed: []string{"JP"}})
	})
	if err != nil {
		return store.Batch{}, err
	}
	return s.Batch(t.Context(), n.ID)
}

func TestAListBecomesABatch(t *testing.T) {
	s, db := openLedger(t)
	landline, abroad := member(4, 4, map[string]string{"name": "D"}), member(5, 5, map[string]string{"name": "E"})
	landline.To.Kind, abroad.To.Region = notify.Landline, "US"
	twin := member(3, 1, map[string]string{"name": "A", "memo": "x"})
	list := createList(t, s, named(1, 1, "A"), named(2, 1, "B"), twin, landline, abroad, member(6, 6, nil), named(7, 7, "G"))

	b, err := listBatch(t, s, db, list, notify.SMS, []string{"name"})
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, s, b.ID, store.Counts{Accepted: 3, Skipped: 1})
	var codes []string
	for _, r := range b.Rejected {
		codes = append(codes, fmt.Sprint(r.Row, " ", r.Code))
	}
	if want := []string{"4 landline_cannot_receive_sms", "5 country_not_allowed", "6 param_missing"}; b.RejectedCount != 3 || !slices.Equal(codes, want) {
		t.Errorf("%d are rejected: %v, want %v", b.RejectedCount, codes, want)
	}
	if want := map[string]int{"landline_cannot_receive_sms": 1, "country_not_allowed": 1, "param_missing": 1}; !maps.Equal(b.RejectedByCode, want) {
		t.Errorf("by code %v are rejected, want %v", b.RejectedByCode, want)
	}
	var rows []string
	for row, err := range s.BatchResults(t.Context(), b.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if row.ID.Version() != 7 || row.ID.Variant() != uuid.RFC4122 || !store.CreatedAt(row.ID).Equal(row.CreatedAt) {
			t.Errorf("%s is no UUID of version 7 that names %s", row.ID, row.CreatedAt)
		}
		rows = append(rows, fmt.Sprint(row.Row, " ", row.Status, " ", row.Params))
	}
	if want := []string{"1 ACCEPTED map[name:A]", "2 ACCEPTED map[name:B]", "3 SKIPPED map[name:A]", "7 ACCEPTED map[name:G]"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
	claimShard(t, s, b, 0, 10, 2)
	claimShard(t, s, b, 1, 10, 1)

	call, err := listBatch(t, s, db, list, notify.Call, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, s, call.ID, store.Counts{Accepted: 4, Skipped: 2}) // without a template the same for relatives: one call
	if _, err := listBatch(t, s, db, list, notify.SMS, []string{"nobody has it"}); !errors.Is(err, store.ErrNoRecipients) {
		t.Errorf("error %v, want ErrNoRecipients", err)
	}
	if _, err := listBatch(t, s, db, list+1, notify.SMS, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}

func TestValuesOfAnotherKindAreNotSent(t *testing.T) {
	s, db := openLedger(t)
	at := func(row int, time string) store.NewMember {
		return member(row, row, map[string]string{"time": time, "memo": time})
	}
	list := createList(t, s, at(1, "10:30"), at(2, "25:00"), at(3, "11:00"), at(4, "25:00"), at(5, ""))
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	template, err := s.CreateTemplate(t.Context(), "t", notify.SMS, store.TemplateText{Body: "x", Params: []string{"time"}, Kinds: map[string]notify.ParamKind{"time": notify.ParamTime}})
	if err != nil {
		t.Fatal(err)
	}
	n := store.NewBatch{ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, TemplateID: &template.ID, TemplateVersion: &template.Version, SenderID: sender, ShardSize: 10}
	err = pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		return store.WriteListBatch(t.Context(), tx, n, store.ListRecipients{ListID: list, Params: []string{"time"}, Allowed: []string{"JP"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	b := wantCounts(t, s, n.ID, store.Counts{Accepted: 2})
	var rejected []string
	for _, r := range b.Rejected {
		rejected = append(rejected, fmt.Sprint(r.Row, " ", r.Code))
	}
	if want := []string{"2 param_kind", "4 param_kind", "5 param_missing"}; !slices.Equal(rejected, want) {
		t.Errorf("rejected are %v, want %v", rejected, want)
	}
}

func TestMembersThatDoNotFitATemplateAreNamed(t *testing.T) {
	s := openStore(t)
	list := createList(t, s, named(1, 1, "A"), member(2, 2, map[string]string{"time": "10:30"}), member(3, 3, nil))
	misfits, err := s.ListMisfits(t.Context(), list, []string{"name", "time"}, 2)
	if err != nil || misfits.Count != 3 || len(misfits.Members) != 2 || misfits.Members[1].Row != 2 || !slices.Equal(misfits.Members[1].Missing, []string{"name"}) {
		t.Errorf("misfits are %+v, error %v", misfits, err)
	}
	if misfits, err = s.ListMisfits(t.Context(), list, []string{}, 2); err != nil || misfits.Count != 0 {
		t.Errorf("misfits are %+v, error %v: want none", misfits, err)
	}
}

func TestMembersWithBlankValuesAreNotSentTo(t *testing.T) {
	s, db := openLedger(t)
	of := func(row int, name, time string) store.NewMember {
		return member(row, row, map[string]string{"name": name, "time": time, "memo": ""})
	}
	list := createList(t, s, of(1, "A", "10:30"), of(2, "", "10:30"), of(3, "\u3000 \t\n", "\u200b\u00a0"), member(4, 4, map[string]string{"time": "\ufeff"}),
		of(5, " 様\u3000", "-"), of(6, notify.BlankCharacters, "10:30"), of(7, "]", "^"))
	params := []string{"time", "name"}
	b, err := listBatch(t, s, db, list, notify.SMS, params)
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, s, b.ID, store.Counts{Accepted: 3})
	want := []string{"2 fill in those that are blank: name", "3 fill in those that are blank: time, name",
		"4 give the missing parameters: name; fill in those that are blank: time", "6 fill in those that are blank: name"}
	const misfit = "the parameters do not fit the template: "
	var rejected []string
	for _, r := range b.Rejected {
		if r.Code != store.CodeParamMissing {
			t.Errorf("row %d has the code %s", r.Row, r.Code)
		}
		rejected = append(rejected, fmt.Sprint(r.Row, " ", strings.TrimPrefix(r.Detail, misfit)))
	}
	if !slices.Equal(rejected, want) {
		t.Errorf("rejected are %q, want %q", rejected, want)
	}
	misfits, err := s.ListMisfits(t.Context(), list, params, 10)
	if err != nil || misfits.Count != len(want) {
		t.Fatalf("misfits are %+v, error %v", misfits, err)
	}
	for _, line := range want {
		row, detail, _ := strings.Cut(line, " ")
		if named := "(row " + row + "): " + misfit + detail; !strings.Contains(misfits.Error(), named) {
			t.Errorf("the misfits are %s, without %s", misfits.Error(), named)
		}
	}
}

func TestEveryBlankCharacterIsBlankToTheDatabase(t *testing.T) {
	s := openStore(t)
	var members []store.NewMember
	for _, r := range notify.BlankCharacters {
		members = append(members, named(len(members)+1, len(members)+1, string(r)))
	}
	blank := len(members)
	for r := rune(' ' + 1); r < 0x500; r++ { // Latin, Greek, Cyrillic
		if !notify.IsBlank(string(r)) {
			members = append(members, named(len(members)+1, len(members)+1, string(r)))
		}
	}
	misfits, err := s.ListMisfits(t.Context(), createList(t, s, members...), []string{"name"}, len(members))
	if err != nil || misfits.Count != blank || misfits.Members[blank-1].Row != blank {
		t.Errorf("%d of %d are blank, error %v: want the first %d", misfits.Count, len(members), err, blank)
	}
}

func TestAListHasAtMostAMillionMembers(t *testing.T) {
	s, db := openLedger(t)
	list := createList(t, s, named(1, 1, "A"))
	execute(t, db, `UPDATE lists SET members_count = $1`, store.MaxListMembers-1)
	in := func(members ...store.NewMember) error {
		_, err := s.ImportMembers(t.Context(), store.MembersImport{ListID: list, Members: each(members...)})
		return err
	}
	if err := in(named(1, 2, "B"), named(2, 3, "C")); !errors.Is(err, store.ErrListFull) {
		t.Errorf("error %v, want ErrListFull", err)
	}
	if err := in(named(1, 2, "B"), named(2, 1, "A")); err != nil {
		t.Errorf("the last one: %v", err)
	}
}

// Who changes a list at the same time waits for each other, and every change counts.
func TestChangesAtOnceAllCount(t *testing.T) {
	s := openStore(t)
	list := createList(t, s, named(1, 1, "A"), named(2, 2, "B"))
	members, err := s.ListMembers(t.Context(), list, store.MemberFilter{}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 8
	ended := make(chan error)
	do := func(change func(context.Context) error) {
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended <- change(ctx)
		}()
	}
	for i := range rounds {
		do(func(ctx context.Context) error { // the second member gets another zone each time
			zone := fmt.Sprintf("Etc/GMT-%d", i)
			second := named(2, 2, "B")
			second.Timezone = &zone
			_, err := s.ImportMembers(ctx, store.MembersImport{ListID: list, Members: each(second, named(1, 10+i, "C"))})
			return err
		})
		do(func(ctx context.Context) error {
			_, err := s.ReplaceMember(ctx, list, members[0].ID, named(0, 1, fmt.Sprint(i)))
			return err
		})
		do(func(ctx context.Context) error {
			if err := s.DeleteMember(ctx, list, members[1].ID); !errors.Is(err, store.ErrNotFound) {
				return err
			}
			return nil
		})
	}
	for range 3 * rounds {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	counted := 0
	for _, err := range s.ListSnapshot(t.Context(), list) {
		if err != nil {
			t.Fatal(err)
		}
		counted++
	}
	if l, err := s.RecipientList(t.Context(), list); err != nil || int(l.Members) != counted || counted < rounds+1 {
		t.Errorf("%d members are counted, there are %d, error %v", l.Members, counted, err)
	}
}
