package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A Report collects the figures of one run.
type Report struct {
	began    time.Time
	machine  machine
	figures  []figure
	details  []string // paragraphs of Markdown
	packages string   // the output of the packages' own benchmarks
}

// figure is one line of the table.
type figure struct {
	what     string
	must     string // empty: it is shown for comparison only
	measured string
	beside   string // the reference, measured in the same run
	holds    bool
}

func newReport(ctx context.Context) *Report {
	return &Report{began: time.Now(), machine: thisMachine(ctx)}
}

func (r *Report) add(f figure) {
	r.figures = append(r.figures, f)
	say("%s: %s %s", f.what, f.measured, f.verdict())
}

func (f figure) verdict() string {
	switch {
	case f.must == "":
		return ""
	case f.holds:
		return "yes"
	}
	return "NO"
}

func (f figure) cells() []string {
	return []string{f.what, f.must, f.measured, f.beside, f.verdict()}
}

var heading = []string{"what", "must", "measured", "beside it", "holds"}

// print writes the table for a terminal.
func (r *Report) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	fmt.Fprintln(table, strings.Join(heading, "\t"))
	for _, f := range r.figures {
		fmt.Fprintln(table, strings.Join(f.cells(), "\t"))
	}
	table.Flush()
	fmt.Fprintf(w, "\n%s\n\n%s", r.machine, r.packages)
}

// write writes the report as a page of Markdown.
func (r *Report) write(path string) error {
	var page strings.Builder
	page.WriteString(`# Benchmarks

` + "`make bench`" + ` measures the product on one machine and writes this page. Everything shares that machine: the load
generator, the API, the worker, Temporal's dev server on SQLite, Postgres (which waits for the disk) and the simulator
of Twilio. Each figure stands beside its reference, measured in the same run:

- **the peer**: a BullMQ queue on Redis, twilio-node, a row in Postgres, a webhook that settles it (` + "`bench/peer`" + `);
  one job for each recipient, or one that loops over all of a batch; no exactly-once, nothing that resumes where it was;
- **the bare loop**: as many goroutines as the load has connections (100) call twilio-go, and an HTTP server counts the
  callbacks: no queue, no database, nothing written down. It is what the machine can do at most;
- **one by one**, beside the carrier's list: 5,000 sends without a callback, each asked for by its SID and written by a
  statement of its own, 8 at once. What it takes to find out which are due is in the list's figure only.

Where something ran in rounds, the median is given and all rounds in brackets. Sizes are flags:
` + "`make bench ARGS=\"-singles 500 -bulk 5000 -rounds 1\"`" + ` is a quick look; ` + "`-million 1000000`" + ` adds a batch of a million (6 minutes).

`)
	fmt.Fprintf(&page, "Measured on %s, in %s. %s\n\n", r.began.UTC().Format("2 January 2006"), time.Since(r.began).Round(time.Second), r.machine)
	row := func(cells []string) { fmt.Fprintf(&page, "| %s |\n", strings.Join(cells, " | ")) }
	row(heading)
	row(slices.Repeat([]string{"---"}, len(heading)))
	for _, f := range r.figures {
		row(f.cells())
	}
	for _, detail := range r.details {
		fmt.Fprintf(&page, "\n%s\n", detail)
	}
	if r.packages != "" {
		fmt.Fprintf(&page, "\n## The packages' own benchmarks\n\n```\n%s```\n", r.packages)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// rates are what several rounds of one measurement gave, per second.
type rates []float64

func (r rates) median() float64 { return median(r) }

func (r rates) String() string {
	if len(r) == 0 {
		return "not measured"
	}
	each := make([]string, len(r))
	for i, rate := range r {
		each[i] = fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.0f/s (%s)", r.median(), strings.Join(each, ", "))
}

// durations are what several rounds of one measurement took.
type durations []time.Duration

func (d durations) median() time.Duration { return median(d) }

func (d durations) String() string {
	each := make([]string, len(d))
	for i, took := range d {
		each[i] = fmt.Sprintf("%.2f", took.Seconds())
	}
	return fmt.Sprintf("%.2f s (%s)", d.median().Seconds(), strings.Join(each, ", "))
}

// median is the middle one, or the lower of the two in the middle; 0 of none.
func median[T cmp.Ordered](of []T) (middle T) {
	if len(of) == 0 {
		return middle
	}
	return slices.Sorted(slices.Values(of))[(len(of)-1)/2]
}

// quantile is the value below which a share q of the sorted durations lies.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
