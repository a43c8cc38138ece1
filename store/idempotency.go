package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Once makes a request repeatable: what was asked under the same key before is answered again and
// not done again. The key is written in the transaction of what it stands for, so whatever dies, both
// are there or neither is.
type Once struct {
	Owner   int64             // the API key that asks; 0: that of TODOKU_API_KEY
	Key     string            // the owner's name for the request
	Request [sha256.Size]byte // what is asked

	// Answer is what is answered to the acceptance, now and whenever the same is asked again.
	Answer func(Notification) (Answer, error)
}

// Answer is an answer as it was sent.
type Answer struct {
	Status   int
	Location string
	Body     []byte
}

// ErrKeyInUse means that a request under the same key has not been answered yet.
var ErrKeyInUse = errors.New("a request under this key is being answered")

// ErrKeyReused means that something else was asked under the same key before.
var ErrKeyReused = errors.New("another request was made under this key")

// lock is the number of the advisory lock that a request under this key holds while it is answered.
func (o Once) lock() int64 {
	hash := sha256.New()
	_ = binary.Write(hash, binary.BigEndian, o.Owner) // a hash does not fail
	hash.Write([]byte(o.Key))
	return int64(binary.BigEndian.Uint64(hash.Sum(nil)))
}

func anyOnce(all []NewNotification) bool {
	for _, n := range all {
		if n.Once != nil {
			return true
		}
	}
	return false
}

// keyed is one request of a group that has a key.
type keyed struct {
	*Once
	place int // in the group
	lock  int64
}

// acceptOnce accepts what was not accepted before, in a transaction of three round trips. Each key is
// locked before it is looked for, and a statement after the lock sees what the transaction that held
// it before has committed.
func (s *Store) acceptOnce(ctx context.Context, all []NewNotification, accepted []Acceptance) error {
	conn, err := s.pool.Pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes a connection whose transaction was not ended

	asked := distinctKeys(all, accepted)
	if err := beginWithKeys(ctx, conn, asked, accepted); err != nil {
		return err
	}
	if err := insert(ctx, conn, all, accepted); err != nil {
		return err
	}
	return commitAnswers(ctx, conn, asked, accepted)
}

// distinctKeys are the requests with a key. Where two of a group have the same, the second one is
// refused: a transaction would get its own lock again.
func distinctKeys(all []NewNotification, accepted []Acceptance) []keyed {
	var asked []keyed
	seen := make(map[int64]bool, len(all))
	for i, n := range all {
		if n.Once == nil {
			continue
		}
		lock := n.Once.lock()
		if seen[lock] {
			accepted[i].Err = ErrKeyInUse
			continue
		}
		seen[lock] = true
		asked = append(asked, keyed{n.Once, i, lock})
	}
	return asked
}

// beginWithKeys begins a transaction that holds the keys which nobody else holds, and notes what was
// answered under them before.
func beginWithKeys(ctx context.Context, conn *pgxpool.Conn, asked []keyed, accepted []Acceptance) error {
	var batch pgx.Batch
	batch.Queue(`BEGIN`)
	batch.Queue(`
		SELECT place - 1, pg_try_advisory_xact_lock(lock)
		FROM unnest($1::bigint[]) WITH ORDINALITY AS t (lock, place)`, column(asked, func(k keyed) int64 { return k.lock })).
		Query(func(rows pgx.Rows) error {
			var i int
			var held bool
			_, err := pgx.ForEachRow(rows, []any{&i, &held}, func() error {
				if !held {
					accepted[asked[i].place].Err = ErrKeyInUse
				}
				return nil
			})
			return err
		})
	batch.Queue(findAnswersSQL, owners(asked), keys(asked)).
		Query(func(rows pgx.Rows) error { return noteAnswers(rows, asked, accepted) })
	return conn.SendBatch(ctx, &batch).Close()
}

