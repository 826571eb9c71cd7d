package config

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func put(t *testing.T, path, text string, age time.Duration, now time.Time) {
	t.Helper()
	kit.WriteFile(t, path, text)
	kit.Must(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
}

func TestCleanupDays(t *testing.T) {
	dir := t.TempDir()
	managed, own := filepath.Join(dir, "managed.json"), filepath.Join(dir, "settings.json")
	for _, c := range []struct {
		managed, own string // "" is no file
		days         int
		source       string
	}{
		{"", "", 30, ""},
		{"", `{"cleanupPeriodDays":99999,"x":[1]}`, 99999, own},
		{"", `{"cleanupPeriodDays":1}`, 1, own},
		{"", `{"cleanupPeriodDays":0}`, 0, own},
		{"", `{"cleanupPeriodDays":-1}`, 30, ""},
		{"", `{"cleanupPeriodDays":"7"}`, 30, ""},
		{"", `{"cleanupPeriodDays":1e300}`, 30, ""},
		{"", `{"cleanupPeriodDays":null}`, 30, ""},
		{"", `{"cleanupPeriodDays":`, 30, ""},
		{`{"cleanupPeriodDays":5}`, `{"cleanupPeriodDays":7}`, 5, managed},
		{`{}`, `{"cleanupPeriodDays":7}`, 7, own},
	} {
		for path, text := range map[string]string{managed: c.managed, own: c.own} {
			_ = os.Remove(path)
			if text != "" {
				put(t, path, text, 0, time.Now())
			}
		}
		days, source := cleanupDays([][]string{{managed}}, []string{own})
		kit.Check(t, days == c.days && source == c.source, "%+v: %d %q", c, days, source)
	}
	local := filepath.Join(dir, "settings.local.json") // the least of the user's counts, never the administrator's
	for text, want := range map[string]int{`{"cleanupPeriodDays":3}`: 3, `{"cleanupPeriodDays":70}`: 12, `{}`: 12} {
		put(t, local, text, 0, time.Now())
		put(t, own, `{"cleanupPeriodDays":12}`, 0, time.Now())
		days, _ := cleanupDays(nil, []string{local, own})
		kit.Check(t, days == want, "%s: %d days", text, days)
		put(t, managed, `{"cleanupPeriodDays":90}`, 0, time.Now())
		days, source := cleanupDays([][]string{{filepath.Join(dir, "none.json")}, {managed}}, []string{local, own})
		kit.Check(t, days == 90 && source == managed, "managed: %d %q", days, source)
	}
	kit.Must(t, os.Remove(local))
	put(t, own, `{"cleanupPeriodDays":12}`, 0, time.Now())
	if days, source := CleanupDays(dir); days != 12 || source != own {
		kit.Check(t, managedSettings() == source, "%d %q", days, source)
	}
}

func TestExpiring(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	home, other := t.TempDir(), t.TempDir()
	root := filepath.Join(home, "projects")
	put(t, filepath.Join(root, "p", "a.jsonl"), "1234\n", 22*day, now)                                // a day too young
	put(t, filepath.Join(root, "p", "b.jsonl"), "1234\n", 24*day, now)                                // within the week
	put(t, filepath.Join(root, "p", "c.jsonl"), "1234\n", 40*day, now)                                // overdue
	put(t, filepath.Join(root, "q", "c", "subagents", "agent-1.jsonl"), "12\n", 40*day, now)          // goes with its session
	put(t, filepath.Join(root, "q", "agent-2.jsonl"), "12\n", 40*day, now)                            // the older kind
	put(t, filepath.Join(root, "q", "c", "tool-results", "x.jsonl"), "something else\n", 40*day, now) // no transcript
	put(t, filepath.Join(root, "q", "d.jsonl"), "", 40*day, now)
	put(t, filepath.Join(root, "q", "e.compact.tmp.jsonl"), "1\n", 40*day, now)
	put(t, filepath.Join(root, "stray.jsonl"), "1\n", 40*day, now)
	put(t, filepath.Join(other, "projects", "p", "f.jsonl"), "1\n", 3*day, now)
	put(t, filepath.Join(other, "settings.json"), `{"cleanupPeriodDays":5}`, 0, now)
	put(t, filepath.Join(root, "p", "tomorrow.jsonl"), "1\n", -day, now)
	roots := []string{root, filepath.Join(other, "projects"), filepath.Join(other, "missing")}
	got, err := Expiring(roots, 7*day, now)
	first := kit.Try(filepath.EvalSymlinks(filepath.Join(root, "p", "c.jsonl"))).Must(t)
	want := Retention{Sessions: 5, Bytes: 5 + 5 + 5 + 3 + 3 + 2 + 2, Expiring: 3, FirstExpiry: now.Add(-10 * day), FirstPath: first, Future: 1}
	got.FirstExpiry = got.FirstExpiry.UTC()
	kit.Check(t, err == nil && got == want, "%+v %v\nwant %+v", got, err, want)
	if runtime.GOOS == "windows" {
		return
	}
	link := filepath.Join(t.TempDir(), "projects") // settings lie next to the folder that was named
	kit.Must(t, os.Symlink(root, link))
	got, err = Expiring([]string{link}, 7*day, now)
	kit.Check(t, err == nil && got.Sessions == 4, "through a link: %+v %v", got, err)
	if os.Geteuid() == 0 {
		return // root may read everything
	}
	kit.Must(t, os.Chmod(filepath.Join(root, "q"), 0))
	got, err = Expiring(roots, 7*day, now)
	kit.Check(t, err != nil && got.Sessions == 5, "with a folder that cannot be read: %+v %v", got, err)
	kit.Must(t, os.Chmod(filepath.Join(root, "q"), 0o700))
}

// Of an administrator's source the last file counts, of two sources the first; without one the least of all others.
func TestCleanupSources(t *testing.T) {
	dir := t.TempDir()
	config, now := filepath.Join(dir, ".claude"), time.Now()
	project := filepath.Join(dir, "shop")
	put(t, config+".json", `{"projects":{"`+filepath.ToSlash(project)+`":{},"/nowhere":{}}}`, 0, now)
	put(t, filepath.Join(config, "settings.json"), `{"cleanupPeriodDays":60}`, 0, now)
	set := func(path string, text string) { t.Helper(); put(t, path, text, 0, now) }
	check := func(want int, managed ...string) {
		t.Helper()
		days, source := cleanupDays([][]string{nil, managed}, append(users(config), ofProjects(config)...))
		kit.Check(t, days == want, "%d days by %s, want %d", days, source, want)
	}
	check(60)
	set(filepath.Join(project, ".claude", "settings.json"), `{"cleanupPeriodDays":9}`)
	check(9)
	set(filepath.Join(project, ".claude", "settings.local.json"), `{"cleanupPeriodDays":8}`)
	check(8)
	base := filepath.Join(dir, "managed-settings.json")
	set(base, `{"cleanupPeriodDays":90}`)
	check(90, withDropIns(base)...)
	set(filepath.Join(dir, "managed-settings.d", "20.json"), `{}`)
	set(filepath.Join(dir, "managed-settings.d", "10.json"), `{"cleanupPeriodDays":91}`)
	set(filepath.Join(dir, "managed-settings.d", ".30.json"), `{"cleanupPeriodDays":1}`)
	check(91, withDropIns(base)...)
	set(filepath.Join(dir, "managed-settings.d", "20.json"), `{"cleanupPeriodDays":7}`)
	check(7, withDropIns(base)...)
	if files := administrators(config); len(files) != 2 || files[0][0] != filepath.Join(config, "remote-settings.json") ||
		files[1][0] != managedSettings() {
		t.Errorf("%v", files)
	}
}
