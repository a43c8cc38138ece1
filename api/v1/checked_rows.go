package v1

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// MaxRecipients is how many rows a batch, or a list, may have.
const MaxRecipients = store.MaxListMembers

// checkedRow is a row that was looked at, alone.
type checkedRow[T any] struct {
	row      T
	rejected *store.Rejected
	fatal    error // of the request; no row follows
}

func rejectedRow[T any](row int, code, detail string) checkedRow[T] {
	return checkedRow[T]{rejected: &store.Rejected{Row: row, Code: code, Detail: detail}}
}

// checkedRows checks the rows of a request on all cores, and gives those that are right in their order.
type checkedRows[T any] struct {
	parts   <-chan chan []checkedRow[T] // in the order of the request
	current []checkedRow[T]

	read     int
	rejected int
	first    []store.Rejected
	byCode   map[string]int // how many were rejected for each code
}

// A part is what is checked at once: so many rows, or the first that come to so many bytes.
const (
	rowsInPart  = 256
	bytesInPart = 256 << 10
)

// rowBytes is about what a row takes in memory.
func rowBytes(r notify.Recipient) int {
	n := len(r.To)
	for name, value := range r.Params {
		n += len(name) + len(value)
	}
	return n
}

// checkRows begins to read and check. It ends with ctx.
func checkRows[T any](ctx context.Context, source recipientSource, check func(notify.Recipient) checkedRow[T]) *checkedRows[T] {
	workers := runtime.GOMAXPROCS(0)
	parts := make(chan chan []checkedRow[T], 2*workers)
	type job struct {
		rows []notify.Recipient
		bad  []checkedRow[T] // each in the place of the row that it follows
		at   []int
		done chan []checkedRow[T]
	}
	work := make(chan job, 2*workers)
	for range workers {
		go func() {
			for j := range work {
				checked := make([]checkedRow[T], 0, len(j.rows)+len(j.bad))
				next := 0
				for i, row := range j.rows {
					for next < len(j.at) && j.at[next] == i {
						checked = append(checked, j.bad[next])
						next++
					}
					checked = append(checked, checkOne(check, row))
				}
				j.done <- append(checked, j.bad[next:]...)
			}
		}()
	}
	go func() {
		defer close(parts)
		defer close(work)
		for ended := false; !ended; {
			j := job{done: make(chan []checkedRow[T], 1)}
			for size := 0; len(j.rows)+len(j.bad) < rowsInPart && size < bytesInPart && !ended; {
				row, err := readOne(source)
				var bad *rowError
				switch {
				case err == nil:
					j.rows = append(j.rows, row)
					size += rowBytes(row)
					continue
				case errors.Is(err, io.EOF):
					ended = true
					continue
				case errors.As(err, &bad):
					j.bad = append(j.bad, rejectedRow[T](bad.row, bad.code, bad.text))
				default:
					j.bad, ended = append(j.bad, checkedRow[T]{fatal: err}), true
				}
				j.at = append(j.at, len(j.rows))
			}
			select {
			case parts <- j.done:
			case <-ctx.Done():
				return
			}
			work <- j // a worker is free, or will be: none waits for anybody
		}
	}()
	return &checkedRows[T]{parts: parts, byCode: map[string]int{}}
}

// checkOne makes an error of a panic, which would end the process and not only the request.
func checkOne[T any](check func(notify.Recipient) checkedRow[T], row notify.Recipient) (checked checkedRow[T]) {
	if err := panics.Catch(func() error { checked = check(row); return nil }); err != nil {
		return checkedRow[T]{fatal: err}
	}
	return checked
}

// readOne does the same for reading.
func readOne(source recipientSource) (row notify.Recipient, err error) {
	err = panics.Catch(func() error {
		var failure error
		row, failure = source.Read()
		return failure
	})
	return row, err
}

// next gives the next row that is right, and false after the last one.
func (c *checkedRows[T]) next() (right T, ok bool, err error) {
	for {
		for len(c.current) == 0 {
			part, ok := <-c.parts
			if !ok {
				return right, false, nil
			}
			c.current = <-part
		}
		row := c.current[0]
		c.current = c.current[1:]
		if row.fatal != nil {
			return right, false, row.fatal
		}
		if c.read++; c.read > MaxRecipients {
			return right, false, tooMany()
		}
		if row.rejected == nil {
			return row.row, true, nil
		}
		c.rejected++
		c.byCode[row.rejected.Code]++
		if len(c.first) < store.MaxRejected {
			c.first = append(c.first, *row.rejected)
		}
	}
}

func tooMany() error {
	return problem.Newf(problem.TooManyRecipients, "there are more than %d rows: split them", MaxRecipients)
}
