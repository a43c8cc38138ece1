// Package chaos breaks the running product and counts. Its tests start everything as processes of
// their own, stream notifications in, or send a batch, kill and freeze what they can, and at the end
// hold the ledger against the carrier: whatever was answered 202 was created there exactly once, has a
// final status, and no workflow is left.
//
// `make test` runs a short form; `make chaos` the long one. A run prints its seed, by which its kills
// come in the same order again:
//
//	go test -count=1 -v ./chaos -kills 20 -singles 5000 -batch 5000 -callers 1000 -long -seed 42
package chaos
