package tail

import (
	"iter"
	"math/rand/v2"
	"strings"
	"time"
)

// file is a remembered transcript, on disk now or not. Guarded by Tailer.mu.
type file struct {
	id               FileID
	base             string  // the last part of its path
	awake            *facts  // nil while it rests
	packed           string  // the facts, while it rests
	folder           *folder // where it is; nil while it is not on disk
	next             *file   // the next file of the same key
	listing          uint32  // number of the last listing that saw it
	fails            uint8   // consecutive inspections that could not read it
	state            workState
	class            priority
	changedAgain     bool // changed while in work
	stored           bool // the sink knows it
	waiting          bool // answered ErrLater, until it changes or the owner wakes us
	pathTaken        bool // another file is at its path: do not read it before a full listing
	wishes           wishes
	alone            bool // its next inspection takes long
	pastHolds        bool // everything before the cursor is verified for File.Stat
	partialTried     bool // its last line is no JSON object yet
	missedUnsaved    bool // Missed has grown since it was stored
	inspectScheduled bool // a timer in queue.due exists
	scrubScheduled   bool // a timer in scrub.due exists
	drowsy           bool // it is in Tailer.drowsy
}

// newFile makes a file that is awake.
func newFile(tr *Tracked, seen Stat) *file {
	f := &file{id: tr.File.ID, awake: &facts{Tracked: *tr, seen: seen}}
	f.moved()
	return f
}

// key returns where the file is in table.byKey.
func (f *file) key() uint64 {
	k := f.view()
	return hashOf([]byte(k.File.key()))
}

// moved takes over a new path of the facts.
func (f *file) moved() {
	k := f.facts()
	_, base := splitPath(k.File.Path)
	f.base = strings.Clone(base) // of its own: nothing holds the path while the file rests
	if strings.HasPrefix(f.base, k.File.Name) {
		k.File.Name = f.base[:len(k.File.Name)]
	}
}

// folder is a folder below a root that holds transcripts, or may.
type folder struct {
	path      string
	root      *rootState
	parent    *folder
	files     map[string]*file // on disk now, by base name
	subs      map[string]*folder
	session   string // for agents: the session above
	history   string // for the folder of a prompt history: its base name
	self      Stat   // which folder was listed here last
	touched   time.Duration
	listing   uint32
	level     level
	depth     uint8
	watched   bool  // owned by the main loop, as pass, self and settled
	link      bool  // it is, or lies below, what a link leads to
	alias     bool  // a link to a folder that is followed by another name
	settled   bool  // the last change of names is old enough for self to prove that none came since
	local     bool  // on a disk of this machine, where every change is an event; owned by the main loop
	attended  bool  // looked at since it is watched without a gap; owned by the main loop
	unwatched bool  // its watch has ended with a name of it
	turn      uint8 // in which listings it is looked at while it rests
	listSoon  bool  // list and watch it: its session is active again
}

// rootState is a configured root.
type rootState struct {
	Root
	folder  *folder
	history *folder // nil when there is none
	listed  bool    // the last listing of the root itself went well
	alias   bool    // the same folder as an earlier root: not listed twice
}

// table is every file and folder that is known.
type table struct {
	roots    []*rootState
	byID     map[FileID]*file
	lastID   FileID           // given last
	byKey    map[uint64]*file // the first of a chain, by the hash of its files' key
	folders  map[string]*folder
	active   map[*folder]struct{} // changed lately, or to be listed again after an error
	unlisted map[string]error
	unseen   map[*file]struct{} // loaded, and not found on disk since
	gone     map[*file]struct{}
	unsaved  map[*file]struct{} // moved or vanished, and not stored yet
	unread   map[*file]error    // repeatedly cannot be opened or read
	refused  map[string]string  // links that are not followed, and why
	before   map[*file]int64    // size when first seen in this run, if larger than what was delivered by then
	loaded   bool
}

func newTable(roots []Root) table {
	tb := table{
		byID: map[FileID]*file{}, byKey: map[uint64]*file{}, folders: map[string]*folder{},
		active: map[*folder]struct{}{}, unlisted: map[string]error{}, unseen: map[*file]struct{}{},
		gone: map[*file]struct{}{}, unsaved: map[*file]struct{}{}, unread: map[*file]error{}, before: map[*file]int64{},
		refused: map[string]string{}, lastID: FileID(rand.Uint64()),
	}
	for _, r := range roots {
		tb.addRoot(r)
	}
	return tb
}

