package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func artifact(rest string) []byte {
	return fmt.Appendf(nil, `{"project_hash":"ph","session_id":"s1","ccship":{"v":1,"machine":"m","host":"h","epoch":"e","cwd":"/w"},%s}`, rest)
}

// upload sends a file from where the server says on, and calls acknowledged with each chunk, until the server ends.
func (p *program) upload(key, at string, content []byte, acknowledged func(offset int)) (done bool, err error) {
	about := artifact(fmt.Sprintf(`"size":%d,"media_type":"text/plain","name":"tool-results/t.txt"`, len(content)))
	var a struct {
		Offset   int
		Complete bool
	}
	step := func(method, path string, body []byte) error {
		status, answer, err := p.call(key, method, path, body)
		if err != nil {
			return nil //nolint:nilerr // the server has been killed
		}
		if status != 200 {
			return fmt.Errorf("%s: %d %s", path, status, answer)
		}
		done = strings.HasSuffix(path, "/end")
		a.Offset = -1
		return json.Unmarshal(answer, &a)
	}
	for path := "/start"; err == nil && !done; path = fmt.Sprintf("?offset=%d", a.Offset) {
		if a.Offset < 0 {
			return false, nil
		}
		switch {
		case path == "/start":
			a.Offset = -1
			err = step("POST", at+path, about)
		case a.Offset == len(content):
			err = step("POST", at+"/end", about)
		default:
			body := content[a.Offset:min(a.Offset+64<<10, len(content))]
			a.Offset = -1
			err = step("PUT", at+path, body)
		}
		if err == nil && a.Offset >= 0 {
			acknowledged(a.Offset)
		}
	}
	return done, err
}

// TestKillUpload kills the server within a file, again and again: what was acknowledged is there, in the end all.
func TestKillUpload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key, content := newKeyIn(t, path), bytes.Repeat([]byte("0123456789abcde\n"), 256<<10) // 4 MiB, 64 chunks
	at := fmt.Sprintf("/api/blobs/%x", sha256.Sum256(content))
	furthest, done := 0, false
	for round := 0; !done; round++ {
		p := launch(t, path)
		chunks := 0
		var err error
		done, err = p.upload(key, at, content, func(offset int) {
			kit.Check(t, offset >= furthest, "round %d: it goes on at %d, and %d were acknowledged", round, offset, furthest)
			furthest = max(furthest, offset)
			if chunks++; chunks == 5+3*round && round < 5 {
				_ = p.cmd.Process.Kill()
			}
		})
		kit.Require(t, err == nil && round <= 50, "round %d: %v", round, err)
		if done {
			checkCopy(t, p, path, key, at, content)
		}
		p.kill(t)
	}
}

// checkCopy: a copy of the store has the file too, and other artifacts; damage to it is found.
func checkCopy(t *testing.T, p *program, path, key, at string, content []byte) {
	t.Helper()
	document := sha256.Sum256([]byte("# Plan"))
	p.must(t, key, "POST", "/api/documents", artifact(fmt.Sprintf(`"events":[{"path":"plan.md","change":"linked","by":"user",`+
		`"at":"2026-11-21T00:00:00Z","version":1,"size":6,"sha256":"%x","encoding":"utf-8","content":"# Plan"}]`, document)))
	p.must(t, key, "POST", "/api/checkpoints", artifact(`"checkpoints":[{"id":"cp-1","trigger_type":"manual","created_at":"2026-11-21T00:00:00Z"}]`))
	copied, restored := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "restored.db")
	tool(t, 0, "backup", "--to", copied, "--store", "sqlite:"+path)
	tool(t, 0, "restore", "--from", copied, "--store", "sqlite:"+restored)
	q := launch(t, restored)
	for _, path := range []string{at, "/api/checkpoints", "/api/sessions/s1/documents", "/api/sessions/s1/documents/plan.md", "/api/sessions/s1/blobs"} {
		a, b := p.must(t, key, "GET", path, nil), q.must(t, key, "GET", path, nil)
		kit.Check(t, bytes.Equal(a, b) && len(a) >= 5, "%s: %.200s, in the copy %.200s", path, a, b)
	}
	kit.Equal(t, fmt.Sprintf("bytes of %d, or others", len(content)), q.must(t, key, "GET", at, nil), content)
	q.kill(t)
	_, words := tool(t, 0, "verify", "--store", "sqlite:"+restored)
	kit.Check(t, strings.Contains(words, "2 files"), "verify: %s", words)
	damage(t, restored, "0123456789abcde\n0123456789", 'x')
	sum := strings.TrimPrefix(at, "/api/blobs/")
	out, _ := tool(t, exitFailed, "verify", "--store", "sqlite:"+restored)
	kit.Check(t, strings.Contains(out, "file "+sum+": its bytes have another hash"), "verify of a damaged file: %s", out)
}
