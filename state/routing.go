package state

import (
	"github.com/ccship/ccship/outbox"
)

// Routing is what is decided once for a file and then kept: its stream, and where its lines go. The stream's name must
// not change while the file is the same, because the server files lines under it.
type Routing struct {
	Stream    outbox.Stream // ID equals the file's id
	Dest      string        // normalised URL that its cursor and rows belong to; "" while nothing may be queued
	ParentCwd string        // working directory of the session that an agent's transcript is of, "" unknown
	RewoundTo int64         // first line of the current generation
	Decided   bool          // working directory, project and stream name are fixed
	Withheld  int64         // entries that a plain server did not get; Settle adds, a rewind takes away
	Plain     bool          // a server without the extension acknowledged some entries; cleared as Withheld is
	Excluded  int64         // lines left out by exclude_types since line 0 was read last
	Odd       OddLines      // lines up to the cursor that are no JSON objects
	// SentBefore is the number of first lines that the server already had before the file was first seen: they are
	// not queued in generation 0.
	SentBefore int64
	// Watched means that lines from the offset WatchedFrom on were written while a daemon was running. A later daemon
	// continues from there, also with what was written in between.
	Watched     bool
	WatchedFrom int64
	// Compacted means that a line may be the record of a compaction.
	Compacted bool
}
