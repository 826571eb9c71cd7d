//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
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
		kit.Check(t, w.status().Outbox.Withheld != 0,
			"status counts nothing as withheld, though a plain server can't get damaged lines")
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
				kit.Check(t, index%2 == 0, "line %d was sent, it is excluded", index)
			}
		}
		w.verified()
	})
}

// TestOptOut: a project that says no is not read, and nothing of it leaves.
func TestOptOut(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		work := filepath.Join(w.dir, "work")
		tracker := filepath.Join(work, "tracker", ".codetracker", "config.json")
		must(t, os.MkdirAll(filepath.Dir(tracker), 0o700))
		must(t, os.WriteFile(tracker, []byte(`{"conversation_tracking":{"enabled":false}}`), 0o600))
		must(t, os.MkdirAll(filepath.Join(work, "marked", "below"), 0o700))
		must(t, os.WriteFile(filepath.Join(work, "marked", ".ccshipignore"), nil, 0o600))
		w.env = append(w.env, "CCSHIP_EXCLUDE_PROJECTS="+filepath.Join(work, "named*"))
		secrets := map[string]*conversation{}
		for i, dir := range []string{"tracker", "marked/below", "named-so"} {
			secret := newConversation(64+uint64(i), filepath.Join(work, dir))
			secrets[w.path("-work-"+filepath.Base(dir), secret.session+".jsonl")] = secret
		}
		for path, secret := range secrets {
			w.add(path, secret.even(20, 1500))
		}
		c, path := shipped(w, 63, 20)
		for path, secret := range secrets {
			w.addAndSync(path, secret.even(20, 1500))
		}
		w.same(c.session, path)
		for path, secret := range secrets {
			kit.Check(t, w.plain == nil || len(w.plain.lines(secret.session)) == 0, "lines of %s are on the server", path)
			kit.Check(t, w.exact == nil || w.exact.raw(secret.session, "?partial=1") == nil, "%s is on the server", path)
		}
		kit.Equal(t, "status counts excluded transcripts", w.status().Files.Excluded, len(secrets))
		w.verified()
	})
}

// TestNothingBelowClaude: whatever happens, the folder of Claude Code is only read.
func TestNothingBelowClaude(t *testing.T) {
	w, _, path := aloneShipped(t, 64, 20)
	w.keepLines(path, 10)
	w.syncVerified()
	w.d.MustStop(w.t)
	var found []string
	must(t, filepath.Walk(filepath.Join(w.dir, ".claude"), func(p string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && p != path {
			found = append(found, p)
		}
		return err
	}))
	kit.Check(t, len(found) == 0, "files that Claude Code did not write: %v", found)
	must(t, filepath.Walk(w.state(), func(p string, info os.FileInfo, err error) error {
		if err == nil {
			kit.Check(t, info.Mode().Perm()&0o077 == 0, "%s has mode %v, others can read it", p, info.Mode())
		}
		return err
	}))
}

// TestPlainProtocol: by configuration even ccship-server gets the base protocol alone.
func TestPlainProtocol(t *testing.T) {
	w := aloneWorld(t)
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
	kit.Check(t, !extended.Load(), "a request holds the extension object")
}

// TestLinks: a project folder and a transcript that lie elsewhere, a loop and an alias. All is delivered, once.
func TestLinks(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		elsewhere := filepath.Join(w.dir, "elsewhere")
		must(t, os.MkdirAll(filepath.Join(elsewhere, "project"), 0o700))
		own, folder, single := newConversation(60, w.cwd()), newConversation(61, w.cwd()), newConversation(62, w.cwd())
		ownPath := w.path("-work-shop", own.session+".jsonl")
		folderPath := filepath.Join(elsewhere, "project", folder.session+".jsonl")
		singlePath := filepath.Join(elsewhere, "single.jsonl")
		w.add(ownPath, own.even(10, 900))
		w.add(folderPath, folder.even(10, 900))
		w.add(singlePath, single.even(10, 900))
		must(t, syscall.Mkfifo(filepath.Join(elsewhere, "pipe"), 0o600))
		for link, target := range map[string]string{
			"-work-linked": filepath.Join(elsewhere, "project"),
			"-work-alias":  filepath.Dir(ownPath),
			"loop":         w.projects(),
			"-work-shop/" + single.session + ".jsonl":               singlePath,
			"-work-shop/0e000000-0000-4000-8000-000000000000.jsonl": filepath.Join(elsewhere, "pipe"),
		} {
			must(t, os.Symlink(target, filepath.Join(w.projects(), link)))
		}
		w.start()
		check := func() {
			t.Helper()
			w.sync()
			w.same(own.session, ownPath)
			w.same(folder.session, folderPath)
			w.proven(single.session, singlePath)
		}
		check()
		w.add(folderPath, folder.even(3, 900))
		w.add(singlePath, single.even(3, 900))
		check()
		s := w.status()
		kit.Check(t, s.Files.Tracked == 3 && s.Sent.Entries == 36,
			"%d transcripts are followed and %d entries were sent, want 3 and 36", s.Files.Tracked, s.Sent.Entries)
		out := w.ccship("status")
		kit.Check(t, contains("neither a file nor a folder", out.stdout), "status does not name the link to a pipe:\n%s", out.stdout)
		w.d.MustStop(t)
		w.start()
		check()
		w.entriesSent(0)
	})
}

