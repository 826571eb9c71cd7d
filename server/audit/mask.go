package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/transcript/redact"
)

// batchLines and batchBytes bound the lines that one transaction masks.
const (
	batchLines = 500
	batchBytes = 4 << 20
)

// maskStore is a store whose secrets can be masked.
type maskStore interface {
	server.Catalog
	server.Masker
}

// Found is how many secrets were found, or masked.
type Found struct{ Transcripts, Lines, Secrets int64 }

// MaskOptions chooses what Mask masks.
type MaskOptions struct {
	Chosen   func(server.Session) bool // nil: every session
	DryRun   bool                      // only count
	Progress func(ScanProgress, Found) // called after each transcript, on the caller's goroutine
}

// Mask replaces what Run finds by tokens, in place. The tokens are made with a key that nobody keeps, so that no guess
// can be tested against them. An error leaves masked what was masked until then; Mask goes on there when it is called
// again. What is stored meanwhile may be left out.
func Mask(ctx context.Context, store maskStore, o MaskOptions) (Found, error) {
	masker, err := redact.New(redact.NewKey())
	if err != nil {
		return Found{}, fmt.Errorf("load rules: %w", err)
	}
	m := masking{store: store, masker: masker, options: o}
	err = Epochs(ctx, store, func(snap server.Snapshot) error { return m.epoch(ctx, snap) }, func() {
		m.read.Streams++
		if m.inStream {
			m.found.Transcripts++
		}
		m.inStream = false
		o.Progress(m.read, m.found)
	})
	return m.found, err
}

// masking is one run of Mask.
type masking struct {
	store    maskStore
	masker   *redact.Masker
	options  MaskOptions
	read     ScanProgress
	found    Found
	inStream bool // something was found in the transcript that is being read

	batch server.Masking
	bytes int
}

// epoch masks the lines of an epoch, and the bytes that others replaced.
func (m *masking) epoch(ctx context.Context, snap server.Snapshot) error {
	x := snap.Session()
	if m.options.Chosen != nil && !m.options.Chosen(x) {
		return nil
	}
	m.batch = server.Masking{Stream: x.ID}
	var id int64
	for _, e := range snap.Epochs() {
		if e.Name == x.Epoch {
			id = e.ID
		}
	}
	for _, g := range snap.Generations() {
		all := server.Span{Generation: g.Number, From: 0, To: max(g.EndLine, g.RewoundTo)}
		at := protocol.LineMask{Epoch: id, Generation: g.Number}
		err := everyLine(ctx, snap, all, func(l server.Line, _ bool) error { return m.line(ctx, l, at) })
		if err != nil {
			return err
		}
	}
	return m.flush(ctx)
}

// line finds the secrets of a line.
func (m *masking) line(ctx context.Context, l server.Line, at protocol.LineMask) error {
	m.read.Lines++
	m.read.Bytes += int64(len(l.Raw)) + 1
	if l.Kind == server.Oversize {
		return nil
	}
	masked, ranges := m.masker.Line(l.Raw)
	if len(ranges) == 0 {
		return nil
	}
	tokens, only := redact.Changes(l.Raw, masked)
	if !only {
		return fmt.Errorf("line %d is masked by what is no token", l.Index)
	}
	m.inStream = true
	m.found.Lines++
	m.found.Secrets += int64(len(ranges))
	at.Line, at.SHA256, at.Tokens = l.Index, sha256.Sum256(l.Raw), tokens
	m.batch.Lines = append(m.batch.Lines, at)
	if m.bytes += len(l.Raw); len(m.batch.Lines) < batchLines && m.bytes < batchBytes {
		return nil
	}
	return m.flush(ctx)
}

// flush masks the lines found so far.
func (m *masking) flush(ctx context.Context) error {
	defer func() { m.batch.Lines, m.bytes = nil, 0 }()
	if len(m.batch.Lines) == 0 || m.options.DryRun {
		return nil
	}
	m.batch.At = time.Now()
	_, err := m.store.Mask(ctx, &m.batch)
	return err
}
