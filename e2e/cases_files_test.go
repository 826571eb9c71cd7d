//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
