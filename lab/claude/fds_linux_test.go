package claude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// openBelow is the files below a folder that a process has open now, with whether for writing.
func openBelow(pid int, dir string) map[string]bool {
	open := map[string]bool{}
	base := fmt.Sprintf("/proc/%d/", pid)
	entries, err := os.ReadDir(base + "fd")
	if err != nil {
		return open // the process has ended
	}
	for _, e := range entries {
		path, err := os.Readlink(base + "fd/" + e.Name())
		if err != nil || path != dir && !strings.HasPrefix(path, dir+string(filepath.Separator)) {
			continue
		}
		open[path] = open[path] || forWriting(base+"fdinfo/"+e.Name())
	}
	return open
}

// forWriting reads the flags of a descriptor, which are octal; their lowest two bits are the access mode.
func forWriting(fdinfo string) bool {
	data, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(value), 8, 64)
			return err == nil && flags&3 != 0
		}
	}
	return false
}

// watcher looks, all the time, which of Claude Code's files the daemon has open.
type watcher struct {
	stop chan struct{}
	done sync.WaitGroup

	// Owned by the goroutine until done.
	looks, hits int
	longest     time.Duration // that one file was found open in look after look
	longestPath string
	written     []string // files found open for writing
}

// watch looks at a process every few milliseconds until end is called.
func watch(pid int, dir string) *watcher {
	w := &watcher{stop: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		since := map[string]time.Time{}
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.look(openBelow(pid, dir), since)
			}
		}
	})
	return w
}

func (w *watcher) look(open map[string]bool, since map[string]time.Time) {
	w.looks++
	w.hits += min(len(open), 1)
	for path := range since {
		if _, still := open[path]; !still {
			delete(since, path)
		}
	}
	for path, writing := range open {
		if writing {
			w.written = append(w.written, path)
		}
		if _, known := since[path]; !known {
			since[path] = time.Now()
		}
		if d := time.Since(since[path]); d > w.longest {
			w.longest, w.longestPath = d, path
		}
	}
}

// end demands that nothing was opened for writing and nothing was held, and says what was seen.
func (w *watcher) end(t testing.TB) {
	t.Helper()
	close(w.stop)
	w.done.Wait()
	t.Logf("%d looks at the daemon's descriptors: %d found one of Claude Code's files open, the longest for %s",
		w.looks, w.hits, w.longest.Round(time.Millisecond))
	if w.longest > time.Second {
		t.Errorf("%s was held open for %s", w.longestPath, w.longest)
	}
	if len(w.written) > 0 {
		t.Errorf("opened for writing: %q", w.written)
	}
}

func TestWatcherSees(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "held"))
	must(t, err)
	defer f.Close()
	if open := openBelow(os.Getpid(), dir); !open[f.Name()] || len(open) != 1 {
		t.Errorf("open are %v, want %s for writing", open, f.Name())
	}
	r, err := os.Open(f.Name())
	must(t, err)
	defer r.Close()
	must(t, f.Close())
	if writing, open := openBelow(os.Getpid(), dir)[f.Name()]; !open || writing {
		t.Errorf("open %v, for writing %v; want it for reading", open, writing)
	}
}

// TestWatcherAddsUp holds one file through two looks, lets go of it, and opens it again.
func TestWatcherAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, since := &watcher{}, map[string]time.Time{}
		for _, look := range []struct {
			open  map[string]bool
			after time.Duration
		}{
			{map[string]bool{"a": false}, 3 * time.Second},
			{map[string]bool{"a": false, "b": false}, time.Second},
			{map[string]bool{"b": false}, time.Second},
			{map[string]bool{"a": false}, 2 * time.Second},
			{map[string]bool{"a": true}, 0},
		} {
			w.look(look.open, since)
			<-time.After(look.after)
		}
		if w.looks != 5 || w.hits != 5 || w.longest != 3*time.Second || w.longestPath != "a" || len(w.written) != 1 {
			t.Errorf("seen was %+v; want a open for 3 s, and written to once", w)
		}
	})
}
