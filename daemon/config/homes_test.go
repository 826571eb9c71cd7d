package config

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestElsewhere(t *testing.T) {
	home := kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
	home = filepath.Join(home, "me [x]*") // no pattern
	env := map[string]string{
		"CLAUDE_CONFIG_DIR": filepath.Join(home, "a") + ", " + filepath.Join(home, "b"), "XDG_CONFIG_HOME": filepath.Join(home, "xdg"),
	}
	cowork := "local-agent-mode-sessions"
	want := map[string]int{
		".claude-work/projects": 1, ".claude/profiles/x/projects": 0, ".claude-profiles/y/projects": 1,
		".claude-profiles/z/.claude/projects": 1, ".config/claude/projects": 1, "xdg/claude/projects": 2, "a/projects": 1, "b/projects": 1,
		".config/Claude/" + cowork: 2, "Library/Application Support/Claude/" + cowork: 1, "AppData/Roaming/Claude/" + cowork: 1,
		"AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude/" + cowork: 1, ".claude/profiles/w/projects": 1,
		".claude/profiles/v/.claude/projects": 1, "xdg/Claude/" + cowork: 1,
	}
	for rel, n := range want {
		for i := range n {
			below := "p"
			if filepath.Base(rel) == cowork {
				below = "org/account/" + []string{"local_1", "other"}[i] + "/.claude/projects/p"
			}
			put(t, filepath.Join(home, rel, below, string(rune('a'+i))+".jsonl"), "{}\n", 0, time.Now())
		}
	}
	put(t, filepath.Join(home, ".claude", "projects", "p", "a.jsonl"), "{}\n", 0, time.Now())         // a root
	put(t, filepath.Join(home, ".claude-old", "projects", "p", "a.jsonl"), "", 0, time.Now())         // no conversation yet
	put(t, filepath.Join(home, ".claude-own", "projects", "p", "a.jsonl"), "{}\n", 0, time.Now())     // below a root
	put(t, filepath.Join(home, ".claude-empty", "projects", "p", "note.md"), "text\n", 0, time.Now()) // none
	roots := []string{filepath.Join(home, ".claude", "projects"), filepath.Join(home, ".claude-own")}
	if runtime.GOOS != "windows" {
		kit.Must(t, os.Symlink(filepath.Join(home, ".claude"), filepath.Join(home, ".claude-link")))
	}
	for _, h := range elsewhere(home, func(name string) string { return env[name] }, roots) {
		rel := kit.Try(filepath.Rel(home, h.Path)).Must(t)
		rel = filepath.ToSlash(rel)
		kit.Check(t, h.Transcripts == want[rel], "%s: %d transcripts, want %d", rel, h.Transcripts, want[rel])
		delete(want, rel)
	}
	delete(want, ".claude/profiles/x/projects")
	kit.Check(t, len(want) == 0, "not found: %v", want)
}
