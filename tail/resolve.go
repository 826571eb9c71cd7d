package tail

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"
)

// finish makes sense of all a pass found: first files that turned up, so that what moved is not taken for gone,
// then files whose place another one took, then those that are missing.
func (p *pass) finish(ctx context.Context) {
	t := p.t
	t.mu.Lock()
	p.placeAll()
	for _, s := range p.swapped {
		p.swap(s)
	}
	p.placeAll() // what lies where a moved file was
	for _, f := range p.missing {
		p.miss(f)
	}
	for _, d := range p.lost {
		p.leave(d)
	}
	var forget []FileID
	if p.full {
		p.missUnseen()
		forget = p.countGone()
	}
	t.mu.Unlock()
	t.flush(ctx)
	t.forget(ctx, forget)
}

// placeAll places what was found, the larger first: of several files of one name it gets the plain one.
func (p *pass) placeAll() {
	slices.SortFunc(p.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(b.stat.Size, a.stat.Size), cmp.Compare(a.d.path, b.d.path))
	})
	for i := range p.found {
		p.place(&p.found[i])
	}
	p.found = p.found[:0]
}

// place finds out whether a transcript at a path where none was known is one that is remembered, or a new one.
func (p *pass) place(c *finding) {
	t := p.t
	if c.d.files[c.name] != nil {
		return // a hint and a listing found it both
	}
	as := File{Kind: c.kind, Path: joinPath(c.d.path, c.name), Root: c.d.root.Dir, Name: c.called}
	f := p.claim(&as, c.stat)
	first := !t.stats.scanned || f != nil && t.table.absent(f)
	if c.stat.Size == 0 && (f == nil || f.Gone != 0 || f.File.Path != as.Path) {
		return // no session yet; but a file of an earlier run that was emptied is one
	}
	if f == nil {
		as.ID, as.Copy = t.table.freeID(), 1
		if as.Kind != History {
			as.Copy = t.table.freeCopy(as.key())
		}
		f = &file{Tracked: Tracked{File: as}, seen: c.stat}
		f.File.shareName()
		t.table.add(f)
	} else if f.File.Path != as.Path {
		t.log.Info("transcript moved", "from", f.File.Path, "to", as.Path)
		t.count(f, -1)
		t.table.detach(f)
		f.File.Path, f.File.Root, f.File.Kind, f.File.Name = as.Path, as.Root, as.Kind, as.Name
		f.File.shareName()
		f.held = false
		t.table.unsaved[f] = struct{}{}
	}
	if first && c.stat.Size > f.Cursor.Offset {
		t.table.before[f] = c.stat.Size
	}
	f.pass = p.no
	t.table.attach(f, c.d, &t.stats)
	t.count(f, 1)
	p.arrive(f, c)
}

// arrive decides whether a file that was just found has to be looked at.
func (p *pass) arrive(f *file, c *finding) {
	t := p.t
	at := t.since(c.stat.ModTime)
	t.table.touchRecent(c.d, at, t.now())
	if !f.seen.sameFile(c.stat) {
		f.held = true
		p.swapped = append(p.swapped, finding{d: c.d, name: c.name, kind: c.kind, called: c.called, stat: c.stat, f: f})
		return
	}
	t.count(f, -1)
	f.seen = c.stat
	t.count(f, 1)
	f.changed = at
	read := f.Cursor.Offset + f.Provisional.Length
	if f.stored && c.stat.Size == read && (c.stat == f.Verified || c.stat == f.File.Stat) && !f.reread {
		if c.stat != f.Verified {
			t.setScrub(f, t.now()+t.cfg.ScrubAfter)
		}
		return
	}
	t.enqueue(f)
}

// touchRecent is touch for a change that may be long ago.
func (tb *table) touchRecent(d *folder, at, now time.Duration) {
	if now-at < activeFor {
		tb.touch(d, at)
	}
}

// claim finds the remembered file that a newly found one is, or nil.
func (p *pass) claim(c *File, st Stat) *file {
	tb := &p.t.table
	for f := tb.byKey[c.key()]; f != nil; f = f.next {
		if f.folder == nil && f.File.Path == c.Path {
			return f
		}
	}
	if c.Kind == History {
		return nil
	}
	for f := tb.byKey[c.key()]; f != nil; f = f.next {
		if st.known() && f.seen.sameFile(st) && p.away(f) {
			return f
		}
	}
	var best *file
	for f := tb.byKey[c.key()]; f != nil; f = f.next {
		if (best == nil || f.File.Copy < best.File.Copy) && p.vanished(f) {
			best = f
		}
	}
	if best != nil && best.File.Path != c.Path {
		// Another file, but of this name, and the old one is gone: its past will say how much of it is the same.
		best.seen.Device, best.seen.Inode = st.Device, st.Inode
		best.deep = true
	}
	return best
}

