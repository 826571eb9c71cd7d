package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// tool runs a verb and answers what it says.
func tool(t *testing.T, want int, args ...string) (out, words string) {
	t.Helper()
	var o, w bytes.Buffer
	code := run(t.Context(), args, &o, &w)
	kit.Require(t, code == want, "%q: exit %d, want %d: %s%s", args, code, want, o.String(), w.String())
	return o.String(), w.String()
}

// status asks with a key.
func (p *program) status(t *testing.T, key, path string) int {
	t.Helper()
	status, _, err := p.call(key, http.MethodGet, path, nil)
	kit.Must(t, err)
	return status
}

// TestOperate manages a store while a server uses it.
func TestOperate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	at := "sqlite:" + path
	key, _ := tool(t, 0, "key", "create", "--name", "first", "--store", at)
	key = strings.TrimSpace(key)
	p := launch(t, path)
	for i := range 20 {
		kit.Must(t, p.send(key, "s1", i))
	}
	kit.Must(t, p.send(key, "s2", 0))

	// Backups are of one moment, while lines come in.
	copyOf := filepath.Join(t.TempDir(), "copy.db")
	p.whileSending(t, key, "s1", 20, func() { tool(t, 0, "backup", "--to", copyOf, "--store", at) })
	info := kit.Try(os.Stat(copyOf)).Must(t)
	kit.Check(t, info.Mode().Perm()&0o077 == 0, "the backup is %v", info.Mode())
	restored := filepath.Join(t.TempDir(), "restored.db")
	tool(t, 0, "restore", "--from", copyOf, "--store", "sqlite:"+restored)
	_, words := tool(t, 0, "verify", "--store", "sqlite:"+restored)
	kit.Check(t, strings.Contains(words, "read 2 transcripts"), "the copy: %s", words)
	_, words = tool(t, exitFailed, "restore", "--from", copyOf, "--store", at, "--force")
	kit.Check(t, strings.Contains(words, "hint: stop the server first"), "under a running server: %s", words)

	// Forgotten by hand, known to the server at once.
	out, _ := tool(t, 0, "forget", "s2", "--yes", "--json", "--store", at)
	kit.Check(t, strings.Contains(out, `"lines_removed": 1`), "forget: %s", out)
	kit.Equal(t, "a forgotten session", p.status(t, key, "/api/sessions/s2"), 404)
	tool(t, 0, "key", "revoke", "--name", "first", "--store", at)
	kit.Equal(t, "a revoked key", p.status(t, key, "/api/sessions/s1"), 401)
	tool(t, 0, "rebuild", "--store", at)
}

// whileSending runs fn while lines from the first on are sent, each of which must be taken.
func (p *program) whileSending(t *testing.T, key, session string, first int, fn func()) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := first; ; i++ {
			select {
			case <-stop:
				return
			default:
				if err := p.send(key, session, i); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	fn()
	close(stop)
	wg.Wait()
}

// TestVerifyFinds: both output forms report damage to the database file, with exit code 1.
func TestVerifyFinds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	p := launch(t, path)
	kit.Must(t, p.send(key, "s1", 0))
	p.kill(t)
	damage(t, path, `{"n":0,"pad":"`, '[')
	if out, words := tool(t, exitFailed, "verify", "--store", "sqlite:"+path); !strings.Contains(out, "line 1 is no JSON object any more") ||
		!strings.Contains(words, "hint: restore a backup") {
		t.Errorf("%s%s", out, words)
	}
	out, words := tool(t, exitFailed, "verify", "--json", "--store", "sqlite:"+path)
	var doc report
	err := json.Unmarshal([]byte(out), &doc)
	kit.Check(t, err == nil && doc.Problems == 1 && doc.Findings[0].SessionID == "s1" && words == "", "%v in %s%s", err, out, words)
}

// damage changes the byte with which a text begins, in the database's file.
func damage(t *testing.T, path, text string, to byte) {
	t.Helper()
	st := kit.Try(sqlite.Open(t.Context(), path, sqlstore.Opening{})).Must(t) // ends the log of the server that was killed
	kit.Must(t, st.Close())
	b := kit.Try(os.ReadFile(path)).Must(t)
	at := bytes.LastIndex(b, []byte(text))
	kit.Require(t, at >= 0, "%s is not in the file", text)
	b[at] = to
	kit.Must(t, os.WriteFile(path, b, 0o600))
}

// TestLinkLogsIn: link knows the address of the server; what it prints logs a browser in once, below a base path too.
func TestLinkLogsIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	newKeyIn(t, path)
	p := launch(t, path, "--base-path", "/base/")
	out, _ := tool(t, 0, "link", "--store", "sqlite:"+path)
	link := strings.TrimSpace(out)
	ticket := link[strings.LastIndex(link, "=")+1:]
	for try, want := range []bool{true, false} {
		jar := kit.Try(cookiejar.New(nil)).Must(t)
		browser := &http.Client{Jar: jar}
		for range 2 { // looking at it does not use it up
			res := kit.Try(browser.Get(link)).Must(t)
			res.Body.Close()
		}
		res := kit.Try(browser.PostForm(p.url+"/login", url.Values{"ticket": {ticket}, "next": {"/"}})).Must(t)
		res.Body.Close()
		home := kit.Try(browser.Get(p.url + "/")).Must(t)
		home.Body.Close()
		in := home.StatusCode == http.StatusOK
		kit.Check(t, in == want, "try %d: %s", try, fmt.Sprint(res.Status, " then ", home.Status))
	}
}

// TestPublicURL: the server answers to its name and to loopback ones.
func TestPublicURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	p := launch(t, path, "--public-url", "https://ccship.example.org/x", "--base-path", "/x", "--log-format", "json", "--metrics-open",
		"--trusted-proxies", "127.0.0.1")
	kit.Equal(t, "by address", p.status(t, key, "/api/me"), 200)
	kit.Equal(t, "metrics", p.status(t, "", "/metrics"), 200)
	req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/me", nil)).Must(t)
	req.Host = "evil.example.org"
	res := kit.Try(http.DefaultClient.Do(req)).Must(t)
	res.Body.Close()
	kit.Check(t, res.StatusCode == http.StatusMisdirectedRequest, "by another name: %d", res.StatusCode)
}

// TestOtherBuild: every command refuses a database of another schema in one line, with what to do, and ends with 1.
func TestOtherBuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	tool(t, 0, "user", "list", "--store", "sqlite:"+path)
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(`UPDATE store_identity SET schema = 'another'`)
		err = errors.Join(err, db.Close())
	}
	kit.Must(t, err)
	for _, command := range []string{"user list", "serve --listen 127.0.0.1:0"} {
		_, words := tool(t, 1, append(strings.Fields(command), "--store", "sqlite:"+path)...)
		kit.Check(t, strings.Contains(words, "start with a new database") && strings.Count(words, "\n") == 2,
			"%s says %q", command, words)
	}
}
