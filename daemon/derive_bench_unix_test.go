//go:build unix

package daemon

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/daemontest"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/e2e/kit"
)

// BenchmarkImport is what understanding costs an import: the processor time of one with the deriver, compared with that
// of one without, of the same files. CCSHIP_TEST=mb=N says how much; real transcripts are taken when there are some.
func BenchmarkImport(b *testing.B) {
	megabytes := kit.SettingNumber("mb", 64)
	b.Run("conversations", func(b *testing.B) { benchImport(b, conversations(b, megabytes, 0)) })
	b.Run("a tenth compacted", func(b *testing.B) { benchImport(b, conversations(b, megabytes, 10)) })
	b.Run("real", func(b *testing.B) {
		root := kit.Setting("corpus", "../../shared/transcripts")
		if _, err := os.Stat(root); err != nil {
			b.Skip("no real transcripts here; CCSHIP_TEST=corpus=FOLDER names some")
		}
		benchImport(b, copied(b, root))
	})
}

// conversations writes transcripts of a megabyte; every n-th has a compaction, none with 0.
func conversations(b *testing.B, megabytes, every int) (root string) {
	b.Helper()
	root = b.TempDir()
	for i := range megabytes {
		c := daemontest.Chat{Session: fmt.Sprintf("%08x-0000-4000-8000-000000000001", i+1)}
		var text strings.Builder
		for n := 0; text.Len() < 1<<20; n++ {
			id := fmt.Sprintf("toolu_%d", n)
			text.WriteString(c.Prompt("prompt") + c.Call(id, "ls") + c.Result(id, strings.Repeat("output ", 300)) + c.Answer(strings.Repeat("answer ", 100)) + c.Done())
			if n == 100 && every > 0 && i%every == 0 {
				text.WriteString(c.Compaction())
			}
		}
		old(b, filepath.Join(root, "-home-kim-shop", c.Session+".jsonl"), []byte(text.String()))
	}
	return root
}

// copied is a root with all transcripts below a folder, as they are.
func copied(b *testing.B, from string) (root string) {
	b.Helper()
	root = b.TempDir()
	n := 0
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		n++
		old(b, filepath.Join(root, "-real", fmt.Sprintf("%08x-0000-4000-8000-000000000001.jsonl", n)), data)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return root
}

// old writes a file that nobody has written to for an hour.
func old(b *testing.B, path string, data []byte) {
	b.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	before := time.Now().Add(-time.Hour)
	if err == nil {
		err = os.Chtimes(path, before, before)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func benchImport(b *testing.B, root string) {
	var with, without []time.Duration
	for b.Loop() {
		without = append(without, importOnce(b, root, false))
		with = append(with, importOnce(b, root, true))
	}
	b.ReportMetric(least(with).Seconds()*1000, "ms-cpu")
	b.ReportMetric(least(with).Seconds()/least(without).Seconds(), "x-without")
}

func least(d []time.Duration) time.Duration {
	out := d[0]
	for _, x := range d {
		out = min(out, x)
	}
	return out
}

// importOnce answers the processor time of one import until all is delivered and understood.
func importOnce(b *testing.B, root string, understand bool) time.Duration {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"success":true}`)
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "ccship")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cfg, err := config.Load(map[string]string{
		"config": "", "server_url": server.URL, "state_dir": dir, "socket": filepath.Join(dir, "s"), "roots": root, "head_room": "1",
	}, func(name string) (string, bool) {
		if name == config.HomeVariable {
			return dir, true
		}
		return "", false
	})
	if err != nil {
		b.Fatal(err)
	}
	cfg.Log = slog.New(slog.DiscardHandler)
	return importWith(b, cfg, understand)
}

func importWith(b *testing.B, cfg config.Config, understand bool) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	d, err := open(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer d.db.Close()
	if !understand {
		d.relay.Listeners = slices.DeleteFunc(d.relay.Listeners, func(l route.Listener) bool { return l == d.derive })
	}
	ln, err := control.Listen(cfg.Socket)
	if err != nil {
		b.Fatal(err)
	}
	begun := processorTime(b)
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx, ln) }()
	r, err := control.Dial(cfg.Socket).Sync(ctx, control.SyncRequest{Wait: true, Timeout: "5m"})
	if err != nil || !r.Done {
		b.Fatalf("%+v %v", r, err)
	}
	took := processorTime(b) - begun
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	return took
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
