//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBundle: the archive for a report has what ccship says of itself, and no talk, no key, and no name of a project.
func TestBundle(t *testing.T) {
	t.Parallel()
	w := exactWorld(t)
	c := newConversation(91, w.cwd())
	path := w.path("-home-kim-clients-acme", c.session+".jsonl")
	w.add(path, c.even(3, 900))
	w.start()
	w.sync()
	key, err := os.ReadFile(w.keyFile())
	must(t, err)
	file, text := "", ""
	tries := 0
	eventually(t, "the archive has everything", time.Minute, func() bool { // doctor waits for a slow daemon for seconds only
		tries++
		file = filepath.Join(w.dir, fmt.Sprintf("report-%d.tar.gz", tries))
		out := w.ccship("doctor", "--bundle="+file)
		if !contains("look through it", out.stderr) {
			t.Fatalf("exit %d\n%s%s", out.code, out.stdout, out.stderr)
		}
		all, err := exec.CommandContext(t.Context(), "tar", "-xzOf", file).Output()
		must(t, err)
		text = string(all)
		lacks := func(want string) bool { return !strings.Contains(text, want) }
		return out.code == 0 &&
			!slices.ContainsFunc([]string{`"version"`, "outbox_cap", `"findings"`, `"running": true`, "ccship_files_tracked 1"}, lacks)
	})
	for _, hidden := range []string{"acme", w.dir, strings.TrimSpace(string(key)), "conversation"} {
		if strings.Contains(text, hidden) {
			at := strings.Index(text, hidden)
			t.Errorf("the archive has %q: …%s", hidden, text[max(0, at-80):min(len(text), at+80)])
		}
	}
	if out := w.ccship("doctor", "--bundle="+file); out.code != 2 || !contains("exists", out.stderr) {
		t.Errorf("over an archive: exit %d\n%s", out.code, out.stderr)
	}
}
