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

// scanner is the main loop's state between listings. Owned by it, except toList.
type scanner struct {
	clock      clock
	lastAll    time.Duration // when the last listing of everything ended
	lastActive time.Duration
	cost       time.Duration // of the last listing of everything
	activeCost time.Duration // of the last listing of the active folders
	thorough   time.Duration // cost of the last thorough listing
	looked     int           // folders with files that the last listing of everything did not take as they were
	listings   uint32
	missedAt   time.Duration // when the time that files were missed was counted last
	quicks     int           // quick listings of everything since the last thorough one
	entries    []entry
	toList     []*folder // folders of sessions that are active again; guarded by Tailer.mu
	watcher    *fsnotify.Watcher
	watches    atomic.Int64     // folders watched; written by the main loop only
	noWatches  bool             // the system gave no more watches in this pass
	links      map[string]place // watched transcripts behind links
	group      *sync.WaitGroup
}

// listing is one listing of some or all folders, and what it found.
type listing struct {
	t              *Tailer
	number         uint32
	full           bool
	quick          bool // folders with an unchanged stat are taken to hold the same names
	events         bool // what events did not tell of is taken as it was: see trusts
	looked         int  // folders with files that were looked at
	found          []finding
	replaced       []finding
	missing        []*file
	missingFolders []*folder

	links   []linkedFolder      // new links to folders
	linked  []*folder           // folders behind links that are known
	folders map[place]*folder   // what is followed, by what it is; made when a link asks
	files   map[place]*file     // the same of files
	paths   map[string]struct{} // of all that is remembered, with the folders above; made when a link asks
}

// finding is a name in a folder that is resolved after the listing.
type finding struct {
	d      *folder
	name   string
	kind   Kind
	called string
	stat   Stat
	link   bool   // it was found through a link
	f      *file  // for another file at the path of this one
	id     FileID // for a new file
}

func (t *Tailer) newListing(full bool) *listing {
	t.scan.listings++
	return &listing{t: t, number: t.scan.listings, full: full}
}

