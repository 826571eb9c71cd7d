package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/tail"
)

// socket answers the control socket. Most requests go to the package they concern; the daemon answers the rest.
type socket struct {
	*Daemon
	control.Inbox
}

var _ control.Daemon = socket{}

// errRemoved means that the control socket's file is gone.
var errRemoved = errors.New("the control socket was removed")

// serveSocket answers the control socket until ctx is done. One that is removed, as with a runtime folder when its user
// logs out, is made again.
func (d *Daemon) serveSocket(ctx context.Context, ln net.Listener) error {
	path, endpoint := ln.Addr().String(), control.NewServer(socket{d, d.inbox}, d.log)
	for {
		watching, end := context.WithCancelCause(ctx)
		go func() {
			for !missing(path) {
				if pause(watching, checkInterval) != nil {
					return
				}
			}
			end(errRemoved)
			_ = ln.Close() // ends Serve
		}()
		err := endpoint.Serve(ctx, ln)
		end(nil)
		if ctx.Err() != nil || !errors.Is(context.Cause(watching), errRemoved) {
			return err
		}
		d.log.Warn(errRemoved.Error()+"; making it again", "path", path)
		for ln, err = control.Listen(path); err != nil; ln, err = control.Listen(path) {
			d.log.Debug("cannot make the control socket again yet", "err", err)
			if pause(ctx, checkInterval) != nil {
				return nil //nolint:nilerr // the daemon stops
			}
		}
	}
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// pause waits for a time, or returns the error of ctx.
func pause(ctx context.Context, t time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(t):
		return nil
	}
}

// Probe probes the servers that have not answered for a while.
func (a socket) Probe(ctx context.Context, wait bool) { a.servers.Probe(ctx, wait) }

// Sync reads every file, and waits for delivery if asked to.
func (a socket) Sync(ctx context.Context, req control.SyncRequest) (control.SyncResult, error) {
	defer a.lookElsewhere()
	return a.syncer.Sync(ctx, req)
}

// Forget removes a session everywhere except on disk.
func (a socket) Forget(ctx context.Context, req control.ForgetRequest) (control.ForgetResult, error) {
	return a.forgetter.Forget(ctx, req)
}

// Messages answers the message log of a session's current transcript.
func (a socket) Messages(ctx context.Context, q control.MessagesQuery) (control.Messages, error) {
	s, err := a.router.Lookup(q.Session, a.tailer)
	if err != nil {
		return control.Messages{}, err
	}
	return a.derive.Messages(ctx, s.ID, s.Name, q.Page)
}

// ClearMessages empties a session's message log.
func (a socket) ClearMessages(ctx context.Context, session string) (control.ClearResult, error) {
	s, err := a.router.Lookup(session, a.tailer)
	if err != nil {
		return control.ClearResult{}, err
	}
	return a.derive.ClearMessages(ctx, s.ID, s.Name)
}

// Checkpoints lists a session's checkpoints, or all of them, newest first.
func (a socket) Checkpoints(ctx context.Context, q control.CheckpointsQuery) (control.Checkpoints, error) {
	var s route.Stream
	if q.Session != "" {
		var err error
		if s, err = a.router.Lookup(q.Session, a.tailer); err != nil {
			return control.Checkpoints{}, err
		}
	}
	return a.checkpoints.List(ctx, s.ID, q.Page)
}

// Checkpoint answers the checkpoint with an id.
func (a socket) Checkpoint(ctx context.Context, id string) (control.CheckpointAnswer, error) {
	return a.checkpoints.Get(ctx, id)
}

// CreateCheckpoint makes a checkpoint of a session as it is now.
func (a socket) CreateCheckpoint(ctx context.Context,
	req control.CheckpointRequest) (control.CheckpointAnswer, error) {
	s, err := a.router.Lookup(req.Session, a.tailer)
	if err != nil {
		return control.CheckpointAnswer{}, err
	}
	return a.checkpoints.Create(ctx, s.ID, s.Name, req)
}

// Budgets answers how many tokens a session can hold; for "", the budgets of models and those set for sessions.
func (a socket) Budgets(ctx context.Context, session string) (control.Budgets, error) {
	if session == "" {
		return a.checkpoints.AllBudgets(ctx)
	}
	s, err := a.router.Lookup(session, a.tailer)
	if err != nil {
		return control.Budgets{}, err
	}
	return a.checkpoints.Budget(ctx, s.ID, s.Name)
}

// SetBudget sets how many tokens a session, or every session of a model, can hold.
func (a socket) SetBudget(ctx context.Context, req control.BudgetRequest) (control.Budgets, error) {
	var s route.Stream
	if req.Session != "" {
		var err error
		if s, err = a.router.Lookup(req.Session, a.tailer); err != nil {
			return control.Budgets{}, err
		}
	}
	return a.checkpoints.SetBudget(ctx, s.ID, s.Name, req)
}

// Documents lists what is linked to a session.
func (a socket) Documents(ctx context.Context, session string) (control.Documents, error) {
	name, err := a.session(ctx, session)
	if err != nil {
		return control.Documents{}, err
	}
	return a.documents.List(ctx, name)
}

// LinkDocument links a file to a session.
func (a socket) LinkDocument(ctx context.Context,
	req control.DocumentRequest) (list control.Documents, err error) {
	if req.Session, err = a.session(ctx, req.Session); err != nil {
		return list, err
	}
	return a.documents.Link(ctx, req)
}

