package problem

import (
	"net/http"

	"github.com/todoku/todoku/notify"
)

// Code names one kind of problem. Codes are part of the API: they do not change their meaning and
// do not go away.
type Code string

// What cannot be read, or may not be asked.
const (
	RequestEmpty            Code = "request_empty"
	MalformedJSON           Code = "malformed_json"
	DuplicateKey            Code = "duplicate_key"
	InvalidUTF8             Code = "invalid_utf8"
	ParameterNotUTF8        Code = "parameter_not_utf8"
	NULCharacter            Code = "nul_character"
	TrailingData            Code = "trailing_data"
	IdempotencyKeyMalformed Code = "idempotency_key_malformed"
	MalformedCallback       Code = "malformed_callback"
	KeyMissing              Code = "key_missing"
	KeyInvalid              Code = "key_invalid"
	ScopeMissing            Code = "scope_missing"
	TooManyWrongKeys        Code = "too_many_wrong_keys"
	UnsignedCallback        Code = "callback_unsigned"
	ForgedCallback          Code = "callback_forged"
	CallbacksOff            Code = "callbacks_off"
	RouteNotFound           Code = "route_not_found"
	MethodNotAllowed        Code = "method_not_allowed"
	RequestTimeout          Code = "request_timeout"
	RequestTooLarge         Code = "request_too_large"
	UnsupportedMediaType    Code = "unsupported_media_type"
	NotFound                Code = "not_found"
	NotificationNotFound    Code = "notification_not_found"
	SenderNotFound          Code = "sender_not_found"
	LedgerBehind            Code = "ledger_behind"
	InboundCallNotFound     Code = "inbound_call_not_found"
	NameTaken               Code = "name_taken"
	IdempotencyKeyInUse     Code = "idempotency_key_in_use"
	AlreadyClaimed          Code = "already_claimed"
	AlreadySent             Code = "already_sent"
	AlreadyFinal            Code = "already_final"
	BatchNotFound           Code = "batch_not_found"
	BatchFinished           Code = "batch_finished"
	BatchCanceled           Code = "batch_canceled"
	CarrierCheckNotFound    Code = "carrier_check_not_found"
	UploadIncomplete        Code = "upload_incomplete"
	ScheduleNotFound        Code = "schedule_not_found"
	ScheduleCannotRun       Code = "schedule_cannot_run"
	IfMatchMissing          Code = "if_match_missing"
	ETagStale               Code = "etag_stale"
	TaskRouterRunNotFound   Code = "taskrouter_run_not_found"
	MemberNotFound          Code = "member_not_found"
	MemberExists            Code = "member_exists"
	ListInUse               Code = "list_in_use"
	TemplateInUse           Code = "template_in_use"
)

// What can be read and is wrong.
const (
	ValidationFailed        Code = "validation_failed"
	ParameterInvalid        Code = "parameter_invalid"
	UnknownField            Code = "unknown_field"
	WrongType               Code = "wrong_type"
	Required                Code = "required"
	ChannelUnknown          Code = "channel_unknown"
	ChannelNotEnabled       Code = "channel_not_enabled"
	ChannelNotConfigured    Code = "channel_not_configured"
	BodyOrTemplate          Code = "body_or_template"
	TwiMLTooLong            Code = "twiml_too_long"
	ReferenceTooLong        Code = "reference_too_long"
	ReferenceControl        Code = "reference_has_control_characters"
	TemplateNotFound        Code = "template_not_found"
	TemplateChannelMismatch Code = "template_channel_mismatch"
	ParamsWithoutTemplate   Code = "params_without_template"
	ParamMissing            Code = "param_missing"
	ParamUnknown            Code = "param_unknown"
	NameEmpty               Code = "name_empty"
	NameTooLong             Code = "name_too_long"
	NameControl             Code = "name_has_control_characters"
	SendAtInvalid           Code = "send_at_invalid"
	SendAtPast              Code = "send_at_past"
	SendAtTooFar            Code = "send_at_too_far"
	IdempotencyKeyReused    Code = "idempotency_key_reused"
	BatchEmpty              Code = "batch_has_no_recipients"
	TooManyRecipients       Code = "too_many_recipients"
	TemplateColumnMissing   Code = "template_column_missing"
	SendIntervalInvalid     Code = "send_interval_invalid"
	CatchupWindowInvalid    Code = "catchup_window_invalid"
	NoteTooLong             Code = "note_too_long"
	NoteControl             Code = "note_has_control_characters"
	MembersLackParams       Code = "members_lack_params"
	TaskRouterAction        Code = "taskrouter_action_unknown"
	TaskRouterFile          Code = "taskrouter_file_invalid"
	TemplateArchived        Code = "template_archived"
	VersionNotFound         Code = "template_version_not_found"
	ParamKindUnknown        Code = "param_kind_unknown"
	ParamNameInvalid        Code = "param_name_invalid"
	ParamInvalid            Code = "param_invalid"
	ListNotFound            Code = "list_not_found"
	RecipientsOrList        Code = "recipients_or_list"
	ImportEmpty             Code = "import_has_no_members"
	TimezoneUnknown         Code = "timezone_unknown"
	LocaleUnknown           Code = "locale_unknown"
)

