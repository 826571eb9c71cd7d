//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestMoved(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := w.conversation(20)
		w.add(path, c.even(60, 4000))
		a := newConversation(21, w.cwd())
		a.session, a.agent = c.session, "a0b1c2d3e4f506172"
		w.add(w.path("-work-shop", c.session, "subagents", "agent-"+a.agent+".jsonl"), a.even(20, 4000))
		w.startAndSync()
		sent := w.status().Sent.Entries
		moved := w.path("-work-shop--claude-worktrees-a", c.session+".jsonl")
		must(t, os.Rename(path, moved))
		must(t, os.Rename(strings.TrimSuffix(path, ".jsonl"), strings.TrimSuffix(moved, ".jsonl")))
		w.add(moved, c.even(2, 4000))
		agent := filepath.Join(strings.TrimSuffix(moved, ".jsonl"), "subagents", "agent-"+a.agent+".jsonl")
		w.addAndSync(agent, a.even(1, 4000))
		kit.Equal(t, "entries were sent after the move", w.status().Sent.Entries-sent, 3)
		w.same(c.session, moved)
		w.proven(c.session+"/agent-"+a.agent, agent)
	})
}

func TestDeletedWhileTheServerIsDown(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 22, 40)
		w.gate.set(refuse(503))
		w.add(path, c.even(60, 4000))
		content := w.read(path)
		w.until("all of it is queued", func(s status) bool {
			return s.Files.ReadBytes == int64(len(content)) && s.Outbox.Entries == 60
		})
		must(t, os.Remove(path))
		w.gate.set(nil)
		w.ccship("sync") // ends the back-off; the file is gone, so there is nothing on disk to wait for
		w.until("what was read is acknowledged", func(s status) bool { return s.Outbox.Entries == 0 })
		w.holds(c.session, content)
	})
}

func TestAgentTranscripts(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c := newConversation(23, w.cwd())
		w.add(w.path("-work-shop", c.session+".jsonl"), c.mixed(30))
		agent := func(seed uint64, id string, place ...string) (stream, path string) {
			a := newConversation(seed, w.cwd())
			a.session, a.agent = c.session, id
			path = w.path(append(append([]string{"-work-shop"}, place...), "agent-"+id+".jsonl")...)
			w.add(path, a.mixed(20))
			return c.session + "/agent-" + id, path
		}
		files := map[string]string{}
		add := func(stream, path string) { files[stream] = path }
		add(agent(24, "0123abcd"))
		add(agent(25, "a0b1c2d3e4f506172", c.session, "subagents"))
		add(agent(26, "b0b1c2d3e4f506172", c.session, "subagents", "workflows", "run-1"))
		w.add(w.path("-work-shop", c.session, "subagents", "workflows", "run-1", "journal.jsonl"), []byte("{\"no\":\"transcript\"}\n"))
		w.add(w.path("-work-shop", c.session+".jsonl.compact.tmp.0a1b2c3d"), []byte("{\"no\":\"transcript\"}\n"))
		w.add(w.path("-work-shop", "00000000-0000-4000-8000-000000000000.jsonl"), nil)
		w.startAndSync()
		for stream, path := range files {
			w.same(stream, path)
		}
		kit.Equal(t, "transcripts are tracked", w.status().Files.Tracked, 4)
		w.verified()
	})
}

func TestLongLine(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 28, 3)
		long := c.line(20 << 20)
		w.add(path, long[:len(long)/2])
		w.add(path, long[len(long)/2:])
		w.addAndSync(path, c.line(900))
		w.proven(c.session, path)
	})
}

// TestManyNewFiles overruns the kernel's event queue: the daemon stands still while 800 files are made and each is
// written to 24 times more, in turn, so that no two events are alike and merged.
func TestManyNewFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		const files, folders, rounds = 800, 10, 24
		c := newConversation(29, w.cwd())
		name := func(i int) string {
			return w.path(fmt.Sprintf("-work-%d", i%folders), fmt.Sprintf("00000000-0000-4000-8000-%012d.jsonl", i))
		}
		for i := range folders {
			w.add(name(i), c.line(900))
		}
		w.startAndSync()
		w.d.Pause()
		line := c.line(900)
		for range 1 + rounds {
			for i := range files {
				w.add(name(i), line)
			}
		}
		w.d.Resume()
		w.sync()
		kit.Equal(t, "files are tracked", w.status().Files.Tracked, files)
		for _, i := range []int{0, 1, files / 2, files - 1} {
			w.same(fmt.Sprintf("00000000-0000-4000-8000-%012d", i), name(i))
		}
		if w.plain != nil {
			kit.Equal(t, "the server", w.plain.total(), files*(1+rounds)+folders)
		}
		w.verified()
	})
}

