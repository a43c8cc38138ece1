package carrier

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	openapi "github.com/twilio/twilio-go/rest/api/v2010"
	studio "github.com/twilio/twilio-go/rest/studio/v2"
	tasks "github.com/twilio/twilio-go/rest/taskrouter/v1"

	"github.com/todoku/todoku/taskrouter"
)

// TaskRouter reads and writes the call centre that an account has at Twilio: TaskRouter's workspaces, Studio's flows and
// the account's numbers. It wants every SID resolved, and never repeats a write: what happened to one whose answer was
// lost is seen by listing.
type TaskRouter struct {
	client   *Client
	deadline time.Time // of writes; zero: none
}

// TaskRouter is the call centre of the client's account.
func (c *Client) TaskRouter() TaskRouter { return TaskRouter{client: c} }

// Until is the same call centre, to which nothing is written after the deadline; the answer to a write is awaited until
// shortly before.
func (t TaskRouter) Until(deadline time.Time) TaskRouter {
	t.deadline = deadline
	return t
}

// accountMark stands for the account's SID in every field, which is a secret: Twilio puts it into the addresses of flows.
const accountMark = "{account}"

// begin prepares one exchange.
func (t TaskRouter) begin(ctx context.Context, op string) *exchange {
	e, _ := t.client.begin(ctx, op)
	e.limit = listAnswerLimit
	e.private = []string{t.client.accountSID, t.client.authToken}
	return e
}

func (t TaskRouter) taskRouter(e *exchange) *tasks.ApiService {
	return tasks.NewApiService(e.handler())
}
func (t TaskRouter) studio(e *exchange) *studio.ApiService { return studio.NewApiService(e.handler()) }

// List reads everything of a kind: in a workspace, or, where that is empty, in the account. Of numbers it reads the one
// that is named only; of flows, those that are named are read whole.
func (t TaskRouter) List(
	ctx context.Context, kind taskrouter.Kind, workspaceSID string, names ...string,
) ([]taskrouter.Object, error) {
	var all []taskrouter.Object
	var at *url.URL
	for {
		e := t.begin(ctx, "list each "+string(kind))
		e.page = at
		page, next, err := t.page(e, kind, workspaceSID, names)
		if err := e.failure(err); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if text(next) == "" {
			break
		}
		if at = e.follow(*next); at == nil {
			return nil, e.undecodable("its next page is not a page of the same list")
		}
	}
	for i := range all {
		if kind != taskrouter.Flows || !slices.Contains(names, all[i].Name) {
			continue
		}
		e := t.begin(ctx, "read the "+string(kind))
		flow, err := t.studio(e).FetchFlow(all[i].SID)
		if err := e.failure(err); err != nil {
			return nil, err
		}
		all[i] = flowObject(flow)
	}
	for i := range all {
		all[i].URL = strings.ReplaceAll(all[i].URL, t.client.accountSID, accountMark)
		for field, value := range all[i].Fields {
			all[i].Fields[field] = strings.ReplaceAll(value, t.client.accountSID, accountMark)
		}
	}
	return all, nil
}

