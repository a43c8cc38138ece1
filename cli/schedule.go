package cli

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newScheduleCommand() *cobra.Command {
	commands := []*cobra.Command{
		newScheduleCreate(), newScheduleEdit(), newScheduleList(), newScheduleShow(),
		newSchedulePause(), newScheduleResume(), newScheduleTrigger(), newScheduleDelete(),
	}
	for _, overAPI := range commands {
		addConnectionFlags(overAPI)
	}
	group := newGroup("schedule", "Send to a list again and again, at set times", append(commands, newScheduleSync())...)
	group.GroupID = groupUse
	group.Example = `  todoku schedule create --name 'Morning reminder' --channel sms --time 10:30 --days MON,FRI --template 1 --list 1
  todoku schedule edit 1 --time 11:00
  todoku schedule show 1`
	return group
}

// scheduleCommand is a command about one schedule that has more to say in its help.
func scheduleCommand(use, short, long, example string, run func(cmd *cobra.Command, c *client, path string) error) *cobra.Command {
	cmd := schedules.command(use, short, example, run)
	cmd.Long = long
	return cmd
}

func newScheduleList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List all schedules and when they run next",
		Example: "  todoku schedule list\n  todoku schedule list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listAll(cmd, "/schedules", url.Values{}, "there are no schedules: make one with `todoku schedule create`", func(all []v1.Schedule) *table {
				rows := newTable("ID", "CHANNEL", "RUNS", "NEXT", "LAST", "SYNC", "NAME")
				for _, s := range all {
					rows.add(strconv.FormatInt(s.ID, 10), string(s.Channel), runsAt(s), nextRun(s), lastRun(s), s.Sync.State, s.Name)
				}
				return rows
			})
		},
	}
}

// runsAt says in words when a schedule runs.
func runsAt(s v1.Schedule) string {
	days := ""
	switch {
	case s.Cron != nil:
		return "cron " + *s.Cron
	case len(s.DaysOfWeek) > 0:
		days = " " + strings.Join(s.DaysOfWeek, ",")
	case len(s.DaysOfMonth) > 0:
		days = " on day " + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.DaysOfMonth), " ", ","), "[]")
	}
	return valueOf(s.ExecutionTime) + days
}

func nextRun(s v1.Schedule) string {
	switch {
	case !s.IsActive:
		return "paused"
	case len(s.NextRuns) == 0:
		return "never again"
	case s.Problem != nil:
		return runTime(s.NextRuns[0]) + " problem: " + string(s.Problem.Code)
	}
	return runTime(s.NextRuns[0])
}

// printAffected names the schedules that a change has left with a problem.
func printAffected(out io.Writer, schedules []v1.AffectedSchedule) error {
	for _, s := range schedules {
		if _, err := fmt.Fprintf(out, "warning: schedule %d (%s): %s\n", s.ID, clean(s.Name), s.Problem.Detail); err != nil {
			return err
		}
	}
	return nil
}

func lastRun(s v1.Schedule) string {
	if len(s.LastRuns) == 0 {
		return "never"
	}
	return runTime(s.LastRuns[0].ScheduledAt) + " " + outcome(s.LastRuns[0])
}

// runTime shows a moment in the zone that it has: the schedule's own.
func runTime(at time.Time) string { return at.Format("Mon 2006-01-02 15:04:05 -07:00") }

func outcome(run v1.ScheduleRun) string {
	if run.SkipReason != nil {
		return "skipped: " + string(*run.SkipReason)
	}
	return "sent"
}

func newScheduleShow() *cobra.Command {
	return schedules.command("show ID", "Show a schedule, its next runs and its last ones", "  todoku schedule show 1", showing(inZone(printSchedule)))
}

