// Package reconcile brings this machine and a server back into step after the server has refused a write because it
// stores something else than the queue goes on from: after a restored home or server, on a clone, beside a second
// daemon. It compares transcripts by digests and line hashes, and has each go on behind the lines that both have. It
// does not know how lines are sent. See docs/adr/0041-ledger.md.
package reconcile