// What is not the caller's fault.
const (
	Internal            Code = "internal_error"
	DatabaseUnavailable Code = "database_unavailable"
	TimeLimit           Code = "time_limit"
	UploadsBusy         Code = "uploads_busy"
	ReadsBusy           Code = "reads_busy"
	Stopping            Code = "stopping"
)

// Entry is what the documentation says of a code.
type Entry struct {
	Code   Code
	Status int    // of an answer whose only problem it is
	Title  string // what happened
	Advice string // what to do about it
}

// Codes lists every code that an answer can have, by status.
var Codes = []Entry{
	{RequestEmpty, http.StatusBadRequest, "The request has no body", "Send a JSON object."},
	{MalformedJSON, http.StatusBadRequest, "The body is not JSON", "Mend the syntax at the byte that the detail names."},
	{DuplicateKey, http.StatusBadRequest, "A key occurs twice in one object", "Keep one of the two: which one was meant is unclear."},
	{InvalidUTF8, http.StatusBadRequest, "The body is not UTF-8", "Encode the body as UTF-8."},
	{ParameterNotUTF8, http.StatusBadRequest, "A parameter of the query is not UTF-8", "Encode it as UTF-8 and write each byte as %XX."},
	{NULCharacter, http.StatusBadRequest, "The body has a NUL character", "Remove it, also where it is written as \\u0000."},
	{TrailingData, http.StatusBadRequest, "Something follows the JSON value", "Send one JSON object and nothing after it."},
	{IdempotencyKeyMalformed, http.StatusBadRequest, "The Idempotency-Key is not one", "Send 1 to 255 printable ASCII characters, for example a UUID."},
	{UploadIncomplete, http.StatusBadRequest, "The upload was cut off", "Send it again: nothing was accepted."},
	{notify.CSVEmpty, http.StatusBadRequest, "The file is empty", "Its first row must name the columns, one of them `to`."},
	{notify.CSVUnclosedQuote, http.StatusBadRequest, "A quote of the file is not closed", "Close it; the detail names the row."},
	{notify.CSVRowTooLong, http.StatusBadRequest, "A row of the file is too long", "Look for a quote that is not closed; the detail names the row."},
	{notify.CSVUnknownEncoding, http.StatusBadRequest, "The file's encoding is not understood", "Save it as CSV UTF-8."},
	{MalformedCallback, http.StatusBadRequest, "A callback lacks what it must have", "Send the form that Twilio's status callbacks have."},

	{KeyMissing, http.StatusUnauthorized, "No API key", "Send the header Authorization: Bearer KEY."},
	{KeyInvalid, http.StatusUnauthorized, "The API key is not valid", "Check it, or make a new one with todoku key add."},

	{ScopeMissing, http.StatusForbidden, "The API key lacks a scope", "Use a key that has the scope that the detail names."},
	{UnsignedCallback, http.StatusForbidden, "The callback is not signed", "Only Twilio may call this address."},
	{ForgedCallback, http.StatusForbidden, "The callback's signature is wrong", "Check TODOKU_PUBLIC_URL and TWILIO_AUTH_TOKEN if Twilio did send it."},
	{CallbacksOff, http.StatusForbidden, "Callbacks are not set up", "Set TODOKU_PUBLIC_URL and TWILIO_AUTH_TOKEN."},

	{RouteNotFound, http.StatusNotFound, "No such address", "See /docs for the addresses that exist."},
	{NotFound, http.StatusNotFound, "No such thing", "Check the id in the path."},
	{NotificationNotFound, http.StatusNotFound, "No such notification", "Check the id: it is the UUID that the answer to the POST gave."},
	{BatchNotFound, http.StatusNotFound, "No such batch", "Check the id: it is the UUID that the answer to the POST gave."},
	{CarrierCheckNotFound, http.StatusNotFound, "The batch was not checked against Twilio", "Ask for it with POST to the same address."},
	{MemberNotFound, http.StatusNotFound, "No such member", "See GET /api/v1/lists/{id}/members for the ids."},
	{ScheduleNotFound, http.StatusNotFound, "No such schedule", "See GET /api/v1/schedules for the ids."},
	{SenderNotFound, http.StatusNotFound, "No such sender", "See GET /api/v1/senders for the ids."},
	{InboundCallNotFound, http.StatusNotFound, "No such call", "See GET /api/v1/inbound/calls for the ids."},
	{TaskRouterRunNotFound, http.StatusNotFound, "No such run of TaskRouter", "Check the id: it is the UUID that the answer to the POST gave."},
	{MethodNotAllowed, http.StatusMethodNotAllowed, "The address has no such method", "Use one of the methods in the header Allow."},
	{RequestTimeout, http.StatusRequestTimeout, "The body did not arrive in time", "Send it again."},
	{LedgerBehind, http.StatusConflict, "The database lacks sends that Twilio has", "Run `todoku ledger reconcile`, which resumes the senders."},
	{NameTaken, http.StatusConflict, "The name is taken", "Choose another name."},
	{IdempotencyKeyInUse, http.StatusConflict, "The same request is still being answered", "Send it again after the seconds in Retry-After."},
	{AlreadyClaimed, http.StatusConflict, "It is being sent already", "Its time cannot be changed any more."},
	{AlreadySent, http.StatusConflict, "Twilio has it already", "It cannot be canceled any more."},
	{AlreadyFinal, http.StatusConflict, "Its status is final", "Nothing about it can be changed any more."},
	{BatchFinished, http.StatusConflict, "The batch is finished", "Nothing about it can be changed any more."},
	{BatchCanceled, http.StatusConflict, "The batch was canceled", "Nothing about it can be changed any more."},
	{MemberExists, http.StatusConflict, "The list has this member already", "The same number with the same parameters is on a list once."},
	{ListInUse, http.StatusConflict, "The list is in use", "Give the schedules that the detail names another list first."},
	{TemplateInUse, http.StatusConflict, "The template is in use", "Give the schedules that the detail names another template first, or switch them off."},
	{ScheduleCannotRun, http.StatusConflict, "The schedule cannot run", "Mend what the detail names."},
	{ETagStale, http.StatusPreconditionFailed, "It was changed in the meantime", "Read it again, and send the new ETag as If-Match."},
	{IfMatchMissing, http.StatusPreconditionRequired, "The change has no If-Match", "Send the ETag of the answer that you decided by."},
	{RequestTooLarge, http.StatusRequestEntityTooLarge, "The body is too large", "Send at most as much as the detail says."},
	{UnsupportedMediaType, http.StatusUnsupportedMediaType, "The body's type is not understood", "Send Content-Type: application/json."},

	{ValidationFailed, http.StatusUnprocessableEntity, "Several things are wrong with the request", "See errors: each entry names its field and its own code."},
	{ParameterInvalid, http.StatusUnprocessableEntity, "A parameter of the query is wrong", "See the detail for what it may be."},
	{UnknownField, http.StatusUnprocessableEntity, "There is no such field", "Remove it, or write it as the detail suggests."},
	{WrongType, http.StatusUnprocessableEntity, "A value has the wrong type", "Send the type that the detail names."},
	{Required, http.StatusUnprocessableEntity, "A field is missing", "Add it."},
	{ChannelUnknown, http.StatusUnprocessableEntity, "There is no such channel", "Use SMS or CALL."},
	{ChannelNotEnabled, http.StatusUnprocessableEntity, "The channel cannot be sent on yet", "Use SMS or CALL."},
	{ChannelNotConfigured, http.StatusUnprocessableEntity, "The channel has no sender", "Set TWILIO_PHONE_NUMBER or, for SMS, TWILIO_MESSAGING_SERVICE_SID."},

	{notify.CodeNumberEmpty, http.StatusUnprocessableEntity, "The phone number is empty", "Write the number."},
	{notify.CodeNumberUnparsable, http.StatusUnprocessableEntity, "The phone number cannot be read", "Write digits as people dial them, or + and the country code."},
	{notify.CodeNumberDecimal, http.StatusUnprocessableEntity, "A spreadsheet has calculated with the phone number", "Format the column as text, and write the number again."},
	{notify.CodeSeveralNumbers, http.StatusUnprocessableEntity, "The phone number is more than one", "Write one number, without alternatives."},
	{notify.CodeNumberRounded, http.StatusUnprocessableEntity, "A spreadsheet has rounded the phone number", "Its last digits are lost: format the column as text, and write the numbers again."},
	{notify.CodeNumberTooShort, http.StatusUnprocessableEntity, "The phone number is too short", "Write all of its digits."},
	{notify.CodeNumberTooLong, http.StatusUnprocessableEntity, "The phone number is too long", "Write one number without an extension."},
	{notify.CodeNumberInvalid, http.StatusUnprocessableEntity, "The phone number does not exist", "Check its digits."},
	{notify.CodeNumberHasExtension, http.StatusUnprocessableEntity, "The phone number has an extension", "Write it without."},
	{notify.CodeCountryUnknown, http.StatusUnprocessableEntity, "The phone number's country is unknown", "Write + and the country code."},
	{notify.CodeCountryNotAllowed, http.StatusUnprocessableEntity, "The phone number's country is not allowed", "Add it to ALLOWED_COUNTRIES."},
	{notify.CodeLandlineWithoutSMS, http.StatusUnprocessableEntity, "A landline cannot receive an SMS", "Use a mobile number, or send a CALL."},
	{notify.CodeNumberCannotReceive, http.StatusUnprocessableEntity, "The number cannot receive an SMS", "Use a mobile number, or send a CALL."},
	{notify.CodeNumberKindNotAllowed, http.StatusUnprocessableEntity, "The phone number's kind is not allowed", "Premium-rate, shared-cost, company-wide (0570), personal and pager numbers may cost a lot: use another number, or add the kind to ALLOWED_NUMBER_KINDS."},

	{BodyOrTemplate, http.StatusUnprocessableEntity, "Neither or both of body and template", "Give either body or template_id."},
	{notify.CodeBodyEmpty, http.StatusUnprocessableEntity, "The body is empty", "Write what the recipient shall read or hear."},
	{notify.CodeBodyTooLong, http.StatusUnprocessableEntity, "The body is too long", "An SMS has at most 1,600 characters."},
	{notify.CodeBodyControlCharacters, http.StatusUnprocessableEntity, "The body has control characters", "Keep only line breaks and tabs."},
	{TwiMLTooLong, http.StatusUnprocessableEntity, "The spoken message is too long", "It has at most 4,000 characters of TwiML."},
	{ReferenceTooLong, http.StatusUnprocessableEntity, "The reference is too long", "It has at most 255 characters."},
	{ReferenceControl, http.StatusUnprocessableEntity, "The reference has control characters", "Remove them."},

	{TemplateNotFound, http.StatusUnprocessableEntity, "No such template", "See GET /api/v1/templates for the ids. Where the id is in the path, the status is 404."},
	{TemplateChannelMismatch, http.StatusUnprocessableEntity, "The template is for another channel", "Use a template of the notification's channel."},
	{ParamsWithoutTemplate, http.StatusUnprocessableEntity, "Parameters without a template", "Give template_id, or leave params out."},
	{ParamMissing, http.StatusUnprocessableEntity, "A parameter of the template is missing or blank", "Give it a value, of which something can be seen: in params, in the cell of the file, or to the member of the list."},
	{ParamUnknown, http.StatusUnprocessableEntity, "The template has no such parameter", "Remove it from params."},
	{notify.CodeParamKind, http.StatusUnprocessableEntity, "A parameter is not of its kind", "Write a number, a date or a time as the detail says."},
	{ParamKindUnknown, http.StatusUnprocessableEntity, "There is no such kind of parameter", "Use text, number, date or time."},
	{ParamNameInvalid, http.StatusUnprocessableEntity, "A parameter's name is not one", "Use letters, digits and underscores, and each name once."},
	{ParamInvalid, http.StatusUnprocessableEntity, "A parameter's value cannot be kept", "Write at most 1,600 characters, and only line breaks and tabs of the control characters."},
	{TemplateArchived, http.StatusUnprocessableEntity, "The template is archived", "Use another one, or bring it back: PATCH it with archived false. Where the id is in the path, the status is 409."},
	{VersionNotFound, http.StatusUnprocessableEntity, "The template has no such version", "See GET /api/v1/templates/{id}/versions."},
	{ListNotFound, http.StatusUnprocessableEntity, "No such list", "See GET /api/v1/lists for the ids. Where the id is in the path, the status is 404."},
	{RecipientsOrList, http.StatusUnprocessableEntity, "Both recipients and a list", "Give either recipients or list_id."},
	{ImportEmpty, http.StatusUnprocessableEntity, "There is nobody to import", "Give at least one member that something can be sent to."},
	{TimezoneUnknown, http.StatusUnprocessableEntity, "There is no such time zone", "Write one of the IANA database, such as Asia/Tokyo."},
	{LocaleUnknown, http.StatusUnprocessableEntity, "There is no such locale", "Write a BCP 47 tag, such as ja or en-US."},
	{NameEmpty, http.StatusUnprocessableEntity, "The name is empty", "Write a name."},
	{NameTooLong, http.StatusUnprocessableEntity, "The name is too long", "It has at most 100 characters."},
	{NameControl, http.StatusUnprocessableEntity, "The name has control characters", "Remove them."},
	{SendAtInvalid, http.StatusUnprocessableEntity, "The time to send at cannot be read", "Write RFC 3339 with an offset, such as 2026-04-01T10:00:00+09:00."},
	{SendAtPast, http.StatusUnprocessableEntity, "The time to send at has passed", "Write one to come, or leave it out to send at once."},
	{SendAtTooFar, http.StatusUnprocessableEntity, "The time to send at is too far ahead", "It may be up to 35 days ahead."},
	{IdempotencyKeyReused, http.StatusUnprocessableEntity, "The Idempotency-Key belongs to another request", "Make a new key for each request."},
	{BatchEmpty, http.StatusUnprocessableEntity, "The batch has nobody to send to", "Give at least one recipient that something can be sent to."},
	{TooManyRecipients, http.StatusUnprocessableEntity, "There are too many rows", "Split them: a batch, and a list, may have 1,000,000."},
	{TemplateColumnMissing, http.StatusUnprocessableEntity, "The file lacks a column that the template needs", "Add it, with the parameter's name in the first row."},
	{notify.CSVWithoutTo, http.StatusUnprocessableEntity, "The file has no column `to`", "Name the column of the phone numbers `to` in the first row."},
	{notify.CSVDuplicateColumn, http.StatusUnprocessableEntity, "Two columns have one name", "Keep one of the two."},
	{notify.CSVTooManyColumns, http.StatusUnprocessableEntity, "The file has too many columns", "Keep `to` and the template's parameters."},
	{notify.CSVRowColumnCount, http.StatusUnprocessableEntity, "A row has another number of columns than the first one", "Put cells that hold commas or line breaks in quotes."},
	{notify.CSVRowEncoding, http.StatusUnprocessableEntity, "A row has a character that is not in the file's encoding", "Write the row again, and save the file as CSV UTF-8."},
	{notify.CSVRowUnnamedValue, http.StatusUnprocessableEntity, "A cell has a value, but its column no name", "Name the column in the first row, or empty the cell."},
	{notify.CSVRowSeveralRows, http.StatusUnprocessableEntity, "A cell has a line break and a phone number", "Close the quote, or write the cell in one line."},
	{notify.CSVRowMisplacedMark, http.StatusUnprocessableEntity, "A quote stands within a cell", "Put the cell in quotes and write the quote twice."},
	{notify.CodeTimeMissing, http.StatusUnprocessableEntity, "Neither or both of time and cron", "Give either execution_time or cron."},
	{notify.CodeTimeInvalid, http.StatusUnprocessableEntity, "There is no such time of a day", "Write 10:30 or 10:30:00."},
	{notify.CodeCronInvalid, http.StatusUnprocessableEntity, "The cron expression cannot be read", "Write five fields: minute, hour, day of the month, month, day of the week."},
	{notify.CodeWeekdayInvalid, http.StatusUnprocessableEntity, "There is no such day of the week", "Use MON, TUE, WED, THU, FRI, SAT and SUN."},
	{notify.CodeMonthDay, http.StatusUnprocessableEntity, "There is no such day of the month", "Use numbers from 1 to 31."},
	{notify.CodeTwoKindsOfDays, http.StatusUnprocessableEntity, "Days are given in two ways", "Give days_of_week, days_of_month or cron, and only one of them."},
	{notify.CodeDateInvalid, http.StatusUnprocessableEntity, "There is no such date", "Write it as in 2026-04-01."},
	{notify.CodeEndBeforeStart, http.StatusUnprocessableEntity, "It ends before it starts", "starts_on is the first day and ends_on the last."},
	{notify.CodeNeverRuns, http.StatusUnprocessableEntity, "The schedule would never run", "Choose other days, or another last day."},
	{CatchupWindowInvalid, http.StatusUnprocessableEntity, "The catch-up window is out of range", "Write a duration from 10s to 24h."},
	{NoteTooLong, http.StatusUnprocessableEntity, "The note is too long", "It has at most 500 characters."},
	{NoteControl, http.StatusUnprocessableEntity, "The note has control characters", "Remove them."},
	{MembersLackParams, http.StatusUnprocessableEntity, "Members of the list lack parameters of the template, or have blank ones", "Give values to the members that the detail names, or choose another template or list."},
	{SendIntervalInvalid, http.StatusUnprocessableEntity, "The pace is out of range", "Choose from 0 to 3,600,000 milliseconds."},
	{TaskRouterAction, http.StatusUnprocessableEntity, "There is no such action", "Use plan, apply or destroy."},
	{TaskRouterFile, http.StatusUnprocessableEntity, "The file of TaskRouter is wrong", "Mend the line that the detail names."},
	{notify.CodePlaceholderUnclosed, http.StatusUnprocessableEntity, "A placeholder is not closed", "Write }} after its name."},
	{notify.CodePlaceholderUnopened, http.StatusUnprocessableEntity, "A placeholder is not opened", "Write {{ before its name."},
	{notify.CodePlaceholderBraces, http.StatusUnprocessableEntity, "A placeholder has full-width braces", "Write {{name}} with half-width braces."},
	{notify.CodePlaceholderInBody, http.StatusUnprocessableEntity, "The body has a placeholder", "Make a template of it, or write single braces."},
	{notify.CodePlaceholderEmpty, http.StatusUnprocessableEntity, "A placeholder has no name", "Write one, as in {{name}}."},
	{notify.CodePlaceholderBadName, http.StatusUnprocessableEntity, "A placeholder's name is not one", "Use letters, digits and underscores."},

	{Internal, http.StatusInternalServerError, "Something went wrong", "Try again; if it stays, tell the operator the X-Request-Id."},
	{TooManyWrongKeys, http.StatusTooManyRequests, "Too many wrong API keys came from this address", "Check the key, and try again after the seconds in Retry-After."},
	{UploadsBusy, http.StatusServiceUnavailable, "Too much is being uploaded", "Try again after the seconds in Retry-After."},
	{ReadsBusy, http.StatusServiceUnavailable, "Too much is being read", "Try again after the seconds in Retry-After, and ask less often."},
	{DatabaseUnavailable, http.StatusServiceUnavailable, "The database cannot be reached", "Try again after the seconds in Retry-After."},
	{TimeLimit, http.StatusServiceUnavailable, "The request reached its time limit", "Try again after the seconds in Retry-After, with the same Idempotency-Key; if it stays, ask for less at once."},
	{Stopping, http.StatusServiceUnavailable, "This process is being stopped", "Try again after the seconds in Retry-After: another one answers then."},
}

var entries = func() map[Code]Entry {
	byCode := make(map[Code]Entry, len(Codes))
	for _, e := range Codes {
		byCode[e.Code] = e
	}
	return byCode
}()

// Lookup finds what the documentation says of a code.
func Lookup(code Code) (Entry, bool) {
	e, ok := entries[code]
	return e, ok
}
