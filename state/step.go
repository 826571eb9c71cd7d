package state

import (
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

// Facts is what is decided once for a file and kept: its stream, and where its lines go.
type Facts struct {
	Stream    outbox.Stream // ID equals the file's id
	Dest      string        // normalised URL its cursor and rows belong to; "" while nothing may be queued
	RewoundTo int64         // first line of the current generation
	Decided   bool          // cwd, project and stream name are fixed
	Withheld  int64         // entries a plain server did not get; set by Settle, cleared by a step with Reread
	Plain     bool          // some entries were acknowledged by a server without the extension; as Withheld
	Excluded  int64         // lines left out by exclude_types since line 0 was read last
	// SentBefore is the number of first lines that the server already had before the file was first seen: they are
	// not queued in generation 0.
	SentBefore int64
	// Watched says that lines from the offset WatchedFrom on were written while a daemon looked on. A later daemon goes
	// on with it, also for what was written in between.
	Watched     bool
	WatchedFrom int64
	// Compacted says that a line may be a compaction's record.
	Compacted bool
}

// Step is the one durable move of a file: the cursor goes from Prev to Tracked.Cursor, and what was read enters the
// outbox, together or not at all. A value, so that every part can be made to fail by name.
type Step struct {
	Prev    tail.Cursor  // must equal the stored cursor, else the step is left out (tail.ErrStale)
	From    tail.Cursor  // marks beyond From.Offset are cut when From != Prev
	Tracked tail.Tracked // what is stored; its Cursor is the new one
	Marks   []tail.Mark
	Facts   Facts
	Batches []outbox.Batch // get their Seq here
	Live    bool           // written just now: may use the reserve of the cap
}
