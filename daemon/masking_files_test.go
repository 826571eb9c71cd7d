package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// files with secrets: what a server may not see of them, by name.
func secretFiles() map[string]string {
	filler := strings.Repeat("words of a long text, line after line\n", 60_000)
	return map[string]string{
		"small.txt":  "token: " + githubSecret + "\n",
		"large.txt":  filler[:1<<20] + "\n" + githubSecret + "\n" + filler + "\nexport DB_PASSWORD=" + envSecret + "\n",
		"a.json":     `{"env":{"password":"` + envSecret + `"},"out":"\n` + awsSecret + `"}`,
		"binary.txt": "\x89PNG\x00\x00\xff" + "no secret, but bytes " + githubSecret,
	}
}

// stateHolds fails when a file below the state folder holds a secret.
func (w *world) stateHolds(t *testing.T) {
	t.Helper()
	kit.Must(t, filepath.WalkDir(w.cfg.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		kit.Check(t, !leaked(b), "%s holds a secret", path)
		return err
	}))
}

// TestMasksDocuments links documents with secrets: the server gets tokens, in content of the same length, once.
func TestMasksDocuments(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	w.server.announces = true
	files := secretFiles()
	delete(files, "binary.txt")
	for name, text := range files {
		saveFile(t, cwd, name, text)
	}
	saveFile(t, cwd, "image.png", "\x89PNG\x00\x00\xff bytes")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	for name := range files {
		w.link(sessionA, name)
	}
	w.link(sessionA, "image.png")
	w.sync()
	has := func() {
		t.Helper()
		for name, text := range files {
			got, ok := s.content(sessionA, name)
			kit.Check(t, ok && len(got) == len(text) && !leaked([]byte(got)) && got != text,
				"%s: %v, %d bytes of %d, secrets in clear: %v", name, ok, len(got), len(text), leaked([]byte(got)))
		}
		got, _ := s.content(sessionA, "image.png")
		kit.Check(t, got == "\x89PNG\x00\x00\xff bytes", "the image is %q", got)
	}
	has()
	w.stop()
	w.stateHolds(t)
	w.start()
	saveFile(t, cwd, "small.txt", files["small.txt"]) // the same again: no version
	w.link(sessionA, "small.txt")
	w.send("-p/"+sessionA+".jsonl", records(cwd, 3, 4))
	has()
	for name := range files {
		kit.Equal(t, name, s.changes(sessionA, name), "linked 1")
	}
	saveFile(t, cwd, "small.txt", "other "+githubSecret+"\n")
	w.until("the change has come", func() bool {
		got, _ := s.content(sessionA, "small.txt")
		return strings.HasPrefix(got, "other [github:")
	})
}

// TestMasksAttachments sends files next to a transcript with tokens instead of secrets, and proves them.
func TestMasksAttachments(t *testing.T) {
	w := attachmentWorld(t)
	folder := "-work-shop/" + attachmentSession + "/tool-results/"
	files := secretFiles()
	for name, text := range files {
		w.write(folder+name, text)
	}
	w.deliver()
	for name, text := range files {
		got, ok := w.server.blob(attachmentSession, "tool-results/"+name)
		if binary := name == "binary.txt"; !ok || len(got) != len(text) || leaked([]byte(got)) != binary {
			t.Errorf("%s: %v, %d bytes of %d, secrets in clear: %v", name, ok, len(got), len(text), leaked([]byte(got)))
		}
	}
	r := w.verify()
	kit.Check(t, r.Equal && r.Attachments.Missing == 0 && r.Attachments.Files == 4+len(files), "verify %+v", r.Attachments)
	w.server.mu.Lock()
	puts := w.server.attachments.puts
	w.server.mu.Unlock()
	w.stop()
	w.deliver()
	r = w.verify()
	kit.Check(t, r.Equal, "verify after a restart %+v", r.Attachments)
	w.stop()
	w.cfg.Redact = "off"
	w.start()
	r = w.verify()
	kit.Check(t, r.Equal, "verify once nothing is masked: %+v", r.Attachments)
	w.server.mu.Lock()
	all := w.server.attachments.blobs[attachmentSession]["tool-results/large.txt"]
	w.server.attachments.blobs[attachmentSession]["tool-results/large.txt"] = strings.Replace(all, "words", "WORDS", 1)
	w.server.mu.Unlock()
	r = w.verify()
	kit.Check(t, !r.Equal && r.Attachments.Missing == 1, "a changed file is not found: %+v", r.Attachments)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	kit.Check(t, w.server.attachments.puts == puts, "%d pieces are sent again", w.server.attachments.puts-puts)
	kit.Check(t, strings.Contains(all, "[github:"), "the large file has no token")
}

// TestMasksCheckpoints masks what a person or Claude writes into a checkpoint, and what is made from lines.
func TestMasksCheckpoints(t *testing.T) {
	w := newWorld(t)
	sent := w.checkpointServer()
	w.startWith("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop"))
	for _, summary := range []string{"", "we use " + githubSecret + " here"} {
		a, err := w.client.CreateCheckpoint(t.Context(), control.CheckpointRequest{Session: sessionA, Summary: summary, PortID: githubSecret})
		kit.Check(t, err == nil && !leaked([]byte(a.Checkpoint.Summary+a.Checkpoint.PortID)) && strings.Contains(a.Checkpoint.PortID, "[github:"),
			"%+v, %v", a.Checkpoint, err)
	}
	w.sync()
	w.until("the server has them", func() bool { return len(sent()) == 2 })
	for _, c := range sent() {
		kit.Check(t, !leaked([]byte(c.text)), "sent: %s", c.text)
	}
	w.stop()
	w.stateHolds(t)
}
