package tail

import (
	"bytes"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// markGap is the smallest distance in bytes between two Marks, and the length from which a line gets Marks of its own.
const markGap = 64 << 10

// hashOf returns the hash of everything in this package. No bytes have the hash 0, so that the zero Cursor is the start
// of every file.
func hashOf(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return xxhash.Sum64(b)
}

// prefixWalker walks over whole lines from a cursor, counts them and places Marks.
type prefixWalker struct {
	from   int64 // where it started: no Mark is placed here again
	offset int64
	line   int64
	mark   int64         // offset of the last Mark
	open   xxhash.Digest // of the bytes since mark
	marks  []Mark
}

// Start sets the Walker at c. segment is the bytes from c.Mark to c.Offset.
func (w *prefixWalker) Start(c Cursor, segment []byte) {
	w.from, w.offset, w.line, w.mark = c.Offset, c.Offset, c.Line, c.Mark
	w.marks = nil
	w.open.Reset()
	w.open.Write(segment)
}

// Add walks over lines, each with its newline.
func (w *prefixWalker) Add(lines []byte) {
	hashed := 0
	for pos := 0; pos < len(lines); {
		n := bytes.IndexByte(lines[pos:], '\n') + 1
		if n == 0 {
			n = len(lines) - pos // only a caller's mistake gets here; the offset stays right
		}
		if n >= markGap && w.offset > w.mark && w.offset > w.from {
			w.open.Write(lines[hashed:pos])
			hashed = pos
			w.place()
		}
		pos += n
		w.offset += int64(n)
		w.line++
		if w.offset-w.mark >= markGap {
			w.open.Write(lines[hashed:pos])
			hashed = pos
			w.place()
		}
	}
	w.open.Write(lines[hashed:])
}

// Leap goes over one line that ends at end and places a Mark behind it. open is the hash of what follows the last Mark,
// all of the line included.
func (w *prefixWalker) Leap(open xxhash.Digest, end int64) {
	w.open, w.offset = open, end
	w.line++
	w.place()
}

// place puts a Mark where the Walker stands.
func (w *prefixWalker) place() {
	w.marks = append(w.marks, Mark{Offset: w.offset, Line: w.line, Hash: w.open.Sum64()})
	w.mark = w.offset
	w.open.Reset()
}

// Cursor returns where the Walker stands; the Anchor is the caller's to fill in.
func (w *prefixWalker) Cursor(generation uint32) Cursor {
	c := Cursor{Offset: w.offset, Line: w.line, Generation: generation, Mark: w.mark}
	if w.offset > w.mark {
		c.Segment = w.open.Sum64()
	}
	return c
}

// firstOver returns where the first line longer than limit begins, or -1.
func firstOver(lines []byte, limit int64) int {
	if !overCap(int64(len(lines)), limit) {
		return -1
	}
	for pos := 0; pos < len(lines); {
		n := bytes.IndexByte(lines[pos:], '\n')
		if n < 0 {
			n = len(lines) - pos
		}
		if overCap(int64(n), limit) {
			return pos
		}
		pos += n + 1
	}
	return -1
}

// anchorOf returns the Anchor of a cursor before which lie the bytes of before and then of lines.
func anchorOf(before, lines []byte) uint64 {
	if len(lines) >= AnchorSize {
		return hashOf(lines[len(lines)-AnchorSize:])
	}
	before = before[max(0, len(before)-(AnchorSize-len(lines))):]
	if len(before)+len(lines) == 0 {
		return 0
	}
	var d xxhash.Digest
	d.Reset()
	d.Write(before)
	d.Write(lines)
	return d.Sum64()
}

// Ends says whether b, at least the last AnchorSize bytes before the cursor or all there are, ends as what was read up
// to the cursor does.
func (c Cursor) Ends(b []byte) bool {
	return hashOf(b[max(0, len(b)-AnchorSize):]) == c.Anchor
}

// Walk calls found for every transcript below a root that is not empty, as a Tailer would follow it, but without an ID:
// each file and each folder once, what has a real name before what a link leads to. Of two copies of a session each has
// Copy 0. It calls failed for every folder that cannot be listed; a root that does not exist is empty.
func Walk(root string, found func(File), failed func(dir string, err error)) {
	dir := cleanPath(root)
	w := walk{found: found, failed: failed, seen: map[place]bool{}}
	w.list(&folder{path: dir, root: &rootState{Root: Root{Dir: dir}}})
	for len(w.links) > 0 {
		links := w.links
		w.links = nil
		for _, l := range links {
			w.entry(l.d, &l.e)
		}
	}
}

// walk is a Walk on its way.
type walk struct {
	found  func(File)
	failed func(dir string, err error)
	seen   map[place]bool
	links  []linkedFolder // links whose turn comes when everything with a real name is seen
}

// fresh reports whether a file or folder is seen for the first time, as far as the system distinguishes them.
func (w *walk) fresh(s Stat) bool {
	again := s.known() && w.seen[s.place()]
	w.seen[s.place()] = true
	return !again
}

func (w *walk) list(d *folder) {
	entries, self, err := listFolder(nil, d.path, d.level == rootLevel || d.link, d.wants)
	if err != nil {
		if !notExist(err) {
			w.failed(d.path, err)
		}
		return
	}
	if !w.fresh(self) {
		return
	}
	for i := range entries {
		if e := &entries[i]; e.link {
			w.links = append(w.links, linkedFolder{d: d, e: *e})
		} else {
			w.entry(d, e)
		}
	}
}

func (w *walk) entry(d *folder, e *entry) {
	path := joinPath(d.path, e.name)
	switch {
	case d.link && e.foreign:
	case e.kind == regular:
		if kind, name, ok := d.transcript(e.name); ok && e.stat.Size > 0 && w.fresh(e.stat) {
			w.found(File{Kind: kind, Path: path, Root: d.root.Dir, Name: name, Stat: e.stat})
		}
	case e.kind == directory:
		if l, ok := d.below(e.name); ok && d.depth < maxDepth {
			w.list(d.child(e.name, l, e.link))
		}
	}
}

// child returns a folder below this one, which it does not change.
func (d *folder) child(name string, l level, link bool) *folder {
	s := &folder{
		path: joinPath(d.path, name), root: d.root, parent: d, level: l, depth: d.depth + 1, session: d.session,
		link: d.link || link,
	}
	if l == sessionLevel {
		s.session = name
	}
	return s
}

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
