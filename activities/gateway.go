package activities

import (
	"net/http"
	"sync"

	"github.com/todoku/todoku/carrier"
)

// gatewayLimit is how many creates of a sender something in between may answer in a row, in one worker,
// before the sender stops.
const gatewayLimit = 10

// gateways counts, for each sender, the answers in a row that were not Twilio's.
type gateways struct {
	mu    sync.Mutex
	inRow map[int64]int
}

// twilioAnswered ends the row of the sender.
func (g *gateways) twilioAnswered(sender int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inRow, sender)
}

// answered takes the failure of a create into account, and reports whether it is one too many. A 5xx does
// not count: a load balancer of Twilio's writes it while Twilio is away, which ends by itself. Nor
// does a request without an answer.
func (g *gateways) answered(sender int64, failure *carrier.Error) (tooMany bool) {
	switch {
	case failure.Code != 0:
		g.twilioAnswered(sender)
		return false
	case failure.Gateway == "", failure.HTTPStatus >= http.StatusInternalServerError:
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inRow == nil {
		g.inRow = make(map[int64]int)
	}
	if g.inRow[sender]++; g.inRow[sender] < gatewayLimit {
		return false
	}
	delete(g.inRow, sender) // once it is resumed, it has as many again
	return true
}
