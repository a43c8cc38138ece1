package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/notify"
)

const templateIDArgument = "the id of a template, as `todoku template list` shows it"

// templateCommand is a command about one template.
func templateCommand(use, short, example string, run func(cmd *cobra.Command, c *client, path string) error) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args:    oneArgument(templateIDArgument),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return run(cmd, c, fmt.Sprintf("/templates/%d", id))
		},
	}
}

func newTemplateVersions() *cobra.Command {
	return templateCommand("versions ID", "List a template's versions", "  todoku template versions 1", func(cmd *cobra.Command, c *client, path string) error {
		zone, err := timezone()
		if err != nil {
			return err
		}
		versions, err := call[items[v1.Template]](cmd.Context(), c, http.MethodGet, path+"/versions", nil)
		if err != nil {
			return err
		}
		return versions.print(cmd, func(out io.Writer, versions items[v1.Template]) error {
			rows := newTable("VERSION", "CREATED", "BODY")
			for _, t := range versions.Items {
				rows.add(strconv.Itoa(int(t.Version)), t.CreatedAt.In(zone).Format(timeLayout), notify.Excerpt(t.Body))
			}
			return rows.print(out)
		})
	})
}

func newTemplateDiff() *cobra.Command {
	var from, to int
	cmd := templateCommand("diff ID [--from VERSION] [--to VERSION]", "Compare two versions of a template",
		"  todoku template diff 1\n  todoku template diff 1 --from 1 --to 3", func(cmd *cobra.Command, c *client, path string) error {
			query := url.Values{}
			for name, version := range map[string]int{"from": from, "to": to} {
				if cmd.Flags().Changed(name) {
					query.Set(name, strconv.Itoa(version))
				}
			}
			diff, err := call[v1.TemplateDiff](cmd.Context(), c, http.MethodGet, path+"/diff?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			return diff.print(cmd, printDiff)
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
	return templateCommand("delete ID", "Delete a template, or archive one that something was sent with", "  todoku template delete 1",
		func(cmd *cobra.Command, c *client, path string) error {
			deleted, err := call[v1.Template](cmd.Context(), c, http.MethodDelete, path, nil)
			if err != nil {
				return err
			}
			return deleted.print(cmd, func(out io.Writer, t v1.Template) error {
				if t.ArchivedAt == nil {
					_, err := fmt.Fprintln(out, "the template is deleted")
					return err
				}
				return printArchived(out, t)
			})
		})
}

func newTemplateArchive(use, short string, archived bool) *cobra.Command {
	return templateCommand(use+" ID", short, "  todoku template "+use+" 1", func(cmd *cobra.Command, c *client, path string) error {
		changed, err := call[v1.Template](cmd.Context(), c, http.MethodPatch, path, map[string]bool{"archived": archived})
		if err != nil {
			return err
		}
		return changed.print(cmd, printArchived)
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
