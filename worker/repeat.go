package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/todoku/todoku/panics"
)

// repeat does one thing again and again, with a pause after each time, until ctx ends. That it fails is
// logged once, with what that means, and then not again before it has succeeded. A panic is a failure
// like others: the loop goes on.
func repeat(ctx context.Context, log *slog.Logger, pause time.Duration, meaning string, do func(context.Context) error) {
	failing := false
	for {
		err := panics.Catch(func() error { return do(ctx) })
		if err != nil && ctx.Err() == nil && !failing {
			log.Warn(meaning, "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
