package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// taskRouterInterval is how soon a run of TaskRouter is carried out whose workflow nobody could start.
const taskRouterInterval = 2 * time.Second

// TaskRouter starts the workflow that carries out runs of TaskRouter whenever one waits: whoever asked for it may not
// have reached Temporal, or the workflow was about to end.
type TaskRouter struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger
}

// Run goes on until ctx ends.
func (r *TaskRouter) Run(ctx context.Context) {
	repeat(ctx, r.Log, "taskrouter", taskRouterInterval, "runs of TaskRouter wait until the database and Temporal answer again", r.start)
}

func (r *TaskRouter) start(ctx context.Context) error {
	waits, err := r.Store.TaskRouterWaits(ctx)
	if err == nil && waits {
		err = r.Starter.StartTaskRouter(ctx)
	}
	return err
}
