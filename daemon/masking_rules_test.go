package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/daemon/control"
)

const ownRules = "[[rules]]\nid = \"ours\"\nregex = '''ours_[a-z0-9]{12,}'''\nkeywords = [\"ours_\"]\n"

// rules writes a file with rules.
func (w *world) rules(text string) string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.cfg.StateDir), "rules.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// TestOtherRules proves what a server holds by the key, whatever the rules are by now, and finds a token that is wrong.
func TestOtherRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.announces = true
	w.cfg.RedactRules = []string{w.rules(ownRules)}
	own := `{"type":"user","cwd":"/home/kim/shop","n":1,"text":"ours_k3j5h7g9k3j5h7g9k3j5"}` + "\n"
	w.write("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop")+own+records("/home/kim/shop", 0, 3))
	w.start()
	w.sync()
	if r := w.verify(); !r.Equal || r.Masked != 5 || r.Unproven != 1 || r.Clear != 0 {
		t.Errorf("by the same rules: %+v", r)
	}
	w.stop()
	w.cfg.RedactRules = nil
	for _, mode := range []string{"on", "off"} {
		w.cfg.Redact = mode
		w.start()
		if r := w.verify(); !r.Equal || r.Masked != 5 || r.Unproven != 1 || r.Clear != 0 {
			t.Errorf("without the rules, redact = %s: %+v", mode, r)
		}
		w.stop()
	}
	w.cfg.Redact = "on"
	w.cfg.RedactRules = []string{w.rules(ownRules + "[[rules]]\nid = \"cwd\"\nregex = '''/home/kim/sh[a-z]{2}'''\nkeywords = [\"/home/kim\"]\n")}
	w.start()
	if r := w.verify(); !r.Equal || r.Clear == 0 {
		t.Errorf("by more rules: %+v", r)
	}
	w.stop()
	w.cfg.RedactRules = nil
	w.start()
	w.server.mu.Lock()
	g := w.server.streams[sessionA][0]
	at := bytes.Index(g.lines[3], []byte("[ours:")) + 8
	g.lines[3] = bytes.Clone(g.lines[3])
	g.lines[3][at] = map[bool]byte{true: 'b', false: 'a'}[g.lines[3][at] == 'a']
	w.server.mu.Unlock()
	r := w.verify()
	if r.Equal || len(r.Differences) != 1 || r.Differences[0].Differ[0] != (control.Range{First: 3, Last: 3}) {
		t.Errorf("a wrong token is not found: %+v", r.Differences)
	}
}
