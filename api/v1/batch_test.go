package v1_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/text/encoding/japanese"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const (
	batches = "/api/v1/batches"
	asCSV   = "Content-Type: text/csv"
)

func template(t *testing.T, a *apitest.API, body string) string {
	t.Helper()
	created := a.Do("POST", "/api/v1/templates", fmt.Sprintf(`{"name": %q, "channel": "SMS", "body": %q}`, uuid.NewString(), body))
	if created.Status != http.StatusCreated {
		t.Fatal(created.Text)
	}
	return strings.TrimPrefix(created.Header.Get("Location"), "/api/v1/templates/")
}

// wantBatch checks what was accepted, and returns its id.
func wantBatch(t *testing.T, answer apitest.Answer, total, skipped, rejected float64) string {
	t.Helper()
	if answer.Status != http.StatusAccepted {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	counts := answer.Body["counts"].(map[string]any)
	if answer.Body["total"] != total || counts["skipped"] != skipped || answer.Body["rejected_count"] != rejected {
		t.Fatalf("accepted is %s: want %v, %v skipped, %v rejected", answer.Text, total, skipped, rejected)
	}
	id := answer.Body["id"].(string)
	if got := answer.Header.Get("Location"); got != batches+"/"+id {
		t.Errorf("Location = %q", got)
	}
	return id
}

// rowsOf are a batch's notifications, in the order of the request.
func rowsOf(t *testing.T, a *apitest.API, id string) []store.BatchResult {
	t.Helper()
	var rows []store.BatchResult
	for row, err := range a.Store.BatchResults(t.Context(), uuid.MustParse(id)) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestAFileBecomesABatch(t *testing.T) {
	a := apitest.Start(t)
	query := batches + "?channel=SMS&name=" + url.QueryEscape("お知らせ") + "&template_id=" + template(t, a, "{{氏名}}様、{{time}}です。")
	file := "to,氏名,time,memo\r\n090-1234-5678,佐藤,10:00,a\r\n+81 90 1234 5679,\"鈴木, 様\",11:00,b\r\n12,x,y,z\r\n09012345678,佐藤,10:00,c\r\n09012345678,花子,10:00,d\r\n09012345677,too,many,cells,here\r\n"
	shiftJIS, err := japanese.ShiftJIS.NewEncoder().String(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"UTF-8": file, "UTF-8 with a mark": "\uFEFF" + file, "Shift_JIS": shiftJIS} {
		t.Run(name, func(t *testing.T) {
			answer := a.Do("POST", query, content, asCSV)
			id := wantBatch(t, answer, 4, 1, 2)
			rejected, _ := json.Marshal(answer.Body["rejected"])
			if got := string(rejected); !strings.Contains(got, `"row":3`) || !strings.Contains(got, `"code":"phone_number_too_short"`) ||
				!strings.Contains(got, `"row":6`) || !strings.Contains(got, `"code":"row_column_count"`) {
				t.Errorf("rejected is %s", got)
			}
			if got := fmt.Sprint(answer.Body["ignored_columns"]); got != "[memo]" {
				t.Errorf("ignored columns are %s", got)
			}
			rows := rowsOf(t, a, id)
			var numbers []int32
			for _, row := range rows {
				numbers = append(numbers, row.Row)
			}
			if !slices.Equal(numbers, []int32{1, 2, 4, 5}) || rows[1].Params["氏名"] != "鈴木, 様" || len(rows[1].Params) != 2 {
				t.Errorf("the rows are %v, the second one has %v", numbers, rows[1].Params)
			}
			if rows[2].Status != notify.Skipped || *rows[2].FailureCode != notify.CodeDuplicate || rows[3].Status != notify.Accepted {
				t.Errorf("the twin is %s and the relative is %s", rows[2].Status, rows[3].Status)
			}
			if got, want := *rows[3].WorkflowID, notify.ShardWorkflowID(uuid.MustParse(id), 2); got != want {
				t.Errorf("the owner is %s, want %s", got, want)
			}
			a.Eventually("its workflow is started", func() bool { return slices.Contains(a.Workflows.Batches(), uuid.MustParse(id)) })
		})
	}
	seen := a.Do("GET", batches+"?limit=2", "")
	if items := seen.Body["items"].([]any); len(items) != 2 || seen.Body["next_cursor"] == nil || items[0].(map[string]any)["name"] != "お知らせ" {
		t.Errorf("the list is %s", seen.Text)
	}
}

func TestJSONBecomesABatchWhateverItsOrder(t *testing.T) {
	a := apitest.Start(t)
	id := template(t, a, "Hello {{name}}")
	members := []string{`"channel": "SMS"`, `"template_id": ` + id, `"name": "x"`,
		`"recipients": [{"to": "090-1234-5678", "params": {"name": "A"}}, {"to": "090-1234-5678", "params": {"name": "A"}}, {"to": 5}, 7, {"to": "09012345679"}, {"to": "09012345679", "params": {"name": "B", "x": "y"}}]`}
	for range members {
		members = append(members[1:], members[0])
		answer := a.Do("POST", batches, "{"+strings.Join(members, ", ")+"}")
		wantBatch(t, answer, 2, 1, 4)
		var codes []string
		for _, r := range answer.Body["rejected"].([]any) {
			codes = append(codes, r.(map[string]any)["code"].(string))
		}
		if got := strings.Join(codes, " "); got != "wrong_type wrong_type param_missing param_unknown" {
			t.Errorf("the codes are %s", got)
		}
	}
	wantBatch(t, a.Do("POST", batches, `{"channel": "SMS", "body": "Hello", "allow_duplicates": true, "recipients": [{"to": "09012345678"}, {"to": "+819012345678"}]}`), 2, 0, 0)
	wantBatch(t, a.Do("POST", batches, `{"channel": "CALL", "body": "Hello", "recipients": [{"to": "03-1234-5678"}]}`), 1, 0, 0)
}

func TestBlankValuesAreNotSentToMany(t *testing.T) {
	a := apitest.Start(t)
	id := template(t, a, "{{氏名}}様、{{time}}です。")
	file := "to,氏名,time,memo\n" +
		"09012345671,,10:00,x\n" +
		"09012345672,\u3000,10:00,x\n" +
		"09012345673,\" \t\",10:00,x\n" +
		"09012345674,\u00a0\u200b,,x\n" +
		"09012345675,佐藤,10:00,\n"
	for query, status := range map[string]int{"&dry_run=true": http.StatusOK, "": http.StatusAccepted} {
		answer := a.Do("POST", batches+"?channel=SMS&template_id="+id+query, file, asCSV)
		if got := words(answer.Status, answer.Body["total"], answer.Body["rejected_count"]); got != words(status, 1, 4) {
			t.Errorf("of the file are accepted %s: %s", got, answer.Text)
		}
		for i, r := range answer.Body["rejected"].([]any) {
			r := r.(map[string]any)
			want := "the parameters do not fit the template: fill in those that are blank: 氏名"
			if i == 3 {
				want += ", time"
			}
			if got := words(r["row"], r["code"], r["detail"]); got != words(i+1, "param_missing", want) {
				t.Errorf("rejected is %s, want %s", got, want)
			}
		}
	}
	answer := a.Do("POST", batches, `{"channel": "SMS", "template_id": `+id+`, "recipients": [
		{"to": "09012345671", "params": {"氏名": "", "time": "10:00"}}, {"to": "09012345672", "params": {"氏名": "佐藤", "time": "\u3000"}},
		{"to": "09012345673", "params": {"time": " "}}, {"to": "09012345674", "params": {"氏名": "佐藤", "time": "10:00"}}]}`)
	wantBatch(t, answer, 1, 0, 3)
	for _, want := range []string{"blank: 氏名", "blank: time", "missing parameters: 氏名; fill in those that are blank: time"} {
		if !strings.Contains(answer.Text, want) {
			t.Errorf("the answer does not say %q: %s", want, answer.Text)
		}
	}
}

func TestAListBecomesABatch(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l", "members": [
		{"to": "090-1234-5678", "params": {"name": "A", "memo": "x"}}, {"to": "090-1234-5678", "params": {"name": "A", "memo": "y"}}, {"to": "090-1234-5678", "params": {"name": "B"}},
		{"to": "03-1234-5678", "params": {"name": "C"}}, {"to": "090-1234-5679"}, {"to": "090-1234-5670", "params": {"name": "D", "memo": ""}},
		{"to": "090-1234-5670", "params": {"name": ""}}, {"to": "090-1234-5670", "params": {"name": "　"}}]}`)
	list := strings.TrimPrefix(at, lists+"/")
	body := `{"channel": "SMS", "list_id": ` + list + `, "template_id": ` + template(t, a, "{{name}}様") + `}`
	preview := a.Do("POST", batches+"?dry_run=true", body)
	if got := words(preview.Status, preview.Body["total"], preview.Body["skipped"], preview.Body["rejected_count"]); got != "200 4 1 4" {
		t.Errorf("the preview is %s: %s", got, preview.Text)
	}
	accepted := a.Do("POST", batches, body)
	rows := rowsOf(t, a, wantBatch(t, accepted, 4, 1, 4))
	if got := words(accepted.Body["rejected"]); !strings.Contains(got, "landline_cannot_receive_sms") || strings.Count(got, "param_missing") != 3 {
		t.Errorf("rejected is %s", got)
	}
	if got := words(rows[0].Row, rows[0].Params, rows[2].Row, rows[2].Params, rows[3].Row); got != "1 map[name:A] 3 map[name:B] 6" {
		t.Errorf("the rows are %s", got)
	}
	wantBatch(t, a.Do("POST", batches, `{"channel": "CALL", "list_id": `+list+`, "body": "Hello"}`), 8, 4, 0)
	if empty := a.Do("POST", batches, `{"channel": "SMS", "body": "x", "list_id": `+strings.TrimPrefix(createList(t, a, `{"name": "empty"}`), lists+"/")+`}`); empty.Status != 422 || empty.Code() != "batch_has_no_recipients" {
		t.Errorf("an empty list: %d %s", empty.Status, empty.Text)
	}
}

func TestADryRunAcceptsNothing(t *testing.T) {
	a := apitest.Start(t)
	query := batches + "?channel=SMS&dry_run=true&template_id=" + template(t, a, "こんにちは、{{name}}様")
	file := "to,name\n09012345678," + strings.Repeat("長", 80) + "\n09012345679,b\n09012345679,b\nx,y\n"
	answer := a.Do("POST", query, file, asCSV)
	for name, want := range map[string]any{"total": 3., "skipped": 1., "rejected_count": 1., "segments": 3., "estimated_seconds": 0., "dry_run": true} {
		if answer.Status != http.StatusOK || answer.Body[name] != want {
			t.Errorf("%s = %v, want %v: %s", name, answer.Body[name], want, answer.Text)
		}
	}
	if seen := a.Do("GET", batches, ""); len(seen.Body["items"].([]any)) != 0 {
		t.Errorf("the list is %s", seen.Text)
	}
	if err := a.Store.StopSender(t.Context(), 0, true, "20003", "the account is closed"); err != nil {
		t.Fatal(err)
	}
	if answer = a.Do("POST", query, file, asCSV); answer.Status != http.StatusOK || answer.Body["estimated_seconds"] != nil {
		t.Errorf("while the sender is stopped: %s", answer.Text)
	}
}

func TestABatchIsAcceptedOncePerKey(t *testing.T) {
	a := apitest.Start(t)
	query, key := batches+"?channel=SMS&body=x", "Idempotency-Key: once"
	first := a.Do("POST", query, "to\n09012345678\n", asCSV, key)
	id := wantBatch(t, first, 1, 0, 0)
	again := a.Do("POST", query, "to\n09012345678\n", asCSV, key)
	if wantBatch(t, again, 1, 0, 0) != id || again.Text != first.Text || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the replay is %d %s", again.Status, again.Text)
	}
	if other := a.Do("POST", query, "to\n09012345679\n", asCSV, key); other.Status != 422 || other.Code() != "idempotency_key_reused" {
		t.Errorf("another body: %d %s", other.Status, other.Text)
	}
	if seen := a.Do("GET", batches, ""); len(seen.Body["items"].([]any)) != 1 {
		t.Errorf("the list is %s", seen.Text)
	}
}

func TestAnUploadThatIsCutOffLeavesNothing(t *testing.T) {
	a := apitest.Start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s?channel=SMS&body=x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nto\n09012345678\n", batches, apitest.Key)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 400 || !bytes.Contains(text, []byte(problem.UploadIncomplete)) {
		t.Errorf("answer = %d %s", answer.StatusCode, text)
	}
	if seen := a.Do("GET", batches, ""); len(seen.Body["items"].([]any)) != 0 {
		t.Errorf("the list is %s", seen.Text)
	}
}

func TestABatchIsControlled(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down() // none of this needs Temporal
	accepted := a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n09012345679\n", asCSV)
	id := wantBatch(t, accepted, 2, 0, 0)
	at := batches + "/" + id
	steps := []struct {
		method, path, body string
		status             int
		want               string // a state or a code
	}{
		{"GET", at, "", 200, "running"},
		{"POST", at + "/pause?reason=lunch", "", 200, "paused"},
		{"POST", at + "/pause", "", 200, "paused"},
		{"PATCH", at, `{"send_interval_ms": 250}`, 200, "paused"},
		{"POST", at + "/resume", "", 200, "running"},
		{"POST", at + "/resume", "", 200, "running"},
		{"PATCH", at, `{"send_at": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`, 200, "scheduled"},
		{"PATCH", at, `{"send_interval_ms": -1}`, 422, "send_interval_invalid"},
		{"PATCH", at, `{}`, 422, "required"},
		{"POST", at + "/cancel", "", 200, "canceled"},
		{"POST", at + "/cancel", "", 200, "canceled"},
		{"POST", at + "/pause", "", 409, "batch_canceled"},
		{"POST", at + "/resume", "", 409, "batch_canceled"},
		{"PATCH", at, `{"send_interval_ms": 250}`, 409, "batch_canceled"},
	}
	for _, step := range steps {
		answer := a.Do(step.method, step.path, step.body)
		got := answer.Code()
		if state, ok := answer.Body["state"].(string); ok {
			got = state
		}
		if answer.Status != step.status || got != step.want {
			t.Fatalf("%s %s = %d %s, want %d %s\n%s", step.method, step.path, answer.Status, got, step.status, step.want, answer.Text)
		}
		if strings.HasSuffix(step.path, "/cancel") && step.status == 200 {
			if counts := answer.Body["counts"].(map[string]any); counts["canceled"] != 2. || answer.Body["in_flight"] != 0. {
				t.Errorf("the canceled batch is %s", answer.Text)
			}
		}
	}
}

// Whoever cancels at the same time comes before all of a change, or after it.
func TestAChangeOfABatchIsMadeInOneGo(t *testing.T) {
	a := apitest.Start(t)
	id := wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n", asCSV), 1, 0, 0)
	db, err := pgx.Connect(t.Context(), a.Settings.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 0))`, id); err != nil { // the batch's turn
		t.Fatal(err)
	}
	line := func(method, path, body string, place int) <-chan apitest.Answer {
		answers := make(chan apitest.Answer, 1)
		go func() { answers <- a.Do(method, path, body) }()
		a.Eventually("the request stands in line", func() bool {
			var n int
			err := tx.QueryRow(t.Context(), `
				SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))`).Scan(&n)
			return err == nil && n == place
		})
		return answers
	}
	at := batches + "/" + id
	changed := line("PATCH", at, `{"send_interval_ms": 250, "send_at": "`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`, 1)
	canceled := line("POST", at+"/cancel", "", 2)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if answer := <-changed; answer.Status != http.StatusOK || answer.Body["send_interval_ms"] != 250. {
		t.Errorf("changed = %d %s", answer.Status, answer.Text)
	}
	if answer := <-canceled; answer.Status != http.StatusOK || answer.Body["state"] != "canceled" || answer.Body["send_interval_ms"] != 250. {
		t.Errorf("canceled = %d %s", answer.Status, answer.Text)
	}
}

func TestAFinishedBatchIsNotControlled(t *testing.T) {
	a := apitest.Start(t)
	id := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n", asCSV), 1, 0, 0))
	claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: notify.ShardWorkflowID(id, 0)}, Limit: 1, Lease: time.Minute})
	if err != nil || len(claims) != 1 {
		t.Fatal(len(claims), err)
	}
	if _, err := a.Store.Settle(t.Context(), notify.Receipt{NotificationID: claims[0].ID.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook}); err != nil {
		t.Fatal(err)
	}
	if finished, err := a.Store.FinishBatches(t.Context()); err != nil || len(finished) != 1 {
		t.Fatal(finished, err)
	}
	at := batches + "/" + id.String()
	if seen := a.Do("GET", at, ""); seen.Body["state"] != "finished" || seen.Body["percent"] != 100. || seen.Body["finished_at"] == nil {
		t.Errorf("the batch is %s", seen.Text)
	}
	for _, answer := range []apitest.Answer{
		a.Do("POST", at+"/pause", ""), a.Do("POST", at+"/resume", ""), a.Do("POST", at+"/cancel", ""), a.Do("PATCH", at, `{"send_interval_ms": 5}`),
		a.Do("PATCH", at, `{"send_at": "`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"}`),
	} {
		if answer.Status != 409 || answer.Code() != "batch_finished" {
			t.Errorf("answer = %d %s", answer.Status, answer.Text)
		}
	}
}

func TestABatchHasAtMostAMillionRows(t *testing.T) {
	a := apitest.Start(t)
	rows := "to\n" + strings.Repeat("x\n", 1_000_001)
	if answer := a.Do("POST", batches+"?channel=SMS&body=x", rows, asCSV); answer.Status != 422 || answer.Code() != "too_many_recipients" {
		t.Errorf("answer = %d %s", answer.Status, answer.Text)
	}
}

func TestPauseWaitsForWhatIsInFlight(t *testing.T) {
	a := apitest.Start(t)
	id := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n09012345679\n", asCSV), 2, 0, 0))
	claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: notify.ShardWorkflowID(id, 0)}, Limit: 1, Lease: time.Minute})
	if err != nil || len(claims) != 1 {
		t.Fatal(len(claims), err)
	}
	answered := make(chan apitest.Answer, 1)
	go func() { answered <- a.Do("POST", batches+"/"+id.String()+"/pause", "") }()
	select {
	case answer := <-answered:
		t.Fatalf("it answers %s while a claim is held", answer.Text)
	case <-time.After(300 * time.Millisecond):
	}
	if _, err := a.Store.Settle(t.Context(), notify.Receipt{NotificationID: claims[0].ID.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromCreate}); err != nil {
		t.Fatal(err)
	}
	answer := <-answered
	if counts := answer.Body["counts"].(map[string]any); answer.Body["in_flight"] != 1. || counts["success"] != 1. || counts["held"] != 1. {
		t.Errorf("the paused batch is %s", answer.Text)
	}
}

func TestPauseWaitsForNoneThatWasTakenAfterSomebodyElseResumed(t *testing.T) {
	a := apitest.Start(t)
	id := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n09012345679\n", asCSV), 2, 0, 0))
	claim := func(shard int) store.Claim {
		claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: notify.ShardWorkflowID(id, shard)}, Limit: 1, Lease: time.Minute})
		if err != nil || len(claims) != 1 {
			t.Fatal(len(claims), err)
		}
		return claims[0]
	}
	first := claim(0)
	answered := make(chan apitest.Answer, 1)
	go func() { answered <- a.Do("POST", batches+"/"+id.String()+"/pause", "") }()
	select {
	case answer := <-answered:
		t.Fatalf("it answers %s while a claim is held", answer.Text)
	case <-time.After(300 * time.Millisecond):
	}
	if answer := a.Do("POST", batches+"/"+id.String()+"/resume", ""); answer.Status != http.StatusOK {
		t.Fatal(answer.Text)
	}
	claim(1) // and it stays in flight
	if _, err := a.Store.Settle(t.Context(), notify.Receipt{NotificationID: first.ID.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromCreate}); err != nil {
		t.Fatal(err)
	}
	if answer := <-answered; answer.Status != http.StatusOK || answer.Body["state"] != "running" || answer.Body["in_flight"] != 1. {
		t.Errorf("it answers %d %s, want the batch as it is, and the one that was in flight", answer.Status, answer.Text)
	}
}

func TestAClientThatHangsUpIsNoOutage(t *testing.T) {
	a := apitest.Start(t)
	id := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n09012345679\n", asCSV), 2, 0, 0))
	if claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: notify.ShardWorkflowID(id, 0)}, Limit: 1, Lease: time.Minute}); err != nil || len(claims) != 1 {
		t.Fatal(len(claims), err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "POST", a.URL+batches+"/"+id.String()+"/pause", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+apitest.Key)
	answered := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		answered <- err
	}()
	a.Eventually("the batch is paused, and the answer waits for what is in flight", func() bool {
		b, err := a.Store.Batch(t.Context(), id)
		return err == nil && b.PausedAt != nil
	})
	hangUp()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("it is answered: %v", err)
	}
	a.Eventually("the log has the request", func() bool { return strings.Contains(a.Log(), `/pause`) })
	if log := a.Log(); !strings.Contains(log, "499") || strings.Contains(log, "503") {
		t.Errorf("the log is %s", log)
	}
}

func TestProgressIsStreamedUntilTheEnd(t *testing.T) {
	a := apitest.Start(t)
	id := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n", asCSV), 1, 0, 0))
	request, err := http.NewRequestWithContext(t.Context(), "GET", a.URL+batches+"/"+id.String()+"/progress", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+apitest.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	events := bufio.NewScanner(response.Body)
	var names []string
	for events.Scan() {
		name, isName := strings.CutPrefix(events.Text(), "event: ")
		if !isName {
			continue
		}
		names = append(names, name)
		if len(names) == 1 {
			if _, err := a.Store.CancelBatch(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if _, _, err := a.Store.CancelChunk(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !slices.Equal(names, []string{"progress", "finished"}) {
		t.Errorf("the events are %v", names)
	}
}

func TestAStreamTakesNoFilterThatItDoesNotHave(t *testing.T) {
	a := apitest.Start(t)
	id := wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\n", asCSV), 1, 0, 0)
	list := a.Do("POST", "/api/v1/lists", `{"name": "patients"}`)
	for _, path := range []string{batches + "/" + id + "/results.csv", batches + "/" + id + "/progress", list.Header.Get("Location") + "/members.csv"} {
		if answer := a.Do("GET", path+"?status=FAILED", ""); answer.Status != 422 || answer.Code() != "parameter_invalid" {
			t.Errorf("%s with a filter = %d %.200s", path, answer.Status, answer.Text)
		}
	}
}

func TestResultsAreMaskedAndSafeToOpen(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("seesnumbers", "read", "pii")
	id := wantBatch(t, a.Do("POST", batches+"?channel=SMS&body=x", "to\n09012345678\nbad\n+1 202-555-0143\n09012345678\n", asCSV), 3, 1, 1)
	read := func(headers ...string) [][]string {
		t.Helper()
		answer := a.Do("GET", batches+"/"+id+"/results.csv", "", headers...)
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(answer.Text, "\uFEFF"))).ReadAll()
		if err != nil || answer.Status != 200 || len(rows) != 4 {
			t.Fatalf("%d %s (%v)", answer.Status, answer.Text, err)
		}
		return rows
	}
	rows := read()
	if rows[0][0] != "row" || rows[1][1] != "*********5678" || rows[2][0] != "3" || rows[3][2] != "SKIPPED" || rows[3][4] != "DUPLICATE" {
		t.Errorf("the results are %q", rows)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a spreadsheet takes %q for a formula", cell)
			}
		}
	}
	if whole := read("Authorization: Bearer seesnumbers"); whole[1][1] != "090-1234-5678" || whole[2][1] != "'+12025550143" {
		t.Errorf("a key with the scope pii sees %q", whole)
	}
}
