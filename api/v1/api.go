// Package v1 is the REST API under /api/v1: one file for each resource. It reads requests, checks
// them whole, and asks the store; it starts workflows beside the requests and never waits for them.
package v1

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/background"
	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/outbox"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/store/group"
)

// Starter is what the API needs of the door to Temporal.
type Starter interface {
	outbox.BatchStarter
	// StartNotification starts the workflow that carries a notification; one that was started
	// before is success.
	StartNotification(ctx context.Context, id uuid.UUID, channel notify.Channel) error
	// SyncSchedules has Temporal's Schedules made what the table says: all of them, or those that were
	// changed. It does not wait.
	SyncSchedules(ctx context.Context, all bool) error
	// Wake makes a workflow look at the ledger at once, and reports whether there is such a workflow.
	Wake(ctx context.Context, workflowID string) (alive bool, err error)
	// StartTaskRouter has the runs carried out that wait at TaskRouter.
	StartTaskRouter(ctx context.Context) error
	// WorkflowURL is a workflow's page in Temporal's Web UI, or empty when there is none.
	WorkflowURL(workflowID string) string
	// ScheduleURL is the page of a Schedule in Temporal's Web UI, or empty when there is none.
	ScheduleURL(id string) string
}

// API serves the resources.
type API struct {
	Store    *store.Store
	Starter  Starter
	Settings *settings.Settings
	Logger   *slog.Logger
	Starts   *background.Tasks // starts of workflows; what finds no place is left to the relay
	Notifier *settlement.Notifier

	accepts *group.Writer[store.NewNotification, store.Acceptance]
	senders senderIDs
	surge   surge
	gate    *gate
	uploads chan struct{} // one for each upload that is being read and written
	reads   *reads

	receiving uploadRoom

	leaving   chan struct{} // closed by Leave
	leaveOnce sync.Once
}

// Register adds every operation to the API description and to its router.
func (a *API) Register(to huma.API) {
	a.accepts = group.NewWriter(group.Prompt, a.Store.AcceptAll, store.IsOutage)
	a.gate, a.leaving = newGate(a), make(chan struct{})
	a.reads = newReads(a.Store)
	to.UseMiddleware(a.gate.pass, a.reads.limit, eachOnce, onlyJSON)
	a.registerNotifications(to)
	a.registerBatches(to)
	a.registerTemplates(to)
	a.registerLists(to)
	a.registerSchedules(to)
	a.registerSenders(to)
	a.registerInbound(to)
	a.registerTaskRouter(to)
}

const bearer = "bearer" // the name of the security scheme

// Describe adds to the description what all operations share.
func Describe(components *huma.Components) {
	components.SecuritySchemes = map[string]*huma.SecurityScheme{bearer: {
		Type: "http", Scheme: "bearer",
		Description: "An API key: that of TODOKU_API_KEY, which has the scopes send, read and manage, or one made with `todoku key add`. " +
			"The scope pii is needed to see whole phone numbers.",
	}}
}

// operation describes one operation: what it is called and which scope its key needs. errs are the
// statuses of its problems beside those that any operation may have.
func operation(id, method, path, tag, scope, summary, description string, errs ...int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: "/api/v1" + path, Tags: []string{tag},
		Summary: summary, Description: description,
		Security: []map[string][]string{{bearer: {scope}}},
		Errors:   append([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable}, errs...),

		SkipValidateBody:             true, // body reads and checks it
		MaxBodyBytes:                 problem.MaxBodyBytes + 1,
		RejectUnknownQueryParameters: true,
	}
}

// withBody adds to an operation what reading a body can end in.
func withBody(op huma.Operation) huma.Operation {
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	return op
}

// fail turns an error of the store into an answer and, where it is our fault, a line in the log.
func (a *API) fail(ctx context.Context, err error) error {
	if answer, ok := errors.AsType[*problem.Problem](err); ok {
		return answer
	}
	if store.IsTimeLimit(err) {
		a.Logger.WarnContext(ctx, "request ended by its time limit", "error", err)
		return problem.TookTooLong()
	}
	if store.IsOutage(err) {
		a.Logger.WarnContext(ctx, "database unavailable", "error", err)
		return problem.UnavailableBecause(store.Outage(err))
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return problem.Unavailable() // the client has gone and reads no answer
	}
	a.Logger.ErrorContext(ctx, "request failed", "error", err)
	return problem.New(problem.Internal, "something went wrong on our side: try again, and if it stays, tell the operator the X-Request-Id")
}

// list is a collection.
type list[T any] struct {
	Items []T `json:"items" nullable:"false"`
}

// Schema gives collections readable names in the API description.
func (list[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"items"},
		Properties: map[string]*huma.Schema{
			"items": {Type: huma.TypeArray, Items: r.Schema(reflect.TypeFor[T](), true, "")},
		},
	}
}

// mapped applies to to each element.
func mapped[A, B any](all []A, to func(A) B) []B {
	out := make([]B, len(all))
	for i, one := range all {
		out[i] = to(one)
	}
	return out
}
