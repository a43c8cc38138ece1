package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/notify"
)

func newTemplateCommand() *cobra.Command {
	group := newGroup("template", "Create, change, see and preview templates", newTemplateCreate(), newTemplateUpdate(), newTemplateList(), newTemplateShow(), newTemplateRender(),
		newTemplateVersions(), newTemplateDiff(), newTemplateDelete(),
		newTemplateArchive("archive", "Let nothing new be sent with a template", true),
		newTemplateArchive("restore", "Bring an archived template back", false))
	group.GroupID = groupUse
	group.Example = `  todoku template create --name reminder --channel sms --body '{{name}}様、ご予約は{{time}}です。'
  todoku template render 1 --param name=佐藤 --param time=10:00
  todoku send sms --to 090-1234-5678 --template 1 --param name=佐藤 --param time=10:00`
	addConnectionFlags(group)
	return group
}

func newTemplateCreate() *cobra.Command {
	var name, channel, body string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "create --name NAME --channel sms|call --body TEXT",
		Short: "Create a template",
		Long: `Create a template: a text with placeholders such as {{name}}, for one channel.

A send gives a value for each placeholder. Nothing but {{…}} is special. With --kind time=time a value
for {{time}} must be a time of the day, and a send with 25:00 is refused; there are number, date and time.`,
		Example: `  todoku template create --name reminder --channel sms --body '{{name}}様、ご予約は{{time}}です。'
  todoku template create --name visit --channel sms --body 'See you at {{time}}.' --kind time=time
  todoku template create --name reminder-call --channel call --body - < text.txt`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted := notify.Channel(strings.ToUpper(channel))
			if !wanted.Enabled() {
				return usageErrorf("--channel must be sms or call")
			}
			text, err := textOf(cmd, body)
			if err != nil {
				return err
			}
			wantedKinds, err := parseKinds(kinds)
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{"name": name, "channel": string(wanted), "body": text, "kinds": wantedKinds}
			return printAnswer(cmd, c, once(http.MethodPost, "/templates", body), func(out io.Writer, t v1.Template) error {
				fmt.Fprintf(out, "template %d is created\n", t.ID)
				_, err := fmt.Fprintf(out, "Use it: todoku send %s --to NUMBER --template %d%s\n", strings.ToLower(string(t.Channel)), t.ID, paramsOf(t))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what it is called; no two have the same name")
	cmd.Flags().StringVar(&channel, "channel", "", "sms or call")
	cmd.Flags().StringVar(&body, "body", "", "the `text`, with placeholders such as {{name}}; - reads it from standard input")
	addKindFlag(cmd, &kinds)
	requireFlags(cmd, "name", "channel", "body")
	return cmd
}

func newTemplateUpdate() *cobra.Command {
	var name, body string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "update ID [--name NAME] [--body TEXT] [--kind NAME=KIND]…",
		Short: "Change a template",
		Long: `Change a template: its name, or its text, which becomes the next version.

Notifications that were accepted before keep the version that they were accepted with.`,
		Example: `  todoku template update 1 --body '{{name}}様、ご予約は明日{{time}}です。'
  todoku template update 1 --name 'evening reminder'`,
		Args: oneArgument(templates.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := templates.pathOf(args[0])
			if err != nil {
				return err
			}
			change := make(map[string]any)
			if cmd.Flags().Changed("name") {
				change["name"] = name
			}
			if cmd.Flags().Changed("body") {
				if change["body"], err = textOf(cmd, body); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("kind") {
				if change["kinds"], err = parseKinds(kinds); err != nil {
					return err
				}
			}
			if len(change) == 0 {
				return usageErrorf("what to change is missing: give --name NAME, --body TEXT or --kind NAME=KIND")
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return printChange(cmd, c, path, change, func(out io.Writer, t v1.Template) error {
				fmt.Fprintf(out, "template %d is changed: version %d\n", t.ID, t.Version)
				return printAffected(out, t.AffectedSchedules)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what it is called from now on")
	cmd.Flags().StringVar(&body, "body", "", "the next version's `text`; - reads it from standard input")
	addKindFlag(cmd, &kinds)
	return cmd
}

func addKindFlag(cmd *cobra.Command, kinds *[]string) {
	cmd.Flags().StringArrayVar(kinds, "kind", nil, "what a placeholder's value must be, as `NAME=KIND`: text, number, date or time; may be repeated")
}

func parseKinds(pairs []string) (map[string]string, error) {
	kinds := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, kind, _ := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); name == "" || !slices.Contains(notify.ParamKinds, notify.ParamKind(kind)) {
			return nil, usageErrorf("--kind %q: write NAME=KIND, where KIND is text, number, date or time", pair)
		}
		kinds[name] = kind
	}
	return kinds, nil
}

func paramsOf(t v1.Template) string {
	var flags strings.Builder
	for _, name := range t.Params {
		fmt.Fprintf(&flags, " --param %s=…", name)
	}
	return clean(flags.String())
}

func newTemplateList() *cobra.Command {
	var archived bool
	cmd := &cobra.Command{
		Use:     "list [--archived]",
		Short:   "List all templates",
		Example: "  todoku template list\n  todoku template list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if archived {
				query.Set("archived", "true")
			}
			return listAll(cmd, "/templates", query, "there are no templates: make one with `todoku template create`", func(all []v1.Template) *table {
				rows := newTable("ID", "CHANNEL", "VERSION", "NAME", "BODY")
				for _, t := range all {
					rows.add(strconv.FormatInt(t.ID, 10), string(t.Channel), strconv.Itoa(int(t.Version)), t.Name, notify.Excerpt(t.Body))
				}
				return rows
			})
		},
	}
	cmd.Flags().BoolVar(&archived, "archived", false, "those that are archived, and no others")
	return cmd
}

func newTemplateShow() *cobra.Command {
	return templates.command("show ID", "Show a template at its present version", "  todoku template show 1", showing(inZone(printTemplate)))
}

func printTemplate(out io.Writer, t v1.Template, zone *time.Location) error {
	rows := newTable()
	rows.add("id", strconv.FormatInt(t.ID, 10))
	rows.add("name", t.Name)
	rows.add("channel", string(t.Channel))
	rows.add("version", strconv.Itoa(int(t.Version)))
	rows.add("placeholders", placeholdersOf(t))
	rows.add("created", t.CreatedAt.In(zone).Format(timeLayout))
	rows.add("updated", t.UpdatedAt.In(zone).Format(timeLayout))
	if t.ArchivedAt != nil {
		rows.add("archived", t.ArchivedAt.In(zone).Format(timeLayout))
	}
	if err := rows.print(out); err != nil {
		return err
	}
	return printLines(out, "\n"+t.Body)
}

// placeholdersOf names the placeholders, with their kinds where those are not text.
func placeholdersOf(t v1.Template) string {
	var all []string
	for _, name := range t.Params {
		if kind := t.Kinds[name]; kind != "" && kind != notify.ParamText {
			name += " (" + string(kind) + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

func newTemplateRender() *cobra.Command {
	var pairs []string
	var version int32
	var example bool
	cmd := &cobra.Command{
		Use:     "render ID [--param NAME=VALUE]… [--example] [--version VERSION]",
		Short:   "Show what a recipient would get, without sending it",
		Example: "  todoku template render 1 --param name=佐藤 --param time=10:00\n  todoku template render 1 --example",
		Args:    oneArgument(templates.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := templates.pathOf(args[0])
			if err != nil {
				return err
			}
			params, err := parseParams(pairs)
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			asked := map[string]any{"params": params, "example": example}
			if cmd.Flags().Changed("version") {
				asked["version"] = version
			}
			return printAnswer(cmd, c, once(http.MethodPost, path+"/render", asked), printPreview)
		},
	}
	cmd.Flags().StringArrayVar(&pairs, "param", nil, "a value for a placeholder, as `NAME=VALUE`; may be repeated")
	cmd.Flags().BoolVar(&example, "example", false, "fill placeholders that no --param names by example")
	cmd.Flags().Int32Var(&version, "version", 0, "one of its `versions`; by default the present one")
	return cmd
}

// printPreview prints the text as it is, line by line, and then what it takes to send it.
func printPreview(out io.Writer, p v1.Preview) error {
	if err := printLines(out, p.Text); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d characters", p.Characters)
	if p.Channel == notify.Call {
		_, err := fmt.Fprintf(out, ", spoken in %s by %s\n", clean(p.Language), clean(p.Voice))
		return err
	}
	_, err := fmt.Fprintf(out, ", %s, %d segment(s)\n", p.Encoding, p.Segments)
	return err
}
