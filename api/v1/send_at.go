package v1

import (
	"strings"
	"time"

	"github.com/todoku/todoku/api/problem"
)

// Limits of send_at, from now.
const (
	farthestAhead = 35 * 24 * time.Hour
	longestPast   = time.Minute // of a request that was under way when its moment came
)

// checkSendAt reads the moment before which nothing is sent; nil: now.
func checkSendAt(wrong *problem.Details, typed *string, now time.Time) *time.Time {
	if typed == nil || wrong.At("/send_at") {
		return nil
	}
	at, err := time.Parse(time.RFC3339, *typed)
	switch {
	case err != nil && strings.Contains(*typed, " "): // what an unescaped + of a query is read as
		wrong.Add("/send_at", problem.SendAtInvalid, "send_at has a space and is no time in RFC 3339: "+
			"write it as in 2026-04-01T10:00:00+09:00, in a query with + as %2B")
	case err != nil:
		wrong.Add("/send_at", problem.SendAtInvalid, "send_at is no time in RFC 3339 with an offset: write it as in 2026-04-01T10:00:00+09:00")
	case at.Before(now.Add(-longestPast)):
		wrong.Add("/send_at", problem.SendAtPast, "send_at has passed: write a time to come, or leave it out to send at once")
	case at.After(now.Add(farthestAhead)):
		wrong.Add("/send_at", problem.SendAtTooFar, "send_at is more than 35 days ahead: write an earlier time")
	default:
		return &at
	}
	return nil
}
