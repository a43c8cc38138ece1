package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// claimMemory holds the last claims that this process has committed. A server that took over, or was
// restored, may lack them, and would give the same notifications to be sent again. What such a server lacks
// is the end of its log, so the last claims are enough. The zero value is empty.
type claimMemory struct {
	mu     sync.Mutex
	claims [claimsRemembered]rememberedClaim
	next   int    // where the next claim is written
	server string // that has all of them; empty: it was not looked at

	guarded           bool   // see GuardClaims
	current, compared string // the server of the newest connection, and the one on which claims are allowed
}

const claimsRemembered = 256

type rememberedClaim struct {
	id uuid.UUID // the zero value: none
	at time.Time
}

// remember adds claims that were committed at a moment.
func (m *claimMemory) remember(claims []Claim, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claims[max(0, len(claims)-claimsRemembered):] {
		m.claims[m.next] = rememberedClaim{c.ID, at}
		m.next = (m.next + 1) % claimsRemembered
	}
}

// recall returns the claims that are remembered, and the server on which they were last seen.
func (m *claimMemory) recall() (ids []uuid.UUID, at []time.Time, server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.claims {
		if c.id != uuid.Nil {
			ids, at = append(ids, c.id), append(at, c.at)
		}
	}
	return ids, at, m.server
}

// seenOn notes that the server was looked at. What it lacks is forgotten: that was dealt with.
func (m *claimMemory) seenOn(server string, lost bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server = server
	if lost {
		m.claims, m.next = [claimsRemembered]rememberedClaim{}, 0
	}
}

// verify looks, on a new connection, whether its server has the claims that this process remembers. On one
// that lacks a claim it stops every sender before the connection is used.
func (m *claimMemory) verify(ctx context.Context, conn *pgx.Conn) error {
	ids, at, seen := m.recall()
	if len(ids) == 0 && !m.isGuarded() {
		return nil
	}
	server, err := serverOf(ctx, conn)
	if err != nil {
		return err
	}
	m.connected(server)
	if len(ids) == 0 || server == seen {
		return nil
	}
	type loss struct {
		Claims int
		Since  *time.Time
	}
	lost, err := oneOf(ctx, conn, pgx.RowToStructByPos[loss], `
		SELECT count(*), min(c.at)
		FROM unnest($1::uuid[], $2::timestamptz[]) AS c (id, at)
		LEFT JOIN notifications n ON n.id = c.id
		WHERE n.claimed_at IS NULL OR n.claimed_at < c.at`, ids, at)
	if err != nil {
		return fmt.Errorf("look for the last claims: %w", err)
	}
	if lost.Claims > 0 {
		slog.ErrorContext(ctx, "the database has lost claims that were committed: every sender is stopped until `todoku ledger reconcile` has run",
			"claims", lost.Claims, "since", lost.Since)
		if err := fallBehind(ctx, conn, *lost.Since, "the database has lost claims that were committed"); err != nil {
			return err
		}
	}
	m.seenOn(server, lost.Claims > 0)
	return nil
}

func (m *claimMemory) isGuarded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.guarded
}

func (m *claimMemory) connected(server string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = server
}

func (m *claimMemory) held() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.guarded && m.current != m.compared
}

// GuardClaims holds claims on every server on which AllowClaims was not called. The last claims of one process
// prove nothing about those of others: the ledger is held against the carrier's list first.
func (s *Store) GuardClaims() {
	s.claims.mu.Lock()
	s.claims.guarded, s.claims.current = true, "not known yet"
	s.claims.mu.Unlock()
	s.pool.Reset() // new connections say which server it is
}

// AllowClaims lets claims go on, on the server with the name.
func (s *Store) AllowClaims(server string) {
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	s.claims.compared = server
}

// ClaimsHeld reports whether claims wait for AllowClaims.
func (s *Store) ClaimsHeld() bool { return s.claims.held() }

// ErrClaimsHeld means that claims waited for AllowClaims for as long as a claim may.
var ErrClaimsHeld = errors.New("nothing is claimed before the ledger was compared with what the carrier has")

const (
	claimsHeldLimit = 5 * time.Second
	claimsHeldPause = 50 * time.Millisecond
)

// claimConnection is a connection on which claims are allowed. It waits until they are: a connection that was
// made in this moment may be to another server.
func (s *Store) claimConnection(ctx context.Context) (*pgxpool.Conn, error) {
	for end := time.Now().Add(claimsHeldLimit); ; {
		conn, err := s.pool.Acquire(ctx)
		if err != nil || !s.claims.held() {
			return conn, err
		}
		conn.Release()
		if time.Now().After(end) {
			return nil, ErrClaimsHeld
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(claimsHeldPause):
		}
	}
}

// ErrStandby means that the server does not take writes.
var ErrStandby = errors.New("the database server is a standby, which takes no writes")

// serverOf names the server behind a connection: its data, its timeline and its start. A copy, a standby
// that took over and a restored backup each have another name than the server that they came from.
func serverOf(ctx context.Context, q querier) (string, error) {
	type server struct {
		Standby bool
		Name    *string
	}
	s, err := oneOf(ctx, q, pgx.RowToStructByPos[server], `
		SELECT pg_is_in_recovery(), CASE WHEN NOT pg_is_in_recovery() THEN
			(SELECT system_identifier FROM pg_control_system())
			|| '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
			|| '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
			|| '/' || extract(epoch FROM pg_postmaster_start_time())
		END`)
	switch {
	case err != nil:
		return "", fmt.Errorf("tell which database server this is: %w", err)
	case s.Standby:
		return "", ErrStandby
	}
	return *s.Name, nil
}
