package store

import "context"

// User is what uses a list or a template, so that it is not deleted.
type User struct {
	ID   int64
	Name string
}

// ListUsers names the schedules that send to a list.
func (s *Store) ListUsers(context.Context, int64) ([]User, error) { return nil, nil }

// TemplateUsers names the active schedules that send with a template.
func (s *Store) TemplateUsers(context.Context, int64) ([]User, error) { return nil, nil }
