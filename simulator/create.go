package simulator

import (
	"net/http"
	"time"
)

// serveCreate takes a create, or lets it meet the fault that waits for it. What is accepted counts from its
// arrival; its first status follows on the answer, whatever becomes of that.
func (w *world) serveCreate(rw http.ResponseWriter, r *http.Request, ch channel, who caller, arrived time.Time) {
	created, answer := w.create(readForm(r), ch, who, arrived)
	if created != nil {
		delay := created.behaviour.callbackDelay()
		if m, ok := created.kind.(*message); ok && !m.sendAt.IsZero() {
			delay = time.Until(m.sendAt)
		} else if created.behaviour.Callbacks == BeforeAnswer {
			w.rush(created)
		}
		defer w.begin(created, delay)
	}
	w.pause(r.Context())
	answer.write(rw)
}

// create decides on a create: what comes of it, if anything, and what is answered.
func (w *world) create(f *form, ch channel, who caller, arrived time.Time) (*record, answer) {
	w.mu.Lock()
	behaviour, fault := w.behaviour, w.takeFault(false)
	w.mu.Unlock()
	if fault != nil {
		return nil, fault.answer()
	}

	r := &record{account: who.account, createdAt: arrived, updatedAt: arrived, behaviour: behaviour}
	if ch == call {
		newCall(r, f, who)
	} else {
		newMessage(r, f, who)
	}
	if f.failed != nil {
		return nil, refusal(f.failed)
	}
	answer := jsonAnswer(http.StatusCreated, r.kind.resource(r))

	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledgers[ch].add(r)
	if fault := w.takeFault(true); fault != nil {
		answer = fault.answer()
	}
	return r, answer
}
