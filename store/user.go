package store

// User is what uses a list or a template, so that it is not deleted.
type User struct {
	ID   int64
	Name string
}
