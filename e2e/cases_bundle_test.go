//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	file := filepath.Join(w.dir, "report.tar.gz")
	out := w.ccship("doctor", "--bundle="+file)
	if out.code != 0 || !contains("look through it", out.stderr) {
		t.Fatalf("exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	all, err := exec.CommandContext(t.Context(), "tar", "-xzOf", file).Output()
	must(t, err)
	text := string(all)
	for _, want := range []string{`"version"`, "outbox_cap", `"findings"`, `"running": true`, "ccship_files_tracked 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the archive lacks %q", want)
		}
	}
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