func owners(asked []keyed) []int64 { return column(asked, func(k keyed) int64 { return k.Owner }) }
func keys(asked []keyed) []string  { return column(asked, func(k keyed) string { return k.Key }) }

const findAnswersSQL = `
	SELECT t.place - 1, i.request_hash, i.answer_status, i.location, i.answer
	FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS t (owner, key, place)
	JOIN idempotency_keys i USING (owner, key)`

func noteAnswers(rows pgx.Rows, asked []keyed, accepted []Acceptance) error {
	var (
		i      int
		hash   []byte
		answer Answer
		body   string
	)
	_, err := pgx.ForEachRow(rows, []any{&i, &hash, &answer.Status, &answer.Location, &body}, func() error {
		to := &accepted[asked[i].place]
		switch {
		case to.Err != nil: // somebody else answers it just now
		case !bytes.Equal(hash, asked[i].Request[:]):
			to.Err = ErrKeyReused
		default:
			to.Replay = &Answer{answer.Status, answer.Location, []byte(body)}
		}
		return nil
	})
	return err
}

// commitAnswers commits, with the answers to what was accepted now.
func commitAnswers(ctx context.Context, conn *pgxpool.Conn, asked []keyed, accepted []Acceptance) error {
	var fresh []keyed
	var answers []Answer
	for _, k := range asked {
		if a := accepted[k.place]; a.Replay == nil && a.Err == nil {
			answer, err := k.Answer(a.Notification)
			if err != nil {
				return err
			}
			fresh, answers = append(fresh, k), append(answers, answer)
		}
	}
	var batch pgx.Batch
	batch.Queue(`
		INSERT INTO idempotency_keys (owner, key, request_hash, answer_status, location, answer)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::smallint[], $5::text[], $6::text[])`,
		owners(fresh), keys(fresh),
		column(fresh, func(k keyed) []byte { return k.Request[:] }),
		column(answers, func(a Answer) int { return a.Status }),
		column(answers, func(a Answer) string { return a.Location }),
		column(answers, func(a Answer) string { return string(a.Body) }))
	batch.Queue(`COMMIT`)
	return conn.SendBatch(ctx, &batch).Close()
}

// FirstAnswer is what was answered to the same request before. The error is ErrNotFound when nothing
// was, and ErrKeyReused when something else was asked under its key.
func (s *Store) FirstAnswer(ctx context.Context, once Once) (Answer, error) {
	asked, found := []keyed{{Once: &once}}, make([]Acceptance, 1)
	rows, err := s.pool.Query(ctx, findAnswersSQL, owners(asked), keys(asked))
	if err == nil {
		err = noteAnswers(rows, asked, found)
	}
	switch {
	case err != nil:
		return Answer{}, fmt.Errorf("find the first answer: %w", err)
	case found[0].Err != nil:
		return Answer{}, found[0].Err
	case found[0].Replay == nil:
		return Answer{}, ErrNotFound
	}
	return *found[0].Replay, nil
}

// purgeChunk is how many keys one statement deletes, so that none holds the disk for long.
const purgeChunk = 1000

// PurgeIdempotencyKeys forgets keys that are older than that, in chunks, and returns how many there
// were. Workers that purge at the same time share the work.
func (s *Store) PurgeIdempotencyKeys(ctx context.Context, olderThan time.Duration) (purged int64, err error) {
	ctx = unhurried(ctx)
	for {
		tag, err := s.pool.Exec(ctx, `
			DELETE FROM idempotency_keys
			WHERE (owner, key) IN (
				SELECT owner, key FROM idempotency_keys
				WHERE created_at < clock_timestamp() - $1::interval
				ORDER BY created_at
				LIMIT $2
				FOR UPDATE SKIP LOCKED
			)`, olderThan, purgeChunk)
		if err != nil {
			return purged, fmt.Errorf("purge idempotency keys: %w", err)
		}
		purged += tag.RowsAffected()
		if tag.RowsAffected() < purgeChunk {
			return purged, nil
		}
	}
}
