package simulator

import "net/http"

// maxBehaviourBytes leaves room for outcomes of some 100,000 numbers.
const maxBehaviourBytes = 16 << 20

// controlError is what the simulator's own endpoints answer a mistake with.
type controlError struct {
	Error string `json:"error"`
}

// control answers under /_simulator/, without authentication.
func (s *Simulator) control(w http.ResponseWriter, r *http.Request, name string) {
	world := s.world.Load()
	endpoints := map[string]func() answer{
		"GET stats":     func() answer { return jsonAnswer(http.StatusOK, world.stats()) },
		"GET messages":  func() answer { return itemsAnswer(world.items(sms)) },
		"GET calls":     func() answer { return itemsAnswer(world.items(call)) },
		"POST reset":    s.reset,
		"GET behaviour": func() answer { return jsonAnswer(http.StatusOK, world.presentBehaviour()) },
		"PUT behaviour": func() answer { return world.putBehaviour(w, r) },
		"GET inbound":   world.inboundItems,
		"POST inbound":  func() answer { return world.postInbound(w, r) },

		"POST operators": func() answer { return world.postOperators(w, r) },
	}
	endpoint, ok := endpoints[r.Method+" "+name]
	if !ok {
		jsonAnswer(http.StatusNotFound, controlError{"there is no " + r.Method + " /_simulator/" + name +
			"; there are GET stats, GET messages, GET calls, POST reset, GET behaviour, PUT behaviour, GET inbound," +
			" POST inbound and POST operators"}).write(w)
		return
	}
	endpoint().write(w)
}

func itemsAnswer(items []item) answer {
	return jsonAnswer(http.StatusOK, map[string][]item{"items": items})
}

// reset starts a new world and ends the old one. Once it has answered, no callback of before is on its way, unless
// one hung for longer than closeGrace and was broken off.
func (s *Simulator) reset() answer {
	s.world.Swap(newWorld(s.options.Logger)).close()
	return answer{status: http.StatusNoContent}
}

func (w *world) putBehaviour(rw http.ResponseWriter, r *http.Request) answer {
	b, err := readBehaviour(http.MaxBytesReader(rw, r.Body, maxBehaviourBytes))
	if err != nil {
		return jsonAnswer(http.StatusBadRequest, controlError{"behaviour: " + err.Error()})
	}
	w.mu.Lock()
	w.behaviour, w.faultsLeft = b, nil
	if b.Fault != nil && b.Fault.Count != nil {
		w.faultsLeft = new(*b.Fault.Count)
	}
	w.mu.Unlock()
	w.logger.Info("behaviour changed", "latency_ms", b.LatencyMS, "callback_delay_ms", b.CallbackDelayMS,
		"callbacks", b.Callbacks, "fault", b.Fault != nil)
	return jsonAnswer(http.StatusOK, w.presentBehaviour())
}

// presentBehaviour is the behaviour with the count of faults that are left.
func (w *world) presentBehaviour() Behaviour {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := *w.behaviour
	if b.Fault != nil && w.faultsLeft != nil {
		fault := *b.Fault
		fault.Count = new(*w.faultsLeft)
		b.Fault = &fault
	}
	return b
}
