package proof

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript/redact"
)

// remaskServers are the destinations.
type remaskServers interface {
	// Reader returns a client of a server's reading API, never nil.
	Reader(dest string) *remote.Client
	// SpeaksExtension reports whether a server is known to speak the extension.
	SpeaksExtension(dest string) bool
}

// remaskMasking decides where secrets are masked.
type remaskMasking interface {
	// For returns the masker for texts of a project, given its folder, on their way to a server; nil: no masking.
	For(dest, cwd string) *redact.Masker
}

// Remasker masks what servers have. Every field is required. Safe for concurrent use.
type Remasker struct {
	Servers remaskServers
	Masking remaskMasking
	Machine string // name of this machine at the servers
}

// patience is how long one call of Run takes, a transcript that it began to read aside.
const patience = 5 * time.Second

// remaskFile is one on a server.
type remaskFile struct {
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
	began := time.Now()
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
		done, err := p.run(ctx)
		if err != nil {
			return sum, err
		}
		sum.Lines += done.Lines
		sum.Checkpoints += done.Checkpoints
		sum.Files += done.Files
		if done.Any() {
			sum.Transcripts++
		}
	}
	return sum, nil
}

// list returns the transcripts of this machine on servers for which secrets are masked, and those of these servers
// that cannot be asked.
func (r *Remasker) list(ctx context.Context, dests []string) (list []remaskFile, plain []string, err error) {
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
			list = append(list, remaskFile{dest, *s})
			return true
		})
		if err != nil {
			return nil, nil, fmt.Errorf("list transcripts of this machine: %w", err)
		}
	}
	return list, plain, nil
}
