package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

const ownRules = "[[rules]]\nid = \"ours\"\nregex = '''ours_[a-z0-9]{12,}'''\nkeywords = [\"ours_\"]\n"

// rules writes a file with rules.
func (w *world) rules(text string) string {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.cfg.StateDir), "rules.toml")
	kit.Must(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestOtherRules proves what a server holds by the key, whatever the rules are by now, and finds a token that is wrong.
func TestOtherRules(t *testing.T) {
	w := newWorld(t)
	w.server.announces = true
	w.cfg.RedactRules = []string{w.rules(ownRules)}
	own := `{"type":"user","cwd":"/home/kim/shop","n":1,"text":"ours_k3j5h7g9k3j5h7g9k3j5"}` + "\n"
	w.startWith("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop")+own+records("/home/kim/shop", 0, 3))
	v := w.verify()
	kit.Check(t, v.Equal && v.Masked == 5 && v.Unproven == 1 && v.Clear == 0, "by the same rules: %+v", v)
	w.stop()
	w.cfg.RedactRules = nil
	for _, mode := range []string{"on", "off"} {
		w.cfg.Redact = mode
		w.start()
		r := w.verify()
		kit.Check(t, r.Equal && r.Masked == 5 && r.Unproven == 1 && r.Clear == 0, "without the rules, redact = %s: %+v", mode, r)
		w.stop()
	}
	w.cfg.Redact = "on"
	w.cfg.RedactRules = []string{w.rules(ownRules + "[[rules]]\nid = \"cwd\"\nregex = '''/home/kim/sh[a-z]{2}'''\nkeywords = [\"/home/kim\"]\n")}
	w.start()
	v = w.verify()
	kit.Check(t, v.Equal && v.Clear != 0, "by more rules: %+v", v)
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
	kit.Check(t, !r.Equal && len(r.Differences) == 1 && r.Differences[0].Differ[0] == (control.Range{First: 3, Last: 3}),
		"a wrong token is not found: %+v", r.Differences)
}

// remask asks for `redact apply` to its end, and returns the sum of the answers.
func (w *world) remask(dry bool) (sum control.RemaskResult) {
	w.t.Helper()
	for req := (control.RemaskRequest{DryRun: dry}); ; {
		r := kit.Try(w.client.Remask(w.t.Context(), req)).Must(w.t)
		sum.Transcripts, sum.Lines = sum.Transcripts+r.Transcripts, sum.Lines+r.Lines
		sum.Clear, sum.Resent = sum.Clear+r.Clear, sum.Resent+r.Resent
		if req.Offset = r.Next; r.Next == 0 {
			return sum
		}
	}
}

// TestRemask sends again what was sent in clear or by other rules: nothing before it is asked for, and nothing twice.
func TestRemask(t *testing.T) {
	w := attachmentWorld(t)
	w.server.announces = true
	w.cfg.Redact = "off"
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 2)+secretRecords("/home/kim/shop"))
	w.write("-work-shop/"+attachmentSession+"/tool-results/secret.txt", githubSecret)
	for n := range 25 { // more than one request's
		w.write(fmt.Sprintf("-p/%08d-0000-4000-8000-000000000000.jsonl", n+1), records("/home/kim/shop", 0, 1))
	}
	w.deliver()
	_, err := w.client.Remask(t.Context(), control.RemaskRequest{})
	kit.Check(t, err != nil, "it is applied although nothing is masked")
	w.stop()
	w.cfg.Redact = "on"
	w.start()
	r := w.verify()
	kit.Check(t, r.Equal && r.Clear == 3, "before: %+v", r.Differences)
	advice := w.notice("secrets_in_clear")
	kit.Check(t, advice != nil && strings.Contains(advice.Text, sessionA) && strings.Contains(advice.Hint, "redact apply"),
		"advice: %+v", advice)
	w.restart()
	again := w.notice("secrets_in_clear")
	kit.Check(t, again != nil && again.Text == advice.Text, "advice after a restart: %+v", again)
	applied := w.remask(true)
	kit.Check(t, applied.Transcripts == 1 && applied.Lines == 3 && applied.Clear == 3 && applied.Resent == 3, "dry run: %+v", applied)
	lines := func(generation uint32) []byte {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		all, _ := w.server.view(sessionA, generation)
		return bytes.Join(all, []byte("\n"))
	}
	kit.Check(t, leaked(lines(0)), "something is sent again before it is asked for")
	applied = w.remask(false)
	kit.Check(t, applied.Transcripts == 1 && applied.Resent == 3, "applied: %+v", applied)
	w.sync()
	if text := lines(1); leaked(text) || bytes.Count(text, []byte("\n")) != 4 || bytes.Count(text, []byte("[github:")) != 2 {
		t.Errorf("the server shows:\n%s", text)
	}
	r = w.verify()
	kit.Check(t, r.Equal && r.Clear == 0 && r.Masked == 4, "after: clear %d, masked %d, %+v", r.Clear, r.Masked, r.Differences)
	more := w.remask(true)
	kit.Check(t, more.Transcripts == 0 && more.Lines == 0 && w.notice("secrets_in_clear") == nil, "there is more to apply: %+v", more)
	w.until("the attachment is masked", func() bool {
		text, _ := w.server.blob(attachmentSession, "tool-results/secret.txt")
		return strings.HasPrefix(text, "[github:")
	})
}

// TestProjectRules masks lines, files and documents by the rules of their project.
func TestProjectRules(t *testing.T) {
	w := attachmentWorld(t)
	w.server.announces = true
	w.cfg.RedactRules = []string{w.rules("projects = [\"/work/shop\"]\n" + ownRules)}
	const own = "ours_k3j5h7g9k3j5h7g9k3j5"
	large := strings.Repeat("words of a text\n", 1<<17) + own + "\n"
	w.write("-work-shop/"+attachmentSession+".jsonl", strings.Replace(attachmentLine(2), `"n":2`, `"n":"`+own+`"`, 1))
	w.write("-work-shop/"+attachmentSession+"/tool-results/large.txt", large)
	w.startWith("-p/"+sessionA+".jsonl", fmt.Sprintf(`{"type":"user","cwd":"/home/kim/x","sessionId":%q,"n":%q}`+"\n", sessionA, own))
	w.server.mu.Lock()
	inside, _ := w.server.view(attachmentSession, 0)
	outside, _ := w.server.view(sessionA, 0)
	w.server.mu.Unlock()
	kit.Check(t, !bytes.Contains(bytes.Join(inside, nil), []byte(own)) && bytes.Contains(bytes.Join(outside, nil), []byte(own)),
		"in the project: %s\nelsewhere: %s", inside, outside)
	w.until("the large file is there", func() bool {
		text, ok := w.server.blob(attachmentSession, "tool-results/large.txt")
		return ok && len(text) == len(large) && !strings.Contains(text, own)
	})
	r := w.verify()
	kit.Check(t, r.Equal && r.Masked == 1 && r.Clear == 0, "verify: %d masked, %d in clear, %+v", r.Masked, r.Clear, r.Differences)
}
