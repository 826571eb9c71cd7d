// Package scan finds secrets in stored lines, by the rules that daemons mask with. It changes nothing, and what it
// answers holds no secret.
package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/walk"
	"github.com/ccship/ccship/transcript/redact"
)

// Finding is a line with secrets.
type Finding struct {
	Session    server.Session
	Epoch      string
	Generation int64
	Line       int64
	Replaced   bool     // other bytes have replaced the line since; the store keeps these too
	Secrets    int      // in the line
	Rules      []string // that found them, each once
}

// Progress is how much was read.
type Progress struct{ Streams, Lines, Bytes int64 }

// scanner reads stream after stream.
type scanner struct {
	masker *redact.Masker
	found  func(Finding)
	read   Progress
}

// Run reads every line of every generation and epoch, and bytes that others replaced. It calls found for each line with
// secrets, and progress after each transcript, on the caller's goroutine. What is stored meanwhile may be left out.
func Run(ctx context.Context, store server.Catalog, found func(Finding), progress func(Progress)) (Progress, error) {
	masker, err := redact.New(redact.NewKey()) // tokens are not kept
	if err != nil {
		return Progress{}, fmt.Errorf("load rules: %w", err)
	}
	s := scanner{masker: masker, found: found}
	err = walk.Epochs(ctx, store, func(snap server.Snapshot) error { return s.epoch(ctx, snap) }, func() {
		s.read.Streams++
		progress(s.read)
	})
	return s.read, err
}

func (s *scanner) epoch(ctx context.Context, snap server.Snapshot) error {
	for _, g := range snap.Generations() {
		all := server.Span{Generation: g.Number, From: 0, To: max(g.EndLine, g.RewoundTo)}
		at := Finding{Session: snap.Session(), Epoch: snap.Session().Epoch, Generation: g.Number}
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

func (s *scanner) line(l server.Line, at Finding) {
	s.read.Lines++
	s.read.Bytes += int64(len(l.Raw)) + 1
	_, ranges := s.masker.Line(l.Raw)
	if len(ranges) == 0 {
		return
	}
	at.Line, at.Secrets = l.Index, len(ranges)
	for _, r := range ranges {
		at.Rules = append(at.Rules, r.Rule)
	}
	slices.SortFunc(at.Rules, strings.Compare)
	at.Rules = slices.Compact(at.Rules)
	s.found(at)
}
