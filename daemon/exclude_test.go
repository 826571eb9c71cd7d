package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/e2e/kit"
)

func (w *world) excludes() control.Excludes {
	w.t.Helper()
	return kit.Try(w.client.Excludes(w.t.Context())).Must(w.t)
}

// TestExcludeProjects keeps a project here from the moment it is said, tells of it everywhere, leaves others alone, and
// goes on where it stopped when that ends.
func TestExcludeWhileRunning(t *testing.T) {
	w := newFileWorld(t)
	shop := t.TempDir()
	a, b := "-p/"+sessionA+".jsonl", "-q/"+sessionB+".jsonl"
	w.write(a, records(shop, 0, 5))
	w.startWith(b, records("/home/kim/other", 0, 5))
	pattern := filepath.ToSlash(filepath.Dir(shop)) + "/*"
	w.set("exclude_projects", tomlList([]string{pattern}))
	w.reload("exclude_projects")
	e := w.excludes()
	kit.Check(t, len(e.Patterns) == 1 && e.Patterns[0].Pattern == pattern && e.Patterns[0].Transcripts == 1 && e.Origin == "file", "excludes: %+v", e)
	s := w.status()
	kit.Check(t, s.Files.Excluded == 1, "status of a project that is quiet: %+v", s.Files)
	w.write(a, records(shop, 5, 8))
	w.write(b, records("/home/kim/other", 5, 8))
	synced := w.sync()
	kit.Check(t, synced.Done, "sync: %+v", synced)
	kit.Equal(t, "the server, of the excluded project", w.server.newest(sessionA), records(shop, 0, 5))
	kit.Equal(t, "the server, of the other project", w.server.newest(sessionB), records("/home/kim/other", 0, 8))
	s = w.status()
	kit.Check(t, s.Files.Excluded == 1 && s.State == "watching", "status: %s, %+v", s.State, s.Files)
	r := w.verify()
	kit.Check(t, r.Equal && r.ExcludedFiles == 1 && r.Files == 1 && strings.Contains(fmt.Sprint(r.Transcripts), pattern),
		"verify: %+v", r)
	w.stop()
	w.loadAndStart()
	w.until("everything was listed", func() bool { return w.status().Files.Tracked == 2 })
	s = w.status()
	kit.Check(t, s.Files.Excluded == 1, "status after a restart: %+v", s.Files)
	w.set("exclude_projects", "[]")
	w.reload("exclude_projects")
	w.until("the rest arrives", func() bool { return w.server.newest(sessionA) == records(shop, 0, 8) })
	r = w.verify()
	kit.Check(t, r.Equal && r.ExcludedFiles == 0, "verify: %+v", r)
}

// TestIgnoreFile is a project's own way to stay here.
func TestIgnoreFile(t *testing.T) {
	w := newWorld(t)
	shop := t.TempDir()
	marker := filepath.Join(shop, project.IgnoreName)
	kit.Must(t, os.WriteFile(marker, nil, 0o600))
	w.write("-p/"+sessionA+".jsonl", records(filepath.Join(shop, "sub"), 0, 5))
	w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records(filepath.Join(shop, "sub"), 0, 2))
	r := w.deliver()
	kit.Check(t, r.Done && w.server.newest(sessionA) == "", "sync: %+v", r)
	e := w.excludes()
	kit.Check(t, len(e.Others) == 1 && e.Others[0].Transcripts == 2 && strings.Contains(e.Others[0].Why, marker),
		"excludes: %+v", e)
	v := w.verify()
	kit.Check(t, v.Equal && v.ExcludedFiles == 2, "verify: %+v", v)
	kit.Must(t, os.Remove(marker))
	w.until("the lines arrive", func() bool {
		return w.server.newest(sessionA) == records(filepath.Join(shop, "sub"), 0, 5) && w.server.newest(sessionA+"/agent-a1") != ""
	})
	kit.Must(t, os.WriteFile(marker, nil, 0o600))
	w.until("verify says that they stay here from now on", func() bool { return w.verify().ExcludedFiles == 2 })
}

// TestHistoryOfExcluded leaves an excluded project's prompts out, and delivers them when that ends while it is down.
func TestHistoryOfExcluded(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %t", restart), func(t *testing.T) {
			w := newWorld(t)
			secret := t.TempDir()
			config := tracked(t, secret, "config.json", `{"conversation_tracking":{"enabled":false}}`)
			line := func(project, text string) string {
				return fmt.Sprintf(`{"display":%q,"project":%q}`+"\n", text, project)
			}
			open := line("/home/kim/shop", "one") + line("/home/kim/shop", "three")
			all := line("/home/kim/shop", "one") + line(secret, "two") + "not json\n" + line("/home/kim/shop", "three")
			w.write("../history.jsonl", all)
			r := w.deliver()
			kit.Check(t, r.Done && r.Excluded == 1 && r.Lines == 4 && r.Acknowledged == 3, "sync: %+v", r)
			name := w.historyStream()
			got := w.server.newest(name)
			kit.Check(t, !strings.Contains(got, "two") && strings.Contains(got, "three"), "the server has %q, want %q", got, open)
			v := w.verify()
			kit.Check(t, v.Equal && v.Excluded == 1, "verify: %+v", v)
			if restart {
				w.stop()
			}
			kit.Must(t, os.Remove(config))
			if restart {
				w.start()
			}
			w.until("the whole history arrives", func() bool { return w.server.newest(name) == all })
			v = w.verify()
			kit.Check(t, v.Equal && v.Excluded == 0, "verify: %+v", v)
			r = w.sync()
			kit.Check(t, r.Excluded == 0 && r.Acknowledged == 4, "sync: %+v", r)
			w.restart()
			v = w.verify()
			kit.Check(t, v.Equal && v.Transcripts[0].Generation == 1, "the history is delivered again and again: %+v", v)
		})
	}
}