// TestUnreadableFolder runs the daemon as a user for whom a folder can be closed, which root can't be.
func TestUnreadableFolder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := w.conversation(30)
		w.add(path, c.even(30, 4000))
		other := newConversation(31, w.cwd())
		otherPath := w.path("-work-other", other.session+".jsonl")
		w.add(otherPath, other.even(5, 4000))
		if os.Geteuid() == 0 {
			w.giveTo(65534, 65534)
		}
		w.startAndSync()
		sent := w.status().Sent.Entries
		must(t, os.Chmod(filepath.Dir(path), 0))
		t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o700) }) // so that the home can be removed
		w.add(otherPath, other.even(1, 4000))
		w.until("status names the folder", func(s status) bool {
			w.ccship("sync") // a scan at once
			return contains("-work-shop", s.Watch.Unread...)
		})
		kit.Equal(t, "files count as vanished, though their folder could only not be listed", w.status().Files.Vanished, 0)
		must(t, os.Chmod(filepath.Dir(path), 0o700))
		w.add(path, c.even(2, 4000))
		w.until("the folder is read again", func(s status) bool {
			w.ccship("sync")
			return len(s.Watch.Unread) == 0 && s.Outbox.Entries == 0 && s.Sent.Entries-sent >= 3
		})
		w.sync()
		kit.Equal(t, "entries were sent", w.status().Sent.Entries-sent, 3)
		w.same(c.session, path)
		w.proven(other.session, otherPath)
	})
}

// TestLastLineWithoutNewline: a complete record is shown before its newline comes, and is not sent a second time then.
func TestLastLineWithoutNewline(t *testing.T) {
	w, c, path := aloneShipped(t, 33, 10)
	line := c.line(4000)
	w.add(path, line[:len(line)-1])
	eventually(t, "the line without newline is on the server", 30*time.Second, func() bool {
		return bytes.Equal(w.exact.raw(c.session, ""), w.read(path))
	})
	w.until("it is acknowledged", func(s status) bool { return s.Outbox.Batches == 0 })
	sent := w.status().Sent
	w.add(path, []byte("\n"))
	eventually(t, "the newline is on the server", 30*time.Second, func() bool {
		return bytes.Equal(w.exact.raw(c.session, ""), w.read(path))
	})
	now := w.status().Sent
	kit.Check(t, now.Entries == sent.Entries, "%d entries were sent for a newline", now.Entries-sent.Entries)
	w.addAndSync(path, c.line(900))
	w.proven(c.session, path)
}

// besides is what the server lists of the files next to a session: name → content.
func (w *world) besides(session string) map[string][]byte {
	w.t.Helper()
	code, body := w.exact.get("/api/sessions/" + url.PathEscape(session) + "/blobs")
	if code == http.StatusNotFound {
		return nil
	}
	var list []struct{ SHA256, Name string }
	err := json.Unmarshal(body, &list)
	kit.Require(w.t, code == 200 && err == nil, "blobs of %s: %d %v %s", session, code, err, body)
	have := map[string][]byte{}
	for _, b := range list {
		code, body := w.exact.get("/api/blobs/" + b.SHA256)
		kit.Require(w.t, code == 200, "blob %s: %d %s", b.Name, code, body)
		have[b.Name] = body
	}
	return have
}

