package starter

import "go.temporal.io/sdk/client"

// Through has the starter reach Temporal through another client.
func (s *Starter) Through(wrap func(client.Client) client.Client) { s.client = wrap(s.client) }
