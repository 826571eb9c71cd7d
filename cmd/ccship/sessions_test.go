package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/e2e/kit"
)

const (
	storedSession = "3f2a9c01-0000-4000-8000-000000000001"
	storedText    = `{"type":"user","message":{"role":"user","content":"fix the cart"},"uuid":"u1","timestamp":"2026-11-19T10:00:00Z"}` + "\n"
)

const storedDocument = `{"session_id":"` + storedSession + `","user":"owner","machine":"0c0c0c0c","host":"laptop","project_hash":"h","project":"shop",
"cwd":"/nowhere/it's shop","path":"-nowhere-shop/` + storedSession + `.jsonl","parent_session_id":null,"epoch":"e","epochs":1,"generation":1,"lines":1,"bytes":114,
"first_received":"2026-11-19T10:00:01Z","last_received":"2026-11-19T10:00:02Z","last_active":"2026-11-19T10:00:00Z","agents":2,"cost_usd":0.415,"unpriced_tokens":0,
"summary":{"title":"Fix the\u001b[31m cart","first_prompt":"fix the cart","model":"claude-sonnet-4-5","branch":"main","started":"2026-11-19T10:00:00Z","messages":34,"derived_lines":1},
"usage":[{"input_tokens":1000,"output_tokens":500,"cache_read_tokens":1200000,"cache_write_5m_tokens":1,"cache_write_1h_tokens":2}],
"generations":[{"generation":0,"rewound_to":0,"end_line":5,"eof_newline":true,"first_received":"2026-11-18T10:00:00Z"},{"generation":1,"rewound_to":0,"end_line":1,"eof_newline":true,"first_received":"2026-11-19T10:00:00Z"}]}`

// readingServer answers as ccship-server does, about one session.
func readingServer(t *testing.T) string {
	t.Helper()
	at := "/api/sessions/" + storedSession
	answers := map[string]string{
		"/api/sessions": `{"sessions":[` + storedDocument + `],"next":null}`,
		at:              storedDocument,
		at + "/entries": `{"entries":[{"line_index":0,"generation":1,"kind":"object","record":` + strings.TrimSpace(storedText) + `}],"next":null,"cursor":null}`,
		at + "/digest":  `{"generations":[{"generation":1,"lines":1,"end_line":1,"bytes":114,"eof_newline":true,"sha256":"` + lineSum(storedText) + `"}]}`,
		at + "/raw":     storedText,
		at + "/export":  "# Fix the cart\n",
		"/api/usage":    `{"rows":[{"answers":3,"input_tokens":2000,"output_tokens":900,"cache_read_tokens":1800000,"cache_write_5m_tokens":1,"cache_write_1h_tokens":2,"cost_usd":0.83}]}`,
		"/api/search": `{"sessions":[{"session":` + storedDocument + `,"title":"Fix the cart","branch":"main","missing":[],"hits":[{"session_id":"s","generation":0,"line_index":4,"time":"2026-11-19T10:00:00Z","kind":"prompt","current":false,
"snippet":[{"text":"please fix the ","match":false},{"text":"ca\u001brt","match":true}]}]}],"total":30,"missing":[],"notes":[],"next":"more"}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("parent") {
			_, _ = io.WriteString(w, `{"sessions":[],"next":null}`)
			return
		}
		text, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"error":{"code":"not_found","message":"no"}}`
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// sessionsHome has a server, one transcript that is nowhere else, and a prompt history.
func sessionsHome(t *testing.T) (dir string, flags []string) {
	t.Helper()
	jsonHome(t)
	dir = t.TempDir()
	root := filepath.Join(dir, "projects")
	kit.Must(t, os.MkdirAll(filepath.Join(root, "-p"), 0o700))
	kit.Must(t, os.WriteFile(filepath.Join(dir, "history.jsonl"), []byte(`{"display":"lost \u001b[31mwork","timestamp":1787216400101,"project":"/w","sessionId":"deadbeef"}`+"\n"), 0o600))
	t.Setenv("TZ", "UTC")
	return dir, []string{
		"--server-url", readingServer(t), "--roots", root, "--state-dir", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "s"),
	}
}

func lineSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// liveAge is how long ago a test wrote a file.
var liveAge = regexp.MustCompile(`\d+s ago`)

// TestSessionsJSON pins the documents that the reading verbs print.
func TestSessionsJSON(t *testing.T) {
	dir, flags := sessionsHome(t)
	kit.Must(t, os.MkdirAll(filepath.Join(dir, "state"), 0o700))
	for _, c := range []struct {
		name string
		code int
		args []string
	}{
		{"list", show.ExitOK, []string{"list"}},
		{"show", show.ExitOK, []string{"show", "3f2a"}},
		{"search", show.ExitOK, []string{"search", "cart"}},
		{"lost", show.ExitOK, []string{"list", "--lost"}},
		{"restore", show.ExitOK, []string{"restore", storedSession}},
		{"error_no_generation", show.ExitFailed, []string{"show", "3f2a", "--generation", "7"}},
		{"error_too_short", show.ExitUsage, []string{"show", "3f"}},
		{"error_no_such_session", show.ExitFailed, []string{"show", "abcdef"}},
		{"error_session_live", show.ExitFailed, []string{"restore", "3f2a"}},
	} {
		if c.name == "error_session_live" {
			writeNow(t, filepath.Join(dir, "projects", "-nowhere-shop", storedSession+".jsonl"))
		}
		code, out, words := inProcess(t, append(append(c.args, "--json"), flags...)...)
		kit.Check(t, code == c.code && words == "", "%s: exit code %d, want %d; stderr %q", c.name, code, c.code, words)
		out = strings.ReplaceAll(out, dir, "/home/me/.claude")
		showtest.Golden(t, filepath.Join("json", c.name+".json"), liveAge.ReplaceAllString(out, "1s ago"))
	}
}

// writeNow makes a file look as if a program had just written to it.
func writeNow(t *testing.T, path string) {
	t.Helper()
	now := time.Now()
	kit.Must(t, os.Chtimes(path, now, now))
}

// Following shows each message once, and a call once more when it has its result.
func TestFreshMessages(t *testing.T) {
	var seen seenMessages
	all := showtest.Messages().Messages
	kit.Equal(t, "at first", len(seen.fresh(all[:5])), 5)
	kit.Equal(t, "the same again", len(seen.fresh(all[:5])), 0)
	yes := true
	all[4].Type, all[4].Success, all[4].Output = "tool_complete", &yes, "package b"
	fresh := seen.fresh(all[1:7])
	kit.Check(t, len(fresh) == 3 && fresh[0].Output == "package b" && fresh[2].Content == "overloaded", "%+v", fresh)
}