// printSchedule leaves out what there is not.
func printSchedule(out io.Writer, s v1.Schedule, zone *time.Location) error {
	rows := newTable()
	add := rows.addKnown
	add("id", strconv.FormatInt(s.ID, 10))
	add("name", s.Name)
	state := "active"
	if !s.IsActive {
		state = strings.TrimSuffix("paused: "+valueOf(s.PauseNote), ": ")
	}
	add("state", state)
	add("channel", string(s.Channel))
	add("runs", runsAt(s)+", "+s.Timezone)
	add("first day", valueOf(s.StartsOn))
	add("last day", valueOf(s.EndsOn))
	add("catch-up", s.CatchupWindow)
	add("template", strconv.FormatInt(s.TemplateID, 10))
	add("list", strconv.FormatInt(s.ListID, 10))
	add("note", valueOf(s.Note))
	sync := s.Sync.State
	if s.Sync.Error != nil {
		sync += ": " + *s.Sync.Error
	}
	if s.Problem != nil {
		add("problem", s.Problem.Detail)
	}
	add("sync", sync)
	add("synced", timeOr(s.Sync.SyncedAt, zone, ""))
	add("Temporal", s.Sync.ScheduleID)
	rows.add("", valueOf(s.Sync.ScheduleURL))
	for i, at := range s.NextRuns {
		rows.add(cmp.Or(map[int]string{0: "next runs"}[i], ""), runTime(at))
	}
	for i, run := range s.LastRuns {
		text := runTime(run.ScheduledAt) + "  " + outcome(run)
		if run.ByHand {
			text += " by hand"
		}
		if run.BatchID != nil {
			text += "  batch " + *run.BatchID
		}
		rows.add(cmp.Or(map[int]string{0: "last runs"}[i], ""), text)
	}
	return rows.print(out)
}

func newSchedulePause() *cobra.Command {
	var note string
	cmd := scheduleCommand("pause ID [--note TEXT]", "Pause a schedule: it does not run until it is resumed",
		"Pause a schedule: it does not run until it is resumed.\n\nWhat it has started goes on: pause the batch for that.",
		"  todoku schedule pause 1 --note 'closed until Monday'",
		func(cmd *cobra.Command, c *client, path string) error {
			query := ""
			if note != "" {
				query = "?" + url.Values{"note": {note}}.Encode()
			}
			return controlSchedule(cmd, c, path+"/pause"+query, "is paused")
		})
	cmd.Flags().StringVar(&note, "note", "", "why, for people")
	return cmd
}

func newScheduleResume() *cobra.Command {
	return scheduleCommand("resume ID", "Let a paused schedule go on",
		"Let a paused schedule go on. What was due in the meantime is not made up for.", "  todoku schedule resume 1",
		func(cmd *cobra.Command, c *client, path string) error {
			return controlSchedule(cmd, c, path+"/resume", "is active")
		})
}

func controlSchedule(cmd *cobra.Command, c *client, path, now string) error {
	return printAnswer(cmd, c, asking{method: http.MethodPost, path: path, repeatable: true}, func(out io.Writer, s v1.Schedule) error {
		if s.IsActive {
			now += "; next run: " + nextRun(s)
		}
		_, err := fmt.Fprintf(out, "schedule %d %s\n", s.ID, now)
		return err
	})
}

func newScheduleTrigger() *cobra.Command {
	return scheduleCommand("trigger ID", "Run a schedule now, whether or not it is due or active",
		"Run a schedule now, whether or not it is due or active. Everybody on its list gets a message, each time.", "  todoku schedule trigger 1",
		func(cmd *cobra.Command, c *client, path string) error {
			q := asking{method: http.MethodPost, path: path + "/trigger", key: uuid.NewString(), repeatable: true, endless: true}
			return printAnswer(cmd, c, q, func(out io.Writer, r v1.ScheduleRun) error {
				_, err := fmt.Fprintf(out, "it runs as batch %s\nNext: todoku batch show %s\n", valueOf(r.BatchID), valueOf(r.BatchID))
				return err
			})
		})
}

func newScheduleDelete() *cobra.Command {
	return scheduleCommand("delete ID", "Delete a schedule", "Delete a schedule. What it has sent stays.", "  todoku schedule delete 1",
		func(cmd *cobra.Command, c *client, path string) error {
			found, err := call[v1.Schedule](cmd.Context(), c, http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			return printAnswer(cmd, c, asking{method: http.MethodDelete, path: path, etag: found.etag}, func(out io.Writer, _ struct{}) error {
				_, err := fmt.Fprintf(out, "schedule %d is deleted\n", found.Value.ID)
				return err
			})
		})
}
