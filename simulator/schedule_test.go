package simulator

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// SendScheduled has up to n of the scheduled messages, the newest first, leave at once.
func (s *Simulator) SendScheduled(t testing.TB, n int) {
	t.Helper()
	w := s.world.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.ledgers[sms].newestFirst("", nil) {
		if r.status != "scheduled" || n == 0 {
			continue
		}
		n--
		for len(r.steps) > 0 {
			w.advance(r)
		}
	}
}

func TestScheduledMessageIsSentWhenItIsDue(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	due := time.Now().Add(20 * time.Millisecond)
	form := url.Values{
		"To": {"+15550100001"}, "MessagingServiceSid": {"MG00000000000000000000000000000000"}, "Body": {"later"},
		"ScheduleType": {"fixed"}, "SendAt": {due.UTC().Format(time.RFC3339Nano)},
	}
	request := httptest.NewRequest("POST", "/", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	w := s.world.Load()
	// As if it had been created minScheduleAhead ago.
	w.serveCreate(answer, request, sms, caller{account: "AC00000000000000000000000000000000"}, due.Add(-minScheduleAhead))
	if answer.Code != http.StatusCreated || !strings.Contains(answer.Body.String(), `"scheduled"`) {
		t.Fatalf("answered %d %s", answer.Code, answer.Body)
	}
	for deadline := time.Now().Add(time.Minute); w.items(sms)[0].Status != "delivered"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it is still %s", w.items(sms)[0].Status)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if sent := w.ledgers[sms].created[0].sentAt; sent.Before(due) {
		t.Errorf("it was sent %s too early", due.Sub(sent))
	}
}
