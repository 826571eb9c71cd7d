package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/document/file"
	"github.com/ccship/ccship/daemon/inbox"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// mostLinked is how many documents a session can have: its Claude is told of all of them.
const mostLinked = 100

// documents are the files that belong to sessions. They are read when Claude says that it changed them, and looked at
// for the changes of anybody else; each version that is seen is queued for the session's server, in the order in which
// versions were seen. Links are a session's own: a fork of it begins without any.
type documents struct {
	db            *state.DB
	introductions *inbox.Introductions
	log           *slog.Logger
	conf          func() *config.Config
	locate        func(ctx context.Context, session string) (site, error)
	guard         file.Guard
	optout        func(dir string) string // why nothing in a folder may be sent; ""

	bell chan struct{}
	born time.Time // when looks began

	work       sync.Mutex     // held from looking at a file until what came of it is durable; taken before mu
	packer     *outbox.Packer // guarded by work
	complained bool           // something could not be stored, and nothing was since; guarded by work
	optouts    optouts        // guarded by work

	mu      sync.Mutex
	shelves map[string]*shelf // by session, of those with documents or asks; guarded by mu
	hot     time.Duration     // between looks where something happens, at least; guarded by mu
	busy    bool              // run is at work; guarded by mu
}

// site is where a session is.
type site struct {
	session  string
	file     tail.FileID // of its main transcript; 0 while nothing of it is delivered
	cwd      string      // where it was started
	dest     string      // where its lines go; "" nowhere yet
	withheld string      // why nothing of it is sent; ""
	written  time.Time   // its transcript, when it was last
}

// shelf is a session's documents, those that were linked once among them.
type shelf struct {
	papers map[string]paper // by path
	active time.Time        // when something last happened in the session
	due    time.Time        // when they are looked at
	cost   time.Duration    // of a look at them that finds nothing
	asked  bool             // something that Claude asked for is in the state
	again  bool             // what was asked for could not be done, and is tried when due
	edits  []edit           // of files that may be documents
}

// paper is a document, and what is known of its file that is not told.
type paper struct {
	state.Document
	seen     file.Stamp // at the look before, when it is not that of the version
	since    time.Time  // when the file was first seen to be another
	missed   bool       // it was not there at the look before
	doubtful bool       // bytes may have changed under an unchanged stamp
	problem  string     // why it cannot be read just now
	misses   int        // how often its newest version was not there when it was to be sent
	placed   bool       // the working directory was seen to be the one it was linked in
}

// edit is a change of a file by one of Claude's tools.
type edit struct {
	path string
	line int64
}

func newDocuments(db *state.DB, introductions *inbox.Introductions, log *slog.Logger) *documents {
	return &documents{
		db: db, introductions: introductions, log: log, bell: make(chan struct{}, 1), born: time.Now(), packer: outbox.NewPacker(),
		shelves: map[string]*shelf{}, hot: hotLook,
	}
}

// load reads what is linked.
func (x *documents) load(ctx context.Context) error {
	err := x.db.Documents(ctx, func(d state.Document) {
		p := paper{Document: d, doubtful: !file.Stamp(d.Stat).Settled(time.UnixMilli(d.ChangedAt))}
		x.shelf(d.Session).papers[d.Path] = p
	}, func(session string) { x.shelf(session).asked = true })
	if err != nil {
		return fmt.Errorf("load documents: %w", err)
	}
	return nil
}

// shelf answers a session's; the caller holds mu, or is the only one.
func (x *documents) shelf(session string) *shelf {
	s := x.shelves[session]
	if s == nil {
		s = &shelf{papers: map[string]paper{}}
		x.shelves[session] = s
	}
	return s
}

func (x *documents) ring() {
	select {
	case x.bell <- struct{}{}:
	default:
	}
}

// papers copies a session's documents, in the order in which they were linked.
func (x *documents) papers(session string, linked bool) (list []paper) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.shelves[session]; s != nil {
		for _, p := range s.papers {
			if p.Linked || !linked {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b paper) int { return a.compare(&b) })
	return list
}

// Linked returns the paths of a session's documents in the order in which they were linked.
func (x *documents) Linked(session string) (paths []string) {
	for _, p := range x.papers(session, true) {
		paths = append(paths, p.Path)
	}
	return paths
}

// put takes in what is known of a document now, unless its session was forgotten meanwhile. fresh: it may be the
// session's first.
func (x *documents) put(p paper, fresh bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if fresh {
		x.shelf(p.Session)
	}
	if s := x.shelves[p.Session]; s != nil {
		if was := s.papers[p.Path]; was.misses != p.misses { // meanwhile, so what p says of it is old
			p.misses, p.Dest = was.misses, ""
		}
		s.papers[p.Path] = p
	}
}

// linkage is what somebody wants linked or unlinked.
type linkage struct {
	session    string
	base, path string
	by         string // byUser, byClaude, byViewer
	line       int64  // of the transcript; -1: none
	wish       string // its id, of byViewer
	asks       []state.DocumentAsk
}

