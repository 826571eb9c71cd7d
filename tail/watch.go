package tail

import (
	"errors"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watchState is how changes are noticed, for Stats. Guarded by Tailer.mu.
type watchState struct{ mode, reason string }

const (
	// watchKeep is how long the folders of a session stay watched after the last change in them.
	watchKeep = 30 * time.Minute
	// maxWatches bounds what we take of a resource that all of a user's programs share.
	maxWatches = 4096
)

// startWatching asks the system for events, if it is to. Without them everything works, only later.
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
		t.degrade(err)
		return
	}
	t.scan.watcher = w
	t.scan.watches.Store(0)
	t.setWatch("events", "")
	t.scan.group.Go(func() { t.events(w) })
}

func (t *Tailer) stopWatching() {
	if t.scan.watcher != nil {
		t.scan.watcher.Close()
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

// degrade goes on by polling, until a later listing of everything finds that there are watches again.
func (t *Tailer) degrade(err error) {
	t.scan.noWatches = true
	if !t.polling() || t.scan.watcher == nil {
		t.log.Warn("no change events, polling instead", "err", err)
	}
	t.setWatch("poll", "no change events: "+err.Error())
}

// rewatch begins a new attempt to get events, before everything is listed.
func (t *Tailer) rewatch() {
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

// watchRestored ends polling when every folder that is to be watched is.
func (t *Tailer) watchRestored() {
	if t.scan.watcher != nil && !t.scan.noWatches && t.polling() {
		t.log.Info("change events again")
		t.setWatch("events", "")
	}
}

// watchFolder sees to it that a folder is watched if it should be. It is called before the folder is listed, so that
// nothing falls between the two.
func (t *Tailer) watchFolder(d *folder) {
	w := t.scan.watcher
	if w == nil {
		return
	}
	t.mu.Lock()
	keep := d.level != sessionLevel && d.level != agentsLevel || t.now()-d.touched < watchKeep
	t.mu.Unlock()
	switch {
	case keep && !d.watched && t.scan.watches.Load() < maxWatches && !t.scan.noWatches:
		err := t.faults.on(t.faults.watch, d.path)
		if err == nil {
			err = w.Add(d.path)
		}
		if err == nil {
			d.watched = true
			t.scan.watches.Add(1)
		} else if outOfWatches(err) {
			t.degrade(err)
		}
	case !keep:
		t.unwatch(d)
	}
}

// unwatch gives a folder's watch back. Only the main loop calls it.
func (t *Tailer) unwatch(d *folder) {
	if d.watched {
		d.watched = false
		t.scan.watches.Add(-1)
		_ = t.scan.watcher.Remove(d.path) // it may have ended with the folder
	}
}

// events takes the watcher's events until it is closed.
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

// eventsLost lists everything: what happened meanwhile is not known.
func (t *Tailer) eventsLost(err error) {
	t.log.Info("change events lost, listing everything", "err", err)
	t.askFull("change events lost")
}

// event takes a hint. A write to a known file goes straight to the workers: that is the way of almost every line.
func (t *Tailer) event(e fsnotify.Event) {
	dir, name := splitPath(e.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if self := t.table.folders[e.Name]; self != nil && e.Has(fsnotify.Remove|fsnotify.Rename) && self.level == rootLevel {
		t.askFullLocked("root removed")
	}
	d := t.table.folders[dir]
	if d == nil {
		return
	}
	f := d.files[name]
	switch {
	case f != nil && e.Op == fsnotify.Write:
		t.changed(f)
	case f != nil || d.subs[name] != nil || d.wants(name):
		t.hint(e.Name)
	}
}

// reasonOf is what the system said, without the path.
func reasonOf(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
