package simulator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// line is the queue of callers behind one workflow, which Enqueue makes where there is none.
type line struct {
	sid     string
	waiting []*stay
	// The mean of how long those who were answered had to wait.
	answered int
	waited   time.Duration
}

// stay is the time that one caller spends in a line. The lock of its world guards it.
type stay struct {
	call      *inboundCall
	line      *line
	task      *task
	enteredAt time.Time
	operator  string             // who has answered; empty: nobody yet
	stop      context.CancelFunc // of hold words and music
	over      chan string        // the QueueResult, once
	ended     bool               // there is one
}

var errLeft = errors.New("the caller left the queue")

// queueResult is what the action of Enqueue is told.
type queueResult struct {
	word     string
	queueSID string
	seconds  int
}

// queue makes a task of the call, and waits until it leaves the line.
// https://www.twilio.com/docs/taskrouter/twiml-queue-calls
func (c *inboundCall) queue(ctx context.Context, at string, v verb) (queueResult, error) {
	s, holding, refused, err := c.enter(ctx, v)
	if err != nil {
		return queueResult{}, err
	}
	if refused != "" {
		return queueResult{word: refused}, nil
	}
	defer s.stop()
	err = s.hold(holding, at, v)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
		s.leave("hangup")
	case holding.Err() != nil:
		err = nil // an operator has answered, or the task was canceled
	case errors.Is(err, errLeft):
		err = nil
		s.leave("leave")
	default: // the document hangs up, or makes no sense
		s.leave("hangup")
	}
	var word string
	select {
	case word = <-s.over:
	case <-ctx.Done(): // hung up in the middle of the conversation
		err = context.Cause(ctx)
		s.leave("hangup")
		word = <-s.over
	}
	return queueResult{word: word, queueSID: s.line.sid, seconds: s.seconds(time.Now())}, err
}

// enter gives the caller a place in the line, and a task; refused says why there is none.
func (c *inboundCall) enter(ctx context.Context, v verb) (s *stay, holding context.Context, refused string, err error) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	var ws *workspace
	var flow *workflow
	for _, candidate := range w.accounts[c.account].workspaces.order {
		if found, ok := candidate.workflows.get(v.attribute("workflowSid", "")); ok {
			ws, flow = candidate, found
		}
	}
	if flow == nil {
		return nil, nil, "", fmt.Errorf("<Enqueue>: there is no workflow %q (Twilio's error 14220)",
			v.attribute("workflowSid", ""))
	}
	l, ok := w.lines[flow.sid]
	if !ok {
		l = &line{sid: "QU" + flow.sid[2:]}
		w.lines[flow.sid] = l
	}
	if len(l.waiting) >= w.behaviour.MaxQueueSize {
		return nil, nil, "queue-full", nil
	}

	var spec verb
	if len(v.inner) > 0 {
		spec = v.inner[0]
	}
	attributes, known, err := c.taskAttributes(spec.text)
	if err != nil {
		return nil, nil, "", err
	}
	holding, stop := context.WithCancel(ctx)
	s = &stay{call: c, line: l, enteredAt: time.Now(), stop: stop, over: make(chan string, 1)}
	s.task = &task{
		identity: ws.tasks.identify(ws.account, ""), workflow: flow, channel: "voice", stay: s,
		attributes: attributes, known: known,
		priority: spec.seconds("priority", 0), timeout: spec.seconds("timeout", defaultTaskTimeout),
	}
	l.waiting = append(l.waiting, s)
	c.stay, c.taskSID = s, s.task.sid
	ws.tasks.add(s.task)
	w.enterTask(ws, s.task)
	w.route(ws)
	return s, holding, "", nil
}

// hold plays the wait URL's document again and again.
func (s *stay) hold(ctx context.Context, at string, v verb) error {
	address := v.attribute("waitUrl", "")
	if address == "" {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for {
		verbs, err := s.call.fetch(ctx, resolve(at, address), v.attribute("waitUrlMethod", http.MethodPost),
			s.params(), waitVerbs)
		if err != nil {
			return err
		}
		if len(verbs) == 0 {
			<-ctx.Done() // silence
			return context.Cause(ctx)
		}
		for _, verb := range verbs {
			if err = s.call.do(ctx, resolve(at, address), verb, waitVerbs); err != nil {
				break
			}
		}
		if err != nil && !errors.Is(err, errDone) {
			return err
		}
	}
}

// params are what the wait URL is told of the place in the line.
func (s *stay) params() url.Values {
	w := s.call.w
	w.mu.Lock()
	defer w.mu.Unlock()
	average := 0
	if s.line.answered > 0 {
		average = int(s.line.waited / time.Duration(s.line.answered) / w.second())
	}
	return url.Values{
		"QueueSid":         {s.line.sid},
		"QueueTime":        {strconv.Itoa(int(time.Since(s.enteredAt) / w.second()))},
		"QueuePosition":    {strconv.Itoa(slices.Index(s.line.waiting, s) + 1)},
		"CurrentQueueSize": {strconv.Itoa(len(s.line.waiting))},
		"AvgQueueTime":     {strconv.Itoa(average)},
		"MaxQueueSize":     {strconv.Itoa(w.behaviour.MaxQueueSize)},
	}
}

func (s *stay) seconds(until time.Time) int {
	w := s.call.w
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(until.Sub(s.enteredAt) / w.second())
}

// answered ends the waiting: an operator is there. The world is locked.
func (s *stay) answered(k *worker) {
	s.operator, s.call.operator = k.name, k.name
	s.line.answered++
	s.line.waited += time.Since(s.enteredAt)
	s.quit()
	s.stop()
}

// leave takes a caller who does not wait any longer out of the line, or out of a conversation.
func (s *stay) leave(word string) {
	w := s.call.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.operator != "" {
		w.hangUp(s.task, "bridged")
		return
	}
	s.end(word)
	w.cancelTask(s.task, word)
}

// end says with what result the stay is over; the first word counts. The world is locked.
func (s *stay) end(word string) {
	if s.ended {
		return
	}
	s.ended = true
	s.quit()
	s.over <- word
	s.stop()
	if word == "leave" {
		s.call.outcome = outcomeLeft
	}
}

// quit gives the place in the line up.
func (s *stay) quit() {
	s.line.waiting = slices.DeleteFunc(s.line.waiting, func(other *stay) bool { return other == s })
}
