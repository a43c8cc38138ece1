package starter

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// unlessChanged lets an update of a Schedule under the context take effect only where nobody has changed
// or paused the Schedule since the update looked at it. Temporal drops it otherwise, without an error.
// The SDK does not ask for that: it leaves out the token by which Temporal tells.
func unlessChanged(ctx context.Context) context.Context {
	return context.WithValue(ctx, conflictTokenKey{}, new([]byte))
}

type conflictTokenKey struct{}

// carryConflictToken takes the token from what describes the Schedule to what updates it.
func carryConflictToken(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	token, ok := ctx.Value(conflictTokenKey{}).(*[]byte)
	if !ok {
		return invoke(ctx, method, request, answer, conn, options...)
	}
	if update, ok := request.(*workflowservice.UpdateScheduleRequest); ok {
		update.ConflictToken = *token
	}
	err := invoke(ctx, method, request, answer, conn, options...)
	if described, ok := answer.(*workflowservice.DescribeScheduleResponse); ok && err == nil {
		*token = described.ConflictToken
	}
	return err
}
