package tail

import (
	"context"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
)

// scanner is what the main loop keeps between two listings. Owned by it, except begin.
type scanner struct {
	clock      clock
	lastAll    time.Duration // when the last listing of everything ended
	lastActive time.Duration
	cost       time.Duration // of the last listing of everything
	activeCost time.Duration // of the last listing of the active folders
	pass       uint32
	quicks     int // quick listings of everything since the last thorough one
	entries    []entry
	begin      []*folder // folders of sessions that are active again; guarded by Tailer.mu
	watcher    *fsnotify.Watcher
	watches    atomic.Int64 // folders watched; written by the main loop only
	noWatches  bool         // the system gave no more watches in this pass
	group      *sync.WaitGroup
}

// pass is one listing of some folders or of all, and what it found.
type pass struct {
	t       *Tailer
	no      uint32
	full    bool
	quick   bool // folders that look as they did are taken to hold the names they held
	found   []finding
	swapped []finding
	missing []*file
	lost    []*folder
}

// finding is a name in a folder that has to be made sense of when the listing is over.
type finding struct {
	d      *folder
	name   string
	kind   Kind
	called string
	stat   Stat
	f      *file // for another file at the path of this one
}

func (t *Tailer) newPass(full bool) *pass {
	t.scan.pass++
	return &pass{t: t, no: t.scan.pass, full: full}
}

// scanAll lists every folder of every root.
func (t *Tailer) scanAll(ctx context.Context, reason string) {
	t.mu.Lock()
	waiters := t.asks.scanned
	t.asks.scanned = nil
	t.asks.full = false
	t.mu.Unlock()
	begun := time.Now()
	t.rewatch()
	p := t.newPass(true)
	p.quick = reason == "" && t.scan.quicks < quickRun
	if t.scan.quicks++; !p.quick {
		t.scan.quicks = 0
	}
	t.findAliases()
	for _, r := range t.table.roots {
		if !r.alias {
			p.list(ctx, r.folder, true)
		}
		if r.history != nil {
			p.list(ctx, r.history, true)
		}
	}
	if ctx.Err() != nil {
		return
	}
	p.finish(ctx)
	t.scan.cost, t.scan.lastAll = time.Since(begun), t.now()
	t.scan.lastActive = t.scan.lastAll // all is more than active
	t.watchRestored()
	t.mu.Lock()
	t.stats.lastScan, t.stats.scanned = t.wall(), true
	t.mu.Unlock()
	if reason != "" {
		t.log.Debug("listed everything", "reason", reason, "took", t.scan.cost)
	}
	for _, w := range waiters {
		close(w)
	}
}

// scanFolders lists folders with all below them.
func (t *Tailer) scanFolders(ctx context.Context, folders []*folder) {
	if len(folders) == 0 {
		return
	}
	t.mu.Lock()
	for _, d := range folders {
		d.begun = false
	}
	t.mu.Unlock()
	p := t.newPass(false)
	for _, d := range folders {
		p.list(ctx, d, true)
	}
	p.finish(ctx)
}

// findAliases finds roots that are the same folder as an earlier one: listing them twice would deliver twice.
func (t *Tailer) findAliases() {
	var infos []os.FileInfo
	for _, r := range t.table.roots {
		info, err := os.Stat(r.Dir)
		if r.alias = false; err != nil {
			continue
		}
		r.alias = slices.ContainsFunc(infos, func(o os.FileInfo) bool { return os.SameFile(info, o) })
		infos = append(infos, info)
	}
}

// list lists one folder; with deep all below it too, else only what is new below it.
func (p *pass) list(ctx context.Context, d *folder, deep bool) {
	t := p.t
	if ctx.Err() != nil {
		return
	}
	t.turn()
	t.watchFolder(d)
	entries, self, err := p.entries(t.scan.entries[:0], d)
	if d.watched && (err != nil || d.self.known() && !self.sameFile(d.self)) {
		// Another folder has come to this path, or none is there: the watch is on the one that went.
		t.unwatch(d)
		t.watchFolder(d)
		entries, self, err = t.list(entries[:0], d)
	}
	t.scan.entries = entries[:0]
	t.mu.Lock()
	d.pass = p.no
	if err != nil {
		p.failed(d, err)
		t.mu.Unlock()
		return
	}
	d.settled = d.self == self && d.settled || self.known() && self.age() > self.settled()
	d.self = self
	if _, ok := t.table.unlisted[d.path]; ok {
		t.log.Info("folder can be listed again", "path", d.path)
		delete(t.table.unlisted, d.path)
	}
	if d.level == rootLevel {
		d.root.listed = true
	}
	subs := p.compare(d, entries, deep)
	t.mu.Unlock()
	clear(entries)
	for _, s := range subs {
		p.list(ctx, s, true)
	}
}

