package v1

import (
	"context"
	"io"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// listSource gives the members of a list, as they were at one moment, as the recipients of a batch, with those
// of their parameters that its template has. Row n is the n-th member.
type listSource struct {
	ctx     context.Context
	members <-chan readMember // closed after the last one
	params  []string
	row     int
	unused  bool // members have parameters, and none is taken
}

// readMember is a member, or why there is none.
type readMember struct {
	store.ListMember
	err error
}

// newListSource begins to read the list. It ends with ctx.
func (a *API) newListSource(ctx context.Context, list int64, template *notify.Template) *listSource {
	members := make(chan readMember, rowsInPart)
	go func() {
		defer close(members)
		give := func(m readMember) bool {
			select {
			case members <- m:
				return true
			case <-ctx.Done():
				return false
			}
		}
		err := panics.Catch(func() error {
			for m, err := range a.Store.ListSnapshot(ctx, list) {
				if !give(readMember{m, err}) {
					break
				}
			}
			return nil
		})
		if err != nil {
			give(readMember{err: err})
		}
	}()
	s := &listSource{ctx: ctx, members: members}
	if template != nil {
		s.params = template.Params()
	}
	return s
}

// Read gives the next recipient. What reading the list ends with is no fault of the request.
func (s *listSource) Read() (notify.Recipient, error) {
	member, more := <-s.members
	switch {
	case !more && s.ctx.Err() != nil:
		return notify.Recipient{}, s.ctx.Err()
	case !more:
		return notify.Recipient{}, io.EOF
	case member.err != nil:
		return notify.Recipient{}, member.err
	}
	s.row++
	s.unused = s.unused || len(s.params) == 0 && len(member.Params) > 0
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
