package worker

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestALoopGoesOnAfterAPanicAndLogsNoValue(t *testing.T) {
	t.Parallel()
	const secret = "+12025550143"
	ctx, cancel := context.WithCancel(t.Context())
	var said strings.Builder
	turns := 0
	repeat(ctx, slog.New(slog.NewTextHandler(&said, nil)), time.Millisecond, "the loop waits", func(context.Context) error {
		if turns++; turns == 3 {
			cancel()
			return nil
		}
		panic("a row to " + secret)
	})
	if turns != 3 || !strings.Contains(said.String(), "the loop waits") || strings.Contains(said.String(), secret) {
		t.Errorf("%d turns; it said %s", turns, said.String())
	}
}
