package cli

import (
	"strconv"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// subject is a kind of thing in the API, of which a command is told one by its id.
type subject struct {
	path     string // of all of them
	argument string // what the id is, for people who left it out
	parse    func(id string) (string, error)
}

var (
	lists         = subject{"/lists", "the id of a list, as `todoku list list` shows it", number}
	templates     = subject{"/templates", "the id of a template, as `todoku template list` shows it", number}
	schedules     = subject{"/schedules", "the id of a schedule, as `todoku schedule list` shows it", number}
	senders       = subject{"/senders", "the id of a sender, as `todoku sender list` shows it", number}
	notifications = subject{"/notifications", "the id that `todoku send` printed", uuidOf("a notification", "`todoku send` printed")}
	batches       = subject{"/batches", "the id that `todoku batch send` printed", uuidOf("a batch", "`todoku batch send` printed")}
	inboundCalls  = subject{"/inbound/calls", "the id that `todoku inbound list` prints", uuidOf("a call", "`todoku inbound list` prints")}
)

func number(text string) (string, error) {
	id, err := parseID(text)
	return strconv.FormatInt(id, 10), err
}

func uuidOf(thing, source string) func(string) (string, error) {
	return func(text string) (string, error) {
		id, err := uuid.Parse(text)
		if err != nil {
			return "", usageErrorf("%q is not the id of %s: it is the UUID that %s", text, thing, source)
		}
		return id.String(), nil
	}
}

// command is one about one thing: run is given where the API has it.
func (s subject) command(use, short, example string, run func(cmd *cobra.Command, c *client, path string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Example: example, Args: oneArgument(s.argument), RunE: s.run(run)}
}

// run finds the thing and the API before it does what a command is there for.
func (s subject) run(do func(cmd *cobra.Command, c *client, path string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		path, err := s.pathOf(args[0])
		if err != nil {
			return err
		}
		c, err := newClient(cmd)
		if err != nil {
			return err
		}
		return do(cmd, c, path)
	}
}

// pathOf is where the API has the thing with an id.
func (s subject) pathOf(id string) (string, error) {
	id, err := s.parse(id)
	if err != nil {
		return "", err
	}
	return s.path + "/" + id, nil
}
