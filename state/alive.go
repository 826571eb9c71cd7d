package state

import "context"

// Alive returns nil once a transaction could be run, behind those that wait. Nothing is written. It may be called
// while others use the state; an error says why it cannot be used, or that ctx ended first.
func (db *DB) Alive(ctx context.Context) error {
	return db.submit(ctx, 0, func(*txn) error { return nil })
}
