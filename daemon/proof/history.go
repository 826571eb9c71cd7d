package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// A deep verify also checks what is not on disk: the generations that rewinds ended, and vanished transcripts. It reads
// their bytes back from the server and compares them with the prefix hashes taken when they were read from disk. Where
// those hashes are no longer kept, it only proves that something is stored without gaps.

// compareHistory compares what is not on disk any more.
func (v *verifier) compareHistory(ctx context.Context) error {
	v.report.Deep = &control.DeepReport{}
	session := v.options.Session
	byDest, known := map[string][]tail.Tracked{}, map[string]bool{}
	if own := v.Servers.Own(); own != "" && v.Servers.SpeaksExtension(own) {
		byDest[own] = nil
	}
	for _, t := range v.Files.Files() {
		f := v.facts[t.File.ID]
		if !f.Decided {
			continue
		}
		known[f.Stream.SessionID] = true
		if _, excluded := v.excluded[t.File.ID]; excluded || f.Dest == "" || !v.Servers.SpeaksExtension(f.Dest) {
			continue
		}
		if strings.HasPrefix(f.Stream.SessionID, session) {
			byDest[f.Dest] = append(byDest[f.Dest], t)
		}
	}
	for _, dest := range slices.Sorted(maps.Keys(byDest)) {
		stored, err := v.listStored(ctx, dest, known)
		if err != nil {
			return err
		}
		files, err := v.withPast(ctx, byDest[dest], stored.past)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(files, mostAsked) {
			if err := v.compareStored(ctx, dest, part); err != nil {
				return err
			}
		}
		if err := v.countUnknown(ctx, dest, stored.unknown); err != nil {
			return err
		}
	}
	return nil
}

// stored is what a server holds of this machine.
type stored struct {
	past    map[string]bool // transcripts with more than their first generation
	unknown []remote.Ref    // transcripts that the state does not remember
}

// listStored asks a server what it holds of this machine.
func (v *verifier) listStored(ctx context.Context, dest string, known map[string]bool) (stored, error) {
	has := stored{past: map[string]bool{}}
	q := remote.Query{Machine: &v.Origin.Machine, Agents: true}
	err := v.reader(dest).Sessions(ctx, q, 1000, func(s *remote.Session) bool {
		has.past[s.SessionID] = s.Epochs > 1 || s.Generation > 0
		if !known[s.SessionID] && strings.HasPrefix(s.SessionID, v.options.Session) {
			has.unknown = append(has.unknown, remote.Ref{Session: s.SessionID, User: remote.Me, Machine: &v.Origin.Machine})
		}
		return true
	})
	if err != nil {
		return stored{}, fmt.Errorf("list sessions of this machine: %w", err)
	}
	return has, nil
}

// withPast returns the files that have more than what is on disk, according to the state or to the server.
func (v *verifier) withPast(ctx context.Context, files []tail.Tracked, past map[string]bool) ([]tail.Tracked, error) {
	var some []tail.Tracked
	for _, t := range files {
		known, err := v.State.Files.History(ctx, t.File.ID)
		if err != nil && !errors.Is(err, state.ErrUnknownFile) {
			return nil, err
		}
		if t.Gone != 0 || len(known.Past) > 0 || past[v.facts[t.File.ID].Stream.SessionID] {
			some = append(some, t)
		}
	}
	slices.SortFunc(some, func(a, b tail.Tracked) int { return cmp.Compare(a.File.Path, b.File.Path) })
	return some, nil
}

// compareStored compares what a server holds of some files besides their generation on disk.
func (v *verifier) compareStored(ctx context.Context, dest string, files []tail.Tracked) error {
	reader := v.reader(dest)
	var refs []remote.Ref
	for _, t := range files {
		session := v.facts[t.File.ID].Stream.SessionID
		refs = append(refs, remote.Ref{Session: session, User: remote.Me, Machine: &v.Origin.Machine})
	}
	digests, err := reader.Digests(ctx, refs, true)
	if err != nil {
		return err
	}
	forgotten := map[string]bool{}
	if slices.ContainsFunc(digests, storesNothing) {
		if forgotten, err = v.forgottenBy(ctx, dest); err != nil {
			return err
		}
	}
	for i, t := range files {
		if storesNothing(digests[i]) && isForgotten(refs[i].Session, forgotten) {
			continue
		}
		h := historyCheck{v: v, reader: reader, facts: v.facts[t.File.ID], ref: refs[i], file: t}
		if err := h.runUnmoved(ctx, *cmp.Or(digests[i], new(protocol.Digest))); err != nil {
			return err
		}
	}
	return nil
}

func storesNothing(d *protocol.Digest) bool { return d == nil || len(d.Epochs) == 0 }

// countUnknown counts what a server holds of transcripts that the state does not remember.
func (v *verifier) countUnknown(ctx context.Context, dest string, refs []remote.Ref) error {
	found := findings{why: map[string]int{}}
	for part := range slices.Chunk(refs, mostAsked) {
		digests, err := v.reader(dest).Digests(ctx, part, true)
		if err != nil {
			return err
		}
		for _, d := range digests {
			if d == nil {
				continue
			}
			for _, e := range d.Epochs {
				for _, g := range e.Generations {
					if g.CountRetired() > 0 {
						add(&found.retired, g)
						continue
					}
					found.unproven(g, whyUnknown)
				}
			}
		}
	}
	v.report.addDeep(&found)
	return nil
}
