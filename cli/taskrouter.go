package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/taskrouter"
)

// defaultTaskRouterFile is read where --file does not say otherwise.
const defaultTaskRouterFile = "taskrouter.yaml"

func newTaskRouterCommand() *cobra.Command {
	group := newGroup("taskrouter", "Set up who answers calls that come in: TaskRouter as code",
		newTaskRouterPlan(), newTaskRouterApply(), newTaskRouterStatus(), newTaskRouterDestroy())
	group.GroupID = groupUse
	group.Long = `Set up who answers calls that come in: TaskRouter as code.

taskrouter.yaml describes the call centre: its queues, its operators, how calls are routed, and what callers
hear. 'plan' shows what would be done at Twilio, 'apply' does it, and on an unchanged file writes nothing.
What Todoku did not make is never deleted.`
	group.Example = "  todoku taskrouter plan\n  todoku taskrouter apply --file taskrouter.yaml\n  todoku taskrouter status\n  todoku taskrouter destroy"
	addConnectionFlags(group)
	return group
}

func newTaskRouterPlan() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "plan [--file FILE]",
		Short:   "Show what would be done at Twilio, and do nothing",
		Example: "  todoku taskrouter plan\n  todoku taskrouter plan --json",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runTaskRouter(cmd, "plan", file) },
	}
	addTaskRouterFile(cmd, &file)
	return cmd
}

func newTaskRouterApply() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "apply [--file FILE]",
		Short: "Make Twilio as the file says",
		Long: `Make Twilio as the file says.

It may be given again at any time: it does what is missing, also of an apply that was cut short. Two that are
given together are done one after the other.`,
		Example: "  todoku taskrouter apply --file taskrouter.yaml",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runTaskRouter(cmd, "apply", file) },
	}
	addTaskRouterFile(cmd, &file)
	return cmd
}

func addTaskRouterFile(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", defaultTaskRouterFile, "the `file` that describes the call centre; - reads it from standard input")
}

func newTaskRouterDestroy() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "destroy [--yes]",
		Short: "Take away what Todoku has made at Twilio",
		Long: `Take away what Todoku has made at Twilio, and nothing else: a workspace in which somebody made something by
hand stays. Numbers get their old webhooks back. It asks first, unless --yes is given.`,
		Example: "  todoku taskrouter destroy\n  todoku taskrouter destroy --yes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			if !yes {
				if err := confirmDestroy(cmd, c); err != nil {
					return err
				}
			}
			return carryOutTaskRouter(cmd, c, map[string]string{"action": "destroy"})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirmDestroy lists what would go, and takes nothing but the word yes.
func confirmDestroy(cmd *cobra.Command, c *client) error {
	objects, err := call[items[v1.TaskRouterObject]](cmd.Context(), c, http.MethodGet, "/taskrouter/objects", nil)
	if err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	if len(objects.Value.Items) == 0 {
		return errors.New("there is nothing to take away: Todoku has made nothing at Twilio")
	}
	fmt.Fprintln(out, "Todoku made this at Twilio:")
	for _, o := range objects.Value.Items {
		fmt.Fprintf(out, "  %s %q\n", o.Kind, clean(o.Name))
	}
	fmt.Fprint(out, "Take all of it away? Calls that come in will hear that nobody is there. Write yes: ")
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if strings.TrimSpace(answer) == "yes" {
		return nil
	}
	if err != nil && answer == "" {
		fmt.Fprintln(out)
	}
	return errors.New("nothing was done: the answer was not yes (--yes does not ask)")
}

// runTaskRouter checks the file here, so that what is wrong with it is said with its lines, and has the API do the
// rest.
func runTaskRouter(cmd *cobra.Command, action, file string) error {
	text, name, err := readTaskRouterFile(cmd, file)
	if err != nil {
		return err
	}
	if _, err := taskrouter.Parse(name, text); err != nil {
		return inLines{fmt.Errorf("the file is wrong\n%w", err)}
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	return carryOutTaskRouter(cmd, c, map[string]string{"action": action, "file": string(text), "file_name": name})
}

func readTaskRouterFile(cmd *cobra.Command, file string) (text []byte, name string, err error) {
	if file == "-" {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxTaskRouterFile))
		return text, "standard input", err
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", fmt.Errorf("there is no %s: write one, as taskrouter.example.yaml is, or say with --file where it is", file)
	} else if err != nil {
		return nil, "", err
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, maxTaskRouterFile))
	return text, filepath.Base(file), err
}

