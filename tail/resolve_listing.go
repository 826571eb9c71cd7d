package tail

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"
)

// finish resolves what a listing found: first files that appeared, so that moved files do not count as missing, then
// files that were replaced at their path, then missing files.
func (p *listing) finish(ctx context.Context) {
	t := p.t
	p.followLinks(ctx)
	t.mu.Lock()
	p.placeAll()
	for _, s := range p.replaced {
		p.resolveReplaced(s)
	}
	p.placeAll() // what lies where a moved file was
	for _, f := range p.missing {
		p.noteMissing(f)
	}
	for _, d := range p.missingFolders {
		p.dropFolder(d)
	}
	var forget []FileID
	if p.full {
		p.markUnseenGone()
		forget = p.countMissed()
		t.unwatchLinks()
	}
	t.mu.Unlock()
	t.flush(ctx)
	t.forget(ctx, forget)
}

// placeAll places what was found, larger files first: of several files with one name the largest gets Copy 1. What has
// a real name comes before what a link leads to.
func (p *listing) placeAll() {
	slices.SortFunc(p.found, func(a, b finding) int {
		byPlace := cmp.Or(cmp.Compare(b.stat.Size, a.stat.Size), cmp.Compare(a.d.path, b.d.path), cmp.Compare(a.name, b.name))
		if !a.link && !b.link {
			return byPlace
		}
		known := compareBool(p.remembered(joinPath(b.d.path, b.name)), p.remembered(joinPath(a.d.path, a.name)))
		return cmp.Or(compareBool(a.link, b.link), known, byPlace)
	})
	byTime := make([]*finding, len(p.found)) // new files are read in this order, the newest first
	for i := range p.found {
		byTime[i] = &p.found[i]
	}
	slices.SortFunc(byTime, func(a, b *finding) int { return cmp.Compare(b.stat.ModTime, a.stat.ModTime) })
	for _, c := range byTime {
		c.id = p.t.table.freeID()
	}
	for i := range p.found {
		p.placeFile(&p.found[i])
	}
	p.found = p.found[:0]
}

// placeFile decides whether a transcript at an unknown path is a remembered file or a new one.
func (p *listing) placeFile(c *finding) {
	t := p.t
	if c.d.files[c.name] != nil {
		return // found by a hint and by a listing
	}
	if c.link && p.fileAt(c.stat) != nil {
		c.d.settled = false // another name of a file that is followed: as long as that one is there
		return
	}
	as := File{Kind: c.kind, Path: joinPath(c.d.path, c.name), Root: c.d.root.Dir, Name: c.called}
	f := p.matchKnown(&as, c.stat)
	first := !t.stats.scanned || f != nil && t.table.absent(f)
	if c.stat.Size == 0 && (f == nil || f.facts().Gone != 0 || f.facts().File.Path != as.Path) {
		return // no session yet; but a known file that was emptied counts
	}
	if f == nil {
		as.ID, as.Copy = c.id, 1
		if as.Kind != History {
			as.Copy = t.table.freeCopy(as.key())
		}
		f = newFile(&Tracked{File: as}, c.stat)
		t.table.add(f)
	} else if f.facts().File.Path != as.Path {
		t.log.Info("transcript moved", "from", f.facts().File.Path, "to", as.Path)
		t.count(f, -1)
		t.table.detach(f)
		k := f.facts()
		k.File.Path, k.File.Root, k.File.Kind, k.File.Name = as.Path, as.Root, as.Kind, as.Name
		f.moved()
		f.pathTaken = false
		t.table.unsaved[f] = struct{}{}
	}
	if first && c.stat.Size > f.facts().Cursor.Offset {
		t.table.before[f] = c.stat.Size
	}
	f.listing = p.number
	t.table.attach(f, c.d, &t.stats)
	t.count(f, 1)
	if p.files != nil {
		p.files[c.stat.place()] = f
	}
	p.queueIfChanged(f, c)
	t.rest(f)
}

// queueIfChanged queues a file that was just found if it may have changed.
func (p *listing) queueIfChanged(f *file, c *finding) {
	t := p.t
	at := t.since(c.stat, c.stat.ModTime)
	if t.now()-at < activeFor {
		t.table.touch(c.d, at)
	}
	k := f.facts()
	if !k.seen.sameFile(c.stat) {
		f.pathTaken = true
		again := *c
		again.f = f
		p.replaced = append(p.replaced, again)
		return
	}
	t.count(f, -1)
	k.seen = c.stat
	t.count(f, 1)
	k.changed = at
	read := k.Cursor.Offset + k.Provisional.Length
	if f.stored && c.stat.Size == read && (c.stat == k.Verified || c.stat == k.File.Stat) && !f.wishes.open() {
		if c.stat != k.Verified {
			t.scheduleScrub(f, t.now()+t.cfg.ScrubAfter)
		}
		return
	}
	t.enqueue(f)
}

// matchKnown returns the remembered file that a newly found file is, or nil.
func (p *listing) matchKnown(c *File, st Stat) *file {
	tb := &p.t.table
	for f, k := range tb.named(c.key()) {
		if f.folder == nil && k.File.Path == c.Path {
			return f
		}
	}
	if c.Kind == History {
		return nil
	}
	for f, k := range tb.named(c.key()) {
		if st.known() && k.seen.sameFile(st) && p.movedAway(f, c.Path) {
			return f
		}
	}
	var best *file
	for f, k := range tb.named(c.key()) {
		if (best == nil || k.File.Copy < best.facts().File.Copy) && p.vanished(f) {
			best = f
		}
	}
	if best != nil && best.facts().File.Path != c.Path {
		// Another file with this name, and the old one is gone: checking its bytes shows how much is the same.
		k := best.facts()
		k.seen.Device, k.seen.Inode = st.Device, st.Inode
		best.wishes.deep.ask()
	}
	return best
}

