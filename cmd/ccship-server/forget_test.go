package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/planted"
)

// TestForgetOneUsers: of two users' sessions with one id forget removes none, until the user is named.
func TestForgetOneUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	at := "sqlite:" + path
	keys := map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		tool(t, 0, "user", "add", name, "--role", "member", "--store", at)
		key, _ := tool(t, 0, "key", "create", "--name", name+"s", "--user", name, "--store", at)
		keys[name] = strings.TrimSpace(key)
	}
	p := launch(t, path)
	for name, key := range keys {
		err := p.send(key, "s", 0)
		kit.Require(t, err == nil, "%s: %v", name, err)
	}
	_, words := tool(t, exitFailed, "forget", "s", "--yes", "--store", at)
	kit.Check(t, strings.Contains(words, "several users") && strings.Contains(words, "hint: add --user") &&
		strings.Contains(words, "ann") && strings.Contains(words, "bob"),
		"forget either: %s", words)
	tool(t, exitFailed, "forget", "s", "--yes", "--user", "eve", "--store", at)
	tool(t, 0, "forget", "s", "--yes", "--user", "bob", "--store", at)
	for name, want := range map[string]int{"ann": 200, "bob": 404} {
		got := p.status(t, keys[name], "/api/sessions/s")
		kit.Check(t, got == want, "the session of %s: %d, want %d", name, got, want)
	}
}

// anyOf are the secrets of which a file of a folder holds the longest piece that no escape changes.
func anyOf(t *testing.T, folder string, secrets map[string]string) (found []string) {
	t.Helper()
	files := kit.Try(filepath.Glob(filepath.Join(folder, "*"))).Must(t)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // removed meanwhile
		}
		for kind, secret := range secrets {
			pieces := regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(secret, -1)
			longest := slices.MaxFunc(pieces, func(a, b string) int { return len(a) - len(b) })
			if bytes.Contains(b, []byte(longest)) {
				found = append(found, kind+" in "+filepath.Base(file))
			}
		}
	}
	return found
}

// TestForgetLines: secrets that a running server stores are counted, then masked, in one session or all, once.
func TestForgetLines(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "server.db")
	key := newKeyIn(t, path)
	at := "sqlite:" + path
	p := launch(t, path)
	r := rand.New(rand.NewPCG(1, 1))
	kinds := planted.Kinds()
	names := slices.Sorted(maps.Keys(kinds))
	secrets := map[string]string{}
	for i, name := range names {
		text, secret := planted.Plant(r, kinds[name])
		secrets[name] = secret
		p.say(t, key, "dirty", i, "before\n"+text+"\nafter")
	}
	p.say(t, key, "dirty", 0, "taken back") // the replaced bytes are kept
	p.say(t, key, "dirty/agent-1", 0, "the agent's AKIAQ3EGSDFKJ4KKAX2Z")
	p.say(t, key, "other", 0, "the other's AKIAQ3EGSDFKJ4KKAX3Z")
	found := anyOf(t, dir, secrets)
	kit.Require(t, len(found) >= len(secrets), "only %q are stored", found)
	count := func(want, lines int, args ...string) linesReport {
		t.Helper()
		out, words := tool(t, want, append([]string{"forget", "--lines", "--json", "--store", at}, args...)...)
		var doc linesReport
		err := json.Unmarshal([]byte(out), &doc)
		kit.Check(t, err == nil && int(doc.Lines) == lines, "%v: %v in %s%s", args, err, out, words)
		return doc
	}
	doc := count(0, len(names)+2)
	kit.Check(t, !doc.Masked && doc.Transcripts == 3 && doc.Secrets >= doc.Lines, "%+v", doc)
	_, words := tool(t, 0, "forget", "--lines", "--store", at)
	kit.Check(t, strings.Contains(words, "3 transcripts; add --yes"), "%s", words)
	count(0, 1, "other")
	count(0, len(names)+1, "dirty", "--user", "owner")
	tool(t, exitFailed, "forget", "--lines", "none", "--store", at)
	tool(t, exitUsage, "forget", "--store", at)
	count(0, 1, "other", "--yes")
	doc = count(0, len(names)+1, "--yes")
	kit.Check(t, doc.Masked, "%+v", doc)
	count(0, 0, "--yes")
	_, words = tool(t, 0, "verify", "--secrets", "--store", at)
	kit.Check(t, strings.Contains(words, fmt.Sprintf("%d lines", len(names)+3)), "scan: %s", words)
	found = anyOf(t, dir, secrets)
	kit.Check(t, found == nil, "still in files: %q", found)
	p.say(t, key, "dirty", 1, "before\n"+secrets[names[1]]+"\nafter") // not the same line: it is stored
	kit.Equal(t, "the session", p.status(t, key, "/api/sessions/dirty/raw?generation=0"), 200)
}

// TestForgetLinesKilled: after a kill at any moment each line is whole, masked or not, and the next run goes on.
func TestForgetLinesKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "server.db")
	key := newKeyIn(t, path)
	at := "sqlite:" + path
	p := launch(t, path)
	const lines = 300
	for i := range lines {
		p.say(t, key, fmt.Sprintf("s%d", i/20), i%20, fmt.Sprintf("%d: AKIAQ3EGSDFKJ4KK%c%c%cX", i, '2'+i%6, '2'+i/6%6, 'A'+i/36))
	}
	left := func() (n int) {
		t.Helper()
		out, words := tool(t, 0, "forget", "--lines", "--json", "--store", at)
		var doc linesReport
		err := json.Unmarshal([]byte(out), &doc)
		kit.Require(t, err == nil, "%v in %s%s", err, out, words)
		return int(doc.Lines)
	}
	before := left()
	kit.Require(t, before >= lines/2, "%d lines have secrets", before)
	exe := kit.Try(os.Executable()).Must(t)
	for round := range 12 {
		cmd := exec.CommandContext(t.Context(), exe, "forget", "--lines", "--yes", "--store", at)
		cmd.Env = append(os.Environ(), asServer+"=1")
		kit.Must(t, cmd.Start())
		killed := make(chan struct{})
		time.AfterFunc(time.Duration(round*round)*2*time.Millisecond, func() {
			_ = cmd.Process.Kill() // it may have ended
			close(killed)
		})
		_ = cmd.Wait() // killed, or done
		<-killed
		now := left()
		t.Logf("round %d: %d lines are left", round, now)
		kit.Check(t, now <= before, "round %d: %d lines, %d before", round, now, before)
		before = now
	}
	t.Logf("%d lines are left after the kills", before)
	tool(t, 0, "forget", "--lines", "--yes", "--store", at)
	tool(t, 0, "verify", "--store", at)
	tool(t, 0, "verify", "--secrets", "--store", at)
	kit.Equal(t, "lines are left", left(), 0)
}

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