// scanAll lists every folder of every root.
func (t *Tailer) scanAll(ctx context.Context, reason string) {
	t.mu.Lock()
	waiters := t.requests.scanned
	t.requests.scanned = nil
	t.requests.full = false
	t.mu.Unlock()
	begun := time.Now()
	t.retryWatching()
	p := t.newListing(true)
	p.quick = reason == "" && t.scan.quicks < t.quickLimit()
	if t.scan.quicks++; !p.quick {
		t.scan.quicks = 0
	}
	p.events = p.quick && t.eventsTell()
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
	if !p.quick {
		t.scan.thorough = t.scan.cost
	}
	t.scan.looked = p.looked
	t.scan.lastActive = t.scan.lastAll // all is more than active
	t.watchRestored()
	t.mu.Lock()
	t.stats.scanned = true
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
		d.listSoon = false
	}
	folders = slices.DeleteFunc(folders, func(d *folder) bool { return t.table.folders[d.path] != d }) // dropped since
	t.mu.Unlock()
	p := t.newListing(false)
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
func (p *listing) list(ctx context.Context, d *folder, deep bool) {
	t := p.t
	if ctx.Err() != nil {
		return
	}
	t.heartbeat()
	if d.link && !p.enter(d) {
		return
	}
	t.watchFolder(d)
	if p.quick && p.trusts(d) {
		for _, s := range p.pass(d) {
			p.list(ctx, s, true)
		}
		return
	}
	entries, self, err := p.entries(t.scan.entries[:0], d)
	if d.watched && (err != nil || d.self.known() && !self.sameFile(d.self)) {
		// Another folder, or none, is at this path: the watch belongs to the old one.
		t.unwatch(d)
		t.watchFolder(d)
		entries, self, err = t.list(entries[:0], d)
	}
	t.scan.entries = entries[:0]
	t.mu.Lock()
	d.listing = p.number
	if err != nil {
		p.failed(d, err)
		t.mu.Unlock()
		return
	}
	d.attended = d.watched
	d.settled = d.self == self && d.settled || self.known() && t.age(self) > self.settleTime()
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

// failed records that a folder could not be listed: its files are neither deleted nor moved.
func (p *listing) failed(d *folder, err error) {
	tb := &p.t.table
	if notExist(err) && d.level != rootLevel && d.level != historyLevel {
		p.t.hint(d.path) // gone, or no folder any more: to be seen from its parent
		return
	}
	if tb.unlisted[d.path] == nil && !(notExist(err) && p.number == 1) {
		p.t.log.Warn("cannot list folder", "path", d.path, "err", err)
	}
	tb.unlisted[d.path] = err
	tb.active[d] = struct{}{}
	if d.level == rootLevel {
		d.root.listed = false
	}
}

// compare compares a listing with the known folder. It returns the subfolders to list now.
func (p *listing) compare(d *folder, entries []entry, deep bool) []*folder {
	var subs []*folder
	files, folders := 0, 0
	for i := range entries {
		e := &entries[i]
		switch s, fresh := p.entry(d, e); {
		case s != nil:
			folders++
			switch s.listing = p.number; {
			case !deep && !fresh:
			case e.link:
				p.linked = append(p.linked, s)
			default:
				subs = append(subs, s)
			}
		case e.kind == regular && d.files[e.name] != nil:
			files++
		}
	}
	if len(p.t.table.refused) > 0 {
		p.t.table.forgetRefused(d, entries)
	}
	if files < len(d.files) {
		for _, f := range d.files {
			if f.listing != p.number {
				p.missing = append(p.missing, f)
			}
		}
	}
	if folders < len(d.subs) {
		for _, s := range d.subs {
			if s.listing != p.number {
				p.missingFolders = append(p.missingFolders, s)
			}
		}
	}
	return subs
}

// quickRun is how many quick full listings run for each thorough one. The thorough one finds what file systems with
// unreliable folder times hide.
const quickRun = 9

const restTurns = 5 // in how many quick listings a resting folder is looked at once

// entries lists a folder. In a quick listing, if the folder's own stat is unchanged, it only checks the known files.
func (p *listing) entries(into []entry, d *folder) ([]entry, Stat, error) {
	if p.quick && d.settled && p.t.faults.list == nil {
		if self, kind, err := statEntry(d.path); err == nil && kind == directory && self == d.self {
			return knownEntries(into, d), self, nil
		}
	}
	return p.t.list(into, d)
}

// knownEntries lists only the known names of a folder.
func knownEntries(into []entry, d *folder) []entry {
	for name := range d.files {
		if e, err := look(joinPath(d.path, name)); err == nil {
			e.name = name
			into = append(into, e)
		}
	}
	for name, s := range d.subs {
		into = append(into, entry{name: name, kind: directory, link: s.link && !d.link})
	}
	return into
}

// entry handles one name in a folder. It returns the subfolder that it names, if any, and whether that is new.
func (p *listing) entry(d *folder, e *entry) (s *folder, fresh bool) {
	if d.link && e.foreign && e.why == "" {
		e.kind, e.why = other, whyForeign
	}
	switch e.kind {
	case regular:
		if f := d.files[e.name]; f != nil {
			f.listing = p.number
			p.note(f, d, e)
			if e.link {
				p.t.watchLink(joinPath(d.path, e.name), e.stat)
			}
		} else if kind, called, ok := d.transcript(e.name); ok {
			d.settled = d.settled && e.stat.Size > 0 // an empty file may become a session without changing the folder
			p.found = append(p.found, finding{
				d: d, name: e.name, kind: kind, called: called, stat: e.stat, link: d.link || e.link,
			})
		} else if e.stat.Size > 0 && d.stray(e.name) {
			p.refuse(d, e, whyStray)
		}
	case directory:
		return p.subfolder(d, e)
	case other:
		if e.why != "" && d.wants(e.name) {
			p.refuse(d, e, e.why)
		}
	}
	return nil, false
}

// subfolder is entry for a folder.
func (p *listing) subfolder(d *folder, e *entry) (s *folder, fresh bool) {
	l, ok := d.below(e.name)
	if ok && d.depth == maxDepth {
		p.refuse(d, e, whyDeep)
	}
	if !ok || d.depth == maxDepth {
		return nil, false
	}
	if s = d.subs[e.name]; s != nil {
		s.link = d.link || e.link
		return s, false
	}
	if e.link {
		p.links = append(p.links, linkedFolder{d, l, *e})
		return nil, false
	}
	return p.addFolder(d, l, e), true
}

// addFolder starts following a folder.
func (p *listing) addFolder(d *folder, l level, e *entry) *folder {
	s := d.child(e.name, l, e.link)
	s.touched, s.turn = p.t.since(e.stat, e.stat.ModTime), uint8(len(d.subs))
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

// note compares the stat of a file with the one before.
func (p *listing) note(f *file, d *folder, e *entry) {
	k := f.glance()
	if k.seen == e.stat && !f.pathTaken && (f.fails == 0 || k.inspectAt != 0 || f.state != idle) {
		return
	}
	if !k.seen.sameFile(e.stat) {
		f.pathTaken = true
		k = f.view()
		p.replaced = append(p.replaced, finding{
			d: d, name: e.name, kind: k.File.Kind, called: k.File.Name, stat: e.stat, link: d.link || e.link, f: f,
		})
		return
	}
	t := p.t
	t.count(f, -1)
	f.facts().seen, f.pathTaken = e.stat, false
	t.count(f, 1)
	t.fileChanged(f)
}