// spilled writes a session with files next to it, and answers them by name.
func spilled(w *world, seed uint64, large int) (c *conversation, folder string, files map[string][]byte) {
	c = newConversation(seed, w.cwd())
	w.add(w.path("-work-shop", c.session+".jsonl"), c.even(20, 1500))
	folder = filepath.Join(w.projects(), "-work-shop", c.session)
	files = map[string][]byte{
		"tool-results/toolu_0001.txt":                       []byte("spilled\ntext\n"),
		"tool-results/toolu_0002.txt":                       {},
		"tool-results/large.txt":                            bytes.Repeat([]byte("0123456789abcde\n"), large/16),
		"subagents/agent-a1.meta.json":                      []byte(`{"agentType":"reviewer"}`),
		"subagents/workflows/wf_1/agent-a2.meta.json":       []byte(`{"agentType":"planner"}`),
		"tool-results/toolu_0003 mit Wörtern & Zeichen.txt": []byte("odd name"),
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(w.t, os.WriteFile(path, content, 0o600))
	}
	return c, folder, files
}

func (w *world) haveBlobs(session string, files map[string][]byte) {
	w.t.Helper()
	have := w.besides(session)
	for name, content := range files {
		got, ok := have[name]
		kit.Check(w.t, ok && bytes.Equal(got, content), "%s: %d bytes on the server (%v), want %d", name, len(got), ok, len(content))
	}
	kit.Check(w.t, len(have) == len(files), "the server has %d files, want %d", len(have), len(files))
}

// TestFilesBesideReachTheServer holds every file next to a transcript against what the server has, on a server that
// takes them and on one that does not.
func TestFilesBesideReachTheServer(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, folder, files := spilled(w, 401, 3<<20)
		w.startAndSync()
		if w.exact != nil {
			w.haveBlobs(c.session, files)
		}
		r, code := w.report()
		kit.Check(t, code == 0 && r.Equal, "exit %d, report %+v", code, r)
		if w.exact == nil {
			return
		}
		// A file that comes with a line, in a session that goes on.
		files["tool-results/toolu_0004.txt"] = []byte("later")
		must(t, os.WriteFile(filepath.Join(folder, "tool-results", "toolu_0004.txt"), []byte("later"), 0o600))
		w.add(folder+".jsonl", c.even(1, 1500))
		eventually(t, "the new file arrives", time.Second, func() bool {
			return bytes.Equal(w.besides(c.session)["tool-results/toolu_0004.txt"], []byte("later"))
		})
		w.haveBlobs(c.session, files)
	})
}

// TestKilledInABlob kills the daemon again and again while a large file is on its way.
func TestKilledInABlob(t *testing.T) {
	w := aloneWorld(t)
	var chunks, killed atomic.Int64
	reached := make(chan struct{}, 1)
	w.gate.set(func(r *http.Request) *verdict {
		if r.Method == http.MethodPut && chunks.Add(1)%3 == 0 && killed.Load() < 3 {
			select {
			case reached <- struct{}{}:
			default:
			}
			return &verdict{hang: true} // until the kill: what follows must not arrive before it
		}
		return nil
	})
	c, _, files := spilled(w, 402, 24<<20)
	w.start()
	for range 3 {
		select {
		case <-reached:
		case <-time.After(10 * time.Minute):
			t.Fatalf("no chunk arrived: %d so far", chunks.Load())
		}
		w.d.Kill()
		killed.Add(1)
		w.start()
	}
	w.sync()
	w.haveBlobs(c.session, files)
	w.verified()
	// What was durable on the server is not sent again, but for the chunk in flight at each kill.
	n := chunks.Load()
	kit.Check(t, n <= 24+6+3*2, "%d chunks for a file of 24", n)
}

// TestBlobCap leaves files out that are larger than the cap, and says so.
func TestBlobCap(t *testing.T) {
	w := aloneWorld(t)
	c, folder, _ := spilled(w, 403, 1<<20)
	w.startAndSync()
	w.verified()
	must(t, os.Rename(filepath.Join(folder, "tool-results", "toolu_0001.txt"), filepath.Join(w.dir, "away.txt")))
	w.verified()
	w.configure(string(w.read(w.config())) + "\nblob_cap = \"4KiB\"\n")
	must(t, os.Rename(filepath.Join(w.dir, "away.txt"), filepath.Join(folder, "tool-results", "toolu_9999.txt")))
	w.d.Kill()
	w.startAndSync()
	out := w.ccship("verify", "--json")
	kit.Check(t, out.code == 0 && strings.Contains(out.stdout, `"too_large":1`),
		"verify: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	_, ok := w.besides(c.session)["tool-results/toolu_9999.txt"]
	kit.Check(t, ok, "a file of a new name was not sent")
}
