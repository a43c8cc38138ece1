package store

// Query is the statement of a page, for a test of its plan.
func (f Filter) Query(after *Place, limit int) (sql string, args []any) { return f.query(after, limit) }
