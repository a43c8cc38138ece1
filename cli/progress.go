package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/todoku/todoku/api/v1"
)

// progress shows how far a batch has come: a bar that moves on a terminal, a line now and then elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	last     string
	told     time.Time
}

const (
	barWidth     = 30
	lineInterval = 10 * time.Second // between two lines where there is no terminal
)

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) update(b v1.Batch) {
	line := progressLine(b)
	if p.terminal {
		full := int(b.Percent / 100 * barWidth)
		// Back to the beginning of the line, and what was there is erased.
		fmt.Fprintf(p.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), line)
		return
	}
	if ended := b.Percent >= 100; line != p.last && (ended || time.Since(p.told) >= lineInterval) {
		fmt.Fprintln(p.out, line)
		p.last, p.told = line, time.Now()
	}
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}

// progressLine is how far a batch has come, in one line.
func progressLine(b v1.Batch) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s of %d", percent(b), b.Total)
	for _, part := range countsOf(b) {
		if part.n > 0 {
			fmt.Fprintf(&line, ", %d %s", part.n, part.name)
		}
	}
	if senderStopped(b) {
		line.WriteString(", its sender is stopped")
	}
	if b.SendsPerSecond > 0 {
		fmt.Fprintf(&line, ", %.1f/s", b.SendsPerSecond)
	}
	if b.ETA != nil {
		if left := time.Until(*b.ETA).Round(time.Second); left > 0 {
			fmt.Fprintf(&line, ", %v left", left)
		}
	}
	return line.String()
}
