package v1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/todoku/todoku/api/problem"
)

// Precondition makes a change depend on what the caller has read: of two who change the same, the second
// one is told (RFC 9110, section 13.1.1).
type Precondition struct {
	IfMatch string `header:"If-Match" example:"\"3\"" doc:"The ETag of the answer that you decided by. Required; * changes whatever there is."`
}

// matches refuses a change of what is not there any more as it was read. Tags count revisions, so one
// that a proxy has made weak, or marked as compressed, still says which revision was read.
func (m Precondition) matches(etag string) error {
	if strings.TrimSpace(m.IfMatch) == "" {
		return problem.New(problem.IfMatchMissing, "the header If-Match is missing: read it first, and send its ETag")
	}
	ours := false
	for tag := range strings.SplitSeq(m.IfMatch, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" {
			return nil
		}
		revision := tagForm.FindStringSubmatch(tag)
		if revision == nil {
			continue
		}
		if ours = true; `"`+revision[1]+`"` == etag {
			return nil
		}
	}
	if !ours {
		return problem.New(problem.ETagStale, "the header If-Match has no ETag that this API gives out: send the ETag of the answer, "+
			"with its quotes, or * to change whatever there is")
	}
	return stale()
}

// tagForm is what comes back of a tag of ours: nginx makes it weak where it compresses, and Apache and
// others name the compression within the quotes.
var tagForm = regexp.MustCompile(`^(?:W/)?"([1-9][0-9]*)(?:[-;:](?:gzip|br|zstd|deflate))?"$`)

// tagOf is the ETag of a revision: the same until somebody makes another one.
func tagOf(revision int32) string { return fmt.Sprintf("%q", strconv.Itoa(int(revision))) }

func stale() error {
	return problem.New(problem.ETagStale, "it was changed since you read it: read it again, and decide by what it is now")
}