// failed notes that a folder could not be listed: what is in it is neither gone nor moved.
func (p *pass) failed(d *folder, err error) {
	tb := &p.t.table
	if notExist(err) && d.level != rootLevel && d.level != historyLevel {
		p.t.hint(d.path) // gone, or no folder any more: to be seen from its parent
		return
	}
	if tb.unlisted[d.path] == nil && !(notExist(err) && p.no == 1) {
		p.t.log.Warn("cannot list folder", "path", d.path, "err", err)
	}
	tb.unlisted[d.path] = err
	tb.active[d] = struct{}{}
	if d.level == rootLevel {
		d.root.listed = false
	}
}

// compare compares a listing with what is known of the folder. It answers which folders below are to be listed now.
func (p *pass) compare(d *folder, entries []entry, deep bool) []*folder {
	var subs []*folder
	files, folders := 0, 0
	for i := range entries {
		e := &entries[i]
		switch s, fresh := p.entry(d, e); {
		case s != nil:
			folders++
			if s.pass = p.no; deep || fresh {
				subs = append(subs, s)
			}
		case e.kind == regular && d.files[e.name] != nil:
			files++
		}
	}
	if files < len(d.files) {
		for _, f := range d.files {
			if f.pass != p.no {
				p.missing = append(p.missing, f)
			}
		}
	}
	if folders < len(d.subs) {
		for _, s := range d.subs {
			if s.pass != p.no {
				p.lost = append(p.lost, s)
			}
		}
	}
	return subs
}

// quickRun is how many quick listings of everything there are to a thorough one: file systems that do not date their
// folders well are found out then.
const quickRun = 9

// entries lists a folder, or in a quick pass, when the folder's own stat is as it was, only asks for the files it had.
func (p *pass) entries(into []entry, d *folder) ([]entry, Stat, error) {
	if p.quick && d.settled && p.t.faults.list == nil {
		if self, kind, err := lstatEntry(d.path); err == nil && kind == directory && self == d.self {
			return knownEntries(into, d), self, nil
		}
	}
	return p.t.list(into, d)
}

// knownEntries is a listing of the names a folder is known to hold.
func knownEntries(into []entry, d *folder) []entry {
	for name, f := range d.files {
		if st, kind, err := lstatEntry(f.File.Path); err == nil {
			into = append(into, entry{name: name, stat: st, kind: kind})
		}
	}
	for name := range d.subs {
		into = append(into, entry{name: name, kind: directory})
	}
	return into
}

// entry makes sense of one name in a folder. It answers the folder it stands for, and whether that is new.
func (p *pass) entry(d *folder, e *entry) (s *folder, fresh bool) {
	switch e.kind {
	case regular:
		if f := d.files[e.name]; f != nil {
			f.pass = p.no
			p.note(f, d, e)
		} else if kind, called, ok := d.transcript(e.name); ok {
			d.settled = d.settled && e.stat.Size > 0 // one that is empty may become a session without the folder's knowing
			p.found = append(p.found, finding{d: d, name: e.name, kind: kind, called: called, stat: e.stat})
		}
	case directory:
		l, ok := d.below(e.name)
		if !ok {
			return nil, false
		}
		if s = d.subs[e.name]; s == nil {
			return p.enter(d, l, e), true
		}
	}
	return s, false
}

// enter begins to follow a folder.
func (p *pass) enter(d *folder, l level, e *entry) *folder {
	s := &folder{
		path: joinPath(d.path, e.name), root: d.root, parent: d, level: l, depth: d.depth + 1,
		session: d.session, touched: p.t.since(e.stat.ModTime),
	}
	if l == sessionLevel {
		s.session = e.name
	}
	if d.subs == nil {
		d.subs = map[string]*folder{}
	}
	_, name := splitPath(s.path)
	d.subs[name] = s
	p.t.table.folders[s.path] = s
	if p.t.now()-s.touched < activeFor {
		p.t.table.active[s] = struct{}{}
	}
	return s
}

// since is when, in the Tailer's time, something happened that the file system dates at ns.
func (t *Tailer) since(ns int64) time.Duration {
	return t.now() - max(0, t.wall().Sub(time.Unix(0, ns)))
}

// note compares the stat of a file with the one before.
func (p *pass) note(f *file, d *folder, e *entry) {
	if f.seen == e.stat && !f.held && (f.fails == 0 || f.lookAt != 0 || f.state != idle) {
		return
	}
	if !f.seen.sameFile(e.stat) {
		f.held = true
		p.swapped = append(p.swapped, finding{d: d, name: e.name, kind: f.File.Kind, called: f.File.Name, stat: e.stat, f: f})
		return
	}
	t := p.t
	t.count(f, -1)
	f.seen, f.held = e.stat, false
	t.count(f, 1)
	t.changed(f)
}
