package simulator

// stats is the answer to GET /_simulator/stats, since the last reset.
type stats struct {
	Creates    int                            `json:"creates"`    // accepted, messages and calls
	Recipients int                            `json:"recipients"` // distinct numbers, per channel and summed
	Duplicates int                            `json:"duplicates"` // creates that went to a number again
	Callbacks  int                            `json:"callbacks"`  // made, repeats and failures included
	MinGapMS   map[string]map[channel]float64 `json:"min_gap_ms"` // by sender and channel, from two creates on

	Writes      int             `json:"writes"` // done at TaskRouter, Studio and the account's numbers
	Events      int             `json:"events"` // of TaskRouter that were told, repeats and failures included
	Assignments assignmentStats `json:"assignments"`
	Inbound     inboundStats    `json:"inbound"`
}

func (w *world) stats() stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := stats{
		Callbacks: w.callbacks, MinGapMS: make(map[string]map[channel]float64),
		Writes: w.writes, Events: w.events, Assignments: summarize(w.assignments), Inbound: w.inboundStats(),
	}
	for ch, ledger := range w.ledgers {
		s.Creates += ledger.accepted
		s.Recipients += len(ledger.latest)
		for sender, pace := range ledger.paces {
			if s.MinGapMS[sender] == nil {
				s.MinGapMS[sender] = make(map[channel]float64)
			}
			if pace.gaps > 0 {
				s.MinGapMS[sender][ch] = float64(pace.minGap.Microseconds()) / 1000
			}
		}
	}
	s.Duplicates = s.Creates - s.Recipients
	return s
}

// item is one record in the answer to GET /_simulator/messages and /_simulator/calls.
type item struct {
	SID       string         `json:"sid"`
	To        string         `json:"to"`
	From      string         `json:"from"` // the number or the Messaging Service that the create named
	Body      string         `json:"body"` // of a call: its TwiML or Url
	Status    string         `json:"status"`
	CreatedAt instant        `json:"created_at"` // when the create arrived
	Callbacks []callbackItem `json:"callbacks"`  // every attempt, in the order in which they ended
}

type callbackItem struct {
	Status     string  `json:"status"`
	At         instant `json:"at"`          // when it was made
	HTTPStatus *int    `json:"http_status"` // null when it was not answered
}

// items are all records of a channel, oldest first.
func (w *world) items(ch channel) []item {
	w.mu.Lock()
	defer w.mu.Unlock()
	items := make([]item, 0, len(w.ledgers[ch].created))
	for _, r := range w.ledgers[ch].created {
		if r.deleted {
			continue
		}
		item := item{
			SID:       r.sid,
			To:        r.to,
			From:      r.sender,
			Body:      r.body,
			Status:    r.status,
			CreatedAt: instant(r.createdAt),
			Callbacks: make([]callbackItem, len(r.callbacks)),
		}
		for i, c := range r.callbacks {
			item.Callbacks[i] = callbackItem{Status: c.status, At: instant(c.at)}
			if c.httpStatus != 0 {
				item.Callbacks[i].HTTPStatus = &c.httpStatus
			}
		}
		items = append(items, item)
	}
	return items
}
