package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
