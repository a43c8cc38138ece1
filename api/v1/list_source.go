package v1

import (
	"context"
	"io"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// listSource gives the members of a list as the recipients of a batch, with those of their parameters
// that its template has. Row n is the n-th member.
type listSource struct {
	page   func(after int64) ([]store.ListMember, error)
	params []string

	members []store.ListMember // that are read and not given yet
	after   int64
	row     int
	ended   bool
}

// membersInPage is how many members are in memory at a time.
const membersInPage = 2000

func (a *API) newListSource(ctx context.Context, list int64, template *notify.Template) *listSource {
	s := &listSource{page: func(after int64) ([]store.ListMember, error) {
		return a.Store.ListMembers(ctx, list, store.MemberFilter{}, after, membersInPage)
	}}
	if template != nil {
		s.params = template.Params()
	}
	return s
}

// Read gives the next recipient. What reading the list ends with is no fault of the request.
func (s *listSource) Read() (notify.Recipient, error) {
	if len(s.members) == 0 && !s.ended {
		var err error
		if s.members, err = s.page(s.after); err != nil {
			return notify.Recipient{}, err
		}
		s.ended = len(s.members) < membersInPage
	}
	if len(s.members) == 0 {
		return notify.Recipient{}, io.EOF
	}
	member := s.members[0]
	s.members, s.after = s.members[1:], member.ID
	s.row++
	recipient := notify.Recipient{Row: s.row, To: member.To}
	for _, name := range s.params {
		if value, has := member.Params[name]; has {
			if recipient.Params == nil {
				recipient.Params = make(map[string]string, len(s.params))
			}
			recipient.Params[name] = value
		}
	}
	return recipient, nil
}
