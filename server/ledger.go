package server

import (
	"context"
	"fmt"

	"github.com/ccship/ccship/protocol"
)

// A ledger counts the writes that a store took from one machine of one user. Client and store both keep the count, so
// each notices when the other, or it itself, went back in time: a database restored from a backup, a state file put
// back, a clone of a machine. See docs/internals/adr/0041-ledger.md.

// Writer is what a request says about the daemon that sends it. The zero Writer is a client that keeps no ledger:
// nothing is checked for it.
type Writer struct {
	// Incarnation is random, drawn each time the client's state file is opened.
	Incarnation string
	// Store is the id of the store that the client knows; "" before its first answer.
	Store string
	// Count is the last count of the ledger that the client knows.
	Count int64
	// Token is what the store drew for that write; "": the client does not know.
	Token string
}

// Receipt is the ledger after a request.
type Receipt struct {
	Store string
	Count int64
	Token string // drawn for the last write: two histories of a store may agree in its count, not in this
}

// Ledgers reads and compares ledgers. Safe for concurrent use.
type Ledgers interface {
	// StoreID returns the random id of this store. It stays the same until the store is restored from a copy.
	StoreID() string
	// Ledger returns the ledger of a user's machine, with the streams that changed after count since, in the order of
	// their changes, at most limit. A machine that never wrote has a ledger of count 0.
	Ledger(ctx context.Context, owner int64, machine string, since int64, limit int) (protocol.WriteLedger, error)
}

// LedgerError refuses a write whose writer and store do not agree on what came before. Nothing of it is stored.
type LedgerError struct {
	Code    string // protocol.CodeOtherStore, CodeStoreBehind, CodeWriterBehind or CodeWriterReplaced
	Receipt Receipt
}

func (e *LedgerError) Error() string {
	return fmt.Sprintf("%s: store %s is at write %d of this machine", e.Code, e.Receipt.Store, e.Receipt.Count)
}

// StreamError refuses a batch that would hide or replace what the store has acknowledged. Nothing of it is stored.
type StreamError struct {
	Code       string // protocol.CodeOtherEpoch or CodeOtherBytes
	Epoch      string // in front
	Generation int64  // the newest of that epoch
	Line       int64  // with other_bytes: the first line that differs
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("%s: epoch %s is at generation %d (line %d)", e.Code, e.Epoch, e.Generation, e.Line)
}