// link links a file. Of one that is linked already nothing becomes. A refusal is a *file.Refusal.
func (x *documents) link(ctx context.Context, l linkage) error {
	x.work.Lock()
	defer x.work.Unlock()
	s, err := x.locate(ctx, l.session)
	if err != nil {
		return err
	}
	folder, err := x.open(s.cwd)
	if err != nil {
		return err
	}
	defer folder.Close()
	name, err := folder.Find(l.base, l.path)
	if err != nil && l.by == byMCP { // Claude may be in a folder below, and mean the one it began in
		if other, e := folder.Find("", l.path); e == nil {
			name, err = other, nil
		}
	}
	if err != nil {
		return err
	}
	if s = x.within(s, folder.Path(name)); l.wish != "" && s.withheld != "" { // no answer but this could be sent
		return &file.Refusal{Message: name + " stays on that machine", Hint: "its folder is excluded there"}
	}
	p, linked := x.paperOf(s.session, folder, name)
	n := news{paper: p, by: l.by, line: l.line, wish: l.wish, asks: l.asks}
	if p.Linked && !p.elsewhere(folder.Identity()) {
		if l.wish != "" { // the viewer is told that it is so, and how it is if that is still known
			n.change = linkedChange
			if c, err := x.read(folder, p.Path); err == nil && !c.Torn && c.SHA256 == p.SHA256 {
				n.content, n.root = c, folder.Root()
			}
		}
		return x.publish(ctx, s, &n)
	}
	if !p.Linked && linked >= mostLinked {
		return &file.Refusal{Message: fmt.Sprintf("the session has %d linked documents, and can have no more", linked), Hint: "`ccship link rm PATH` ends a link"}
	}
	if n.content, err = x.read(folder, name); err != nil {
		return err
	}
	s = x.within(s, n.content.Path)
	n.root, n.change, n.paper.Linked = folder.Root(), linkedChange, true
	n.paper.AddedAt, n.paper.AddedBy = time.Now().UnixMilli(), l.by
	n.paper.Folder, n.paper.placed = state.Folder(folder.Identity()), true
	n.paper.read(n.content, l.by)
	n.paper.problem = s.problem()
	n.notice = l.by != byMCP && x.met(ctx, s)
	return x.publish(ctx, s, &n)
}

// paperOf is what is known of a file of a session, and how many documents that has.
func (x *documents) paperOf(session string, folder *file.Folder, name string) (p paper, linked int) {
	p.Session, p.Path = session, name
	for _, known := range x.papers(session, false) {
		if known.Linked {
			linked++
		}
		if known.Path == name || known.Linked && folder.Same(known.Path, name) {
			p = known
		}
	}
	return p, linked
}

// met says whether a session's Claude may be at work already, so that it is to be told what its introduction did not
// say.
func (x *documents) met(ctx context.Context, s site) bool {
	if s.file != 0 {
		return true
	}
	_, found, _ := x.introductions.Get(ctx, s.session)
	return found
}

// read reads a document for a new version; one that is being written is read a few times.
func (x *documents) read(folder *file.Folder, name string) (*file.Content, error) {
	for tries := 3; ; tries-- {
		c, err := folder.Read(name, x.conf().DocumentCap, outbox.BlobInRow)
		if errors.Is(err, file.ErrGone) {
			return nil, &file.Refusal{Message: name + " has gone away", Hint: "a document must be there when it is linked"}
		}
		if err != nil || !c.Torn || tries == 0 {
			return &c, err
		}
	}
}

// unlink ends a link; the file need not be there any more.
func (x *documents) unlink(ctx context.Context, l linkage) error {
	x.work.Lock()
	defer x.work.Unlock()
	s, err := x.locate(ctx, l.session)
	if err != nil {
		return err
	}
	names := append(file.Names(l.base, l.path, s.cwd), l.path)
	if folder, err := x.open(s.cwd); err == nil {
		names = append(names, folder.Names(l.base, l.path)...)
		if name, err := folder.Find(l.base, l.path); err == nil {
			names = append(names, name)
		}
		folder.Close()
	}
	for _, p := range x.papers(s.session, true) {
		if !slices.Contains(names, p.Path) {
			continue
		}
		p.Linked, p.problem = false, ""
		p.Version++
		p.ChangedAt, p.By = time.Now().UnixMilli(), l.by
		if l.wish == "" { // whoever wished it is to hear of it
			s = x.within(s, s.path(&p))
		}
		return x.publish(ctx, s, &news{paper: p, change: unlinkedChange, by: l.by, line: l.line, wish: l.wish, asks: l.asks})
	}
	return &file.Refusal{Message: l.path + " is not linked to the session", Hint: "`ccship link list` names what is"}
}

// forget removes everything about the documents of a session.
func (x *documents) forget(ctx context.Context, session string) error {
	x.work.Lock()
	defer x.work.Unlock()
	gone := []string{session}
	x.mu.Lock()
	for name := range x.shelves {
		if name != session && slices.Contains(transcript.ForgetNames(name), session) {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		delete(x.shelves, name)
	}
	x.mu.Unlock()
	for _, name := range gone {
		if err := x.db.DropDocuments(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// announced has everything told again to a server that may have dropped what it was told before it took documents.
func (x *documents) announced(ctx context.Context, dest string) error {
	x.work.Lock()
	defer x.work.Unlock()
	x.mu.Lock()
	var again []paper
	for _, s := range x.shelves {
		for _, p := range s.papers {
			if p.Linked && p.Dest == dest {
				p.Dest = ""
				again = append(again, p)
			}
		}
	}
	x.mu.Unlock()
	d := state.Derivation{}
	for _, p := range again {
		d.Documents = append(d.Documents, p.Document)
	}
	if _, err := x.db.Derive(ctx, []state.Derivation{d}); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range again {
		if s := x.shelves[p.Session]; s != nil {
			s.papers[p.Path], s.due = p, time.Time{}
		}
	}
	x.ring()
	return nil
}

// refused turns a refusal into what the socket answers.
func refused(err error) error {
	if r, ok := errors.AsType[*file.Refusal](err); ok {
		return control.BadDocument(r.Message, r.Hint)
	}
	return err
}