// maxTaskRouterFile is more than Parse takes, so that it says so.
const maxTaskRouterFile = 2 << 20

// carryOutTaskRouter asks for a run, and waits until it is over.
func carryOutTaskRouter(cmd *cobra.Command, c *client, want map[string]string) error {
	ctx := cmd.Context()
	run, err := call[v1.TaskRouterRun](ctx, c, http.MethodPost, "/taskrouter/runs", want)
	if err != nil {
		return err
	}
	if run, err = awaitTaskRouter(ctx, c, run, cmd.ErrOrStderr(), wantsJSON(cmd)); err != nil {
		return err
	}
	if err := run.print(cmd, printTaskRouterRun); err != nil {
		return err
	}
	if run.Value.State == "failed" {
		return errToldAlready
	}
	return nil
}

const (
	taskRouterPause  = 200 * time.Millisecond
	taskRouterPauses = 2 * time.Second
	taskRouterHint   = 10 * time.Second // by then a worker would have begun
)

func awaitTaskRouter(ctx context.Context, c *client, run reply[v1.TaskRouterRun], tell io.Writer, quiet bool) (reply[v1.TaskRouterRun], error) {
	begun, hinted := time.Now(), false
	for pause := taskRouterPause; run.Value.State == "waiting"; pause = min(pause*3/2, taskRouterPauses) {
		select {
		case <-ctx.Done():
			return run, ctx.Err()
		case <-time.After(pause):
		}
		if !quiet && !hinted && time.Since(begun) > taskRouterHint {
			fmt.Fprintln(tell, "still waiting: is a worker running, and Temporal? The run goes on without this command, which may be interrupted.")
			hinted = true
		}
		var err error
		if run, err = call[v1.TaskRouterRun](ctx, c, http.MethodGet, "/taskrouter/runs/"+run.Value.ID.String(), nil); err != nil {
			return run, err
		}
	}
	return run, nil
}

// signs stand before changes, for people.
var signs = map[taskrouter.Action]string{
	taskrouter.Create: "+", taskrouter.Update: "~", taskrouter.Delete: "-", taskrouter.Restore: "<",
}

// longestShown is how much of a value people are shown; --json has all of it.
const (
	longestShown = 100
	contextShown = 25
)

func printTaskRouterRun(out io.Writer, run v1.TaskRouterRun) error {
	counts := map[taskrouter.Action]int{}
	for _, change := range run.Changes {
		counts[change.Action]++
		fmt.Fprintf(out, "%s %s %q\n", signs[change.Action], change.Kind, clean(change.Name))
		if change.Action == taskrouter.Create || change.Action == taskrouter.Delete {
			continue
		}
		for _, field := range change.Fields {
			from, to := shortened(field.From, field.To)
			fmt.Fprintf(out, "    %s: %s -> %s\n", field.Field, from, to)
		}
	}
	for _, note := range run.Notes {
		fmt.Fprintln(out, clean(note))
	}
	var parts []string
	for _, action := range []taskrouter.Action{taskrouter.Create, taskrouter.Update, taskrouter.Delete, taskrouter.Restore} {
		if n := counts[action]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, action))
		}
	}
	summary := strings.Join(parts, ", ")
	if run.Action != "plan" {
		summary = strings.NewReplacer("to create", "created", "to update", "updated", "to delete", "deleted", "to restore", "restored").Replace(summary)
	}
	var err error
	switch {
	case run.Problem != nil:
		_, err = fmt.Fprintf(out, "it came to an end early: %s\n", strings.TrimSpace(*run.Problem))
		if err == nil && run.Action != "plan" {
			_, err = fmt.Fprintln(out, "Mend that and give the command again: what was done stays, and the rest is done then.")
		}
	case summary == "":
		_, err = fmt.Fprintln(out, "nothing is to be changed")
	default:
		_, err = fmt.Fprintln(out, summary)
	}
	return err
}

// shortened are two values as people are shown them: long ones from a little before where they differ.
func shortened(from, to string) (string, string) {
	a, b := []rune(clean(from)), []rune(clean(to))
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if same -= contextShown; same < 0 || max(len(a), len(b)) <= longestShown {
		same = 0
	}
	return excerpt(a, same), excerpt(b, same)
}

func excerpt(value []rune, begin int) string {
	shown, before, after := value[min(begin, len(value)):], "", ""
	if begin > 0 {
		before = "…"
	}
	if len(shown) > longestShown {
		shown, after = shown[:longestShown], "…"
	}
	if len(value) == 0 {
		return "(empty)"
	}
	return before + string(shown) + after
}
