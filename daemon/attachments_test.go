package daemon

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

const attachmentSession = "aaaaaaaa-0000-4000-8000-000000000001"

// attachmentLine is a line of a session that ran in a folder of the test's own.
func attachmentLine(n int) string {
	return fmt.Sprintf(`{"type":"user","cwd":"/work/shop","sessionId":%q,"n":%d}`+"\n", attachmentSession, n)
}

// attachmentWorld has a server that takes blobs, and a session with files next to its transcript.
func attachmentWorld(t *testing.T) *world {
	w := newWorld(t)
	w.server.attachments.accept = "checkpoints, documents, blobs"
	folder := "-work-shop/" + attachmentSession
	w.write(folder+".jsonl", attachmentLine(1))
	w.write(folder+"/tool-results/toolu_1.txt", "spilled text")
	w.write(folder+"/tool-results/empty.txt", "")
	w.write(folder+"/subagents/agent-a1.jsonl", attachmentLine(1))
	w.write(folder+"/subagents/agent-a1.meta.json", `{"agentType":"x"}`)
	w.write(folder+"/subagents/workflows/run-1/agent-a2.meta.json", `{"agentType":"y"}`)
	w.write(folder+"/tool-results/other.bin", "no")
	w.write(folder+"/scratch.txt", "no")
	return w
}

// hasBlob waits until the server has a file next to the session, or fails when it has other bytes.
func (w *world) hasBlob(name, want string) {
	w.t.Helper()
	w.until(name+" is on the server", func() bool {
		_, ok := w.server.blob(attachmentSession, name)
		return ok
	})
	got, _ := w.server.blob(attachmentSession, name)
	kit.Check(w.t, got == want, "%s has %d bytes on the server, want %d", name, len(got), len(want))
}

func TestAttachments(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	want := map[string]string{
		"tool-results/toolu_1.txt": "spilled text", "tool-results/empty.txt": "", "subagents/agent-a1.meta.json": `{"agentType":"x"}`,
		"subagents/workflows/run-1/agent-a2.meta.json": `{"agentType":"y"}`,
	}
	for name, content := range want {
		got, ok := w.server.blob(attachmentSession, name)
		kit.Check(t, ok && got == content, "%s: %q %v", name, got, ok)
	}
	w.server.mu.Lock()
	kit.Equal(t, "the server has files", len(w.server.attachments.blobs[attachmentSession]), len(want))
	puts := w.server.attachments.puts
	w.server.mu.Unlock()
	r := w.verify()
	kit.Check(t, r.Equal && r.Attachments.Files == 4 && r.Attachments.Missing == 0, "verify %+v", r)
	// More of the session, one more file, and one that changed: these two alone go out.
	folder := "-work-shop/" + attachmentSession
	w.write(folder+"/tool-results/toolu_2.txt", "more")
	w.rewrite(folder+"/tool-results/toolu_1.txt", "other text")
	w.write(folder+"/subagents/agent-a1.jsonl", attachmentLine(2))
	w.hasBlob("tool-results/toolu_2.txt", "more")
	w.until("the changed one has come", func() bool {
		got, _ := w.server.blob(attachmentSession, "tool-results/toolu_1.txt")
		return got == "other text"
	})
	w.sync()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	kit.Equal(t, "files were sent", w.server.attachments.puts-puts, 2)
}

func TestVerifyMissesAttachments(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	w.server.mu.Lock()
	w.server.attachments.blobs[attachmentSession]["tool-results/toolu_1.txt"] = "other"
	delete(w.server.attachments.blobs[attachmentSession], "tool-results/empty.txt")
	w.server.mu.Unlock()
	r := w.verify()
	kit.Check(t, !r.Equal && r.Attachments.Missing == 2 && len(r.Differences) == 1 && strings.Contains(r.Differences[0].Detail, "tool-results/toolu_1.txt"),
		"verify %+v", r)
}

