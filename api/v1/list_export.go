package v1

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// exportMembers streams the members of a list.
func (a *API) exportMembers(c *gin.Context) error {
	ctx := c.Request.Context()
	id, err := parsePathID(c)
	if err != nil {
		return err
	}
	if err := noParameters(c); err != nil {
		return err
	}
	if _, err := a.Store.RecipientList(ctx, id); err != nil {
		return a.listProblem(ctx, err)
	}
	if err := takeTurn(ctx, a.reads.exports); err != nil {
		return err
	}
	defer func() { <-a.reads.exports }()
	params, err := a.Store.ListParams(ctx, id)
	if err != nil {
		return a.fail(ctx, err)
	}
	out, err := newCSVAnswer(c, fmt.Sprintf("list-%d.csv", id))
	if err != nil {
		return nil // whoever has gone needs no answer
	}
	whole := seesNumbers(ctx)
	err = out.Write(slices.Concat([]string{"to"}, params, []string{"timezone", "locale"}))
	for member, readErr := range a.Store.EachListMember(ctx, id) {
		if err = cmp.Or(err, readErr); err != nil {
			break
		}
		to := notify.Mask(member.To)
		if whole {
			to = a.asDialled(member.To, member.ToNational)
		}
		err = out.Write(memberRow(member, to, params))
	}
	out.Flush()
	if err = cmp.Or(err, out.Error()); err != nil {
		// The answer has begun: only a connection that breaks tells the client that it is not whole.
		a.Logger.WarnContext(ctx, "export ended early", "list_id", id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func memberRow(m store.ListMember, to string, params []string) []string {
	row := []string{notify.HarmlessCell(to)}
	for _, name := range params {
		row = append(row, notify.HarmlessCell(m.Params[name]))
	}
	return append(row, valueOf(m.Timezone), valueOf(m.Locale))
}
