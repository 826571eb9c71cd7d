package tail

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// discard is a sink that takes everything and keeps nothing but cursors.
type discard struct {
	mu    sync.Mutex
	bytes int64
	calls int64
	each  func(calls int64)
	bell  chan struct{}
}

func (d *discard) Deliver(_ context.Context, chunks []Chunk) ([]Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; d.each != nil {
		d.each(d.calls)
	}
	for i := range chunks {
		d.bytes += int64(len(chunks[i].Lines))
	}
	select {
	case d.bell <- struct{}{}:
	default:
	}
	return make([]Result, len(chunks)), nil
}

func (d *discard) Room(bool) bool                                     { return true }
func (d *discard) Load(context.Context) ([]Tracked, error)            { return nil, nil }
func (d *discard) Reload(context.Context, FileID) (Tracked, error)    { return Tracked{}, os.ErrNotExist }
func (d *discard) Marks(context.Context, FileID) ([]Mark, error)      { return nil, nil }
func (d *discard) Update(context.Context, []Tracked) error            { return nil }
func (d *discard) Forget(context.Context, []FileID) ([]FileID, error) { return nil, nil }

// runDiscard reads until so many bytes have come, and answers the tailer, which has stopped.
func runDiscard(t testing.TB, cfg Config, sink *discard, want int64) *Tailer {
	tl := New(cfg, sink, sink)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tl.Run(ctx) }()
	limit := time.After(2 * time.Minute)
	for {
		sink.mu.Lock()
		got := sink.bytes
		sink.mu.Unlock()
		if got >= want {
			break
		}
		select {
		case <-sink.bell:
		case <-limit:
			t.Fatalf("%d of %d bytes", got, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return tl
}

func BenchmarkRead(b *testing.B) {
	root := b.TempDir()
	var size int64
	for i := range 20 {
		dir := filepath.Join(root, fmt.Sprintf("p%d", i%4))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		body := lines("b", 10_000, 1000)
		size += int64(len(body))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%d.jsonl", i)), []byte(body), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(size)
	for b.Loop() {
		runDiscard(b, Config{Roots: []Root{{Dir: root}}, Watch: "poll"}, &discard{bell: make(chan struct{}, 1)}, size)
	}
}

// idleTree makes n transcripts in 40 projects, a third of them agents'.
func idleTree(b testing.TB, root string, n int) (size int64) {
	for i := range n {
		name := fmt.Sprintf("-home-kim-project-%02d/0a1b2c3d-0000-4000-8000-%012d", i%40, i)
		if i%3 == 2 {
			name = fmt.Sprintf("-home-kim-project-%02d/0a1b2c3d-0000-4000-8000-%012d/subagents/agent-%08d", (i-2)%40, (i-2)/9*9, i)
		}
		path := filepath.Join(root, name+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		body := lines("i", 2, 100)
		size += int64(len(body))
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return size
}

func BenchmarkIdleScan(b *testing.B) {
	root := b.TempDir()
	const n = 10_000
	size := idleTree(b, root, n)
	tl := runDiscard(b, Config{Roots: []Root{{Dir: root}}, Watch: "poll"}, &discard{bell: make(chan struct{}, 1)}, size)
	if got := tl.Stats().Tracked; got != n {
		b.Fatalf("%d files", got)
	}
	for _, d := range tl.table.folders {
		d.settled = true // as if it were some seconds later
	}
	b.ReportAllocs()
	for b.Loop() {
		tl.scanAll(context.Background(), "")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/file")
}

func BenchmarkStats(b *testing.B) {
	root := b.TempDir()
	size := idleTree(b, root, 2000)
	tl := runDiscard(b, Config{Roots: []Root{{Dir: root}}, Watch: "poll"}, &discard{bell: make(chan struct{}, 1)}, size)
	for b.Loop() {
		tl.Stats()
	}
}
