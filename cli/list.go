package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newListCommand() *cobra.Command {
	group := newGroup("list", "Keep lists of recipients",
		newListCreate(), newListList(), newListShow(), newListRename(), newListDelete(), newListImport(), newListExport(),
		newListMembers(), newListAdd(), newListChange(), newListRemove())
	group.GroupID = groupUse
	group.Example = `  todoku list create --name 'Saturday patients'
  todoku list import 1 --csv patients.csv
  todoku list members 1 --phone 5678`
	addConnectionFlags(group)
	return group
}

func newListCreate() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "create --name NAME",
		Short:   "Create a list without members",
		Example: "  todoku list create --name 'Saturday patients'",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return printAnswer(cmd, c, once(http.MethodPost, "/lists", map[string]string{"name": name}), func(out io.Writer, l v1.List) error {
				_, err := fmt.Fprintf(out, "list %d is created\nFill it: todoku list import %d --csv FILE\n", l.ID, l.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what it is called; no two have the same name")
	requireFlags(cmd, "name")
	return cmd
}

func newListList() *cobra.Command {
	var phone string
	cmd := &cobra.Command{
		Use:     "list [--phone DIGITS]",
		Short:   "List all lists, or those with a number",
		Example: "  todoku list list\n  todoku list list --phone 090-1234-5678",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if phone != "" {
				query.Set("phone", phone)
			}
			return listAll(cmd, "/lists", query, "there are no such lists: make one with `todoku list create`", func(all []v1.List) *table {
				rows := newTable("ID", "MEMBERS", "NAME")
				for _, l := range all {
					rows.add(strconv.FormatInt(l.ID, 10), strconv.Itoa(int(l.MembersCount)), l.Name)
				}
				return rows
			})
		},
	}
	cmd.Flags().StringVar(&phone, "phone", "", phoneUsage)
	return cmd
}

const phoneUsage = "the last 4 `digits` of a number, or the whole number"

func newListShow() *cobra.Command {
	return lists.command("show ID", "Show a list", "  todoku list show 1", func(cmd *cobra.Command, c *client, path string) error {
		return show(cmd, c, path, inZone(func(out io.Writer, l v1.List, zone *time.Location) error {
			rows := newTable()
			rows.add("id", strconv.FormatInt(l.ID, 10))
			rows.add("name", l.Name)
			rows.add("members", strconv.Itoa(int(l.MembersCount)))
			rows.add("created", l.CreatedAt.In(zone).Format(timeLayout))
			rows.add("updated", l.UpdatedAt.In(zone).Format(timeLayout))
			return rows.print(out)
		}))
	})
}

func newListRename() *cobra.Command {
	var name string
	cmd := lists.command("rename ID --name NAME", "Rename a list", "  todoku list rename 1 --name 'Sunday patients'", func(cmd *cobra.Command, c *client, path string) error {
		return printChange(cmd, c, path, map[string]string{"name": name}, func(out io.Writer, l v1.List) error {
			_, err := fmt.Fprintf(out, "list %d is called %s\n", l.ID, clean(l.Name))
			return err
		})
	})
	cmd.Flags().StringVar(&name, "name", "", "what it is called from now on")
	requireFlags(cmd, "name")
	return cmd
}

func newListDelete() *cobra.Command {
	return lists.command("delete ID", "Delete a list with its members", "  todoku list delete 1", func(cmd *cobra.Command, c *client, path string) error {
		return erase(cmd, c, path, "the list is deleted")
	})
}

// erase deletes what is at the path. Asked again after a lost answer it may find nothing, so it is not.
func erase(cmd *cobra.Command, c *client, path, done string) error {
	return printAnswer(cmd, c, once(http.MethodDelete, path, nil), func(out io.Writer, _ struct{}) error {
		_, err := fmt.Fprintln(out, done)
		return err
	})
}

func newListImport() *cobra.Command {
	var csv, charset string
	var replace, remove bool
	cmd := lists.command("import ID --csv FILE [--replace]", "Import members from a file",
		"  todoku list import 1 --csv patients.csv\n  todoku list import 1 --csv patients.csv --replace",
		func(cmd *cobra.Command, c *client, path string) error {
			mode := "add"
			if replace {
				mode = "replace"
			}
			if remove {
				mode += "&remove_with_rejected=true"
			}
			content, again := recipientsFile(cmd, csv, charset)
			return printAnswer(cmd, c, asking{method: http.MethodPost, path: path + "/members?mode=" + mode, file: content, repeatable: again}, printReport)
		})
	cmd.Long = `Import members from a file.

The first row of the file names the columns: to, one for each parameter, and, where there are such,
timezone and locale. UTF-8, UTF-16 with a byte order mark and Shift_JIS are told apart; --charset names any
other encoding. Rows that may be another text in another encoding are rejected; a file with rows of half-width
katakana only may need --charset shift_jis. Rows that nothing can be sent to are counted by the code of the
mistake; the first 100 are listed, by their number in the spreadsheet less one. The others are kept.

A member is a number with its parameters: the same number with other parameters is another member,
since relatives share phones. An empty cell is an empty value, which is kept; templates that need the
value are not sent to that member. With --replace the list becomes what the file says.`
	cmd.Flags().StringVar(&csv, "csv", "", "the `file` of members; - reads it from standard input")
	cmd.Flags().StringVar(&charset, "charset", "", charsetUsage)
	cmd.Flags().BoolVar(&replace, "replace", false, "take those off the list who are not in the file, unless rows are rejected")
	cmd.Flags().BoolVar(&remove, "remove-with-rejected", false, "with --replace: take them off even though rows are rejected")
	requireFlags(cmd, "csv")
	return cmd
}

func printReport(out io.Writer, r v1.MembersReport) error {
	rows := newTable()
	for _, part := range []part{
		{"added", r.Added}, {"changed", r.Changed}, {"unchanged", r.Unchanged}, {"removed", r.Removed}, {"duplicates", r.Duplicates}, {"rejected", int64(r.RejectedCount)},
	} {
		rows.add(part.name, strconv.FormatInt(part.n, 10))
	}
	addRejected(rows, r.Rejected, r.RejectedByCode)
	if len(r.IgnoredColumns) > 0 {
		rows.add("ignored columns", strings.Join(r.IgnoredColumns, ", "))
	}
	if r.NotRemoved > 0 {
		rows.add("not removed", fmt.Sprintf("%d, since rows are rejected: correct these, or add --remove-with-rejected", r.NotRemoved))
	}
	rows.add("members now", strconv.Itoa(int(r.MembersCount)))
	if err := rows.print(out); err != nil {
		return err
	}
	return printAffected(out, r.AffectedSchedules)
}

func newListExport() *cobra.Command {
	var path string
	cmd := lists.command("export ID [--out FILE]", "Write a list's members as a file that can be imported",
		"  todoku list export 1 --out patients.csv", func(cmd *cobra.Command, c *client, list string) error {
			if path == "" {
				return c.download(cmd.Context(), list+"/members.csv", cmd.OutOrStdout())
			}
			return downloadTo(cmd, c, list+"/members.csv", path, func(first []string) string {
				if masked(first[0]) {
					return "its numbers are masked, and it cannot be imported: give a key with the scope pii to have them whole\n"
				}
				return ""
			})
		})
	cmd.Long = `Write a list's members as a file that can be imported.

Numbers are masked unless the key has the scope pii; a file with masked numbers cannot be imported.`
	cmd.Flags().StringVar(&path, "out", "", "the `file` to write; standard output, where there is none")
	return cmd
}