func (t TaskRouter) page(
	e *exchange, kind taskrouter.Kind, workspaceSID string, names []string,
) (all []taskrouter.Object, next *string, err error) {
	size := largestPage
	service := t.taskRouter(e)
	switch kind {
	case taskrouter.Workspaces:
		page, err := service.PageWorkspace(&tasks.ListWorkspaceParams{PageSize: &size}, "", "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.Workspaces {
			all = append(all, taskrouter.Object{Kind: kind, Name: text(r.FriendlyName), SID: text(r.Sid), Fields: map[string]string{
				"EventCallbackUrl": text(r.EventCallbackUrl), "EventsFilter": text(r.EventsFilter)}})
		}
		return all, page.Meta.NextPageUrl, nil
	case taskrouter.Activities:
		page, err := service.PageActivity(workspaceSID, &tasks.ListActivityParams{PageSize: &size}, "", "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.Activities {
			all = append(all, taskrouter.Object{Kind: kind, Name: text(r.FriendlyName), SID: text(r.Sid), Fields: map[string]string{
				"Available": strconv.FormatBool(r.Available != nil && *r.Available)}})
		}
		return all, page.Meta.NextPageUrl, nil
	case taskrouter.Queues:
		page, err := service.PageTaskQueue(workspaceSID, &tasks.ListTaskQueueParams{PageSize: &size}, "", "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.TaskQueues {
			all = append(all, taskrouter.Object{Kind: kind, Name: text(r.FriendlyName), SID: text(r.Sid), Fields: map[string]string{
				"TargetWorkers": text(r.TargetWorkers), "TaskOrder": text(r.TaskOrder), "MaxReservedWorkers": strconv.Itoa(r.MaxReservedWorkers)}})
		}
		return all, page.Meta.NextPageUrl, nil
	case taskrouter.Workers:
		page, err := service.PageWorker(workspaceSID, &tasks.ListWorkerParams{PageSize: &size}, "", "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.Workers {
			all = append(all, taskrouter.Object{Kind: kind, Name: text(r.FriendlyName), SID: text(r.Sid), Fields: map[string]string{
				"Attributes": text(r.Attributes)}})
		}
		return all, page.Meta.NextPageUrl, nil
	case taskrouter.Workflows:
		page, err := service.PageWorkflow(workspaceSID, &tasks.ListWorkflowParams{PageSize: &size}, "", "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.Workflows {
			all = append(all, taskrouter.Object{Kind: kind, Name: text(r.FriendlyName), SID: text(r.Sid), Fields: map[string]string{
				"Configuration": text(r.Configuration), "AssignmentCallbackUrl": text(r.AssignmentCallbackUrl),
				"FallbackAssignmentCallbackUrl": text(r.FallbackAssignmentCallbackUrl),
				"TaskReservationTimeout":        strconv.Itoa(r.TaskReservationTimeout)}})
		}
		return all, page.Meta.NextPageUrl, nil
	case taskrouter.Flows:
		page, err := t.studio(e).PageFlow(&studio.ListFlowParams{PageSize: &size}, "", "")
		if err != nil {
			return nil, nil, err
		}
		for i := range page.Flows {
			all = append(all, flowObject(&page.Flows[i]))
		}
		return all, page.Meta.NextPageUrl, nil
	default:
		only := &openapi.ListIncomingPhoneNumberParams{PhoneNumber: &names[0], PageSize: &size}
		page, err := openapi.NewApiService(e.handler()).PageIncomingPhoneNumber(only, "", "")
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.IncomingPhoneNumbers {
			all = append(all, taskrouter.Object{Kind: kind, Name: text(r.PhoneNumber), SID: text(r.Sid), Fields: map[string]string{
				"VoiceUrl": text(r.VoiceUrl), "VoiceMethod": text(r.VoiceMethod), "VoiceFallbackUrl": text(r.VoiceFallbackUrl),
				"VoiceFallbackMethod": text(r.VoiceFallbackMethod), "StatusCallback": text(r.StatusCallback),
				"StatusCallbackMethod": text(r.StatusCallbackMethod), "VoiceApplicationSid": text(r.VoiceApplicationSid),
				"TrunkSid": text(r.TrunkSid)}})
		}
		return all, page.NextPageUri, nil
	}
}

func flowObject(r *studio.StudioV2Flow) taskrouter.Object {
	o := taskrouter.Object{Kind: taskrouter.Flows, Name: text(r.FriendlyName), SID: text(r.Sid), URL: text(r.WebhookUrl),
		Fields: map[string]string{"Status": text(r.Status)}}
	if r.Definition != nil {
		if encoded, err := json.Marshal(*r.Definition); err == nil {
			o.Fields["Definition"] = string(encoded)
		}
	}
	return o
}

// Create makes an object in a workspace, or in the account, and returns it with its SID.
func (t TaskRouter) Create(ctx context.Context, workspaceSID string, o taskrouter.Object) (taskrouter.Object, error) {
	e, given := t.write(ctx, "create", o)
	service := t.taskRouter(e)
	switch o.Kind {
	case taskrouter.Workspaces:
		made, err := service.CreateWorkspace(params[tasks.CreateWorkspaceParams](given))
		if err := e.failure(err); err != nil {
			return o, err
		}
		o.SID = text(made.Sid)
	case taskrouter.Activities:
		made, err := service.CreateActivity(workspaceSID, params[tasks.CreateActivityParams](given))
		if err := e.failure(err); err != nil {
			return o, err
		}
		o.SID = text(made.Sid)
	case taskrouter.Queues:
		made, err := service.CreateTaskQueue(workspaceSID, params[tasks.CreateTaskQueueParams](given))
		if err := e.failure(err); err != nil {
			return o, err
		}
		o.SID = text(made.Sid)
	case taskrouter.Workers:
		made, err := service.CreateWorker(workspaceSID, params[tasks.CreateWorkerParams](given))
		if err := e.failure(err); err != nil {
			return o, err
		}
		o.SID = text(made.Sid)
	case taskrouter.Workflows:
		made, err := service.CreateWorkflow(workspaceSID, params[tasks.CreateWorkflowParams](given))
		if err := e.failure(err); err != nil {
			return o, err
		}
		o.SID = text(made.Sid)
	case taskrouter.Flows:
		made, err := t.studio(e).CreateFlow(params[studio.CreateFlowParams](given))
		if err := e.failure(err); err != nil {
			return o, err
		}
		o.SID, o.URL = text(made.Sid), strings.ReplaceAll(text(made.WebhookUrl), t.client.accountSID, accountMark)
	default:
		return o, e.fail(Request, "a "+string(o.Kind)+" cannot be created", nil)
	}
	if o.SID == "" {
		return o, e.undecodable("it has no SID")
	}
	return o, nil
}

