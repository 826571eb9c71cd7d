//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// repository makes a repository, or with from a clone of one; it has no remote.
func (w *world) repository(dir, from string) {
	w.t.Helper()
	git := func(args ...string) {
		w.t.Helper()
		c := exec.CommandContext(w.t.Context(), "git", append([]string{"-c", "user.name=kim", "-c", "user.email=kim@host.example"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := c.CombinedOutput(); err != nil {
			w.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
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
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := exactWorld(t)
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
		if r := repositories[at(folder)]; r == "" || (r == shop) != want {
			t.Errorf("%s is of %.8q, kim/shop of %.8q", folder, r, shop)
		}
	}
	if shop == "" || len(hashes) != len(sessions) {
		t.Errorf("%.8q, %d hashes", shop, len(hashes))
	}
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
		if out.code != 0 || json.Unmarshal([]byte(out.stdout), &list) != nil {
			w.t.Fatalf("list %v: exit %d\n%s%s", args, out.code, out.stdout, out.stderr)
		}
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
		if (got[session] == name) != slices.Contains(clones, folder) || name == "" {
			w.t.Errorf("%s is of %q, kim/shop of %q", folder, got[session], name)
		}
	}
	if some := names("--project", name); len(some) != len(clones) {
		w.t.Errorf("of %q are %v", name, some)
	}
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