// away says that a file is not at its old path any more, though it is somewhere: the caller holds its inode.
func (p *pass) away(f *file) bool {
	if is, _ := p.t.table.configured(f.File.Root); !is && f.folder == nil {
		return true // nobody follows the old path
	}
	st, _, err := lstatEntry(f.File.Path)
	if err != nil {
		return notExist(err)
	}
	return !st.sameFile(f.seen)
}

// vanished says that nothing is at the old path of a file, and that this is not because its root can't be listed.
func (p *pass) vanished(f *file) bool {
	if is, listed := p.t.table.configured(f.File.Root); is && !listed {
		return false
	}
	_, _, err := lstatEntry(f.File.Path)
	return err != nil && notExist(err)
}

// swap decides what became of a file whose path shows another one. Whether the old one lies elsewhere is known only
// after everything was listed; until then the path is not read, or a stub would be taken for the file cut short.
func (p *pass) swap(s finding) {
	f, t := s.f, p.t
	switch {
	case f.folder != s.d || f.pass != p.no || s.d.files[s.name] != f:
		s.f = nil
		p.found = append(p.found, s)
	case !p.full:
		t.askFullLocked("file replaced")
	default:
		t.count(f, -1)
		f.seen = s.stat
		t.count(f, 1)
		f.held, f.deep = false, true
		t.changed(f)
	}
}

// rootThere says whether a root exists. Without it, nothing that was below it is known to be gone: it may be on a
// disk that is not mounted.
func (p *pass) rootThere(r *rootState) bool {
	if _, err := os.Stat(r.Dir); err != nil {
		p.t.table.unlisted[r.Dir] = err
		p.t.table.active[r.folder] = struct{}{}
		r.listed = false
		return false
	}
	return true
}

// miss notes that a file was not in a listing of its folder, unless it has come back meanwhile.
func (p *pass) miss(f *file) {
	t := p.t
	if f.folder == nil || f.pass == p.no || !p.rootThere(f.folder.root) {
		return
	}
	if _, kind, err := lstatEntry(f.File.Path); err == nil && kind == regular || err != nil && !notExist(err) {
		t.hint(f.File.Path)
		return
	}
	if !p.full {
		t.askFullLocked("file missing") // it may have moved
	}
	t.count(f, -1)
	t.table.detach(f)
	f.waiting, f.held = false, false
	p.vanish(f)
}

// vanish begins to count how long a file has been missing.
func (p *pass) vanish(f *file) {
	t := p.t
	delete(t.table.unseen, f)
	t.unsync(f)
	if !f.stored && f.state != working {
		t.table.drop(f)
		return
	}
	f.Gone, f.Listings = t.wall().Unix(), 1
	f.long = nil
	t.table.gone[f] = struct{}{}
	t.table.unsaved[f] = struct{}{}
	t.stats.vanished++
}

// missUnseen notes which files of earlier runs no listing of everything finds.
func (p *pass) missUnseen() {
	for f := range p.t.table.unseen {
		if is, listed := p.t.table.configured(f.File.Root); !is || !listed {
			continue
		}
		if _, _, err := lstatEntry(f.File.Path); err != nil && notExist(err) {
			p.vanish(f)
		}
	}
}

// leave stops following a folder that is gone, after the files in it have been missed.
func (p *pass) leave(d *folder) {
	t := p.t
	if !p.rootThere(d.root) {
		return
	}
	if _, kind, err := lstatEntry(d.path); err == nil && kind == directory || err != nil && !notExist(err) {
		return
	}
	for _, s := range d.subs {
		p.leave(s)
	}
	for _, f := range d.files {
		p.miss(f)
	}
	if len(d.files)+len(d.subs) > 0 {
		return
	}
	if t.table.folders[d.path] == d {
		delete(t.table.folders, d.path)
		delete(t.table.unlisted, d.path)
	}
	delete(t.table.active, d)
	t.unwatch(d)
	if _, base := splitPath(d.path); d.parent != nil && d.parent.subs[base] == d {
		delete(d.parent.subs, base)
	}
}

// countGone counts one more listing without the vanished files, and answers which have been missing for good.
func (p *pass) countGone() []FileID {
	t := p.t
	var forget []FileID
	const storeEvery = 250 // listings: a few hours
	for f := range t.table.gone {
		if is, listed := t.table.configured(f.File.Root); !is || !listed {
			continue
		}
		f.Listings++
		if f.missed = true; f.Listings%storeEvery == 0 {
			f.missed = false
			t.table.unsaved[f] = struct{}{}
		}
		if f.Listings >= goneListings && t.wall().Sub(time.Unix(f.Gone, 0)) > goneFor && f.state != working {
			forget = append(forget, f.File.ID)
		}
	}
	return forget
}

// forget ends the memory of files.
func (t *Tailer) forget(ctx context.Context, ids []FileID) {
	if len(ids) == 0 {
		return
	}
	if err := t.cursors.Forget(ctx, ids); err != nil {
		t.log.Warn("cannot forget vanished transcripts yet", "err", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if f := t.table.byID[id]; f != nil && f.folder == nil {
			t.stats.vanished--
			t.table.drop(f)
		}
	}
}
