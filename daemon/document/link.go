package document

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state/projection"
)

// maxLinked is how many documents a session can have: the introduction lists all of them.
const maxLinked = 100

// linkRequest asks for a file to be linked or unlinked.
type linkRequest struct {
	session    string
	base, path string
	by         string // byUser, byMCP or byViewer
	private    bool   // the user allows a file for keys or passwords
	line       int64  // of the transcript; -1: none
	id         string // of the viewer's request; "" for the others
	asks       []projection.LinkRequest
}

// link links a file. Linking a file that is already linked does nothing. A refusal is a *refusedError.
func (t *Tracker) link(ctx context.Context, r linkRequest) error {
	t.work.Lock()
	defer t.work.Unlock()
	loc, err := t.Locator.Locate(ctx, r.session)
	if err != nil {
		return err
	}
	folder, err := t.open(&loc)
	if err != nil {
		return err
	}
	defer folder.Close()
	folder.AllowPrivate = r.private && r.by == byUser
	name, err := find(folder, &r)
	if err != nil {
		return err
	}
	loc = t.locationOf(loc, folder.Path(name))
	if r.id != "" && loc.Withheld != "" { // this answer, and no other, can be sent
		return &refusedError{Message: name + " stays on that machine", Hint: "its folder is excluded there"}
	}
	d, linked := t.lookUp(loc.Session, folder, name)
	c := change{by: r.by, line: r.line, requestID: r.id, asks: r.asks}
	if d.Linked && !d.elsewhere(identityOf(folder.self)) {
		c.document = d
		if r.id != "" {
			t.confirm(&c, folder)
		}
		return t.publish(ctx, loc, &c)
	}
	if !d.Linked && linked >= maxLinked {
		return &refusedError{
			Message: fmt.Sprintf("the session has %d linked documents, and can have no more",
				linked), Hint: "`ccship link rm PATH` ends a link",
		}
	}
	c.document = d
	return t.linkNew(ctx, loc, folder, name, &c)
}

// find returns the name of the file that a request means. Claude may be in a subfolder, and mean a path below the
// folder in which it began.
func find(folder *folder, r *linkRequest) (string, error) {
	name, err := folder.Find(r.base, r.path)
	if err != nil && r.by == byMCP {
		if other, e := folder.Find("", r.path); e == nil {
			return other, nil
		}
	}
	return name, err
}

// lookUp returns what is known of a file of a session, and how many documents the session has.
func (t *Tracker) lookUp(session string, folder *folder, name string) (d trackedDocument, linked int) {
	d.Session, d.Path = session, name
	for _, known := range t.list(session, false) {
		if known.Linked {
			linked++
		}
		if known.Path == name || known.Linked && folder.Same(known.Path, name) {
			d = known
		}
	}
	return d, linked
}

// confirm makes c the answer to a viewer that asks for an existing link. It carries the content of the last version if
// the file still has it.
func (t *Tracker) confirm(c *change, folder *folder) {
	c.kind = kindLinked
	content, err := t.read(folder, c.document.Path)
	if err == nil && !content.Torn && content.SHA256 == c.document.SHA256 {
		c.content, c.root = content, folder.Root()
	}
}

// linkNew links a file that is not linked, or was linked in another folder.
func (t *Tracker) linkNew(ctx context.Context, loc Location, folder *folder, name string, c *change) error {
	content, err := t.read(folder, name)
	if err != nil {
		return err
	}
	loc = t.locationOf(loc, content.Path)
	c.content, c.root, c.kind = content, folder.Root(), kindLinked
	d := &c.document
	d.Linked, d.AddedAt, d.AddedBy = true, time.Now().UnixMilli(), c.by
	d.Folder, d.placed = identityOf(folder.self), true
	d.newVersion(content, c.by)
	d.problem = loc.problem()
	if content.TooLarge {
		c.catch = fmt.Sprintf("its content is not kept: %d bytes are more than the option document_cap allows", content.Size)
	}
	c.notice = c.catch != "" || c.by != byMCP && t.introduced(ctx, loc)
	return t.publish(ctx, loc, c)
}

// introduced reports whether a session's Claude may have started. Its introduction then lacks the link.
func (t *Tracker) introduced(ctx context.Context, loc Location) bool {
	if loc.File != 0 {
		return true
	}
	_, found, _ := t.Introductions.Get(ctx, loc.Session)
	return found
}

// read reads a document for a new version. If the file is being written, it tries a few times.
func (t *Tracker) read(folder *folder, name string) (*content, error) {
	for tries := 3; ; tries-- {
		c, err := folder.Read(name, t.Settings.Config().DocumentCap, outbox.BlobInRow)
		if errors.Is(err, errGone) {
			return nil, &refusedError{Message: name + " was removed", Hint: "a document must exist when it is linked"}
		}
		if err != nil || !c.Torn || tries == 0 {
			return &c, err
		}
	}
}

// unlink ends a link. The file need not exist any more. A refusal is a *refusedError.
func (t *Tracker) unlink(ctx context.Context, r linkRequest) error {
	t.work.Lock()
	defer t.work.Unlock()
	loc, err := t.Locator.Locate(ctx, r.session)
	if err != nil {
		return err
	}
	names := t.names(loc, &r)
	for _, d := range t.list(loc.Session, true) {
		if !slices.Contains(names, d.Path) {
			continue
		}
		d.Linked, d.problem = false, ""
		d.Version++
		d.ChangedAt, d.By = time.Now().UnixMilli(), r.by
		if r.id == "" { // a viewer gets its answer wherever the file lies
			loc = t.locationOf(loc, loc.path(&d))
		}
		return t.publish(ctx, loc, &change{document: d, kind: kindUnlinked, by: r.by, line: r.line, requestID: r.id,
			asks: r.asks})
	}
	return &refusedError{Message: r.path + " is not linked to the session", Hint: "`ccship link list` names what is"}
}

// names returns the names that a request to unlink may mean.
func (t *Tracker) names(loc Location, r *linkRequest) []string {
	names := append(names(r.base, r.path, loc.Cwd), r.path)
	folder, err := t.open(&loc)
	if err != nil {
		return names
	}
	defer folder.Close()
	names = append(names, folder.Names(r.base, r.path)...)
	if name, err := folder.Find(r.base, r.path); err == nil {
		names = append(names, name)
	}
	return names
}

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
