// Package postgres opens connections to Postgres, for the ledger and for its migrations: with deadlines, with the
// session's settings that our statements need, and only to a server that fits. It also says what an error means.
package postgres

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Limits for a host that vanished without a reset. Together they stay well under 30 s.
const (
	dialLimit   = 5 * time.Second // to connect, TLS and password included
	pingLimit   = 2 * time.Second // of a connection that was idle
	silentLimit = 8 * time.Second // for the peer's kernel to acknowledge what was sent
)

// ErrNoURL means that a DATABASE_URL cannot be read.
var ErrNoURL = errors.New("DATABASE_URL cannot be read as postgres://USER:PASSWORD@HOST:PORT/DATABASE")

// ErrNoTLSMode means that a DATABASE_URL leaves open whether the way to another host is encrypted. What pgx then does
// is to fall back to plain text.
var ErrNoTLSMode = errors.New("DATABASE_URL names another host and has no sslmode, which would fall back to plain text: " +
	"add ?sslmode=verify-full (or require), or ?sslmode=disable where the network is private")

// PoolConfig reads a DATABASE_URL for a pool.
func PoolConfig(databaseURL string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, ErrNoURL
	}
	config.PingTimeout = pingLimit
	return config, prepare(config.ConnConfig, databaseURL)
}

// ConnConfig reads a DATABASE_URL for a single connection.
func ConnConfig(databaseURL string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, ErrNoURL
	}
	return config, prepare(config, databaseURL)
}

func prepare(config *pgx.ConnConfig, databaseURL string) error {
	if !namesTLSMode(databaseURL) && leavesMachine(config) {
		return ErrNoTLSMode
	}
	if err := refuseExecMode(config.DefaultQueryExecMode); err != nil {
		return err
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > dialLimit {
		config.ConnectTimeout = dialLimit
	}
	dialer := &net.Dialer{
		Timeout:         dialLimit,
		Control:         limitSilence,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silentLimit / 2, Interval: silentLimit / 4, Count: 2},
	}
	config.DialFunc = dialer.DialContext
	// The server that a name leads to may have changed: a connection that cannot write is of no more use.
	config.OnPgError = func(_ *pgconn.PgConn, answer *pgconn.PgError) bool {
		return answer.SeverityUnlocalized != "FATAL" && classify(answer.Code) != ReadOnly
	}
	if config.ValidateConnect == nil {
		// Also with several hosts in the URL, of which the first that can write is taken.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return nil
}

var keywordTLSMode = regexp.MustCompile(`(^|\s)sslmode\s*=\s*[a-z'-]`)

// namesTLSMode reports whether somebody decided about encryption.
func namesTLSMode(databaseURL string) bool {
	if os.Getenv("PGSSLMODE") != "" {
		return true
	}
	if !strings.HasPrefix(databaseURL, "postgres://") && !strings.HasPrefix(databaseURL, "postgresql://") {
		return keywordTLSMode.MatchString(databaseURL) // "host=… sslmode=…"
	}
	u, err := url.Parse(databaseURL)
	return err == nil && u.Query().Get("sslmode") != ""
}

// leavesMachine reports whether a host of the URL is another machine.
func leavesMachine(config *pgx.ConnConfig) bool {
	hosts := []string{config.Host}
	for _, fallback := range config.Fallbacks {
		hosts = append(hosts, fallback.Host)
	}
	for _, host := range hosts {
		if !isLocal(host) {
			return true
		}
	}
	return false
}

func isLocal(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") { // a socket
		return true
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
