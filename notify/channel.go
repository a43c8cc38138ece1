// Package notify is the domain: what a notification is, which statuses it can have and who may
// change them, what a phone number and a template are. It is pure: no I/O, and nothing of ours below it.
package notify

import "fmt"

// Channel is the way a notification reaches its recipient.
type Channel string

const (
	SMS      Channel = "SMS"
	Call     Channel = "CALL"
	LINEText Channel = "LINE_TEXT" // in the ledger's enum; sending on it is not enabled yet
	LINECard Channel = "LINE_CARD" // in the ledger's enum; sending on it is not enabled yet
)

// Channels lists every channel the ledger knows, in the order people see them.
var Channels = []Channel{SMS, Call, LINEText, LINECard}

// Enabled reports whether notifications can be sent on the channel today.
func (c Channel) Enabled() bool { return c == SMS || c == Call }

// ParseChannel reads a channel's name as the API writes it (SMS, CALL, LINE_TEXT, LINE_CARD).
func ParseChannel(s string) (Channel, error) {
	for _, c := range Channels {
		if string(c) == s {
			return c, nil
		}
	}
	return "", fmt.Errorf("channel is none of SMS, CALL, LINE_TEXT, LINE_CARD")
}
