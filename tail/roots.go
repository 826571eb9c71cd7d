package tail

import "slices"

// SetRoots follows these roots from now on, instead of those of Config and of earlier calls. Files below a root that
// is no longer followed are remembered as they are; when it is followed again they are read on from their cursors.
// It does not wait for the listing that finds what is new.
func (t *Tailer) SetRoots(roots []Root) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wanted := slices.Clone(roots)
	t.requests.roots = &wanted
	t.askFullLocked("roots changed")
}

// changeRoots takes over new roots. Only the main loop calls it, between two listings.
func (t *Tailer) changeRoots(wanted []Root) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tb := &t.table
	for i := range wanted {
		wanted[i].Dir = cleanPath(wanted[i].Dir)
	}
	kept := tb.roots[:0:0]
	for _, r := range tb.roots {
		if slices.Contains(wanted, r.Root) {
			kept = append(kept, r)
		} else {
			t.dropRoot(r)
		}
	}
	tb.roots = kept
	for _, r := range wanted {
		tb.addRoot(r) // passes over those that are there
	}
	t.notifySyncs()
}

// dropRoot lets go of everything below a root. The caller holds mu.
func (t *Tailer) dropRoot(r *rootState) {
	tb := &t.table
	for path, d := range tb.folders {
		if d.root != r {
			continue
		}
		for _, f := range d.files {
			t.letGo(f)
		}
		t.unwatch(d)
		delete(tb.folders, path)
		delete(tb.active, d)
		delete(tb.unlisted, path)
		tb.forgetRefused(d, nil)
	}
	delete(tb.unlisted, r.Dir)
	t.scan.toList = slices.DeleteFunc(t.scan.toList, func(d *folder) bool { return d.root == r })
}

// letGo is the state of a file that still exists but is no longer followed: like a file of an earlier run that no
// listing has found. The caller holds mu.
func (t *Tailer) letGo(f *file) {
	t.count(f, -1)
	t.table.detach(f)
	f.waiting, f.pathTaken, f.facts().long = false, false, nil
	delete(t.table.unread, f)
	t.removeFromSyncs(f)
	if !f.stored && f.state != working {
		t.table.drop(f)
		return
	}
	t.table.unseen[f] = struct{}{}
}

// presentBatch is how many files are copied without letting the workers in between.
const presentBatch = 256

// Present returns a copy of what is known about the files that are on disk and followed, each with its stat at the last
// listing. It holds locks only briefly, so the copies are not all from the same moment.
func (t *Tailer) Present() []Tracked {
	t.mu.Lock()
	files := make([]*file, 0, t.stats.tracked)
	for _, f := range t.table.byID {
		if f.folder != nil {
			files = append(files, f)
		}
	}
	t.mu.Unlock()
	all := make([]Tracked, 0, len(files))
	for batch := range slices.Chunk(files, presentBatch) {
		t.mu.Lock()
		for _, f := range batch {
			if f.folder != nil { // it may have gone since
				k := f.view()
				k.File.Stat = k.seen
				all = append(all, k.Tracked)
			}
		}
		t.mu.Unlock()
	}
	return all
}

// Here returns which of some files are on disk and followed.
func (t *Tailer) Here(ids []FileID) []FileID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var here []FileID
	for _, id := range ids {
		if f := t.table.byID[id]; f != nil && f.folder != nil {
			here = append(here, id)
		}
	}
	return here
}
