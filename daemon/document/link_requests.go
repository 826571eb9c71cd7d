package document

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/projection"
)

const (
	slowPoll    = time.Minute      // between requests to a server that accepts documents
	fastPoll    = 5 * time.Second  // while a session is being written: a user may be looking at it
	fastFor     = 30 * time.Second // after a session was written
	requestTime = 20 * time.Second // for the answer of a server
	maxDone     = 1000             // requests that are remembered as done
)

// Servers are the servers that documents go to. Its methods must be safe for concurrent use.
type Servers interface {
	// TakingDocuments returns the servers that accept documents; none while the user has paused delivery.
	TakingDocuments() []string
	// Reader returns a client of a server's reading API.
	Reader(dest string) *remote.Client
}

// LinkRequests carries out the requests of people in the viewers of servers: it links and unlinks documents. A server
// can have a file linked only if the user allows it with viewer_links, because it could ask for any file of a project.
// Its address proves nothing: a loopback port may belong to another user's program, or to a tunnel.
type LinkRequests struct {
	tracker *Tracker
	machine string
	servers Servers
	bell    outbox.Bell

	mu        sync.Mutex
	announced map[string]bool // servers that have requests; guarded by mu

	done map[string]bool // by server and id: answered, but the server may not know yet; owned by Run
}

// NewLinkRequests returns the link requests for a machine. Run starts them.
func NewLinkRequests(t *Tracker, machine string, servers Servers) *LinkRequests {
	return &LinkRequests{
		tracker: t, machine: machine, servers: servers, bell: outbox.NewBell(), announced: map[string]bool{},
		done: map[string]bool{},
	}
}

// Announce notes that a server has requests. It does not block.
func (l *LinkRequests) Announce(dest string) {
	l.mu.Lock()
	l.announced[dest] = true
	l.mu.Unlock()
	l.bell.Ring()
}

// Run fetches requests and carries them out until ctx is done.
func (l *LinkRequests) Run(ctx context.Context) error {
	tick := time.NewTicker(fastPoll)
	defer tick.Stop()
	last := time.Now()
	for {
		var dests []string
		select {
		case <-ctx.Done():
			return nil
		case <-l.bell:
			dests = l.takeAnnounced()
		case now := <-tick.C:
			active := now.Sub(time.UnixMilli(l.tracker.lastWritten.Load())) < fastFor
			if !active && now.Sub(last) < slowPoll {
				continue
			}
			last, dests = now, l.servers.TakingDocuments()
		}
		for _, dest := range dests {
			l.fetch(ctx, dest)
		}
	}
}

func (l *LinkRequests) takeAnnounced() (dests []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for dest := range l.announced {
		dests = append(dests, dest)
	}
	clear(l.announced)
	return dests
}

// fetch gets a server's requests and carries them out. A request that fails is fetched again.
func (l *LinkRequests) fetch(ctx context.Context, dest string) {
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	log := l.tracker.Log.With("server", project.ServerURL(dest))
	list, err := l.servers.Reader(dest).LinkRequests(limited, l.machine)
	if err != nil {
		log.Debug("cannot fetch link requests", "err", err)
		return
	}
	for _, r := range list {
		key := dest + " " + r.ID
		if r.ID == "" || l.done[key] {
			continue
		}
		if err := l.do(ctx, dest, r); err != nil {
			log.Debug("cannot do a link request; retrying", "session", r.SessionID, "err", err)
			continue
		}
		if len(l.done) >= maxDone {
			clear(l.done) // carrying out a request twice is harmless
		}
		l.done[key] = true
	}
}

// do carries out one request, or refuses it. It returns nil once the answer is queued.
func (l *LinkRequests) do(ctx context.Context, dest string, r protocol.LinkRequest) error {
	t := l.tracker
	loc, err := t.Locator.Locate(ctx, r.SessionID)
	if err != nil {
		return err
	}
	if loc.Dest != dest || loc.File == 0 || !t.canSend(loc) {
		return errors.New("nothing of the session goes to that server now")
	}
	req := linkRequest{session: loc.Session, path: r.Path, by: byViewer, line: -1, id: r.ID}
	switch {
	case !r.Link:
		err = t.unlink(ctx, req)
	case t.Settings.Config().ViewerLinks:
		err = t.link(ctx, req)
	default:
		err = control.BadDocument("this machine accepts viewer requests only with viewer_links = true in its config", "")
	}
	refusal, ok := errors.AsType[*control.Error](controlError(err))
	if !ok {
		return err
	}
	t.Log.Info("a link request is refused", "server", project.ServerURL(dest), "session", loc.Session, "path", r.Path,
		"link", r.Link,
		"err", refusal.Message)
	t.work.Lock()
	defer t.work.Unlock()
	d := trackedDocument{Document: projection.Document{Session: loc.Session, Path: r.Path}}
	return t.publish(ctx, loc, &change{
		document: d, kind: kindRefused, by: byViewer, line: -1, requestID: r.ID, reason: refusal.Message,
	})
}
