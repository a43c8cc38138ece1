package cli

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newListMembers() *cobra.Command {
	var phone string
	var part paging
	var query url.Values
	cmd := lists.command("members ID [--phone DIGITS]", "List a list's members, or find some",
		"  todoku list members 1\n  todoku list members 1 --phone 5678", func(cmd *cobra.Command, c *client, path string) error {
			return listPage(cmd, c, path+"/members", query, "there are no such members", memberTable)
		})
	cmd.Flags().StringVar(&phone, "phone", "", phoneUsage)
	part.addFlags(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		query, err = part.query(map[string]string{"phone": phone})
		return err
	}
	return cmd
}

func memberTable(members []v1.Member, zone *time.Location) *table {
	rows := newTable("ID", "TO", "ADDED", "TIMEZONE", "LOCALE", "PARAMS")
	for _, m := range members {
		rows.add(strconv.FormatInt(m.ID, 10), m.ToNational, m.CreatedAt.In(zone).Format(timeLayout), valueOf(m.Timezone), valueOf(m.Locale), pairsOf(m.Params))
	}
	return rows
}

// pairsOf are parameters as --param takes them.
func pairsOf(params map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		pairs = append(pairs, name+"="+params[name])
	}
	return strings.Join(pairs, " ")
}

// addMemberFlags adds what a member is made of. What is given of it, as the API calls it, is in fields
// when the command runs; check says what is wrong with that.
func addMemberFlags(cmd *cobra.Command, fields map[string]any, check func() error) {
	cmd.Flags().String("to", "", "the phone `number`")
	cmd.Flags().String("timezone", "", "where the recipient is, such as Asia/Tokyo")
	cmd.Flags().String("locale", "", "what the recipient reads, such as ja or en-US")
	pairs := cmd.Flags().StringArray("param", nil, "a value for a placeholder, as `NAME=VALUE`; may be repeated")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		for _, name := range []string{"to", "timezone", "locale"} {
			if flag := cmd.Flags().Lookup(name); flag.Changed {
				fields[name] = flag.Value.String()
			}
		}
		if cmd.Flags().Changed("param") {
			if fields["params"], err = parseParams(*pairs); err != nil {
				return err
			}
		}
		return check()
	}
}

func newListAdd() *cobra.Command {
	member := map[string]any{}
	cmd := lists.command("add ID --to NUMBER [--param NAME=VALUE]…", "Add one member to a list",
		"  todoku list add 1 --to 090-1234-5678 --param name=佐藤", func(cmd *cobra.Command, c *client, path string) error {
			q := asking{method: http.MethodPost, path: path + "/members", body: map[string]any{"members": []any{member}}, repeatable: true}
			return printAnswer(cmd, c, q, printReport)
		})
	addMemberFlags(cmd, member, func() error {
		if member["to"] == nil {
			return usageErrorf("missing: --to")
		}
		return nil
	})
	return cmd
}

// memberCommand is a command about one member of a list.
func memberCommand(use, short, example string, run func(cmd *cobra.Command, c *client, path string) error) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageErrorf("give two arguments: the id of a list and that of a member, as `todoku list members` shows it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := lists.pathOf(args[0])
			if err != nil {
				return err
			}
			member, err := number(args[1])
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return run(cmd, c, list+"/members/"+member)
		},
	}
}

func newListChange() *cobra.Command {
	change := map[string]any{}
	cmd := memberCommand("change ID MEMBER [--to NUMBER] [--param NAME=VALUE]…", "Change a member of a list",
		"  todoku list change 1 7 --param name=佐藤 --param time=11:00", func(cmd *cobra.Command, c *client, path string) error {
			return printAnswer(cmd, c, once(http.MethodPatch, path, change), func(out io.Writer, m v1.Member) error {
				fmt.Fprintf(out, "member %d is changed: %s %s\n", m.ID, m.ToNational, clean(pairsOf(m.Params)))
				return printAffected(out, m.AffectedSchedules)
			})
		})
	cmd.Long = `Change a member of a list.

What is not given stays as it is. The parameters are given all or none: those that are left out are gone.`
	addMemberFlags(cmd, change, func() error {
		if len(change) == 0 {
			return usageErrorf("what to change is missing: give --to, --param, --timezone or --locale")
		}
		return nil
	})
	return cmd
}

func newListRemove() *cobra.Command {
	return memberCommand("remove ID MEMBER", "Take a member off a list", "  todoku list remove 1 7", func(cmd *cobra.Command, c *client, path string) error {
		return erase(cmd, c, path, "the member is off the list")
	})
}
