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

// Why a store takes nothing from a writer until that has compared what both have.
const (
	// LedgerOtherStore: the writer knows another store.
	LedgerOtherStore = "other_store"
	// LedgerStoreBehind: the writer knows of writes that the store does not have: the store went back in time.
	LedgerStoreBehind = "store_behind"
	// LedgerWriterBehind: the store has writes that the writer does not know: the writer's state went back in time, or
	// another writer used its name.
	LedgerWriterBehind = "writer_behind"
	// LedgerReplaced: another incarnation took over from this one, and still this one writes: two daemons use the name
	// of one machine.
	LedgerReplaced = "writer_replaced"
)

// LedgerError refuses a write whose writer and store do not agree on what came before. Nothing of it is stored.
type LedgerError struct {
	Code    string // one of the constants above
	Receipt Receipt
}

func (e *LedgerError) Error() string {
	return fmt.Sprintf("%s: store %s is at write %d of this machine", e.Code, e.Receipt.Store, e.Receipt.Count)
}

// Why a store takes a batch from no writer as it is.
const (
	// StreamOtherEpoch: another epoch is in front. The writer is to go on in that one.
	StreamOtherEpoch = "other_epoch"
	// StreamOtherBytes: a line of the batch is stored with other bytes, or the generation with another start. The
	// writer is to begin a new generation.
	StreamOtherBytes = "other_bytes"
)

// StreamError refuses a batch that would hide or replace what the store has acknowledged. Nothing of it is stored.
type StreamError struct {
	Code       string
	Epoch      string // in front
	Generation int64  // the newest of that epoch
	Line       int64  // with other_bytes: the first line that differs
}

func (e *StreamError) Error() string {
	return fmt.Sprintf("%s: epoch %s is at generation %d (line %d)", e.Code, e.Epoch, e.Generation, e.Line)
}
