package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
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
