package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

const (
	githubSecret = "ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234"
	awsSecret    = "AKIAQ3EGSDFKJ4KKAX2Z"
	envSecret    = "ab12cd34"
)

// secretRecords are a prompt and a tool's result with secrets.
func secretRecords(cwd string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u1","cwd":%q,"sessionId":%q,"message":{"role":"user","content":"use %s\nexport DB_PASSWORD=%s"}}`+"\n",
		cwd, sessionA, githubSecret, envSecret) +
		fmt.Sprintf(`{"type":"user","uuid":"u2","cwd":%q,"sessionId":%q,"toolUseResult":{"stdout":"{\"k\":\"\\n%s\"}"}}`+"\n", cwd, sessionA, awsSecret) +
		"cut off {\"a\":\"" + githubSecret + "\n"
}

func leaked(b []byte) bool {
	return bytes.Contains(b, []byte(githubSecret)) || bytes.Contains(b, []byte(awsSecret)) || bytes.Contains(b, []byte(envSecret))
}

// TestMasks delivers secrets as tokens, to the state, the server and the messages, and proves them all the same.
func TestMasks(t *testing.T) {
	w := newWorld(t)
	w.server.announces = true
	w.write("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop")+records("/home/kim/shop", 0, 3))
	w.startWith("../history.jsonl", fmt.Sprintf(`{"display":"try %s","project":"/home/kim/shop","sessionId":%q}`+"\n", githubSecret, sessionA))
	historyStream := w.historyStream()
	w.server.mu.Lock()
	lines, _ := w.server.view(sessionA, 0)
	all := bytes.Join(lines, []byte("\n"))
	history, _ := w.server.view(historyStream, 0)
	all = append(all, bytes.Join(history, []byte("\n"))...)
	w.server.mu.Unlock()
	kit.Check(t, !leaked(all) && bytes.Count(all, []byte("[github:")) == 3 && len(lines) == 6 && json.Valid(lines[0]) && json.Valid(lines[1]),
		"the server holds %d lines:\n%s", len(lines), all)
	r := w.verify()
	kit.Check(t, r.Equal && r.Masked == 5 && r.Clear == 0, "verify: equal %v, %d masked, %d in clear: %+v", r.Equal, r.Masked, r.Clear, r.Differences)
	s := w.status()
	kit.Check(t, s.Files.Masked == 5, "status counts %d secrets", s.Files.Masked)
	m := kit.Try(w.client.Messages(t.Context(), control.MessagesQuery{Session: sessionA})).Must(t)
	text, _ := json.Marshal(m)
	kit.Check(t, !leaked(text) && bytes.Contains(text, []byte("[github:")), "messages: %s", text)
	w.stop()
	kit.Must(t, filepath.WalkDir(w.cfg.StateDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		kit.Check(t, !leaked(b), "%s holds a secret", path)
		return err
	}))
	// A lost state masks alike: what is sent again is the same.
	kit.Must(t, os.RemoveAll(w.cfg.StateDir))
	w.start()
	r = w.verify()
	kit.Check(t, r.Equal && r.Masked == 5, "after a lost state: equal %v, %d masked: %+v", r.Equal, r.Masked, r.Differences)
}

// TestMaskedLater counts what a server got before secrets were masked, and still finds a line that differs.
func TestMaskedLater(t *testing.T) {
	w := newWorld(t)
	w.server.announces = true
	w.cfg.Redact = "off"
	w.startWith("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop"))
	w.stop()
	w.cfg.Redact = "on"
	w.write("-p/"+sessionA+".jsonl", strings.ReplaceAll(secretRecords("/home/kim/shop"), "u1", "u9"))
	w.start()
	r := w.verify()
	kit.Check(t, r.Equal && r.Clear == 3, "equal %v, %d in clear: %+v", r.Equal, r.Clear, r.Differences)
	w.server.mu.Lock()
	g := w.server.streams[sessionA][0]
	g.lines[3] = bytes.Replace(g.lines[3], []byte("use "), []byte("Use "), 1)
	w.server.mu.Unlock()
	r = w.verify()
	kit.Check(t, !r.Equal && len(r.Differences) == 1 && r.Differences[0].Differ[0].First == 3, "a changed line is not found: %+v", r.Differences)
}

// TestPlainHere leaves lines for a plain server on this machine as they are, once it is known to be plain.
func TestPlainHere(t *testing.T) {
	w := newWorld(t)
	w.server.announces = false
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 1))
	w.send("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop"))
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	lines, _ := w.server.view(sessionA, 0)
	kit.Check(t, len(lines) >= 2 && leaked(lines[1]), "the server holds %q", lines)
}

// TestProvenHere leaves lines as they are for a server that proves to be on this machine, and proves masked ones too.
func TestProvenHere(t *testing.T) {
	w := newWorld(t)
	w.server.announces = true
	mux := http.NewServeMux()
	mux.Handle("/", w.server)
	mux.HandleFunc("GET "+protocol.SameHostPath, protocol.AnswerSameHost)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	w.cfg.ServerURL = web.URL
	w.startWith("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop"))
	w.server.mu.Lock()
	lines, _ := w.server.view(sessionA, 0)
	w.server.mu.Unlock()
	kit.Check(t, len(lines) == 3 && leaked(lines[0]), "the server holds %q", lines)
	r := w.verify()
	kit.Check(t, r.Equal && r.Masked == 0, "verify: equal %v, %d masked", r.Equal, r.Masked)
}

