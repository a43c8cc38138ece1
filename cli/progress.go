package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	v1 "github.com/todoku/todoku/api/v1"
)

// progress shows how far a batch has come: a bar that moves on a terminal, a line now and then elsewhere.
type progress struct {
	out   io.Writer
	width func() int // of the terminal, in columns; nil: there is none
	drawn bool
	last  string
	told  time.Time
}

const (
	barWidth     = 30
	usualWidth   = 80               // of a terminal that does not say how wide it is
	lineInterval = 10 * time.Second // between two lines where there is no terminal
)

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.width = func() int {
			if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
				return width
			}
			return usualWidth
		}
	}
	return p
}

func (p *progress) update(b v1.Batch) {
	if p.width != nil {
		bar, counts := progressBar(b, p.width())
		if p.drawn {
			fmt.Fprint(p.out, "\x1b[A") // up to the bar
		}
		// Back to the beginning of each line, and what was there is erased.
		fmt.Fprintf(p.out, "\r\x1b[K%s\n\r\x1b[K%s", bar, counts)
		p.drawn = true
		return
	}
	line := progressLine(b)
	if ended := b.Percent >= 100; line != p.last && (ended || time.Since(p.told) >= lineInterval) {
		fmt.Fprintln(p.out, line)
		p.last, p.told = line, time.Now()
	}
}

func (p *progress) end() {
	if p.width != nil {
		fmt.Fprintln(p.out)
	}
}

// progressBar is how far a batch has come, in two lines that a terminal of the width does not break: it
// would show each of them anew, one below the other.
func progressBar(b v1.Batch, width int) (bar, counts string) {
	full := int(b.Percent / 100 * barWidth)
	bar = fmt.Sprintf("[%s%s] ", strings.Repeat("#", full), strings.Repeat(".", barWidth-full))
	share := progressParts(b, nil, paceOf(b))
	if len(bar)+len(share) >= width {
		bar = ""
	}
	return bar + fitting(share, width), fitting(strings.Join(countTexts(b), ", "), width)
}

// fitting leaves the last parts of a text out that are wider than the terminal. It is ASCII.
func fitting(text string, width int) string {
	for len(text) >= width && text != "" { // the last column is left free: some terminals begin a new line behind it
		text = text[:max(0, strings.LastIndex(text, ", "))]
	}
	return text
}

// progressLine is how far a batch has come, in one line.
func progressLine(b v1.Batch) string { return progressParts(b, countTexts(b), paceOf(b)) }

func progressParts(b v1.Batch, parts ...[]string) string {
	all := []string{fmt.Sprintf("%s of %d", percent(b), b.Total)}
	for _, p := range parts {
		all = append(all, p...)
	}
	return strings.Join(all, ", ")
}

// countTexts are the counts that are not 0.
func countTexts(b v1.Batch) (texts []string) {
	for _, part := range countsOf(b) {
		if part.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return texts
}

// paceOf is how fast the batch is sent and how long it takes yet, as far as that is known.
func paceOf(b v1.Batch) (texts []string) {
	if senderStopped(b) {
		texts = append(texts, "its sender is stopped")
	}
	if b.SendsPerSecond > 0 {
		texts = append(texts, fmt.Sprintf("%.1f/s", b.SendsPerSecond))
	}
	if b.ETA != nil {
		if left := time.Until(*b.ETA).Round(time.Second); left > 0 {
			texts = append(texts, left.String()+" left")
		}
	}
	return texts
}
