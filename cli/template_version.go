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
	"github.com/todoku/todoku/notify"
)

func newTemplateVersions() *cobra.Command {
	return templates.command("versions ID", "List a template's versions", "  todoku template versions 1", func(cmd *cobra.Command, c *client, path string) error {
		return show(cmd, c, path+"/versions", inZone(func(out io.Writer, versions items[v1.Template], zone *time.Location) error {
			rows := newTable("VERSION", "CREATED", "BODY")
			for _, t := range versions.Items {
				rows.add(strconv.Itoa(int(t.Version)), t.CreatedAt.In(zone).Format(timeLayout), notify.Excerpt(t.Body))
			}
			return rows.print(out)
		}))
	})
}

func newTemplateDiff() *cobra.Command {
	var from, to int
	cmd := templates.command("diff ID [--from VERSION] [--to VERSION]", "Compare two versions of a template",
		"  todoku template diff 1\n  todoku template diff 1 --from 1 --to 3", func(cmd *cobra.Command, c *client, path string) error {
			query := url.Values{}
			for name, version := range map[string]int{"from": from, "to": to} {
				if cmd.Flags().Changed(name) {
					query.Set(name, strconv.Itoa(version))
				}
			}
			return show(cmd, c, path+"/diff?"+query.Encode(), printDiff)
		})
	cmd.Flags().IntVar(&from, "from", 0, "a `version`; by default the one before --to")
	cmd.Flags().IntVar(&to, "to", 0, "a `version`; by default the present one")
	return cmd
}

// printDiff marks what is removed as [-…-] and what is added as {+…+}, as `git diff --word-diff` does.
func printDiff(out io.Writer, d v1.TemplateDiff) error {
	fmt.Fprintf(out, "version %d to version %d\n\n", d.From, d.To)
	var text strings.Builder
	for _, change := range d.Changes {
		switch change.Op {
		case notify.Removed:
			text.WriteString("[-" + change.Text + "-]")
		case notify.Added:
			text.WriteString("{+" + change.Text + "+}")
		default:
			text.WriteString(change.Text)
		}
	}
	if err := printLines(out, text.String()+"\n"); err != nil {
		return err
	}
	rows := newTable()
	if len(d.ParamsAdded) > 0 {
		rows.add("placeholders added", strings.Join(d.ParamsAdded, ", "))
	}
	if len(d.ParamsRemoved) > 0 {
		rows.add("placeholders removed", strings.Join(d.ParamsRemoved, ", "))
	}
	for _, k := range d.KindsChanged {
		rows.add("kind changed", fmt.Sprintf("%s: %s to %s", k.Name, k.From, k.To))
	}
	return rows.print(out)
}

func newTemplateDelete() *cobra.Command {
	return templates.command("delete ID", "Delete a template, or archive one that something was sent with", "  todoku template delete 1",
		func(cmd *cobra.Command, c *client, path string) error {
			return printAnswer(cmd, c, once(http.MethodDelete, path, nil), func(out io.Writer, t v1.Template) error {
				if t.ArchivedAt == nil {
					_, err := fmt.Fprintln(out, "the template is deleted")
					return err
				}
				return printArchived(out, t)
			})
		})
}

func newTemplateArchive(use, short string, archived bool) *cobra.Command {
	return templates.command(use+" ID", short, "  todoku template "+use+" 1", func(cmd *cobra.Command, c *client, path string) error {
		return printChange(cmd, c, path, map[string]bool{"archived": archived}, printArchived)
	})
}

func printArchived(out io.Writer, t v1.Template) error {
	if t.ArchivedAt == nil {
		_, err := fmt.Fprintf(out, "template %d can be sent with again\n", t.ID)
		return err
	}
	_, err := fmt.Fprintf(out, "template %d is archived: nothing new is sent with it\nBring it back: todoku template restore %d\n", t.ID, t.ID)
	return err
}
