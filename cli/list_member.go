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

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newListMembers() *cobra.Command {
	var phone, after string
	var limit int
	cmd := listCommand("members ID [--phone DIGITS]", "List a list's members, or find some",
		"  todoku list members 1\n  todoku list members 1 --phone 5678", func(cmd *cobra.Command, c *client, path string) error {
			zone, err := timezone()
			if err != nil {
				return err
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"phone": phone, "cursor": after} {
				if value != "" {
					query.Set(name, value)
				}
			}
			page, err := call[v1.MemberPage](cmd.Context(), c, http.MethodGet, path+"/members?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			return page.print(cmd, func(out io.Writer, page v1.MemberPage) error { return printMembers(out, page, zone) })
		})
	cmd.Flags().StringVar(&phone, "phone", "", phoneUsage)
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, up to 200")
	cmd.Flags().StringVar(&after, "cursor", "", "read on after a page: its next `cursor`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if limit < 1 || limit > 200 {
			return usageErrorf("--limit must be from 1 to 200")
		}
		return nil
	}
	return cmd
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
	cmd := listCommand("add ID --to NUMBER [--param NAME=VALUE]…", "Add one member to a list",
		"  todoku list add 1 --to 090-1234-5678 --param name=佐藤", func(cmd *cobra.Command, c *client, path string) error {
			done, err := ask[v1.MembersReport](cmd.Context(), c, asking{method: http.MethodPost, path: path + "/members",
				body: map[string]any{"members": []any{member}}, repeatable: true})
			if err != nil {
				return err
			}
			return done.print(cmd, printReport)
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
			list, err := parseID(args[0])
			if err != nil {
				return err
			}
			member, err := parseID(args[1])
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return run(cmd, c, fmt.Sprintf("/lists/%d/members/%d", list, member))
		},
	}
}

func newListChange() *cobra.Command {
	change := map[string]any{}
	cmd := memberCommand("change ID MEMBER [--to NUMBER] [--param NAME=VALUE]…", "Change a member of a list",
		"  todoku list change 1 7 --param name=佐藤 --param time=11:00", func(cmd *cobra.Command, c *client, path string) error {
			changed, err := call[v1.Member](cmd.Context(), c, http.MethodPatch, path, change)
			if err != nil {
				return err
			}
			return changed.print(cmd, func(out io.Writer, m v1.Member) error {
				_, err := fmt.Fprintf(out, "member %d is changed: %s %s\n", m.ID, m.ToNational, clean(pairsOf(m.Params)))
				return err
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