func TestAttachmentsLeftOut(t *testing.T) {
	w := attachmentWorld(t)
	folder := filepath.Join(w.root, "-work-shop", attachmentSession)
	secret := filepath.Join(filepath.Dir(w.root), "secret.txt")
	kit.Must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	outside := filepath.Join(filepath.Dir(w.root), "outside")
	kit.Must(t, os.MkdirAll(filepath.Join(outside, "tool-results"), 0o700))
	kit.Must(t, os.WriteFile(filepath.Join(outside, "tool-results", "x.txt"), []byte("secret"), 0o600))
	for link, target := range map[string]string{
		filepath.Join(folder, "tool-results", "link.txt"):                           secret,
		filepath.Join(folder, "subagents", "workflows", "run-2"):                    filepath.Join(folder, "tool-results"),
		filepath.Join(folder, "subagents", "loop.meta.json"):                        filepath.Join(folder, "tool-results", "toolu_1.txt"),
		filepath.Join(w.root, "-work-shop", "bbbbbbbb-0000-4000-8000-000000000002"): outside,
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Skip("no links here:", err)
		}
	}
	w.write("-work-shop/bbbbbbbb-0000-4000-8000-000000000002.jsonl", `{"type":"user","cwd":"/work/shop","n":1}`+"\n")
	w.cfg.BlobCap = 1 << 20
	w.startWith("-work-shop/"+attachmentSession+"/tool-results/large.txt", strings.Repeat("x", 1<<20+1))
	r := w.verify()
	kit.Check(t, r.Equal && r.Attachments.Files == 4 && r.Attachments.TooLarge == 1, "verify %+v", r.Attachments)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for session, blobs := range w.server.attachments.blobs {
		for name, content := range blobs {
			kit.Check(t, content != "secret" && len(w.server.attachments.blobs) == 1, "%s has %s", session, name)
		}
	}
}

func TestServerBeginsToTakeBlobs(t *testing.T) {
	w := attachmentWorld(t)
	w.server.attachments.accept = ""
	w.deliver()
	r := w.verify()
	kit.Check(t, r.Equal && r.Attachments.Unproven == 4, "verify %+v", r)
	w.server.with(func() { w.server.attachments.accept = "blobs" })
	w.write("-work-shop/bbbbbbbb-0000-4000-8000-000000000002.jsonl", `{"type":"user","cwd":"/work/shop","n":1}`+"\n")
	w.hasBlob("tool-results/toolu_1.txt", "spilled text")
	w.sync()
	r = w.verify()
	kit.Check(t, r.Equal && r.Attachments.Files == 4, "verify %+v", r)
}

// What was not queued before a stop is found at the next start, and what was sent is not sent again.
func TestAttachmentsSurviveRestart(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	w.stop()
	w.write("-work-shop/"+attachmentSession+"/tool-results/toolu_2.txt", "late")
	w.server.mu.Lock()
	puts := w.server.attachments.puts
	w.server.mu.Unlock()
	w.start()
	w.hasBlob("tool-results/toolu_2.txt", "late")
	w.sync()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	kit.Equal(t, "files were sent", w.server.attachments.puts-puts, 1)
}

// A large file goes on after a stop in the middle of it, and its session is forgotten with it.
func TestLargeAttachment(t *testing.T) {
	w := attachmentWorld(t)
	large := make([]byte, 5<<20+3)
	kit.Try(rand.NewChaCha8([32]byte{1}).Read(large)).Must(t) // the same at each run: other bytes may look like a secret
	large = bytes.ToValidUTF8(large, []byte("?"))
	w.write("-work-shop/"+attachmentSession+"/tool-results/large.txt", string(large))
	entered := make(chan struct{}, 1)
	stuck := true
	w.server.attachments.stuck = func() bool {
		if stuck && w.server.attachments.puts > 5 {
			select {
			case entered <- struct{}{}:
			default:
			}
			return true
		}
		return false
	}
	w.start()
	<-entered
	w.stop()
	w.server.mu.Lock()
	stuck = false
	before := w.server.attachments.puts
	w.server.mu.Unlock()
	w.start()
	w.hasBlob("tool-results/large.txt", string(large))
	w.sync()
	w.server.mu.Lock()
	n := w.server.attachments.puts - before
	kit.Check(t, n < len(large)>>20+1, "%d chunks were sent after the stop: it began anew", n)
	w.server.mu.Unlock()
}

func TestForgetTakesAttachments(t *testing.T) {
	w := attachmentWorld(t)
	w.server.attachments.stuck = func() bool { return true }
	w.start()
	w.until("the files wait", func() bool {
		list := kit.Try(w.client.Outbox(context.Background(), control.Page{Limit: 100})).Must(t)
		for _, row := range list.Rows {
			if row.Kind == "blobs" {
				return true
			}
		}
		return false
	})
	w.must(w.client.Forget(context.Background(), control.ForgetRequest{Session: attachmentSession}))
	w.until("nothing waits", func() bool { return w.status().Outbox.Batches == 0 })
	w.server.with(func() { w.server.attachments.stuck = nil })
	w.sync()
	_, there := w.server.blob(attachmentSession, "tool-results/toolu_1.txt")
	kit.Check(t, !there, "a file of a forgotten session was sent")
}

