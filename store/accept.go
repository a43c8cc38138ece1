package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/todoku/todoku/notify"
)

// NewNotification is what a caller asks to be sent. It must be valid: the store checks only what
// the schema checks.
type NewNotification struct {
	ID              uuid.UUID // of version 7
	Channel         notify.Channel
	Reference       *string
	To              notify.PhoneNumber
	ToHash          []byte
	Message         *string // or a template
	TemplateID      *int64
	TemplateVersion *int32
	Params          map[string]string
	SenderID        int64
	RequireHuman    bool
	SendAt          *time.Time    // nil, or a moment that has passed: now
	RelayIn         time.Duration // how long after its send_at the relay leaves it to whoever starts its workflow
	Once            *Once         // nil: the same request again is another notification
}

// Acceptance is what became of one NewNotification.
type Acceptance struct {
	Notification Notification
	Replay       *Answer // the same was asked before under the same key: nothing was accepted now
	Err          error   // nothing was accepted: ErrKeyInUse or ErrKeyReused
}

// Accept writes a notification to the ledger. Its commit is the acceptance: from here on the
// notification is sent, whatever dies.
func (s *Store) Accept(ctx context.Context, n NewNotification) (Notification, error) {
	accepted, err := s.AcceptAll(ctx, n)
	if err != nil {
		return Notification{}, err
	}
	return accepted[0].Notification, accepted[0].Err
}

// AcceptAll accepts notifications in one transaction, and answers for each in the same order. Its
// error is for all of them: none was accepted, unless the database went away before it could say.
func (s *Store) AcceptAll(ctx context.Context, all ...NewNotification) ([]Acceptance, error) {
	var accepted []Acceptance
	err := s.pool.again(ctx, statementLimit, func(ctx context.Context) error {
		accepted = make([]Acceptance, len(all))
		if anyOnce(all) {
			return s.acceptOnce(ctx, all, accepted)
		}
		return insert(ctx, s.pool, all, accepted)
	})
	if err != nil {
		return nil, fmt.Errorf("accept notifications: %w", err)
	}
	return accepted, nil
}

// querier is a pool, or a connection with a transaction open.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// acceptedRow is what only the database knows of a row that it has just accepted.
type acceptedRow struct {
	ID        uuid.UUID
	CreatedAt time.Time
	SendAt    time.Time
	Sender    string
	Held      bool
}

// insert writes the rows that have no answer yet.
func insert(ctx context.Context, q querier, all []NewNotification, accepted []Acceptance) error {
	rows := make([]NewNotification, 0, len(all))
	places := make(map[uuid.UUID]int, len(all))
	for i, n := range all {
		if accepted[i].Replay == nil && accepted[i].Err == nil {
			rows, places[n.ID] = append(rows, n), i
		}
	}
	if len(rows) == 0 {
		return nil
	}
	params, err := paramsColumn(rows)
	if err != nil {
		return err
	}
	answers, err := q.Query(ctx, `
		WITH n AS (
			INSERT INTO notifications (
				id, channel, reference, to_number, to_national, to_hash,
				message, template_id, template_version, params, require_human, sender_id, created_at, updated_at, send_at, relay_at
			)
			SELECT id, channel::channel, reference, to_number, to_national, to_hash,
				message, template_id, template_version, params::jsonb, require_human, sender_id, created_at, created_at, greatest(send_at, least(created_at, now())),
				greatest(send_at, least(created_at, now())) + relay_in
			FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[],
				$7::text[], $8::bigint[], $9::int[], $10::text[], $11::bool[], $12::bigint[], $13::timestamptz[], $14::interval[], $15::timestamptz[])
				AS t (id, channel, reference, to_number, to_national, to_hash,
				message, template_id, template_version, params, require_human, sender_id, send_at, relay_in, created_at)
			RETURNING id, sender_id, created_at, send_at
		)
		SELECT n.id, n.created_at, n.send_at, s.address, s.stopped_at IS NOT NULL
		FROM n
		JOIN senders s ON s.id = n.sender_id`,
		column(rows, func(n NewNotification) uuid.UUID { return n.ID }),
		column(rows, func(n NewNotification) string { return string(n.Channel) }),
		column(rows, func(n NewNotification) *string { return n.Reference }),
		column(rows, func(n NewNotification) string { return n.To.E164 }),
		column(rows, func(n NewNotification) string { return n.To.National }),
		column(rows, func(n NewNotification) []byte { return n.ToHash }),
		column(rows, func(n NewNotification) *string { return n.Message }),
		column(rows, func(n NewNotification) *int64 { return n.TemplateID }),
		column(rows, func(n NewNotification) *int32 { return n.TemplateVersion }),
		params,
		column(rows, func(n NewNotification) bool { return n.RequireHuman }),
		column(rows, func(n NewNotification) int64 { return n.SenderID }),
		column(rows, func(n NewNotification) *time.Time { return n.SendAt }),
		column(rows, func(n NewNotification) time.Duration { return n.RelayIn }),
		column(rows, func(n NewNotification) time.Time { return CreatedAt(n.ID) }))
	if err != nil {
		return err
	}
	var row acceptedRow
	_, err = pgx.ForEachRow(answers, []any{&row.ID, &row.CreatedAt, &row.SendAt, &row.Sender, &row.Held}, func() error {
		i := places[row.ID]
		accepted[i].Notification = all[i].asAccepted(row)
		return nil
	})
	return err
}

// asAccepted is the row as readers see it.
func (n NewNotification) asAccepted(row acceptedRow) Notification {
	seen := Notification{
		ID: n.ID, Channel: n.Channel, Status: notify.Accepted, Reference: n.Reference, To: n.To.E164, ToNational: n.To.National,
		Message: n.Message, TemplateID: n.TemplateID, TemplateVersion: n.TemplateVersion, Params: n.Params,
		Sender: row.Sender, CreatedAt: row.CreatedAt, SendAt: row.SendAt, UpdatedAt: row.CreatedAt,
	}
	if row.Held {
		seen.Status = notify.Held
	}
	return seen
}

// paramsColumn is JSON in text, for an array of it.
func paramsColumn(rows []NewNotification) ([]*string, error) {
	params := make([]*string, len(rows))
	for i, n := range rows {
		if n.Params == nil {
			continue
		}
		text, err := json.Marshal(n.Params)
		if err != nil {
			return nil, err
		}
		params[i] = new(string(text))
	}
	return params, nil
}
