package cli

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newTaskRouterStatus() *cobra.Command {
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "status [--within DURATION]",
		Short: "Show how the queue and the operators are doing",
		Long: `Show how the queue and the operators are doing: who waits now, and what became of the calls that came in
lately. The service level is the share of calls that were answered in time, of those that were answered or left
the queue unanswered.`,
		Example: "  todoku taskrouter status\n  todoku taskrouter status --within 24h --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if within < time.Minute || within > 7*24*time.Hour {
				return usageErrorf("--within must be from 1m to 168h")
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			query := url.Values{"within_minutes": {strconv.Itoa(int(within / time.Minute))}}
			return show(cmd, c, "/inbound/statistics?"+query.Encode(), inZone(printInboundStatistics))
		},
	}
	cmd.Flags().DurationVar(&within, "within", time.Hour, "how far back the calls came in that count")
	return cmd
}

func printInboundStatistics(out io.Writer, s v1.InboundStatistics, zone *time.Location) error {
	rows := newTable()
	count := func(name string, n int64) { rows.add(name, strconv.FormatInt(n, 10)) }
	rows.add("now")
	count("  hear the greeting", s.Now.Received)
	count("  wait", s.Now.Waiting)
	count("  ring at an operator", s.Now.Reserved)
	count("  speak with an operator", s.Now.Answered)
	rows.add("  longest wait", lasting(&s.Now.LongestWaitSeconds))
	rows.add("within " + span(time.Duration(s.Lately.WithinMinutes)*time.Minute))
	count("  calls", s.Lately.Calls)
	count("  answered", s.Lately.Handled)
	count("  abandoned", s.Lately.Abandoned)
	count("  timed out", s.Lately.TimedOut)
	count("  asked for a callback", s.Lately.CallbackRequested)
	count("  turned away", s.Lately.TurnedAway)
	count("  missed while away", s.Lately.Missed)
	count("  followed up", s.Lately.FollowedUp)
	rows.add("  service level", fmt.Sprintf("%.1f %% within %s", 100*s.Lately.ServiceLevel, lasting(&s.Lately.ServiceThresholdSeconds)))
	rows.add("  abandonment", fmt.Sprintf("%.1f %%", 100*s.Lately.AbandonmentRate))
	rows.add("  average wait", lasting(&s.Lately.AverageSpeedOfAnswer))
	rows.add("  average talk", lasting(&s.Lately.AverageTalkSeconds))
	if err := rows.print(out); err != nil || len(s.Operators) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	operators := newTable("OPERATOR", "STATE", "ANSWERED", "AVERAGE TALK", "LAST CALL")
	for _, o := range s.Operators {
		state := "free"
		if o.Busy {
			state = "busy"
		}
		name := valueOf(o.Name)
		if name == "" {
			name = o.SID
		}
		operators.add(name, state, strconv.FormatInt(o.Answered, 10), lasting(&o.AverageTalkSeconds), timeOr(o.LastAnsweredAt, zone, ""))
	}
	return operators.print(out)
}

// span is a duration of whole minutes without the zeros at its end: 24h and not 24h0m0s.
func span(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "0s")
	if hours, whole := strings.CutSuffix(text, "h0m"); whole {
		text = hours + "h"
	}
	return text
}
