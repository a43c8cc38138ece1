package v1

import (
	"bufio"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/notify"
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
	members, params, err := a.spoolMembers(ctx, id)
	if err != nil {
		return a.fail(ctx, err)
	}
	defer members.Close()
	out, err := newCSVAnswer(c, fmt.Sprintf("list-%d.csv", id))
	if err != nil {
		return nil // whoever has gone needs no answer
	}
	err = out.Write(slices.Concat([]string{"to"}, params, []string{"timezone", "locale"}))
	for decoder := gob.NewDecoder(bufio.NewReader(members)); err == nil; {
		var member exportedMember
		if err = decoder.Decode(&member); err == nil {
			err = out.Write(member.row(params))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	out.Flush()
	if err = cmp.Or(err, out.Error()); err != nil {
		// The answer has begun: only a connection that breaks tells the client that it is not whole.
		a.Logger.WarnContext(ctx, "export ended early", "list_id", id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// exportedMember is what an export says of a member.
type exportedMember struct {
	To               string
	Params           map[string]string
	Timezone, Locale string
}

func (m exportedMember) row(params []string) []string {
	row := []string{notify.HarmlessCell(m.To)}
	for _, name := range params {
		row = append(row, notify.HarmlessCell(m.Params[name]))
	}
	return append(row, m.Timezone, m.Locale)
}

// spoolMembers writes the members of a list, as they all are at one moment, to a file without a name, and gives the
// names of their parameters. A client that reads slowly so takes no connection to the database.
func (a *API) spoolMembers(ctx context.Context, list int64) (members *os.File, params []string, err error) {
	if members, err = newUnnamedFile("todoku-export-"); err != nil {
		return nil, nil, fmt.Errorf("store the export: %w", err)
	}
	names := map[string]bool{}
	out := bufio.NewWriter(members)
	encoder := gob.NewEncoder(out)
	whole := seesNumbers(ctx)
	for m, readErr := range a.Store.ListSnapshot(ctx, list) {
		if err = readErr; err != nil {
			break
		}
		exported := exportedMember{To: notify.Mask(m.To), Params: m.Params, Timezone: valueOf(m.Timezone), Locale: valueOf(m.Locale)}
		if whole {
			exported.To = a.asDialled(m.To, m.ToNational)
		}
		for name := range m.Params {
			names[name] = true
		}
		if err = encoder.Encode(exported); err != nil {
			break
		}
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		_, err = members.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("store the export: %w", err), members.Close())
	}
	return members, slices.Sorted(maps.Keys(names)), nil
}
