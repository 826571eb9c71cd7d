package tail

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchState is how changes are noticed, for Stats. Guarded by Tailer.mu.
type watchState struct{ mode, reason string }

const (
	// watchKeep is how long a session's folders stay watched after their last change.
	watchKeep = 30 * time.Minute
	// maxWatches limits the use of a resource that all programs of a user share.
	maxWatches = 4096
)

// startWatching starts receiving events, if configured. Without events everything works, only later.
func (t *Tailer) startWatching(group *sync.WaitGroup) {
	t.scan.group = group
	switch {
	case t.cfg.wantsEvents():
		t.openWatcher()
	case t.cfg.Watch == "poll":
		t.setWatch("poll", "configured")
	default:
		t.setWatch("poll", "watching costs a descriptor a file on "+runtime.GOOS)
	}
}

func (t *Tailer) openWatcher() {
	err := t.faults.on(t.faults.watch, "")
	var w *fsnotify.Watcher
	if err == nil {
		w, err = fsnotify.NewWatcher()
	}
	if err != nil {
		t.fallBackToPolling(err)
		return
	}
	t.scan.watcher = w
	t.scan.watches.Store(0)
	t.scan.links = nil
	t.setWatch("events", "")
	t.scan.group.Go(func() { t.events(w) })
}

func (t *Tailer) stopWatching() {
	if t.scan.watcher != nil {
		_ = t.scan.watcher.Close() // nothing is read from it any more
	}
}

func (t *Tailer) setWatch(mode, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watch = watchState{mode, reason}
}

func (t *Tailer) polling() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watch.mode == "poll"
}

// fallBackToPolling polls until a later full listing gets watches again.
func (t *Tailer) fallBackToPolling(err error) {
	t.scan.noWatches = true
	if !t.polling() || t.scan.watcher == nil {
		t.log.Warn("no file system events; polling instead", "err", err)
	}
	t.setWatch("poll", "no change events: "+err.Error())
}

// retryWatching tries to get events again, before a full listing.
func (t *Tailer) retryWatching() {
	if !t.cfg.wantsEvents() {
		return
	}
	t.scan.noWatches = false
	if t.scan.watcher == nil {
		t.openWatcher()
		if t.scan.watcher != nil {
			t.setWatch("poll", "change events are coming back") // until every folder is watched
		}
	}
}

// watchRestored ends polling once every folder is watched again.
func (t *Tailer) watchRestored() {
	if t.scan.watcher != nil && !t.scan.noWatches && t.polling() {
		t.log.Info("change events again")
		t.setWatch("events", "")
	}
}

// watchFolder watches a folder if it should be watched. It is called before the folder is listed, so that no change
// falls between the two.
func (t *Tailer) watchFolder(d *folder) {
	w := t.scan.watcher
	if w == nil {
		return
	}
	t.mu.Lock()
	lost := d.unwatched
	d.unwatched = false
	keep := !d.ofSession() || t.now()-d.touched < watchKeep
	t.mu.Unlock()
	if lost {
		t.unwatch(d)
	}
	switch {
	case keep && !d.watched && t.scan.watches.Load() < maxWatches && !t.scan.noWatches:
		err := t.faults.on(t.faults.watch, d.path)
		if err == nil {
			err = w.Add(d.path)
		}
		if err == nil {
			d.watched, d.local = true, t.cfg.Local(d.path)
			t.scan.watches.Add(1)
		} else if outOfWatches(err) {
			t.fallBackToPolling(err)
		}
	case !keep:
		t.unwatch(d)
	}
}

// unwatch releases a folder's watch. Only the main loop calls it.
func (t *Tailer) unwatch(d *folder) {
	if d.watched {
		d.watched, d.attended = false, false
		t.scan.watches.Add(-1)
		_ = t.scan.watcher.Remove(d.path) // it may have ended with the folder
	}
}

// eventsTell reports whether events come of every change in a watched folder: not while any link is followed.
func (t *Tailer) eventsTell() bool {
	if t.polling() || t.faults.list != nil || len(t.scan.links) > 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.table.folders {
		if d.link {
			return false
		}
	}
	return true
}

// trusts reports whether a quick listing takes a folder as it was last seen. Of a watched folder on a local disk events
// have reported everything since it was looked at; its own stat says whether names came or went. A session's folder
// without a watch rests: who writes there writes to the session's transcript too, whose events wake the folder.
func (p *listing) trusts(d *folder) bool {
	if !p.events || d.level == rootLevel || d.level == historyLevel {
		return false
	}
	resting := d.ofSession() && !d.watched && d.project().attended && d.project().local &&
		(p.number+uint32(d.turn))%restTurns != 0
	notified := d.watched && d.attended && d.local && d.settled
	if !resting && !notified || !p.sound(d, resting) {
		p.looked += min(1, len(d.files))
		return false
	}
	if resting {
		return true
	}
	self, kind, err := statEntry(d.path)
	return err == nil && kind == directory && self == d.self
}