func (tb *table) addRoot(r Root) {
	r.Dir = cleanPath(r.Dir)
	for _, have := range tb.roots {
		if have.Dir == r.Dir {
			return
		}
	}
	rs := &rootState{Root: r}
	rs.folder = &folder{path: r.Dir, root: rs, level: rootLevel}
	tb.folders[r.Dir] = rs.folder
	if r.History != "" {
		dir, base := splitPath(cleanPath(r.History))
		if tb.folders[dir] == nil {
			rs.history = &folder{path: dir, root: rs, level: historyLevel, history: base}
			tb.folders[dir] = rs.history
		}
	}
	tb.roots = append(tb.roots, rs)
}

// load adds a file from an earlier run. It does not count as on disk until a listing finds it.
func (tb *table) load(tr *Tracked, n *counters) {
	if tb.byID[tr.File.ID] != nil {
		return
	}
	f := newFile(tr, tr.File.Stat)
	f.stored = true
	tb.add(f)
	if tr.Gone != 0 {
		tb.gone[f] = struct{}{}
		n.vanished++
	} else {
		tb.unseen[f] = struct{}{}
	}
}

func (tb *table) add(f *file) {
	tb.byID[f.id] = f
	key := f.key()
	f.next = tb.byKey[key]
	tb.byKey[key] = f
}

// drop forgets a file.
func (tb *table) drop(f *file) {
	delete(tb.byID, f.id)
	delete(tb.gone, f)
	delete(tb.unseen, f)
	delete(tb.unsaved, f)
	delete(tb.unread, f)
	tb.forgetBefore(f)
	key := f.key()
	if tb.byKey[key] == f {
		if tb.byKey[key] = f.next; f.next == nil {
			delete(tb.byKey, key)
		}
		return
	}
	for p := tb.byKey[key]; p != nil; p = p.next {
		if p.next == f {
			p.next = f.next
			return
		}
	}
}

// named returns the remembered files of a key.
func (tb *table) named(key string) iter.Seq2[*file, facts] {
	return func(yield func(*file, facts) bool) {
		for f := tb.byKey[hashOf([]byte(key))]; f != nil; f = f.next {
			if k := f.view(); k.File.key() == key && !yield(f, k) {
				return
			}
		}
	}
}

// freeCopy returns the lowest Copy that no remembered file of the key has.
func (tb *table) freeCopy(key string) int {
	for n := 1; ; n++ {
		taken := false
		for _, k := range tb.named(key) {
			taken = taken || k.File.Copy == n
		}
		if !taken {
			return n
		}
	}
}

const idGap = 1 << 20 // how far apart two ids are at most: a billion of them take up a 16 000th of all there are

// freeID makes an id for a new file, a little above the one before, so that rows of files that are read one after
// another are side by side. The first is random, and so are the gaps: no run of the program gives an id again that was
// forgotten.
func (tb *table) freeID() FileID {
	for {
		if tb.lastID += FileID(1 + rand.Uint64N(idGap)); tb.lastID != 0 && tb.byID[tb.lastID] == nil {
			return tb.lastID
		}
	}
}

// configured reports whether a root is followed, and whether its last listing succeeded.
func (tb *table) configured(root string) (is, listed bool) {
	for _, r := range tb.roots {
		if r.Dir == root {
			return true, r.listed
		}
	}
	return false, false
}

// absent reports whether the file was not on disk before now.
func (tb *table) absent(f *file) bool {
	_, unseen := tb.unseen[f]
	_, gone := tb.gone[f]
	return unseen || gone
}

// attach records that the file is in the folder, at its path.
func (tb *table) attach(f *file, d *folder, n *counters) {
	if d.files == nil {
		d.files = map[string]*file{}
	}
	k := f.facts()
	d.files[f.base] = f
	f.folder = d
	delete(tb.unseen, f)
	if _, ok := tb.gone[f]; ok {
		delete(tb.gone, f)
		n.vanished--
	}
	if k.Gone != 0 || k.Missed != 0 {
		k.Gone, k.Missed = 0, 0
		tb.unsaved[f] = struct{}{}
	}
}

// detach records that the file has left its folder.
func (tb *table) detach(f *file) {
	if f.folder == nil {
		return
	}
	f.facts() // its path is that of the folder while it rests
	if f.folder.files[f.base] == f {
		delete(f.folder.files, f.base)
	}
	f.folder = nil
}

// touch records a change in the folder.
func (tb *table) touch(d *folder, at time.Duration) {
	if d == nil {
		return
	}
	d.touched = max(d.touched, at)
	tb.active[d] = struct{}{}
}

// forgetBefore drops the first size of a file once everything up to it is delivered.
func (tb *table) forgetBefore(f *file) {
	if _, ok := tb.before[f]; !ok {
		return
	}
	if delete(tb.before, f); len(tb.before) == 0 {
		tb.before = map[*file]int64{} // the old map has grown for an import
	}
}