// movedAway reports whether a file has left its old path, or that one only leads to the new one through a link. The
// caller has found its inode at the new one.
func (p *listing) movedAway(f *file, now string) bool {
	k := f.view()
	if is, _ := p.t.table.configured(k.File.Root); !is && f.folder == nil {
		return true // no tracked file is at the old path
	}
	st, _, err := statEntry(k.File.Path)
	if err != nil {
		return notExist(err)
	}
	return !st.sameFile(k.seen) || sameTarget(k.File.Path, now)
}

// vanished reports whether a file's old path is gone, and not only because its root cannot be listed.
func (p *listing) vanished(f *file) bool {
	k := f.view()
	if is, listed := p.t.table.configured(k.File.Root); is && !listed {
		return false
	}
	_, _, err := statEntry(k.File.Path)
	return err != nil && notExist(err)
}

// resolveReplaced handles another file at the path of a known one. Only a full listing shows whether the known file was
// moved; until then the path is not read, or a stub would count as the file cut short.
func (p *listing) resolveReplaced(s finding) {
	f, t := s.f, p.t
	switch {
	case f.folder != s.d || f.listing != p.number || s.d.files[s.name] != f:
		s.f = nil
		p.found = append(p.found, s)
	case !p.full:
		t.askFullLocked("file replaced")
	case s.link && p.otherAt(f, s.stat):
		t.count(f, -1)
		t.table.detach(f)
		f.waiting, f.pathTaken = false, false
		p.markGone(f)
	default:
		t.count(f, -1)
		f.facts().seen = s.stat
		t.count(f, 1)
		f.pathTaken = false
		f.wishes.deep.ask()
		t.fileChanged(f)
	}
}

// otherAt reports whether another file than f is followed at a place: a link that leads there now is its second name.
func (p *listing) otherAt(f *file, st Stat) bool {
	o := p.fileAt(st)
	return o != nil && o != f
}

// rootThere reports whether a root exists. If not, nothing below it counts as deleted: its disk may not be mounted.
func (p *listing) rootThere(r *rootState) bool {
	if _, err := os.Stat(r.Dir); err != nil {
		p.t.table.unlisted[r.Dir] = err
		p.t.table.active[r.folder] = struct{}{}
		r.listed = false
		return false
	}
	return true
}

// noteMissing records that a file was not in a listing of its folder, unless it exists again.
func (p *listing) noteMissing(f *file) {
	t := p.t
	if f.folder == nil || f.listing == p.number || !p.rootThere(f.folder.root) {
		return
	}
	path := f.view().File.Path
	if _, kind, err := statEntry(path); err == nil && kind == regular || err != nil && !notExist(err) {
		t.hint(path)
		return
	}
	if !p.full {
		t.askFullLocked("file missing") // it may have moved
	}
	t.count(f, -1)
	t.table.detach(f)
	f.waiting, f.pathTaken = false, false
	p.markGone(f)
}

// markGone starts counting how long a file has been missing.
func (p *listing) markGone(f *file) {
	t := p.t
	delete(t.table.unseen, f)
	t.removeFromSyncs(f)
	if !f.stored && f.state != working {
		t.table.drop(f)
		return
	}
	k := f.facts()
	k.Gone, k.Missed, k.long = t.wall().Unix(), 0, nil
	t.table.gone[f] = struct{}{}
	t.table.unsaved[f] = struct{}{}
	t.stats.vanished++
}

// markUnseenGone marks files of earlier runs that a full listing did not find.
func (p *listing) markUnseenGone() {
	for f := range p.t.table.unseen {
		k := f.facts()
		if is, listed := p.t.table.configured(k.File.Root); !is || !listed {
			continue
		}
		if _, _, err := statEntry(k.File.Path); err != nil && notExist(err) {
			p.markGone(f)
		}
	}
}

// dropFolder stops following a folder that is gone, once its files are marked as missing.
func (p *listing) dropFolder(d *folder) {
	t := p.t
	if !p.rootThere(d.root) {
		return
	}
	if _, kind, err := statEntry(d.path); err == nil && kind == directory || err != nil && !notExist(err) {
		return
	}
	for _, s := range d.subs {
		p.dropFolder(s)
	}
	for _, f := range d.files {
		p.noteMissing(f)
	}
	if len(d.files)+len(d.subs) > 0 {
		return
	}
	if t.table.folders[d.path] == d {
		delete(t.table.folders, d.path)
		delete(t.table.unlisted, d.path)
		t.table.forgetRefused(d, nil)
	}
	delete(t.table.active, d)
	t.unwatch(d)
	if _, base := splitPath(d.path); d.parent != nil && d.parent.subs[base] == d {
		delete(d.parent.subs, base)
	}
}

// countMissed counts the time since the last full listing for the missing files, and returns those to forget.
func (p *listing) countMissed() []FileID {
	t := p.t
	var forget []FileID
	const storeEvery = 4 * time.Hour
	passed := t.now() - t.scan.missedAt
	t.scan.missedAt += passed
	for f := range t.table.gone {
		k := f.facts()
		if is, listed := t.table.configured(k.File.Root); !is || !listed {
			continue
		}
		before := k.Missed
		k.Missed += passed
		if f.missedUnsaved = true; k.Missed/storeEvery != before/storeEvery {
			f.missedUnsaved = false
			t.table.unsaved[f] = struct{}{}
		}
		if k.Missed > goneFor && f.state != working {
			forget = append(forget, f.id)
		}
	}
	return forget
}

// forget removes files from memory and state.
func (t *Tailer) forget(ctx context.Context, ids []FileID) {
	if len(ids) == 0 {
		return
	}
	ids, err := t.cursors.Forget(ctx, ids)
	if err != nil {
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
