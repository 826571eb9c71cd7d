package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// forgetDerived is what was derived from transcripts.
type forgetDerived interface {
	// Forget removes what was derived from some transcripts.
	Forget(ctx context.Context, ids []tail.FileID) error
}

// forgetDocuments are the files that are linked to sessions.
type forgetDocuments interface {
	// Forget ends the links of a session and removes what is known of them.
	Forget(ctx context.Context, session string) error
}

// forgetSessions is a part that keeps something of sessions in memory.
type forgetSessions interface {
	// Forget removes what is kept of a session.
	Forget(session string)
}

// Forgetter forgets sessions. All fields are required. Its methods may be called at any time.
type Forgetter struct {
	State     *state.DB
	Files     *tail.Tailer
	Router    *route.Router
	Servers   *delivery.Servers
	Derived   forgetDerived
	Documents forgetDocuments
	Inbox     forgetSessions
	Rewrites  forgetSessions
	Log       *slog.Logger
}

// inFlight is longer than a request of usual size can take.
const inFlight = 65 * time.Second

// atOnce limits how long Forget waits for servers; Settle gives them longer.
const atOnce = 10 * time.Second

// Forget removes a session everywhere except on disk. First it leaves a tombstone, so that nothing more is queued. Then
// it drops what waits, and asks the servers. Servers that do not answer are asked later.
func (f *Forgetter) Forget(ctx context.Context, req control.ForgetRequest) (control.ForgetResult, error) {
	a := control.ForgetResult{
		SchemaVersion: control.SchemaVersion, Session: req.Session, Pending: []string{}, Kept: []string{}, OnDisk: []string{},
	}
	if req.Session == "" {
		return a, control.Usage("name a session", "")
	}
	known := f.Router.Forgotten(req.Session)
	files, dests, err := f.streamsOf(ctx, req.Session)
	if err != nil {
		return a, err
	}
	for _, t := range files {
		if a.Transcripts++; t.Gone == 0 {
			a.OnDisk = append(a.OnDisk, t.File.Path)
		}
	}
	slices.Sort(a.OnDisk)
	a.Kept, dests = f.plainOnes(dests)
	if err := f.dropSession(ctx, req.Session, dests, &a, files); err != nil {
		return a, err
	}
	soon, cancel := context.WithTimeoutCause(ctx, atOnce, fmt.Errorf("no answer for %s", atOnce))
	defer cancel()
	answers, err := f.askServers(soon, req.Session, dests)
	a.Lines, a.Kept = answers.lines, append(a.Kept, answers.kept...)
	for _, dest := range f.Router.Tombstones.Pending(req.Session) {
		a.Pending = append(a.Pending, project.ServerURL(dest))
	}
	if err != nil {
		a.Detail = err.Error()
	}
	if !answers.found && err == nil && len(files) == 0 && !known {
		e := f.Router.Tombstones.Remove(ctx, req.Session)
		return a, errors.Join(e, control.NoSession("there is no session "+req.Session, "`ccship list` lists them"))
	}
	f.Log.Info("session forgotten",
		"session", req.Session, "transcripts", a.Transcripts, "lines", a.Lines, "pending", a.Pending)
	return a, nil
}

// streamsOf finds the files of a session and of its agents, and the destinations that may have lines of them.
func (f *Forgetter) streamsOf(ctx context.Context, session string) (files []tail.Tracked, dests []string, err error) {
	facts, err := f.State.Files.Routings(ctx)
	if err != nil {
		return nil, nil, err
	}
	servers := map[string]bool{}
	if own := f.Servers.Own(); own != "" {
		servers[own] = true
	}
	tracked, err := f.tracked(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range tracked {
		known := facts[t.File.ID]
		names := transcript.ForgetNames(f.Router.StreamName(&known, t.File))
		if !slices.Contains(names, session) && known.Stream.Parent != session {
			continue
		}
		files = append(files, t)
		if known.Dest != "" {
			servers[known.Dest] = true
		}
	}
	return files, slices.Sorted(maps.Keys(servers)), nil
}

// tracked returns the files that the tailer knows and those of the state: right after its start the tailer knows none.
func (f *Forgetter) tracked(ctx context.Context) ([]tail.Tracked, error) {
	stored, err := f.State.Files.Load(ctx)
	if err != nil {
		return nil, err
	}
	all := f.Files.Files()
	seen := map[tail.FileID]bool{}
	for i := range all {
		seen[all[i].File.ID] = true
	}
	for i := range stored {
		if !seen[stored[i].File.ID] {
			all = append(all, stored[i])
		}
	}
	return all, nil
}

// plainOnes splits the destinations into plain servers, which cannot forget, and the others.
func (f *Forgetter) plainOnes(dests []string) (plain, others []string) {
	plain = []string{}
	for _, dest := range dests {
		if f.Servers.Protocol(dest) == "plain" {
			plain = append(plain, project.ServerURL(dest))
		} else {
			others = append(others, dest)
		}
	}
	return plain, others
}

// dropSession leaves the tombstone, and drops what waits.
func (f *Forgetter) dropSession(ctx context.Context, session string, dests []string, a *control.ForgetResult,
	files []tail.Tracked) error {
	now := time.Now().UTC().Round(0)
	again := now.Add(inFlight)
	err := f.Router.Tombstones.Put(ctx, route.Tombstone{Session: session, At: now, Pending: dests, Again: &again,
		Dests: dests})
	if err != nil {
		return err
	}
	f.Rewrites.Forget(session)
	f.Inbox.Forget(session)
	if err := f.Documents.Forget(ctx, session); err != nil {
		return err
	}
	dropped, err := f.dropFiles(ctx, files)
	a.Waiting, a.Dead = dropped.Entries, dropped.Dead
	return err
}

// dropFiles excludes some files from delivery, and drops what waits of them.
func (f *Forgetter) dropFiles(ctx context.Context, files []tail.Tracked) (state.Dropped, error) {
	f.Router.ExcludeForgotten(files)
	ids := []tail.FileID{}
	for _, t := range files {
		ids = append(ids, t.File.ID)
	}
	defer f.State.Scrub() // no text of a forgotten session stays in the state file
	if err := f.Derived.Forget(ctx, ids); err != nil {
		return state.Dropped{}, err
	}
	return f.State.Outbox.Drop(ctx, ids)
}

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
