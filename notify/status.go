package notify

// Status is what became of a notification, in our own words. The carrier's word is kept beside it.
type Status string

const (
	Accepted Status = "ACCEPTED" // in the ledger, not yet sent
	Held     Status = "HELD"     // what an ACCEPTED row reads as while its batch or sender is stopped; never stored
	Sending  Status = "SENDING"  // claimed by a worker; the request may be on the wire
	Pending  Status = "PENDING"  // the carrier has it; the outcome is unknown
	Success  Status = "SUCCESS"  // delivered; a call: completed and longer than 0 s
	Failed   Status = "FAILED"   // refused or undelivered
	Unknown  Status = "UNKNOWN"  // the deadline passed and nobody could tell; a late receipt repairs it
	Skipped  Status = "SKIPPED"  // not sent on purpose, with a reason
	Canceled Status = "CANCELED" // canceled before it was sent
)

// Statuses lists every status, in the order a notification passes through them.
var Statuses = []Status{Accepted, Held, Sending, Pending, Success, Failed, Unknown, Skipped, Canceled}

// Final reports whether nothing more is expected. UNKNOWN counts as final: nobody waits for it,
// though a late receipt may still repair it.
func (s Status) Final() bool {
	switch s {
	case Success, Failed, Unknown, Skipped, Canceled:
		return true
	}
	return false
}

// Move is one change of status that we decide ourselves. The carrier's words move rows by a
// different rule: see Word.
type Move struct{ From, To Status }

// Our own moves. Those from SENDING end a claim, and need its token.
var (
	Claim    = Move{Accepted, Sending}  // a worker takes the row to post it
	GiveBack = Move{Sending, Accepted}  // refused or never posted: safe to post again
	Withdraw = Move{Sending, Canceled}  // the same, where somebody asked to cancel it meanwhile
	Refuse   = Move{Sending, Failed}    // the carrier's answer is final, or the deadline passed
	Doubt    = Move{Sending, Unknown}   // AMBIGUOUS_SEND: nobody can tell whether it was posted
	Expire   = Move{Accepted, Failed}   // SEND_DEADLINE while waiting for another try
	Forsake  = Move{Pending, Unknown}   // NO_RECEIPT: the channel's deadline passed
	Cancel   = Move{Accepted, Canceled} // canceled before it was sent
)

// Moves is the table of our own moves: there are no others.
var Moves = []Move{Claim, GiveBack, Withdraw, Refuse, Doubt, Expire, Forsake, Cancel}
