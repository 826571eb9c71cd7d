package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/redact"
)

// scanStore is what is searched.
type scanStore interface {
	server.Catalog
	server.Artifacts
}

// SecretFinding is a line with secrets, or another text.
type SecretFinding struct {
	Place      string // a checkpoint, a version of a document or an attachment; "": a line
	Session    server.Session
	Epoch      string
	Generation int64
	Line       int64    // -1: no line
	Replaced   bool     // other bytes have replaced the line since; the store keeps these too
	Secrets    int      // there
	Rules      []string // that found them, each once
}

// ScanProgress is how much was read.
type ScanProgress struct {
	Streams, Lines, Bytes int64
	Files                 int64 // versions of documents, and attachments
	Skipped               int64 // of these, too large to be read
}

// scanner reads stream after stream.
type scanner struct {
	masker *redact.Masker
	found  func(SecretFinding)
	read   ScanProgress
}

// ScanSecrets reads every line of every generation and epoch, bytes that others replaced, checkpoints, every version of
// documents, and attachments. It calls found for each position with secrets, and progress after each transcript, on the
// caller's goroutine. What is stored meanwhile may be left out, and so are artifacts of sessions without lines. masker
// has the rules.
func ScanSecrets(ctx context.Context, store scanStore, masker *redact.Masker, found func(SecretFinding),
	progress func(ScanProgress)) (ScanProgress, error) {
	s := scanner{masker: masker, found: found}
	var streams []server.Session
	err := Epochs(ctx, store, func(snap server.Snapshot) error {
		if x := snap.Session(); len(streams) == 0 || streams[len(streams)-1].ID != x.ID {
			streams = append(streams, x)
		}
		return s.epoch(ctx, snap)
	}, func() {
		s.read.Streams++
		progress(s.read)
	})
	for _, x := range streams {
		if err == nil {
			err = s.artifacts(ctx, store, x)
			progress(s.read)
		}
	}
	return s.read, err
}

func (s *scanner) epoch(ctx context.Context, snap server.Snapshot) error {
	for _, g := range snap.Generations() {
		all := server.Span{Generation: g.Number, From: 0, To: max(g.EndLine, g.RewoundTo)}
		at := SecretFinding{Session: snap.Session(), Epoch: snap.Session().Epoch, Generation: g.Number}
		err := everyLine(ctx, snap, all, func(l server.Line, replaced bool) error {
			at.Replaced = replaced
			s.line(l, at)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// everyLine yields the lines of a span, and then the bytes that others replaced.
func everyLine(ctx context.Context, snap server.Snapshot, s server.Span, yield func(l server.Line, replaced bool) error,
) error {
	if err := snap.Lines(ctx, s, func(l server.Line) error { return yield(l, false) }); err != nil {
		return err
	}
	return snap.Replaced(ctx, s, func(l server.Line, _ time.Time) error { return yield(l, true) })
}

func (s *scanner) line(l server.Line, at SecretFinding) {
	s.read.Lines++
	s.read.Bytes += int64(len(l.Raw)) + 1
	_, ranges := s.masker.Line(l.Raw)
	at.Line = l.Index
	s.report(at, ranges)
}

// report passes on what was found at a position, if anything was.
func (s *scanner) report(at SecretFinding, ranges []redact.Range) {
	if len(ranges) == 0 {
		return
	}
	at.Secrets = len(ranges)
	for _, r := range ranges {
		at.Rules = append(at.Rules, r.Rule)
	}
	slices.SortFunc(at.Rules, strings.Compare)
	at.Rules = slices.Compact(at.Rules)
	s.found(at)
}

const (
	// maxFile is the largest document or attachment that is searched, in bytes. Larger ones are counted.
	maxFile      = 16 << 20
	scanPageSize = 100
)

// everything sees what all users have.
var everything = server.Scope{All: true}

// artifacts searches the checkpoints, all versions of the documents, and the attachments of a transcript.
func (s *scanner) artifacts(ctx context.Context, store scanStore, x server.Session) error {
	ref := server.Ref{Stream: x.ID}
	at := SecretFinding{Session: x, Line: -1}
	err := s.checkpoints(ctx, store, ref, at)
	if err == nil {
		err = s.documents(ctx, store, ref, at)
	}
	if err == nil {
		err = s.attachments(ctx, store, ref, at)
	}
	if errors.Is(err, server.ErrNotFound) { // forgotten meanwhile
		return nil
	}
	return err
}

func (s *scanner) checkpoints(ctx context.Context, store scanStore, ref server.Ref, at SecretFinding) error {
	for q := (server.CheckpointQuery{Ref: &ref, Limit: scanPageSize}); ; {
		page, err := store.Checkpoints(ctx, everything, q)
		if err != nil {
			return err
		}
		for _, c := range page.List {
			at.Place = "checkpoint " + c.ID
			_, ranges := s.masker.Text([]byte(c.Summary))
			s.report(at, ranges)
			s.read.Bytes += int64(len(c.Summary))
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

func (s *scanner) documents(ctx context.Context, store scanStore, ref server.Ref, at SecretFinding) error {
	list, err := store.Documents(ctx, everything, ref)
	if err != nil {
		return err
	}
	for _, d := range list {
		for p := (server.VersionPage{Limit: scanPageSize}); ; {
			page, err := store.Versions(ctx, everything, ref, d.Path, p)
			if err != nil {
				return err
			}
			for _, v := range page.List {
				_, content, err := store.Content(ctx, everything, ref, d.Path, v.N)
				if errors.Is(err, server.ErrNoContent) {
					continue
				}
				at.Place = fmt.Sprintf("document %s, version %d", d.Path, v.N)
				if err == nil {
					err = s.file(at, d.Path, v.Size, content)
				}
				if err != nil {
					return err
				}
			}
			if p.Before = page.Next; p.Before == 0 {
				break
			}
		}
	}
	return nil
}

func (s *scanner) attachments(ctx context.Context, store scanStore, ref server.Ref, at SecretFinding) error {
	list, err := store.Blobs(ctx, everything, ref)
	if err != nil {
		return err
	}
	for _, b := range list {
		_, content, err := store.BlobContent(ctx, everything, b.SHA256)
		at.Place = "attachment " + b.Name
		if err == nil {
			err = s.file(at, b.Name, b.Size, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file searches a file, unless it is too large or no text.
func (s *scanner) file(at SecretFinding, path string, size int64, content io.Reader) error {
	if size > maxFile {
		s.read.Skipped++
		return nil
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("read %s: %w", at.Place, err)
	}
	s.read.Files++
	s.read.Bytes += int64(len(text))
	_, ranges := s.masker.File(path, text)
	s.report(at, ranges)
	return nil
}
