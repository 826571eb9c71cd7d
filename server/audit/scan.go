package audit

import (
	"context"
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
		err := snap.Lines(ctx, all, func(l server.Line) error {
			s.line(l, at)
			return nil
		})
		if err != nil {
			return err
		}
		at.Replaced = true
		err = snap.Replaced(ctx, all, func(l server.Line, _ time.Time) error {
			s.line(l, at)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
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
