// Package remask masks secrets in what servers stored in the clear: in every generation and epoch of this machine's
// transcripts, in bytes that others replaced, in checkpoints, and in files. It does not know what a secret is, or how
// lines are delivered.
package remask

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript/redact"
)

// Servers are the destinations.
type Servers interface {
	// Reader returns a client of a server's reading API, never nil.
	Reader(dest string) *remote.Client
	// SpeaksExtension reports whether a server is known to speak the extension.
	SpeaksExtension(dest string) bool
}

// Masking decides where secrets are masked.
type Masking interface {
	// For returns the masker for texts of a project, given its folder, on their way to a server; nil: no masking.
	For(dest, cwd string) *redact.Masker
}

// Deps is what a Remasker needs. Every field is required.
type Deps struct {
	Servers Servers
	Masking Masking
	Machine string // name of this machine at the servers
}

// Remasker masks what servers have. Safe for concurrent use.
type Remasker struct{ Deps }

// New returns a Remasker. It starts nothing.
func New(d Deps) *Remasker { return &Remasker{d} }

// patience is how long one call of Run takes, a transcript that it began to read aside.
const patience = 5 * time.Second

// transcript is one on a server.
type transcript struct {
	dest    string
	session remote.Session
}

// Run handles the transcripts on some servers from an offset on, for some seconds, and returns the offset of the next
// call, 0 when all are done. With dry it only counts. What is masked already is found to be so: an interrupted run can
// begin again.
func (r *Remasker) Run(ctx context.Context, dests []string, offset int,
	dry bool) (sum control.OldBytes, err error) {
	list, plain, err := r.list(ctx, dests)
	if err != nil {
		return sum, err
	}
	sum.Total, sum.Plain = len(list), plain
	began, able := time.Now(), map[string]bool{}
	for i := max(0, offset); i < len(list); i++ {
		if i > offset && time.Since(began) > patience {
			sum.Next = i
			return sum, nil
		}
		t := list[i]
		ref := remote.Ref{Session: t.session.SessionID, User: remote.Me, Machine: &r.Machine}
		p := pass{
			reader: r.Servers.Reader(t.dest).Of(""), masker: r.Masking.For(t.dest, t.session.Cwd), ref: ref, dry: dry,
		}
		if !able[t.dest] {
			if err := p.possible(ctx); err != nil {
				return sum, err
			}
			able[t.dest] = true
		}
		done, err := p.run(ctx)
		if err != nil {
			return sum, err
		}
		sum.Lines += done.Lines
		sum.Checkpoints += done.Checkpoints
		sum.Files += done.Files
		if done != (remote.Masked{}) {
			sum.Transcripts++
		}
	}
	return sum, nil
}

// list returns the transcripts of this machine on servers for which secrets are masked, and those of these servers
// that cannot be asked.
func (r *Remasker) list(ctx context.Context, dests []string) (list []transcript, plain []string, err error) {
	for _, dest := range dests {
		if r.Masking.For(dest, "") == nil {
			continue
		}
		if !r.Servers.SpeaksExtension(dest) {
			plain = append(plain, dest)
			continue
		}
		q := remote.Query{Machine: &r.Machine, User: remote.Me, Agents: true}
		err := r.Servers.Reader(dest).Sessions(ctx, q, 1000, func(s *remote.Session) bool {
			list = append(list, transcript{dest, *s})
			return true
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list transcripts of this machine: %w", err)
		}
	}
	return list, plain, nil
}