// ofSession reports whether a folder belongs to a session, and holds no main transcripts.
func (d *folder) ofSession() bool {
	return d.level == agentsLevel || d.level == sessionLevel && len(d.files) == 0
}

// sound reports whether nothing happened to a folder lately, and no file in it is in trouble.
func (p *listing) sound(d *folder, resting bool) bool {
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.now() - d.touched
	if d.unwatched || d.listing == 0 || since < activeFor || resting && since < watchKeep ||
		t.table.unlisted[d.path] != nil {
		return false
	}
	for _, f := range d.files {
		if f.pathTaken || f.fails > 0 {
			return false
		}
	}
	return true
}

// project returns the project folder that a folder belongs to.
func (d *folder) project() *folder {
	for d.level != projectLevel && d.parent != nil {
		d = d.parent
	}
	return d
}

// pass takes a folder as it was, and returns the folders in it.
func (p *listing) pass(d *folder) []*folder {
	p.t.mu.Lock()
	defer p.t.mu.Unlock()
	d.listing = p.number
	return slices.Collect(maps.Values(d.subs))
}

// events handles the watcher's events until it is closed.
func (t *Tailer) events(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if err := t.faults.on(t.faults.event, e.Name); err != nil {
				t.eventsLost(err)
			} else {
				t.event(e)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			t.eventsLost(err)
		}
	}
}

// eventsLost requests a full listing: what happened meanwhile is unknown.
func (t *Tailer) eventsLost(err error) {
	t.log.Info("change events lost, listing everything", "err", err)
	t.askFull("change events lost")
}

// event handles one event. A write to a known file goes straight to the workers: almost every line comes this way.
func (t *Tailer) event(e fsnotify.Event) {
	dir, name := splitPath(e.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if self := t.table.folders[e.Name]; self != nil && e.Has(fsnotify.Remove|fsnotify.Rename) {
		self.unwatched = true // a watch ends with its name, also when the folder comes back under it
		if self.level == rootLevel {
			t.askFullLocked("root removed")
		}
	}
	d := t.table.folders[dir]
	if d == nil {
		return
	}
	f := d.files[name]
	switch {
	case f != nil && e.Op == fsnotify.Write:
		t.fileChanged(f)
	case f != nil || d.subs[name] != nil || d.wants(name):
		t.hint(e.Name)
	}
}

// reasonOf returns the system's error without the path.
func reasonOf(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// manyHints is the number of changed names above which listing the folder is cheaper.
const manyHints = 32

// hint records that something happened at a path. The caller holds mu.
func (t *Tailer) hint(path string) {
	t.requests.hints[path] = struct{}{}
	ring(t.wake)
}

// scanHints checks the paths where something happened.
func (t *Tailer) scanHints(ctx context.Context, hints map[string]struct{}) {
	byFolder := map[*folder][]string{}
	t.mu.Lock()
	for path := range hints {
		dir, name := splitPath(path)
		if d := t.table.folders[dir]; d != nil && !d.root.alias {
			byFolder[d] = append(byFolder[d], name)
		}
	}
	t.mu.Unlock()
	if len(byFolder) == 0 {
		return
	}
	p := t.newListing(false)
	for d, names := range byFolder {
		if len(names) > manyHints {
			p.list(ctx, d, false)
			continue
		}
		for _, name := range names {
			p.listName(ctx, d, name)
		}
	}
	p.finish(ctx)
}

// listName does for one name what list does for a folder.
func (p *listing) listName(ctx context.Context, d *folder, name string) {
	path := joinPath(d.path, name)
	e, err := look(path)
	e.name = name
	t := p.t
	t.mu.Lock()
	f, s := d.files[name], d.subs[name]
	switch {
	case err != nil && notExist(err) || err == nil && e.kind == other:
		delete(t.table.refused, path)
		if p.noteAbsent(f, s); err == nil && e.why != "" && d.wants(name) {
			p.refuse(d, &e, e.why)
		}
		s = nil
	case err != nil:
		s = nil
	default:
		delete(t.table.refused, path)
		if f != nil && e.kind != regular || s != nil && e.kind != directory {
			p.noteAbsent(f, s)
		}
		s, _ = p.entry(d, &e)
	}
	t.mu.Unlock()
	if s != nil {
		p.list(ctx, s, true)
	}
}

func (p *listing) noteAbsent(f *file, s *folder) {
	if f != nil {
		p.missing = append(p.missing, f)
	}
	if s != nil {
		p.missingFolders = append(p.missingFolders, s)
	}
}
