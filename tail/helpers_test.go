package tail

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// world is a projects folder, a memory, and at times a running tailer.
type world struct {
	t    *testing.T
	root string
	mem  *memory
	cfg  Config
	tail *Tailer
	stop func()
	prep func(*Tailer) // before each start
}

const patience = 2 * time.Minute

func newWorld(t *testing.T) *world {
	t.Parallel()
	w := &world{t: t, root: filepath.Join(t.TempDir(), "projects"), mem: newMemory(t), stop: func() {}}
	w.cfg = Config{
		Roots: []Root{{Dir: w.root}}, Watch: "events", Quiet: 50 * time.Millisecond, ScanActive: 50 * time.Millisecond,
		ScanAll: 300 * time.Millisecond, PollInterval: 20 * time.Millisecond, ScrubAfter: 100 * time.Millisecond,
		Workers: 2,
	}
	w.mkdir("")
	t.Cleanup(func() { w.stop() })
	return w
}

// start runs a new tailer over what the memory holds.
func (w *world) start() {
	w.t.Helper()
	w.tail = New(w.cfg, w.mem, w.mem)
	w.tail.restAt = 0                                                      // files rest whenever they may
	if ahead := time.Since(w.diskTime()).Truncate(time.Hour); ahead != 0 { // make test-ahead
		w.tail.wall = func() time.Time { return time.Now().Round(0).Add(-ahead) }
	}
	if w.prep != nil {
		w.prep(w.tail)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.tail.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			err := <-done
			kit.Check(w.t, err == nil, "run: %v", err)
		})
	}
}

// diskTime is the time that the disk gives what is written now.
func (w *world) diskTime() time.Time {
	w.t.Helper()
	info, err := os.Stat(w.t.TempDir()) // a new folder
	w.must(err)
	return info.ModTime()
}

func (w *world) path(rel string) string { return filepath.Join(w.root, filepath.FromSlash(rel)) }

func (w *world) mkdir(rel string) {
	w.t.Helper()
	w.must(os.MkdirAll(w.path(rel), 0o700))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// write replaces a file's content in place, making its folders.
func (w *world) write(rel, content string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(rel))
	w.must(os.WriteFile(w.path(rel), []byte(content), 0o600))
}

func (w *world) add(rel, content string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(rel))
	f := kit.Try(os.OpenFile(w.path(rel), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)).Must(w.t)
	_ = kit.Try(f.WriteString(content)).Must(w.t)
	w.must(f.Close())
}

// replace renames a new file over the path.
func (w *world) replace(rel, content string) {
	w.t.Helper()
	tmp := w.path(rel) + ".compact.tmp.0a1b2c3d"
	w.must(os.WriteFile(tmp, []byte(content), 0o600))
	w.must(os.Rename(tmp, w.path(rel)))
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	w.mkdir(filepath.Dir(to))
	w.must(os.Rename(w.path(from), w.path(to)))
}

func (w *world) read(rel string) []byte {
	w.t.Helper()
	return kit.Try(os.ReadFile(w.path(rel))).Must(w.t)
}

// age sets a file's times back, so that it counts as old.
func (w *world) age(rel string, by time.Duration) {
	w.t.Helper()
	at := w.diskTime().Add(-by)
	w.must(os.Chtimes(w.path(rel), at, at))
}

// until waits for a condition that the memory's changes, or time, bring about.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	limit := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-w.mem.bell:
		case <-tick.C:
		case <-limit:
			w.t.Fatalf("waited in vain until %s\n%s", what, w.dump())
		}
	}
}

func (w *world) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stats %+v\n", w.tail.Stats())
	w.mem.mu.Lock()
	defer w.mem.mu.Unlock()
	for _, k := range w.mem.files {
		fmt.Fprintf(&b, "%s copy %d: %+v gone %d\n", k.File.Path, k.File.Copy, k.Cursor, k.Gone)
	}
	return b.String()
}

// arrived waits until the file of this name (and copy, from 1) holds what is on disk at rel, up to its last newline.
func (w *world) arrived(rel, name string, copy int) kept {
	w.t.Helper()
	want := w.read(rel)
	want = want[:lastLine(want)]
	var got kept
	w.until(rel+" arrives as "+name, func() bool {
		for _, k := range w.mem.named(name) {
			if k.File.Copy == copy && k.File.Path == w.path(rel) && bytes.Equal(k.content, want) {
				got = k
				return true
			}
		}
		return false
	})
	return got
}

// main waits for a main transcript.
func (w *world) main(rel string) kept {
	w.t.Helper()
	return w.arrived(rel, strings.TrimSuffix(filepath.Base(rel), suffix), 1)
}

// startWith starts a tailer and waits for a main transcript.
func (w *world) startWith(rel string) kept {
	w.t.Helper()
	w.start()
	return w.main(rel)
}

// follow writes a main transcript, starts a tailer and waits for it.
func (w *world) follow(rel, content string) kept {
	w.t.Helper()
	w.write(rel, content)
	return w.startWith(rel)
}

func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// sync runs Sync and wants it to succeed.
func (w *world) sync() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.tail.Sync(ctx); err != nil {
		w.t.Fatalf("sync: %v\n%s", err, w.dump())
	}
}

// lines makes n lines of about size bytes each, all different.
func lines(tag string, n, size int) string {
	var b strings.Builder
	for i := range n {
		head := fmt.Sprintf(`{"type":"user","uuid":"%s-%d","text":"`, tag, i)
		fmt.Fprintf(&b, "%s%s\"}\n", head, strings.Repeat("x", max(0, size-len(head)-3)))
	}
	return b.String()
}

// followed demands that exactly these files are on disk and followed.
func (w *world) followed(rels ...string) {
	w.t.Helper()
	for range 2 { // the second listing sees what the first one left
		w.sync()
	}
	var have []string
	for _, f := range w.tail.Present() {
		have = append(have, strings.TrimPrefix(f.File.Path, w.root+"/"))
	}
	kit.Equal(w.t, fmt.Sprintf("followed: %v, want %v", have, rels), len(have), len(rels))
	for _, rel := range rels {
		w.main(rel)
	}
	walked := 0
	Walk(w.root, func(File) { walked++ }, func(dir string, err error) { w.t.Errorf("walk %s: %v", dir, err) })
	kit.Equal(w.t, fmt.Sprintf("transcripts walked, want %v", rels), walked, len(rels))
}