// TestExcludedBeginsWithoutCwd keeps a transcript here from the line on that says where it belongs, and one that never
// says so because of those next to it.
func TestExcludedBeginsWithoutCwd(t *testing.T) {
	w := newFileWorld(t)
	secret := t.TempDir()
	w.set("exclude_projects", tomlList([]string{filepath.ToSlash(secret)}))
	w.loadAndStart()
	const mute = `{"type":"summary","summary":"mute"}` + "\n"
	late := "-p/" + sessionA + ".jsonl"
	w.write(late, mute)
	w.until("it is not waited for any longer", func() bool { return w.server.newest(sessionA) == mute })
	w.write(late, records(secret, 1, 3))
	w.write("-q/"+sessionB+".jsonl", records(secret, 0, 1))
	w.until("both are known to be excluded", func() bool { return w.status().Files.Excluded == 2 })
	w.write("-q/silent.jsonl", mute)
	w.write("-r/other.jsonl", mute)
	w.until("a silent one elsewhere is delivered", func() bool { return w.server.newest("other") == mute })
	r := w.sync()
	kit.Check(t, r.Done && w.server.newest(sessionA) == mute && w.server.newest("silent") == "", "sync: %+v", r)
	e := w.excludes()
	kit.Check(t, e.Patterns[0].Transcripts == 3, "excludes: %+v", e)
	v := w.verify()
	kit.Check(t, v.Equal && v.ExcludedFiles == 3, "verify: %+v", v)
	w.stop()
	r = w.deliver()
	kit.Check(t, r.Done && w.server.newest(sessionA) == mute && w.server.newest("silent") == "", "after a restart: %+v", r)
	delete(w.lines, "exclude_projects")
	w.save()
	w.reload("exclude_projects")
	w.until("everything arrives", func() bool {
		return w.server.newest(sessionA) == mute+records(secret, 1, 3) && w.server.newest("silent") == mute
	})
	v = w.verify()
	kit.Check(t, v.Equal && v.ExcludedFiles == 0, "verify: %+v", v)
}

// TestHistoryOfOthersExcluded delivers what was left out of the history when another project is excluded in its stead
// while the daemon is not running, though as many lines are left out as before.
func TestHistoryOfOthersExcluded(t *testing.T) {
	w := newFileWorld(t)
	line := func(project, text string) string {
		return fmt.Sprintf(`{"display":%q,"project":%q}`+"\n", text, project)
	}
	exclude := func(project string) { w.set("exclude_projects", tomlList([]string{project})) }
	exclude("/srv/one")
	w.load()
	all := line("/srv/one", "1") + line("/srv/two", "2")
	w.write("../history.jsonl", all)
	r := w.deliver()
	kit.Check(t, r.Done && r.Excluded == 1, "sync: %+v", r)
	name := w.historyStream()
	steady := func() {
		t.Helper()
		before := w.verify()
		w.restart()
		w.until("it was looked whether an exclusion has ended", func() bool { return time.Since(w.status().StartedAt) > 2*checkInterval })
		r := w.verify()
		kit.Check(t, before.Equal && before.Excluded == 1 && r.Equal && r.Transcripts[0].Generation == before.Transcripts[0].Generation,
			"the history is delivered again and again: %+v, %+v", before, r)
	}
	steady()
	w.stop()
	exclude("/srv/two")
	w.loadAndStart()
	w.until("what is not excluded any more arrives", func() bool { return strings.Contains(w.server.newest(name), `"1"`) })
	steady()
	w.stop()
	exclude("/srv/three")
	w.loadAndStart()
	w.until("the whole history arrives", func() bool { return w.server.newest(name) == all })
	v := w.verify()
	kit.Check(t, v.Equal && v.Excluded == 0, "verify: %+v", v)
}

// TestIncludeThenSync waits for what an exclusion kept here as soon as that has ended, and verify compares it.
func TestIncludeThenSync(t *testing.T) {
	w := newFileWorld(t)
	shop := t.TempDir()
	quiet, busy := "-p/"+sessionA+".jsonl", "-p/"+sessionB+".jsonl"
	w.write(quiet, records(shop, 0, 3))
	w.startWith(busy, records(shop, 0, 3))
	w.set("exclude_projects", tomlList([]string{filepath.ToSlash(shop)}))
	w.reload("exclude_projects")
	w.send(busy, records(shop, 3, 6))
	w.set("exclude_projects", "[]")
	w.reload("exclude_projects")
	r := w.verify()
	kit.Check(t, r.Equal && r.Files == 2 && r.ExcludedFiles == 0, "verify: %+v", r)
	kit.Equal(t, "the server's text", w.server.newest(sessionB), records(shop, 0, 6))
}