// repository makes a repository, or with from a clone of one; it has no remote.
func (w *world) repository(dir, from string) {
	w.t.Helper()
	git := func(args ...string) {
		w.t.Helper()
		c := exec.CommandContext(w.t.Context(), "git", append([]string{"-c", "user.name=kim", "-c", "user.email=kim@host.example"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := c.CombinedOutput()
		kit.Require(w.t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	must(w.t, os.MkdirAll(filepath.Dir(dir), 0o700))
	if from == "" {
		git("init", "-q", "-b", "main", dir)
		git("-C", dir, "commit", "-q", "--allow-empty", "-m", "first "+dir)
		return
	}
	git("clone", "-q", from, dir)
	git("-C", dir, "remote", "remove", "origin")
	git("-C", dir, "gc", "-q")
}

// TestOneProject: clones of a repository without a remote, and a folder that was moved, are one project in lists and
// sums of the server, and in sums of the disk. A fork of another name and another repository of the same name are not.
func TestOneProject(t *testing.T) {
	needsGit(t)
	w := aloneWorld(t)
	at := func(name string) string { return filepath.Join(w.dir, "code", filepath.FromSlash(name)) }
	w.repository(at("kim/shop"), "")
	w.repository(at("lee/shop"), at("kim/shop"))
	w.repository(at("kim/fork"), at("kim/shop"))
	w.repository(at("other/shop"), "")
	sessions := map[string]string{} // by folder
	talk := func(folder string) {
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000026", 11111111*(len(sessions)+1))
		sessions[folder] = id
		w.add(w.path("-"+folder[:3]+id[:8], id+".jsonl"), append(answerLine(id, at(folder), id[:8], 5, time.Now().Add(-time.Hour)), '\n'))
	}
	for _, folder := range []string{"kim/shop", "lee/shop", "kim/fork", "other/shop"} {
		talk(folder)
	}
	w.startAndSync()
	must(t, os.Rename(at("kim/shop"), at("kim/store")))
	talk("kim/store")
	w.sync()
	must(t, os.Rename(at("kim/store"), at("kim/shop"))) // so that the disk says the same

	var all struct {
		Groups []struct {
			Hash       string `json:"project_hash"`
			Cwd        string
			Repository string
		}
	}
	eventually(t, "the server lists all folders", 8*time.Minute, func() bool {
		code, body := w.exact.get("/api/groups")
		return code == 200 && json.Unmarshal(body, &all) == nil && len(all.Groups) == len(sessions)
	})
	repositories, hashes := map[string]string{}, map[string]bool{}
	for _, g := range all.Groups {
		repositories[g.Cwd], hashes[g.Hash] = g.Repository, true
	}
	shop := repositories[at("kim/shop")]
	for folder, want := range map[string]bool{"lee/shop": true, "kim/store": true, "kim/fork": false, "other/shop": false} {
		r := repositories[at(folder)]
		kit.Check(t, r != "" && (r == shop) == want, "%s is of %.8q, kim/shop of %.8q", folder, r, shop)
	}
	kit.Check(t, shop != "" && len(hashes) == len(sessions), "%.8q, %d hashes", shop, len(hashes))
	for _, x := range []struct {
		from []string
		rows int
		most float64
	}{{nil, 3, 15}, {[]string{"--offline"}, 4, 10}} { // on the disk, a folder that is gone is of nothing
		eventually(t, fmt.Sprint("use by project ", x.from), 8*time.Minute, func() bool {
			rows, most := w.usage(append([]string{"--by", "project"}, x.from...)...).Rows, 0.0
			for _, row := range rows {
				n, _ := row["output_tokens"].(float64)
				most = max(most, n)
			}
			return len(rows) == x.rows && most == x.most
		})
	}
	w.oneName(sessions)
}

// oneName expects that lists and searches call the clones of a repository by one name, and that it chooses all of them.
func (w *world) oneName(sessions map[string]string) {
	w.t.Helper()
	names := func(args ...string) map[string]string {
		var list struct {
			Sessions []struct{ Session, Project string }
		}
		out := w.ccship(append([]string{"list", "--json"}, args...)...)
		kit.Require(w.t, out.code == 0 && json.Unmarshal([]byte(out.stdout), &list) == nil,
			"list %v: exit %d\n%s%s", args, out.code, out.stdout, out.stderr)
		got := map[string]string{}
		for _, x := range list.Sessions {
			got[x.Session] = x.Project
		}
		return got
	}
	got := names()
	clones := []string{"kim/shop", "lee/shop", "kim/store"}
	name := got[sessions["kim/shop"]]
	for folder, session := range sessions {
		kit.Check(w.t, (got[session] == name) == slices.Contains(clones, folder) && name != "",
			"%s is of %q, kim/shop of %q", folder, got[session], name)
	}
	some := names("--project", name)
	kit.Check(w.t, len(some) == len(clones), "of %q are %v", name, some)
	eventually(w.t, "a search finds all clones", 8*time.Minute, func() bool {
		var found struct {
			Total  int
			Facets struct {
				Projects []struct {
					Value string
					Count int
				}
			}
		}
		code, body := w.exact.get("/api/search?facets=1&q=" + url.QueryEscape(fmt.Sprintf("project:%q", name)))
		return code == 200 && json.Unmarshal(body, &found) == nil && found.Total == len(clones) &&
			len(found.Facets.Projects) == 1 && found.Facets.Projects[0].Value == name && found.Facets.Projects[0].Count == len(clones)
	})
}
