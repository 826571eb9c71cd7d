//go:build unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// damagedLines is everything that was met in transcripts, and some that only could be.
func damagedLines(cwd string) []string {
	record := fmt.Sprintf(`{"type":"user","cwd":%q,"message":{"role":"user","content":"x"}}`, cwd)
	return []string{
		record,
		"",
		"   ",
		record + "\r",
		"  \t" + record + "  ",
		"{}",
		"{ }",
		" {\t} \r",
		`{"line_index":7,"type":"user"}`,
		`{ "line_index" : 900, "line_index":1, "type":"user"}`,
		`{"type":"a","type":"b"}`,
		`{"type":"user","text":"lone \ud83d surrogate, \udc00 too"}`,
		`{"type":"user","text":"한국어 ✓ 👍 \u0000 escaped"}`,
		`{"type":"user","n":1e400,"big":123456789012345678901234567890,"neg":-0}`,
		record + record,
		record[:40] + record,
		strings.Repeat("\x00", 300) + record,
		record[:30] + strings.Repeat("\x00", 5) + record[30:],
		"{\"type\":\"user\",\"text\":\"\xff\xfe not UTF-8\"}",
		"\xef\xbb\xbf" + record,
		"[1,2,3]",
		`"just a string"`,
		"null",
		"no JSON at all",
		`{"type":"user","text":"cut of`,
		"{\"text\":\"a raw\ttab\"}",
		`{"a":1,}`,
		`{"deep":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "}",
		record,
	}
}

// TestDamagedLines: a plain server gets each object, ccship-server every byte.
func TestDamagedLines(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := w.conversation(60)
		lines := damagedLines(w.cwd())
		w.add(path, []byte(strings.Join(lines[:len(lines)/2], "\n")+"\n"))
		w.startAndSync()
		w.same(c.session, path)
		for _, line := range lines[len(lines)/2:] {
			w.add(path, []byte(line+"\n"))
		}
		w.sync()
		w.same(c.session, path)
		if w.exact != nil {
			w.verified()
			return
		}
		w.unequal("withheld from a plain server", "`ccship config server_url URL`")
		if w.status().Outbox.Withheld == 0 {
			t.Error("status counts nothing as withheld, though a plain server can't get damaged lines")
		}
	})
}

// TestExcludedTypes: left out by the configuration, numbered all the same, and distinguished from missing lines.
func TestExcludedTypes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.configure("exclude_types = [\"last-prompt\"]\n")
		c, path := w.conversation(61)
		var data []byte
		for range 10 {
			data = append(append(data, c.line(900)...), c.side()...)
		}
		w.add(path, data)
		w.startAndSync()
		w.entriesSent(10)
		if w.plain != nil {
			for index := range w.plain.lines(c.session) {
				if index%2 != 0 {
					t.Errorf("line %d was sent, it is excluded", index)
				}
			}
		}
		w.verified()
	})
}

// TestOptOut: a project that says no is not read, and nothing of it leaves.
func TestOptOut(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		private := filepath.Join(w.dir, "work", "private")
		must(t, os.MkdirAll(filepath.Join(private, ".codetracker"), 0o700))
		config := filepath.Join(private, ".codetracker", "config.json")
		must(t, os.WriteFile(config, []byte(`{"conversation_tracking":{"enabled":false}}`), 0o600))
		secret := newConversation(62, private)
		w.add(w.path("-work-private", secret.session+".jsonl"), secret.even(20, 1500))
		c, path := shipped(w, 63, 20)
		w.addAndSync(w.path("-work-private", secret.session+".jsonl"), secret.even(20, 1500))
		w.same(c.session, path)
		switch {
		case w.plain != nil && len(w.plain.lines(secret.session)) != 0:
			t.Error("lines of an opted-out project are on the server")
		case w.exact != nil && w.exact.raw(secret.session, "?partial=1") != nil:
			t.Error("an opted-out project is on the server")
		}
		if n := w.status().Files.Excluded; n != 1 {
			t.Errorf("status counts %d excluded transcripts, want 1", n)
		}
		w.verified()
	})
}

// TestNothingBelowClaude: whatever happens, the folder of Claude Code is only read.
func TestNothingBelowClaude(t *testing.T) {
	w := aloneWorld(t)
	_, path := shipped(w, 64, 20)
	w.keepLines(path, 10)
	w.sync()
	w.verified()
	w.d.MustStop(w.t)
	var found []string
	must(t, filepath.Walk(filepath.Join(w.dir, ".claude"), func(p string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && p != path {
			found = append(found, p)
		}
		return err
	}))
	if len(found) != 0 {
		t.Errorf("files that Claude Code did not write: %v", found)
	}
	must(t, filepath.Walk(w.state(), func(p string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, others can read it", p, info.Mode().Perm())
		}
		return err
	}))
}

// TestPlainProtocol: by configuration even ccship-server gets the base protocol alone.
func TestPlainProtocol(t *testing.T) {
	t.Parallel()
	w := plainWorld(t)
	w.configure("protocol = \"plain\"\n")
	var extended atomic.Bool
	w.gate.set(onPost(func(r *http.Request) *verdict {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"ccship":`) {
			extended.Store(true)
		}
		return nil
	}))
	c, path := shipped(w, 65, 20)
	w.same(c.session, path)
	w.gate.set(nil)
	if extended.Load() {
		t.Error("a request holds the extension object")
	}
}
