package proof

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/tail"
)

// forgetAnswers sums up what servers answer when they are asked to forget a session.
type forgetAnswers struct {
	lines  int64    // removed
	found  bool     // a server had the session
	kept   []string // addresses of the servers that will never remove it
	failed []string // destinations to ask again
}

// askServers asks servers to forget a session, all at once. A server that answered is no longer pending, even if it
// refuses permanently. What gives nothing back where a server with the extension was is a proxy without it: it is asked
// again. The error is the first one.
func (f *Forgetter) askServers(ctx context.Context, session string, dests []string) (a forgetAnswers, first error) {
	gone, errs := make([]remote.Forgotten, len(dests)), make([]error, len(dests))
	var asked sync.WaitGroup
	for i, dest := range dests {
		asked.Go(func() { gone[i], errs[i] = f.Servers.Reader(dest).Forget(ctx, session) })
	}
	asked.Wait()
	var done []string
	for i, dest := range dests {
		err := errs[i]
		final := remote.Is(err, remote.CodeNotAllowed) ||
			remote.Is(err, remote.CodeNoReading) && !f.Servers.SpeaksExtension(dest)
		switch {
		case err == nil:
			a.lines, a.found = a.lines+gone[i].Lines, true
		case remote.Is(err, control.CodeNoSession):
		default:
			first = cmp.Or(first, err)
		}
		if final {
			a.kept = append(a.kept, project.ServerURL(dest))
		}
		if final || err == nil || remote.Is(err, control.CodeNoSession) {
			done = append(done, dest)
		} else {
			a.failed = append(a.failed, dest)
		}
	}
	if len(done) == 0 {
		return a, first
	}
	return a, errors.Join(first, f.Router.Tombstones.Asked(context.WithoutCancel(ctx), session, done))
}

// Settle asks the pending servers, and asks once more those that may have received a request since. A server that fails
// is not asked for further sessions: others are. The errors are joined.
func (f *Forgetter) Settle(ctx context.Context, now time.Time) error {
	var errs []error
	failed := map[string]bool{}
	for _, x := range f.Router.Tombstones.Due(now) {
		dests := x.Pending
		if x.AgainDue(now) {
			dests = x.Dests
			if err := f.Router.Tombstones.AskAgain(ctx, x.Session); err != nil {
				return err
			}
		}
		dests = slices.DeleteFunc(slices.Clone(dests), func(dest string) bool { return failed[dest] })
		answers, err := f.askServers(ctx, x.Session, dests)
		if err != nil {
			f.Log.Debug("cannot ask a server yet to forget a session", "session", x.Session, "err", err)
			errs = append(errs, err)
		}
		for _, dest := range answers.failed {
			failed[dest] = true
		}
	}
	return errors.Join(errs...)
}

// AtServer leaves a tombstone for a stream that a server refuses as forgotten: it was forgotten there, or here before
// the state was lost.
func (f *Forgetter) AtServer(stream uint64) {
	ctx := context.Background()
	facts, known, err := f.State.Files.Routing(ctx, tail.FileID(stream))
	if err == nil && known && facts.Decided && !f.Router.Forgotten(facts.Stream.SessionID) {
		err = f.Router.Tombstones.Put(ctx, route.Tombstone{Session: facts.Stream.SessionID, At: time.Now().UTC().Round(0)})
		f.Rewrites.Forget(facts.Stream.SessionID)
		f.Log.Info("the server has forgotten a session: it is not sent any more", "session", facts.Stream.SessionID)
	}
	if err == nil && known && facts.Decided && facts.Stream.Parent == "" {
		f.Inbox.Forget(facts.Stream.SessionID)
		err = f.Documents.Forget(ctx, facts.Stream.SessionID)
	}
	if t, ok := f.Files.File(tail.FileID(stream)); ok && err == nil {
		_, err = f.dropFiles(ctx, []tail.Tracked{t})
	}
	if err != nil {
		f.Log.Warn("cannot store that a session was forgotten", "err", err)
	}
}
