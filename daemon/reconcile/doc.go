// Package reconcile brings this machine and a server back into step. It is needed when the server refuses a write
// because it stores other lines than the queue continues: after a restored home or server, on a clone, beside a second
// daemon. It compares transcripts by digests and line hashes, and continues each after the lines that both sides have.
// It does not know how lines are sent. See docs/internals/adr/0041-ledger.md.
package reconcile