// TestRetiredServer changes the server while rows wait for one that is down: they can be told apart and given up.
func TestRetiredServer(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	w.stop()
	old := w.cfg.ServerURL
	w.server.with(func() { w.server.status = 503 })
	w.start()
	w.write("-work-shop/"+attachmentSession+".jsonl", attachmentLine(2))
	w.until("a line waits", func() bool { return w.status().Outbox.Entries > 0 })
	if _, err := w.client.DropServer(context.Background(), control.DropServerRequest{Server: old}); err == nil {
		t.Error("what waits for the server in use was given up")
	}
	w.stop()
	next := newSerialWorld(t)
	w.cfg.ServerURL = next.cfg.ServerURL
	w.start()
	r := w.sync()
	kit.Check(t, r.Done && len(r.Retired) == 1 && r.Retired[0].URL == old && r.Retired[0].Entries == 1 && r.Waiting == 0,
		"sync %+v", r)
	report := w.verify()
	kit.Check(t, report.Equal && len(report.Retired) == 1, "verify %+v", report)
	dropped, err := w.client.DropServer(context.Background(), control.DropServerRequest{Server: old})
	kit.Check(t, err == nil && dropped.Entries == 1, "dropped %+v %v", dropped, err)
	r = w.sync()
	kit.Check(t, len(r.Retired) == 0 && w.status().Outbox.Batches == 0, "sync %+v", r)
	_, err = w.client.DropServer(context.Background(), control.DropServerRequest{Server: old})
	kit.Check(t, err != nil, "there was nothing to give up")
}

// A project that has opted out keeps its files, until it has not any more.
func TestAttachmentsOfExcludedProject(t *testing.T) {
	w := attachmentWorld(t)
	w.cfg.ExcludeProjects = []string{"/work/shop"}
	w.start()
	w.send("-q/bbbbbbbb-0000-4000-8000-000000000002.jsonl", `{"type":"user","cwd":"/work/other","n":1}`+"\n")
	w.sync() // the server has spoken by now
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	kit.Equal(t, "files of sessions were sent", len(w.server.attachments.blobs), 0)
}

// Files wait while there is no space, and go out when there is.
func TestAttachmentsWaitForRoom(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	w.stop()
	w.cfg.OutboxCap = 1 // one byte: the next row fills it
	w.server.mu.Lock()
	w.server.busy = true
	w.server.attachments.stuck = func() bool { return true }
	w.server.mu.Unlock()
	noise := make([]byte, 100<<10)
	kit.Try(rand.NewChaCha8([32]byte{2}).Read(noise)).Must(t)
	folder := "-work-shop/" + attachmentSession
	for i := range 16 {
		w.write(fmt.Sprintf("%s/tool-results/toolu_9%d.txt", folder, i), string(noise))
	}
	w.start()
	w.until("the outbox is full", func() bool { s := w.status(); return s.State == "full" || s.State == "retrying" && s.Outbox.Stored > 0 })
	s := w.status()
	kit.Check(t, s.Outbox.Stored <= 1<<20+200<<10, "%d bytes wait at a cap of 1", s.Outbox.Stored)
	w.server.with(func() { w.server.busy, w.server.attachments.stuck = false, nil })
	for i := range 16 {
		w.hasBlob(fmt.Sprintf("tool-results/toolu_9%d.txt", i), string(noise))
	}
}

// Files go into the outbox while the user has paused, and out of it when the pause ends.
func TestAttachmentsArePaused(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	w.must(w.client.Pause(context.Background(), control.PauseRequest{}))
	folder := "-work-shop/" + attachmentSession
	w.write(folder+"/tool-results/toolu_2.txt", "late")
	w.write(folder+".jsonl", attachmentLine(2))
	w.until("the file waits", func() bool { return w.status().Outbox.Batches == 2 })
	_, there := w.server.blob(attachmentSession, "tool-results/toolu_2.txt")
	kit.Check(t, !there, "it was sent in a pause")
	w.must(w.client.Resume(context.Background()))
	w.hasBlob("tool-results/toolu_2.txt", "late")
}

// What was withheld from a server that stopped taking files goes to it when it takes them again.
func TestServerLosesBlobsForAWhile(t *testing.T) {
	w := attachmentWorld(t)
	w.deliver()
	w.must(w.client.Pause(context.Background(), control.PauseRequest{}))
	folder := "-work-shop/" + attachmentSession
	w.write(folder+"/tool-results/toolu_2.txt", "late")
	w.write(folder+".jsonl", attachmentLine(2))
	w.until("the file waits", func() bool { return w.status().Outbox.Batches == 2 })
	w.server.with(func() { w.server.attachments.accept = "" })
	w.sync()
	w.until("it is withheld", func() bool { return w.status().Servers[0].Unwanted == 1 })
	w.stop()
	w.server.with(func() { w.server.attachments.accept = "blobs" })
	w.start()
	w.write(folder+".jsonl", attachmentLine(3))
	w.hasBlob("tool-results/toolu_2.txt", "late")
}