// Update changes the fields of an object that has its SID.
func (t TaskRouter) Update(ctx context.Context, workspaceSID string, o taskrouter.Object) error {
	e, given := t.write(ctx, "update", o)
	service := t.taskRouter(e)
	var err error
	switch o.Kind {
	case taskrouter.Workspaces:
		_, err = service.UpdateWorkspace(o.SID, params[tasks.UpdateWorkspaceParams](given))
	case taskrouter.Activities:
		_, err = service.UpdateActivity(workspaceSID, o.SID, params[tasks.UpdateActivityParams](given))
	case taskrouter.Queues:
		_, err = service.UpdateTaskQueue(workspaceSID, o.SID, params[tasks.UpdateTaskQueueParams](given))
	case taskrouter.Workers:
		_, err = service.UpdateWorker(workspaceSID, o.SID, params[tasks.UpdateWorkerParams](given))
	case taskrouter.Workflows:
		_, err = service.UpdateWorkflow(workspaceSID, o.SID, params[tasks.UpdateWorkflowParams](given))
	case taskrouter.Flows:
		_, err = t.studio(e).UpdateFlow(o.SID, params[studio.UpdateFlowParams](given))
	default:
		delete(given, "FriendlyName") // a number has one of its own
		_, err = openapi.NewApiService(e.handler()).UpdateIncomingPhoneNumber(o.SID, params[openapi.UpdateIncomingPhoneNumberParams](given))
	}
	return e.failure(err)
}

// Validate asks Twilio whether a flow's definition is one, without making anything. An error says why not.
func (t TaskRouter) Validate(ctx context.Context, flow taskrouter.Object) error {
	e, given := t.write(ctx, "validate", flow)
	e.deadline = time.Time{}
	verdict, err := t.studio(e).UpdateFlowValidate(params[studio.UpdateFlowValidateParams](given))
	if err := e.failure(err); err != nil {
		return err
	}
	if verdict.Valid == nil || !*verdict.Valid {
		return e.fail(Request, "Twilio says that its definition is not valid", nil)
	}
	return nil
}

// Delete takes an object away. One that is gone already is success.
func (t TaskRouter) Delete(ctx context.Context, workspaceSID string, o taskrouter.Object) error {
	e, _ := t.write(ctx, "delete", o)
	service := t.taskRouter(e)
	var err error
	switch o.Kind {
	case taskrouter.Workspaces:
		err = service.DeleteWorkspace(o.SID)
	case taskrouter.Activities:
		err = service.DeleteActivity(workspaceSID, o.SID)
	case taskrouter.Queues:
		err = service.DeleteTaskQueue(workspaceSID, o.SID)
	case taskrouter.Workers:
		err = service.DeleteWorker(workspaceSID, o.SID, nil)
	case taskrouter.Workflows:
		err = service.DeleteWorkflow(workspaceSID, o.SID)
	case taskrouter.Flows:
		err = t.studio(e).DeleteFlow(o.SID)
	default:
		return e.fail(Request, "a "+string(o.Kind)+" is not deleted", nil)
	}
	if failed, ok := e.failure(err).(*Error); ok && !failed.NotFound() {
		return failed
	}
	return nil
}

// write prepares the exchange that writes an object, and its parameters.
func (t TaskRouter) write(ctx context.Context, what string, o taskrouter.Object) (*exchange, map[string]any) {
	e := t.begin(ctx, what+" the "+string(o.Kind))
	e.deadline = t.deadline
	if o.Kind == taskrouter.Numbers {
		e.private = append(e.private, o.Name)
	}
	given := map[string]any{"FriendlyName": o.Name}
	for field, value := range o.Fields {
		value = strings.ReplaceAll(value, accountMark, t.client.accountSID)
		switch field {
		case "MaxReservedWorkers", "TaskReservationTimeout":
			given[field] = json.Number(value)
		case "Available":
			given[field] = value == "true"
		case "Attributes": // has where an operator is reached
			e.private = append(e.private, value)
			given[field] = value
		case "Definition":
			given[field] = json.RawMessage(value)
		default:
			given[field] = value
		}
	}
	return e, given
}

// params are twilio-go's for an operation: its fields bear the names of Twilio's parameters.
func params[T any](given map[string]any) *T {
	p := new(T)
	if encoded, err := json.Marshal(given); err == nil {
		_ = json.Unmarshal(encoded, p) // what does not fit is left out, and Twilio says that it is missing
	}
	return p
}
