package postgres

import "github.com/ccship/ccship/server/store/sqlstore"

// head is what a batch met, and what its lines add.
type head struct {
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
