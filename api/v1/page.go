package v1

// cutPage cuts what was read down to a page. One more than the limit was asked for: where it is there, so
// is a next page, and cursorAfter makes the cursor of the last one that is shown.
func cutPage[T any](found []T, limit int, cursorAfter func(last T) string) (shown []T, next *string) {
	if len(found) <= limit {
		return found, nil
	}
	return found[:limit], known(cursorAfter(found[limit-1]))
}
