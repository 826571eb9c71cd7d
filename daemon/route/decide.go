package route

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// Verdict is what happens to a chunk.
type Verdict uint8

// The verdicts. The zero value is Take.
const (
	Take     Verdict = iota // its lines are queued
	Later                   // it is offered again
	Reread                  // deliver its file again from line 0 first
	Excluded                // its lines stay on this machine
)

// Decision is what is to be done with a chunk.
type Decision struct {
	Verdict   Verdict
	After     time.Duration // with Later: how long to wait; 0 until something changes
	Exclusion Exclusion     // with Excluded

	// With Take:

	Facts              state.Routing // of the file, as they are to be committed with the chunk
	New                bool          // the file has no stream yet: a new transcript
	DestinationChanged bool          // the whole file goes to another server, or again to its own; this is not a rewind
	Compaction         bool          // a line may be a compaction's record; set by the reader of the lines
	// CleanBy searched every line for secrets and found none; nil: it found some, or did not search every line. Set by
	// the reader of the lines.
	CleanBy *redact.Masker
}

// Decide decides about a chunk, and updates the list of excluded files. An error means that the state cannot be read,
// and that nothing has changed.
func (r *Router) Decide(ctx context.Context, c *tail.Chunk) (Decision, error) {
	d, err := r.decide(ctx, c)
	if err != nil {
		return d, fmt.Errorf("read facts: %w", err)
	}
	if d.Verdict == Excluded {
		r.exclusions.add(c.File.ID, d.Exclusion)
	} else {
		r.exclusions.remove(c.File.ID)
	}
	return d, nil
}

func (r *Router) decide(ctx context.Context, c *tail.Chunk) (Decision, error) {
	facts, known, err := r.db.Files.Routing(ctx, c.File.ID)
	if err != nil {
		return Decision{}, err
	}
	fresh := !known || !facts.Decided
	if fresh {
		var wait time.Duration
		if facts, wait = r.identify(ctx, c); wait > 0 {
			return Decision{Verdict: Later, After: wait}, nil
		}
		if r.Tombstones.has(r.StreamName(&facts, c.File)) {
			return Decision{Verdict: Excluded, Exclusion: Exclusion{Why: Forgotten}}, nil
		}
	} else if facts.Stream.Cwd == "" || c.From != c.Prev && c.From.Offset == 0 {
		r.learnCwd(&facts, c)
	}
	named := facts
	named.Stream.SessionID = r.StreamName(&facts, c.File)
	r.History.learn(&named)
	t := r.target(&facts)
	if t.verdict != Take {
		return Decision{Verdict: t.verdict, Exclusion: t.exclusion}, nil
	}
	if wait := r.recognize(&facts, &t.policy, c.File.ID); fresh && wait > 0 {
		return Decision{Verdict: Later, After: wait}, nil
	}
	if fresh {
		facts.Stream.SessionID = r.claim(c.File, facts.Stream.Parent)
		if t.namedByProject() {
			facts.SentBefore = sentBefore(t.policy, facts.Stream.SessionID, c.File.Path)
		}
	}
	changed := facts.Dest != "" && facts.Dest != t.dest || tookPlain(&facts) && r.destinations.SpeaksExtension(facts.Dest)
	if changed {
		if c.From == c.Prev || c.From.Offset != 0 {
			return Decision{Verdict: Reread}, nil
		}
		facts.Withheld, facts.Plain, facts.SentBefore = 0, false, 0
	}
	facts.Dest = t.dest
	facts.Stream.MaxEntries = r.maxEntries(&t)
	if err := r.destinations.Open(t.dest); err != nil {
		r.advice.set(facts.Stream.Cwd, err.Error(), "correct server_url")
		return Decision{Verdict: Later}, nil // the problem concerns this file only, not the others of its round
	}
	return Decision{Facts: facts, New: fresh, DestinationChanged: changed}, nil
}

// tookPlain reports whether a server took lines of a file as a plain one. Once the server speaks the extension it gets
// everything again, with what the plain protocol could not carry.
func tookPlain(f *state.Routing) bool { return f.Plain || f.Withheld > 0 }

// maxEntries returns the largest number of entries in a request: the project's setting, else the user's.
func (r *Router) maxEntries(t *target) int {
	if t.policy.Dir != "" && t.policy.MaxEntries > 0 {
		return t.policy.MaxEntries
	}
	return r.rules.Load().MaxEntries
}
