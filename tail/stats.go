package tail

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"time"
)

// Stats is the progress of reading. Files count while they are on disk; bytes are uncompressed.
type Stats struct {
	Tracked   int   // transcripts on disk
	Mains     int   // sessions: main transcripts among them, of several with one name the first
	Bytes     int64 // of them all
	ReadBytes int64 // of Bytes, those behind the cursors
	Lines     int64 // behind the cursors
	// UnreadFiles have more than was read, an unfinished last line aside. Those that the sink does not take now (ErrLater
	// until a change or Wake) are not among them.
	UnreadFiles int
	UnreadBytes int64
	Vanished    int   // remembered, no longer on disk
	Rewinds     int64 // found since the start
	Watch       string
	WatchReason string // why there are no events; "" while there are
	Watches     int    // folders that are watched
	WatchLimit  int    // the most that are; 0 while there are no events
	// Unfinished files end in a line that has no newline and is not delivered: it is no record yet, or not for long.
	Unfinished int
	// Unreadable is the transcripts that cannot be opened or read, each with its error.
	Unreadable []string
	// NotFollowed is the symbolic links and the folders that are not followed, each with the reason.
	NotFollowed []string
	// Stray is the *.jsonl files below a root that are not read, because their place and name are no transcript's.
	Stray []string
	// NotTaken is why the sink failed to take chunks the last time; nil when it took them.
	NotTaken  error
	Importing bool // what was there before the start is not all read yet
}

// counters are the Stats that are kept up to date, so that asking for them costs nothing.
type counters struct {
	tracked, vanished       int
	mains                   map[string]int // how many main transcripts have a name
	bytes, read, lines      int64
	unreadFiles, unfinished int
	unreadBytes             int64
	rewinds                 int64
	scanned                 bool // everything was listed once
	notTaken                error
	failures                int32 // of Deliver, consecutive
}

// count adds (sign 1) or takes away (-1) what a file on disk contributes to the counters. A caller that changes a field
// it reads takes the file away before and adds it after. The caller holds mu.
func (t *Tailer) count(f *file, sign int) {
	if f.folder == nil {
		return
	}
	n, s := &t.stats, int64(sign)
	n.tracked += sign
	k := f.view()
	if k.File.Kind == Main {
		if n.mains == nil {
			n.mains = map[string]int{}
		}
		if n.mains[k.File.Name] += sign; n.mains[k.File.Name] == 0 {
			delete(n.mains, k.File.Name)
		}
	}
	n.bytes += s * k.seen.Size
	n.read += s * k.Cursor.Offset
	n.lines += s * k.Cursor.Line
	if k.partial > 0 && k.Provisional.Length == 0 {
		n.unfinished += sign
	}
	rest := k.seen.Size - k.Cursor.Offset - k.partial
	if rest > 0 && !f.waiting {
		n.unreadFiles += sign
		n.unreadBytes += s * rest
	}
}

// Stats returns counters: it reads nothing.
func (t *Tailer) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.stats
	s := Stats{
		Tracked: n.tracked, Mains: len(n.mains), Bytes: n.bytes, ReadBytes: n.read, Lines: n.lines,
		UnreadFiles: n.unreadFiles, UnreadBytes: n.unreadBytes, Unfinished: n.unfinished,
		Vanished: n.vanished, Rewinds: n.rewinds,
		Watch: t.watch.mode, WatchReason: t.watch.reason, NotTaken: n.notTaken,
		Importing: !n.scanned || t.queue.importing > 0,
	}
	if s.Watch == "events" {
		s.Watches, s.WatchLimit = int(t.scan.watches.Load()), maxWatches
	}
	s.NotFollowed, s.Stray = t.table.notFollowed()
	for f, err := range t.table.unread {
		if f.folder != nil {
			s.Unreadable = append(s.Unreadable, f.view().File.Path+": "+reasonOf(err))
		}
	}
	return s
}

// Unlisted returns the folders that cannot be listed, and why: their files count as neither gone nor read.
func (t *Tailer) Unlisted() map[string]error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.table.unlisted)
}

// File returns a copy of what is known about one file.
func (t *Tailer) File(id FileID) (Tracked, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.table.byID[id]
	if f == nil {
		return Tracked{}, false
	}
	return f.view().Tracked, true
}

// Files returns a copy of everything known, including vanished files (their Gone is not 0).
func (t *Tailer) Files() []Tracked {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Tracked, 0, len(t.table.byID))
	for _, f := range t.table.byID {
		all = append(all, f.view().Tracked)
	}
	return all
}

// SinceHeartbeat returns the time since the main loop last made progress, which it does every few seconds; before its
// first turn, since New. A long time means that it hangs.
func (t *Tailer) SinceHeartbeat() time.Duration {
	return t.now() - time.Duration(t.lastHeartbeat.Load())
}

// heartbeat records that the main loop makes progress.
func (t *Tailer) heartbeat() { t.lastHeartbeat.Store(int64(t.now())) }

// entryType is the type of a directory entry.
type entryType uint8

const (
	other entryType = iota // pipes, devices, links that are not followed: never read
	regular
	directory
)

// entry is one name of a listing. Of a link that is followed it has the stat and the kind of the target.
type entry struct {
	name    string
	stat    Stat
	kind    entryType
	link    bool
	foreign bool   // it belongs to another user
	why     string // why a link is not followed; "" for all others
}

// statEntry returns stat and type of what a path leads to, if it may be followed.
func statEntry(path string) (Stat, entryType, error) {
	e, err := look(path)
	return e.stat, e.kind, err
}

// faults lets tests inject file system errors. A nil func never fails.
type faults struct {
	list  func(path string) error
	open  func(path string) error
	read  func(path string) error // after reading, before confirm
	watch func(path string) error
	event func(path string) error // an error takes the event's place
}

func (f *faults) on(hook func(string) error, path string) error {
	if hook == nil {
		return nil
	}
	return hook(path)
}

func (t *Tailer) list(into []entry, d *folder) ([]entry, Stat, error) {
	if err := t.faults.on(t.faults.list, d.path); err != nil {
		return into, Stat{}, err
	}
	if d.level == historyLevel {
		return listOne(into, d.path, d.history)
	}
	return listFolder(into, d.path, d.level == rootLevel || d.link, d.wants)
}

// listOne lists a single name of a folder.
func listOne(into []entry, dir, name string) ([]entry, Stat, error) {
	e, err := look(joinPath(dir, name))
	if err == nil {
		e.name = name
		return append(into, e), Stat{}, nil
	}
	if !notExist(err) {
		return into, Stat{}, err
	}
	if _, err := os.Stat(dir); err != nil {
		return into, Stat{}, err
	}
	return into, Stat{}, nil
}

func (t *Tailer) open(path string) (*handle, error) {
	if err := t.faults.on(t.faults.open, path); err != nil {
		return nil, err
	}
	return openHandle(path)
}

// sameFile reports whether two stats belong to one file, as far as inodes tell; without inodes it returns true.
func (s Stat) sameFile(o Stat) bool { return s.Device == o.Device && s.Inode == o.Inode }

// known reports whether the system gives the file an identity.
func (s Stat) known() bool { return s.Inode != 0 || s.Device != 0 }

func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) || notFolder(err) }
