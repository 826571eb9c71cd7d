// Package audit reads everything that a store holds: Run reports what does not fit together, ScanSecrets finds secrets
// by the rules that daemons mask with. Only Mask changes what is stored.
package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// Finding is an inconsistency in a store.
type Finding struct {
	SessionID  string
	Machine    string
	Epoch      string
	Generation int64
	Problem    string
}

// Progress counts what was read.
type Progress struct {
	Streams     int64
	Generations int64
	Lines       int64
	Bytes       int64
	Retired     int64 // lines that retention removed
}

// Run reads every stored line of every generation and calls found for each inconsistency: lines out of place or out of
// order, invalid objects, wrong counts, and complete files whose length differs from what the client reported. It calls
// progress now and then. Both are called on the caller's goroutine.
func Run(ctx context.Context, store server.Catalog, found func(Finding), progress func(Progress)) (Progress, error) {
	a := auditor{found: found}
	err := Epochs(ctx, store, func(snap server.Snapshot) error { return a.epoch(ctx, snap) }, func() {
		a.read.Streams++
		progress(a.read)
	})
	return a.read, err
}

type auditor struct {
	found func(Finding)
	read  Progress
	at    Finding // where it is, without a problem
}

func (a *auditor) epoch(ctx context.Context, snap server.Snapshot) error {
	x := snap.Session()
	generations := snap.Generations()
	for _, g := range generations {
		a.at = Finding{SessionID: x.SessionID, Machine: x.Machine, Epoch: x.Epoch, Generation: g.Number}
		if err := a.generation(ctx, snap, g); err != nil {
			return err
		}
		a.read.Generations++
	}
	digests, err := DigestViews(ctx, snap)
	if err != nil {
		return err
	}
	for i, g := range generations {
		// The file's length is known only from clients that name a machine, and if its last line is complete. A gap proves
		// nothing.
		d := digests[i]
		a.at.Generation = g.Number
		if x.Machine != "" && g.EndOffset > 0 && g.EOFNewline && d.Missing == 0 && d.Bytes != g.EndOffset {
			a.report("its %d lines are %d bytes; the file had %d", d.Lines, d.Bytes, g.EndOffset)
		}
	}
	return nil
}

func (a *auditor) generation(ctx context.Context, snap server.Snapshot, g server.Generation) error {
	span := server.Span{Generation: g.Number, From: g.RewoundTo, To: max(g.EndLine, g.RewoundTo)}
	wantLines, wantNotes, err := snap.Count(ctx, span)
	if err != nil {
		return err
	}
	var lines, notes int64
	last := int64(-1)
	damaged := false
	err = server.Readable(ctx, snap, span, func(l server.Line) error {
		if l.Index <= last || l.Index < span.From || l.Index >= span.To {
			a.report("line %d is out of place", l.Index+1)
		}
		last = l.Index
		a.read.Lines++
		a.read.Bytes += int64(len(l.Raw))
		if l.Kind == server.Oversize {
			notes++
		} else {
			lines++
		}
		a.line(l)
		return nil
	}, func(d *server.DamagedError) {
		damaged = true
		a.report("lines %d to %d are damaged", d.Span.From+1, d.Span.To)
	})
	if err == nil {
		err = snap.Retired(ctx, span, false, func(r *server.RetiredRun) error {
			a.read.Retired += int64(len(r.Lines))
			return nil
		})
	}
	if damaged || err != nil {
		return err // how many there were is in their blocks
	}
	if lines != wantLines || notes != wantNotes {
		a.report("%d lines and %d notes are counted, %d and %d are there", wantLines, wantNotes, lines, notes)
	}
	return nil
}

func (a *auditor) line(l server.Line) {
	switch l.Kind {
	case server.Object:
		if shape := transcript.Scan(l.Raw).Shape; shape != transcript.Object && shape != transcript.Reserved {
			a.report("line %d is no JSON object any more", l.Index+1)
		}
	case server.Oversize:
		if _, err := transcript.ParseOversize(l.Raw); err != nil {
			a.report("the note of line %d cannot be read", l.Index+1)
		}
	case server.Opaque: // any bytes
	default:
		a.report("line %d is of an unknown kind", l.Index+1)
	}
}

func (a *auditor) report(format string, args ...any) {
	f := a.at
	f.Problem = fmt.Sprintf(format, args...)
	a.found(f)
}

// pageSize is how many streams are listed at once.
const pageSize = 1000

// Epochs calls epoch with a snapshot of each epoch of each stream, and read after the last one of a stream. The
// snapshot is closed when epoch returns. A stream that is forgotten meanwhile is passed over; what is stored
// meanwhile may be left out. Both are called on the caller's goroutine. The first error ends the walk.
func Epochs(ctx context.Context, store server.Catalog, epoch func(server.Snapshot) error, read func()) error {
	for page := (server.Page{Limit: pageSize}); ; {
		list, err := store.Sessions(ctx, page)
		if err != nil {
			return fmt.Errorf("list sessions: %w", err)
		}
		for _, x := range list.List {
			if err := stream(ctx, store, x, epoch); err != nil {
				return fmt.Errorf("read session %q: %w", x.SessionID, err)
			}
			read()
		}
		if list.Next == "" {
			return nil
		}
		page.After = list.Next
	}
}

// stream walks the epochs of one stream.
func stream(ctx context.Context, store server.Catalog, x server.Session, epoch func(server.Snapshot) error) error {
	ref := server.Ref{Stream: x.ID}
	var epochs []server.Epoch
	err := open(ctx, store, ref, func(snap server.Snapshot) error {
		epochs = snap.Epochs()
		return nil
	})
	for _, e := range epochs {
		if err != nil {
			break
		}
		ref.Epoch = e.Name
		err = open(ctx, store, ref, epoch)
	}
	if errors.Is(err, server.ErrNotFound) {
		return nil
	}
	return err
}

func open(ctx context.Context, store server.Catalog, ref server.Ref, fn func(server.Snapshot) error) error {
	snap, err := store.Open(ctx, ref)
	if err != nil {
		return err
	}
	return errors.Join(fn(snap), snap.Close())
}

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
