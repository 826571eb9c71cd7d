package proof

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// Held reads the lines of one view from a server. It sends no request before the first line is needed.
type Held struct {
	reader *remote.Client
	ref    remote.Ref

	file  *remote.File // nil: nothing was requested yet
	lines *tail.LineReader
}

// NewHeld returns the lines of the view that ref names. The caller closes it.
func NewHeld(reader *remote.Client, ref remote.Ref) *Held {
	return &Held{reader: reader, ref: ref}
}

// Proof is what proves that a line has its secrets masked.
type Proof struct {
	Tokens    *redact.Masker // nil: nothing does
	Asterisks bool           // secrets too short for a token are asterisks, which nothing proves
}

// ProofOf returns the proof by a key, where rules mask secrets; nil: none do, and asterisks count only where the
// built-in rules would put them. Anywhere else they are damage.
func ProofOf(key, rules *redact.Masker) Proof { return Proof{key, rules != nil} }

// masking is how a text is masked.
type masking func(text []byte) (masked []byte, ranges []redact.Range)

// explains reports whether a server's bytes are those of the disk with secrets masked. by is how the key's rules mask.
func (p Proof) explains(disk, held []byte, by masking) (e redact.Explanation, explained bool) {
	if e, explained = p.Tokens.Explain(disk, held); !explained || e.Unproven == 0 || p.Asterisks {
		return e, explained
	}
	_, ranges := by(disk)
	for i := range disk {
		within := func(r redact.Range) bool { return r.Start <= i && i < r.End }
		if held[i] == '*' && disk[i] != '*' && !slices.ContainsFunc(ranges, within) {
			return e, false
		}
	}
	return e, true
}

// Close ends reading.
func (h *Held) Close() {
	if h.file != nil {
		_ = h.file.Close() // nothing was written
	}
}

// Explain reports whether a line for which the server has another hash is the disk's line with secrets masked by any
// rules. held is the server's line, valid until the next call. Ask for lines in ascending order.
func (h *Held) Explain(ctx context.Context, proof Proof, index int64, disk []byte,
	hash string) (held []byte, e redact.Explanation, explained bool, err error) {
	if proof.Tokens == nil {
		return nil, e, false, nil
	}
	if held, err = h.line(ctx, index); err != nil || held == nil || LineHash(held) != hash {
		return nil, e, false, err
	}
	e, explained = proof.explains(disk, held, proof.Tokens.Line)
	return held, e, explained, nil
}

// SameButTokens reports whether a line for which the server has another hash differs only in tokens from the disk's
// line, in one of its forms. They need not be this machine's. Ask for lines in ascending order, each once.
func (h *Held) SameButTokens(ctx context.Context, index int64, hash string, forms ...[]byte) (bool, error) {
	held, err := h.line(ctx, index)
	if err != nil || held == nil || LineHash(held) != hash {
		return false, err
	}
	return slices.ContainsFunc(forms, func(form []byte) bool {
		_, only := redact.Changes(form, held)
		return only
	}), nil
}

// line returns a line; nil if the server does not have it.
func (h *Held) line(ctx context.Context, index int64) ([]byte, error) {
	if h.file == nil {
		file, err := h.reader.Raw(ctx, h.ref, true)
		if err != nil {
			return nil, err
		}
		h.file, h.lines = file, tail.NewLineReader(file, math.MaxInt64, 64<<10)
	}
	for {
		switch line, err := h.lines.Next(); {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		case line.Index == index:
			return line.Raw, nil
		}
	}
}

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

// checkpoints masks the texts of the transcript's checkpoints.
func (p *pass) checkpoints(ctx context.Context) error {
	list, err := p.reader.Checkpoints(ctx, p.ref)
	if err != nil {
		return notThere(err)
	}
	for _, c := range list {
		any := false
		for _, text := range append([]string{c.Summary, c.PortID}, c.ActiveFiles...) {
			masked, _ := p.masker.Text([]byte(text))
			sum, tokens, changed, err := change([]byte(text), masked)
			if err != nil {
				return err
			}
			if !changed {
				continue
			}
			any = true
			p.batch.Checkpoints = append(p.batch.Checkpoints, protocol.CheckpointMask{ID: c.ID, SHA256: sum, Tokens: tokens})
			if err := p.added(ctx, len(text)); err != nil {
				return err
			}
		}
		if any {
			p.found.Checkpoints++
		}
	}
	return nil
}

// notThere forgives that a transcript has nothing of a kind, or is forgotten meanwhile.
func notThere(err error) error {
	if remote.Is(err, control.CodeNoSession) {
		return nil
	}
	return err
}

// files masks the files next to the transcript, and every version of its documents.
func (p *pass) files(ctx context.Context) error {
	list, err := p.reader.Blobs(ctx, p.ref)
	if notThere(err) != nil {
		return err
	}
	done := map[string]bool{}
	for _, b := range list {
		if done[b.SHA256] {
			continue
		}
		done[b.SHA256] = true
		content, err := p.reader.Blob(ctx, b.SHA256, b.Size)
		if err == nil {
			err = p.file(ctx, b.Name, b.SHA256, content)
		}
		if notThere(err) != nil {
			return err
		}
	}
	versions, err := p.reader.DocumentVersions(ctx, p.ref)
	if notThere(err) != nil {
		return err
	}
	for _, v := range versions {
		if done[v.SHA256] || !v.Stored || v.SHA256 == "" {
			continue
		}
		done[v.SHA256] = true
		content, err := v.Content(ctx)
		if err == nil {
			err = p.file(ctx, v.Path, v.SHA256, content)
		}
		if notThere(err) != nil {
			return err
		}
	}
	return nil
}

// file masks a file's content as it is masked on its way to a server.
func (p *pass) file(ctx context.Context, name, sum string, content []byte) error {
	size := int64(len(content))
	masked, err := io.ReadAll(io.NewSectionReader(p.masker.ReaderAt(name, bytes.NewReader(content), size), 0, size))
	if err != nil {
		return err
	}
	was, tokens, changed, err := change(content, masked)
	if err != nil || !changed {
		return err
	}
	if hex.EncodeToString(was[:]) != sum {
		return fmt.Errorf("the server sent a file with another sha256 than %s", sum)
	}
	p.found.Files++
	p.batch.Files = append(p.batch.Files, protocol.FileMask{SHA256: was, Tokens: tokens})
	return p.added(ctx, len(content))
}
