package v1

import (
	"strings"

	"github.com/todoku/todoku/api/problem"
)

// Precondition makes a change depend on what the caller has read: of two who change the same, the second
// one is told (RFC 9110, section 13.1.1).
type Precondition struct {
	IfMatch string `header:"If-Match" example:"\"3\"" doc:"The ETag of the answer that you decided by. Required; * changes whatever there is."`
}

// matches refuses a change of what is not there any more as it was read.
func (m Precondition) matches(etag string) error {
	if strings.TrimSpace(m.IfMatch) == "" {
		return problem.New(problem.IfMatchMissing, "the header If-Match is missing: read the schedule, and send its ETag")
	}
	for one := range strings.SplitSeq(m.IfMatch, ",") {
		if one = strings.TrimSpace(one); one == etag || one == "*" {
			return nil
		}
	}
	return stale()
}

func stale() error {
	return problem.New(problem.ETagStale, "it was changed since you read it: read it again, and decide by what it is now")
}