// UnlinkDocument ends a link.
func (a socket) UnlinkDocument(ctx context.Context,
	req control.DocumentRequest) (list control.Documents, err error) {
	if req.Session, err = a.session(ctx, req.Session); err != nil {
		return list, err
	}
	return a.documents.Unlink(ctx, req)
}

// AnswerLink makes an answer of ccship-mcp to Claude take effect.
func (a socket) AnswerLink(_ context.Context, req control.LinkAnswerRequest) (control.LinkAnswer, error) {
	if req.Action != "link" && req.Action != "unlink" {
		return control.LinkAnswer{}, control.Usage(fmt.Sprintf("bad action %q", req.Action), "it is link or unlink")
	}
	nonce := a.documents.Answer(req.Action == "link", req.Path)
	return control.LinkAnswer{SchemaVersion: control.SchemaVersion, Nonce: nonce}, nil
}

// session returns the session with this name, or the only one whose name begins with it.
func (a socket) session(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", control.Usage("name a session", "")
	}
	loc, err := locator{a.Daemon}.Locate(ctx, name)
	if err == nil {
		return loc.Session, nil
	}
	found, e := a.router.Lookup(name, a.tailer)
	if e != nil {
		return "", e
	}
	loc, err = locator{a.Daemon}.Locate(ctx, found.Name)
	return loc.Session, err
}

// owner passes on what servers answer to the packages that act on it.
type owner struct{ d *Daemon }

// Announced delivers files again that a server took as a plain one.
func (o owner) Announced(dest string) { o.d.extensionAnnounced(dest) }

// Forgotten notes that a server stores nothing of a stream any more.
func (o owner) Forgotten(stream uint64) { o.d.forgetter.AtServer(stream) }

// LinkRequests asks a server for its pending link requests.
func (o owner) LinkRequests(dest string) { o.d.linkRequests.Announce(dest) }

// OutOfStep starts a comparison of what a server stores with what is here.
func (o owner) OutOfStep(dest string, why protocol.Refusal) { o.d.reconciler.OutOfStep(dest, why) }

// OpenBlob opens a file to be sent, masked for its server, unless the file belongs to ccship by now.
func (o owner) OpenBlob(dest, cwd string, ref *outbox.BlobRef) (outbox.Content, error) {
	return o.d.guard.Open(ref.Root, ref.Path, o.d.masking.For(dest, cwd).ReaderAt)
}

// ConfigInForce reports whether the configuration in force is the one on disk.
func (o owner) ConfigInForce() bool {
	return o.d.badConfig.Load() == nil && config.Stamp(o.d.conf.Load().Path) == *o.d.lastRead.Load()
}

// TrustsProject reports whether lines of the project in a folder go to the server that the project itself names.
func (o owner) TrustsProject(dir string) bool {
	return project.Trusted(dir, o.d.router.Rules().TrustedProjects)
}

// Accepts queues again what was withheld from a server that now accepts further kinds of rows.
func (o owner) Accepts(dest string, kinds outbox.Kinds, again bool) error {
	ctx, d := context.Background(), o.d
	if kinds.Has(outbox.Blob) {
		if again {
			if err := d.projections.Attachments.Forget(ctx, dest, 0); err != nil {
				return err
			}
		}
		d.attachments.ListAll()
	}
	if kinds.Has(outbox.Checkpoints) && again {
		if err := d.storedCheckpoints.Resend(ctx, dest); err != nil {
			return err
		}
	}
	if kinds.Has(outbox.Documents) && again {
		return d.documents.Resend(ctx, dest)
	}
	return nil
}

// Excludes returns why transcripts are not delivered, and how many of those on disk each reason covers.
func (d *Daemon) Excludes(ctx context.Context) (control.Excludes, error) {
	conf := d.conf.Load()
	a := control.Excludes{
		SchemaVersion: control.SchemaVersion, Config: conf.Path, Origin: string(conf.OriginOf("exclude_projects")),
		Patterns: []control.Exclusion{},
	}
	counts, err := d.reasons(ctx)
	if err != nil {
		return a, err
	}
	for _, pattern := range conf.ExcludeProjects {
		why := project.ExcludedBy(pattern)
		a.Patterns = append(a.Patterns, control.Exclusion{Pattern: pattern, Transcripts: counts[why]})
		delete(counts, why)
	}
	for why, n := range counts {
		a.Others = append(a.Others, control.Reason{Why: why, Transcripts: n})
	}
	slices.SortFunc(a.Others, func(x, y control.Reason) int { return cmp.Compare(x.Why, y.Why) })
	return a, nil
}

// reasons counts the transcripts on disk that are not delivered, by reason.
func (d *Daemon) reasons(ctx context.Context) (map[string]int, error) {
	facts, err := d.db.Files.Routings(ctx)
	if err != nil {
		return nil, err
	}
	out := d.router.ExcludedOnDisk(d.tailer)
	for id, e := range d.router.ExcludedNow(facts) {
		out[id] = e.Why
	}
	counts := map[string]int{}
	for _, t := range d.tailer.Present() {
		if why, excluded := out[t.File.ID]; excluded && t.File.Kind != tail.History {
			counts[why]++
		}
	}
	return counts, nil
}
