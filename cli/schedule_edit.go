package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

// scheduleFlags are what people decide of a schedule.
type scheduleFlags struct {
	name, channel, time, cron, timezone, catchup, startsOn, endsOn, note string
	days                                                                 []string
	daysOfMonth                                                          []int
	template, list                                                       int64
}

func (f *scheduleFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "what it is called; no two have the same name")
	flags.StringVar(&f.channel, "channel", "", "sms or call")
	flags.StringVar(&f.time, "time", "", "the `time` of the day: 10:30 or 10:30:00")
	flags.StringSliceVar(&f.days, "days", nil, "`days` of the week, such as MON,FRI (else every day)")
	flags.IntSliceVar(&f.daysOfMonth, "days-of-month", nil, "`days` of the month, such as 1,15, in the place of --days")
	flags.StringVar(&f.cron, "cron", "", "a cron `expression` of five fields, in the place of --time and the days")
	flags.StringVar(&f.timezone, "timezone", "", "the `zone` of those times, such as Asia/Tokyo (else DEFAULT_TIMEZONE of the API)")
	flags.Int64Var(&f.template, "template", 0, "the `id` of the template")
	flags.Int64Var(&f.list, "list", 0, "the `id` of the list")
	flags.StringVar(&f.catchup, "catchup-window", "", "skip a run that would begin later than this `duration` after its time (10m)")
	flags.StringVar(&f.startsOn, "starts-on", "", "the first `day`, such as 2026-04-01")
	flags.StringVar(&f.endsOn, "ends-on", "", "the last `day`")
	flags.StringVar(&f.note, "note", "", "a note for people")
}

// body has the fields of those flags that were given.
func (f *scheduleFlags) body(cmd *cobra.Command) map[string]any {
	fields := map[string]any{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{
		"name": {"name", f.name}, "channel": {"channel", strings.ToUpper(f.channel)}, "time": {"execution_time", f.time},
		"days": {"days_of_week", noneIfEmpty(f.days)}, "days-of-month": {"days_of_month", append([]int{}, f.daysOfMonth...)},
		"cron": {"cron", f.cron}, "timezone": {"timezone", f.timezone}, "template": {"template_id", f.template}, "list": {"list_id", f.list},
		"catchup-window": {"catchup_window", f.catchup}, "starts-on": {"starts_on", f.startsOn}, "ends-on": {"ends_on", f.endsOn}, "note": {"note", f.note},
	} {
		if cmd.Flags().Changed(flag) {
			fields[field.name] = field.value
		}
	}
	return fields
}

// noneIfEmpty makes of --days ” an empty list.
func noneIfEmpty(days []string) []string {
	if len(days) == 1 && days[0] == "" {
		return []string{}
	}
	return append([]string{}, days...)
}

func newScheduleCreate() *cobra.Command {
	var flags scheduleFlags
	var paused bool
	cmd := &cobra.Command{
		Use:   "create --name NAME --channel sms|call (--time TIME | --cron EXPRESSION) --template ID --list ID",
		Short: "Create a schedule",
		Long: `Create a schedule: a template to a list, at a time of the day or as a cron expression says.

Every member of the list must have the parameters of the template. A time that the clocks leave out is
moved to the first moment after it; one that they show twice is taken once, the first time.`,
		Example: `  todoku schedule create --name 'Morning reminder' --channel sms --time 10:30 --days MON,FRI --template 1 --list 1
  todoku schedule create --name 'First of the month' --channel call --cron '0 9 1 * *' --timezone Europe/London --template 2 --list 1`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body := flags.body(cmd)
			body["is_active"] = !paused
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return printAnswer(cmd, c, once(http.MethodPost, "/schedules", body), func(out io.Writer, s v1.Schedule) error {
				_, err := fmt.Fprintf(out, "schedule %d is created; next run: %s\nNext: todoku schedule show %d\n", s.ID, nextRun(s), s.ID)
				return err
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&paused, "paused", false, "do not run until it is resumed")
	requireFlags(cmd, "name", "channel", "template", "list")
	required := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := required(cmd, args); err != nil {
			return err
		}
		if (flags.time == "") == (flags.cron == "") {
			return usageErrorf("when it runs: give either --time TIME or --cron EXPRESSION")
		}
		return nil
	}
	return cmd
}

func newScheduleEdit() *cobra.Command {
	var flags scheduleFlags
	cmd := scheduleCommand("edit ID [--time TIME] …", "Change a schedule: it runs by the change within two seconds",
		`Change a schedule: it runs by the change within two seconds, without a restart of anything.

Only what is given is changed; '' takes a day or a note away. When somebody else changes it at the same
time, one of the two is told so, and can look at what it is now.`,
		"  todoku schedule edit 1 --time 11:00\n  todoku schedule edit 1 --days '' --ends-on 2026-12-31",
		func(cmd *cobra.Command, c *client, path string) error {
			change := flags.body(cmd)
			if len(change) == 0 {
				return usageErrorf("what to change is missing: give --time TIME, or another flag")
			}
			return printChange(cmd, c, path, change, func(out io.Writer, s v1.Schedule) error {
				_, err := fmt.Fprintf(out, "schedule %d is changed; next run: %s\n", s.ID, nextRun(s))
				return err
			})
		})
	flags.add(cmd)
	return cmd
}
