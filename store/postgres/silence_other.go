//go:build !linux

package postgres

import "syscall"

// limitSilence leaves it to keepalives and to the deadlines of statements.
func limitSilence(string, string, syscall.RawConn) error { return nil }
