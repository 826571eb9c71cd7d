// Package heads reads and writes what every batch of lines touches besides its lines: its stream, epoch, generation and
// ledger. It does so for many batches with few statements: each costs PostgreSQL more to begin than a row in it.
package heads

import "github.com/ccship/ccship/server/store/sqlstore"

// Head is what a batch met, and what its lines add.
type Head struct {
	Stream  int64        // 0: the session was forgotten
	Project string       // of the stream
	Masked  int64        // how often something of the stream was masked
	End     sqlstore.End // where its newest generation ended
	To      int64        // one past the highest line of the batch's generation

	Bytes    int64 // that fresh lines add to the generation
	StoredTo int64 // one past the last of them; 0: there are none
	Behind   bool  // something was stored elsewhere than at the end

	changed int64 // count of the ledger
	known   bool
}
