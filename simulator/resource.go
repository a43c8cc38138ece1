package simulator

import "net/http"

const apiVersion = "2010-04-01"

// orNull is how Twilio writes a text that is not there.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (w *world) fetch(t target) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.inboundCall[t.sid]; ok && c.account == t.account {
		return jsonAnswer(http.StatusOK, c.resource())
	}
	r := w.ledgers[t.channel].find(t.account, t.sid)
	if r == nil {
		return refusal(notFound(t.uri()))
	}
	return jsonAnswer(http.StatusOK, r.kind.resource(r))
}

func (w *world) update(req *http.Request, t target) answer {
	f := readForm(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.inboundCall[t.sid]; ok && c.account == t.account {
		if c.update(f); f.failed != nil {
			return refusal(f.failed)
		}
		return jsonAnswer(http.StatusOK, c.resource())
	}
	r := w.ledgers[t.channel].find(t.account, t.sid)
	if r == nil {
		return refusal(notFound(t.uri()))
	}
	if t.channel == call {
		w.updateCall(r, f)
	} else {
		w.updateMessage(r, f)
	}
	if f.failed != nil {
		return refusal(f.failed)
	}
	return jsonAnswer(http.StatusOK, r.kind.resource(r))
}

func (w *world) delete(t target) answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	ledger := w.ledgers[t.channel]
	r := ledger.find(t.account, t.sid)
	switch {
	case r == nil:
		return refusal(notFound(t.uri()))
	case !r.complete():
		return refusal(badRequest(20009, "Cannot delete this resource before it is complete."))
	}
	ledger.remove(r)
	return answer{status: http.StatusNoContent}
}
