package main

import (
	"bytes"
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