// files with secrets: what a server may not see of them, by name.
func secretFiles() map[string]string {
	filler := strings.Repeat("words of a long text, line after line\n", 60_000)
	return map[string]string{
		"small.txt":  "token: " + githubSecret + "\n",
		"large.txt":  filler[:1<<20] + "\n" + githubSecret + "\n" + filler + "\nexport DB_PASSWORD=" + envSecret + "\n",
		"a.json":     `{"env":{"password":"` + envSecret + `"},"out":"\n` + awsSecret + `"}`,
		"binary.txt": "\x89PNG\x00\x00\xff" + "no secret, but bytes " + githubSecret,
	}
}

// stateHolds fails when a file below the state folder holds a secret.
func (w *world) stateHolds(t *testing.T) {
	t.Helper()
	kit.Must(t, filepath.WalkDir(w.cfg.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		kit.Check(t, !leaked(b), "%s holds a secret", path)
		return err
	}))
}

// TestMasksDocuments links documents with secrets: the server gets tokens, in content of the same length, once.
func TestMasksDocuments(t *testing.T) {
	w, s, cwd := newDocumentWorld(t)
	w.server.announces = true
	files := secretFiles()
	delete(files, "binary.txt")
	for name, text := range files {
		saveFile(t, cwd, name, text)
	}
	saveFile(t, cwd, "image.png", "\x89PNG\x00\x00\xff bytes")
	w.startWith("-p/"+sessionA+".jsonl", records(cwd, 0, 3))
	for name := range files {
		w.link(sessionA, name)
	}
	w.link(sessionA, "image.png")
	w.sync()
	has := func() {
		t.Helper()
		for name, text := range files {
			got, ok := s.content(sessionA, name)
			kit.Check(t, ok && len(got) == len(text) && !leaked([]byte(got)) && got != text,
				"%s: %v, %d bytes of %d, secrets in clear: %v", name, ok, len(got), len(text), leaked([]byte(got)))
		}
		got, _ := s.content(sessionA, "image.png")
		kit.Check(t, got == "\x89PNG\x00\x00\xff bytes", "the image is %q", got)
	}
	has()
	w.stop()
	w.stateHolds(t)
	w.start()
	saveFile(t, cwd, "small.txt", files["small.txt"]) // the same again: no version
	w.link(sessionA, "small.txt")
	w.send("-p/"+sessionA+".jsonl", records(cwd, 3, 4))
	has()
	for name := range files {
		kit.Equal(t, name, s.changes(sessionA, name), "linked 1")
	}
	saveFile(t, cwd, "small.txt", "other "+githubSecret+"\n")
	w.until("the change has come", func() bool {
		got, _ := s.content(sessionA, "small.txt")
		return strings.HasPrefix(got, "other [github:")
	})
}

// TestMasksAttachments sends files next to a transcript with tokens instead of secrets, and proves them.
func TestMasksAttachments(t *testing.T) {
	w := attachmentWorld(t)
	folder := "-work-shop/" + attachmentSession + "/tool-results/"
	files := secretFiles()
	for name, text := range files {
		w.write(folder+name, text)
	}
	w.deliver()
	for name, text := range files {
		got, ok := w.server.blob(attachmentSession, "tool-results/"+name)
		if binary := name == "binary.txt"; !ok || len(got) != len(text) || leaked([]byte(got)) != binary {
			t.Errorf("%s: %v, %d bytes of %d, secrets in clear: %v", name, ok, len(got), len(text), leaked([]byte(got)))
		}
	}
	r := w.verify()
	kit.Check(t, r.Equal && r.Attachments.Missing == 0 && r.Attachments.Files == 4+len(files), "verify %+v", r.Attachments)
	w.server.mu.Lock()
	puts := w.server.attachments.puts
	w.server.mu.Unlock()
	w.stop()
	w.deliver()
	r = w.verify()
	kit.Check(t, r.Equal, "verify after a restart %+v", r.Attachments)
	w.stop()
	w.cfg.Redact = "off"
	w.start()
	r = w.verify()
	kit.Check(t, r.Equal, "verify once nothing is masked: %+v", r.Attachments)
	w.server.mu.Lock()
	all := w.server.attachments.blobs[attachmentSession]["tool-results/large.txt"]
	w.server.attachments.blobs[attachmentSession]["tool-results/large.txt"] = strings.Replace(all, "words", "WORDS", 1)
	w.server.mu.Unlock()
	r = w.verify()
	kit.Check(t, !r.Equal && r.Attachments.Missing == 1, "a changed file is not found: %+v", r.Attachments)
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	kit.Check(t, w.server.attachments.puts == puts, "%d pieces are sent again", w.server.attachments.puts-puts)
	kit.Check(t, strings.Contains(all, "[github:"), "the large file has no token")
}

// TestMasksCheckpoints masks what a person or Claude writes into a checkpoint, and what is made from lines.
func TestMasksCheckpoints(t *testing.T) {
	w := newWorld(t)
	sent := w.checkpointServer()
	w.startWith("-p/"+sessionA+".jsonl", secretRecords("/home/kim/shop"))
	for _, summary := range []string{"", "we use " + githubSecret + " here"} {
		a, err := w.client.CreateCheckpoint(t.Context(), control.CheckpointRequest{Session: sessionA, Summary: summary, PortID: githubSecret})
		kit.Check(t, err == nil && !leaked([]byte(a.Checkpoint.Summary+a.Checkpoint.PortID)) && strings.Contains(a.Checkpoint.PortID, "[github:"),
			"%+v, %v", a.Checkpoint, err)
	}
	w.sync()
	w.until("the server has them", func() bool { return len(sent()) == 2 })
	for _, c := range sent() {
		kit.Check(t, !leaked([]byte(c.text)), "sent: %s", c.text)
	}
	w.stop()
	w.stateHolds(t)
}

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
