package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/sys"
)

// TestRedactTestUTF16 shows what is masked in UTF-16 as in another text, and nothing in what is no text.
func TestRedactTestUTF16(t *testing.T) {
	t.Parallel()
	c := &config.Config{Path: filepath.Join(t.TempDir(), "config.toml")}
	const text = "some words\nTOKEN=ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234\n"
	wide := "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
	var tokens []string
	for _, in := range []string{text, wide} {
		report, err := findSecrets(c, []byte(in))
		kit.Require(t, err == nil && len(report.Secrets) == 1 && report.Secrets[0].Line == 2, "%q: %+v, %v", in, report, err)
		tokens = append(tokens, report.Secrets[0].Token)
	}
	kit.Check(t, tokens[0] == tokens[1], "%q", tokens)
	report, err := findSecrets(c, []byte("\x89PNG\x00"+text))
	kit.Check(t, err == nil && len(report.Secrets) == 0, "%+v, %v", report, err)
}

// masker is a Daemon with lines that would be masked differently now, in two answers.
type masker struct {
	control.Daemon
	asked *[]control.RemaskRequest
	none  bool
}

func (masker) Status(context.Context) control.Status { return control.Status{Running: true} }

func (m masker) Remask(_ context.Context, req control.RemaskRequest) (control.RemaskResult, error) {
	*m.asked = append(*m.asked, req)
	r := control.RemaskResult{SchemaVersion: 1, Total: 30, Transcripts: 1, Lines: 3, Clear: 2, Resent: 40}
	if m.none {
		r = control.RemaskResult{SchemaVersion: 1, Total: 30}
	}
	if req.Old {
		r = control.RemaskResult{SchemaVersion: 1, Old: &control.OldBytes{Total: 9, Transcripts: 1, Lines: 4, Files: 1,
			Plain: []string{"http://plain"}}}
		if m.none {
			r.Old = &control.OldBytes{Total: 9}
		}
		if req.Offset == 0 {
			r.Old.Next = 7
		}
		return r, nil
	}
	if req.Offset == 0 {
		r.Next = 20
	}
	return r, nil
}

// TestRedactApply counts first, and sends again only with --yes.
func TestRedactApply(t *testing.T) {
	for _, c := range []struct {
		args []string
		none bool
		says string
		want []control.RemaskRequest
	}{
		{nil, false, "add --yes to send 80 lines again", []control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--yes"}, false, "6 lines in 2 transcripts would be masked differently now, 4 lines of them sent with secrets in clear",
			[]control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}, {}, {Offset: 20}}},
		{[]string{"--yes"}, true, "every line as the rules in force mask it", []control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old"}, false, "8 lines of every generation, 0 checkpoints and 2 files with secrets, of 2 transcripts",
			[]control.RemaskRequest{{DryRun: true, Old: true}, {DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old"}, false, "http://plain speaks only the base protocol",
			[]control.RemaskRequest{{DryRun: true, Old: true}, {DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old", "--yes"}, false, "masked there", []control.RemaskRequest{{DryRun: true, Old: true},
			{DryRun: true, Old: true, Offset: 7}, {Old: true}, {Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}, {}, {Offset: 20}}},
		{[]string{"--forget-old", "--yes"}, true, "stored nothing in the clear", []control.RemaskRequest{{DryRun: true, Old: true},
			{DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--forget-old", "--json"}, false, `"old":{"total":9,"transcripts":2`, []control.RemaskRequest{{DryRun: true, Old: true},
			{DryRun: true, Old: true, Offset: 7}, {DryRun: true}, {DryRun: true, Offset: 20}}},
		{[]string{"--json"}, false, `"resent":80`, []control.RemaskRequest{{DryRun: true}, {DryRun: true, Offset: 20}}},
	} {
		jsonHome(t)
		var asked []control.RemaskRequest
		socket := listen(t, masker{asked: &asked, none: c.none})
		code, out, words := inProcess(t, append([]string{"redact", "apply", "--socket", socket}, c.args...)...)
		kit.Check(t, code == 0 && strings.Contains(out+words, c.says), "%v: %d, %s %s", c.args, code, out, words)
		if len(asked) != len(c.want) {
			t.Errorf("%v: asked %+v", c.args, asked)
			continue
		}
		for i := range asked {
			kit.Check(t, asked[i] == c.want[i], "%v: asked %+v, want %+v", c.args, asked[i], c.want[i])
		}
	}
}

// asking is a daemon that notes whether who asked for the status waits for a probe.
type asking struct {
	scripted
	waits *[]bool
}

func (a asking) Probe(_ context.Context, wait bool) { *a.waits = append(*a.waits, wait) }

// A status line waits for no server; who looks at the status wants to know.
func TestStatusProbes(t *testing.T) {
	jsonHome(t)
	for _, test := range []struct {
		flags []string
		want  []bool
	}{
		{nil, []bool{true}}, {[]string{"--json"}, []bool{true}}, {[]string{"--line"}, []bool{false}},
	} {
		var waits []bool
		socket := listen(t, asking{scripted{status: showtest.Healthy()}, &waits})
		code, _, words := inProcess(t, append([]string{"status", "--socket", socket}, test.flags...)...)
		kit.Check(t, code == show.ExitOK && slices.Equal(waits, test.want),
			"%v: exit code %d, %s; waited %v, want %v", test.flags, code, words, waits, test.want)
	}
}

// Nothing that goes wrong makes a line of more than one line, or a word on stderr.
func TestStatusLine(t *testing.T) {
	jsonHome(t)
	t.Setenv("LC_ALL", "C.UTF-8")
	file := filepath.Join(t.TempDir(), "file")
	kit.Must(t, os.WriteFile(file, nil, 0o600))
	healthy, now := showtest.Healthy(), time.Now()
	healthy.Servers[0].LastContactAt = &now
	long := showtest.Healthy()
	long.State, long.Servers = "refused", []control.Server{{State: "refused", Kind: "refused_key"}}
	long.Outbox = &control.Outbox{Entries: 1 << 62, Dead: 1 << 62}
	for _, test := range []struct {
		socket string
		args   []string
		code   int
		want   string
	}{
		{listen(t, scripted{status: healthy}), nil, show.ExitOK, "● ccship: up to date\n"},
		{listen(t, scripted{status: long}), nil, show.ExitOK, ""},
		{kit.Socket(t), nil, show.ExitNotRunning, "ccship: off\n"},
		{file, nil, show.ExitUsage, "ccship: ?\n"},
		{kit.Socket(t), []string{"--log-level", "loud"}, show.ExitUsage, "ccship: off, mistake in the configuration\n"},
	} {
		code, out, words := inProcess(t, append(test.args, "status", "--line", "--socket", test.socket)...)
		kit.Check(t, code == test.code && words == "" && (test.want == "" || out == test.want),
			"%v: exit code %d, %q, stderr %q", test, code, out, words)
		kit.Check(t, strings.Count(out, "\n") == 1 && utf8.RuneCountInString(strings.TrimSuffix(out, "\n")) <= 80,
			"%v: %q is no short line", test, out)
	}
}

// TestHookSockets: a hook looks for the daemon where every other command does, whatever names the place.
func TestHookSockets(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct {
		name string
		env  map[string]string
		file string
	}{
		{"nothing", nil, ""},
		{"a runtime folder", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, ""},
		{"a relative runtime folder", map[string]string{"XDG_RUNTIME_DIR": "run"}, ""},
		{"XDG folders", map[string]string{"XDG_STATE_HOME": "/st", "XDG_RUNTIME_DIR": "/run/x/../y"}, ""},
		{"a socket", map[string]string{"CCSHIP_SOCKET": "~/s.sock", "XDG_RUNTIME_DIR": "/run/user/7"}, `socket = "/other"`},
		{"blank variables", map[string]string{"CCSHIP_SOCKET": " ", "CCSHIP_STATE_DIR": " "}, ""},
		{"empty variables", map[string]string{"CCSHIP_SOCKET": "", "CCSHIP_STATE_DIR": ""}, "socket = '/s'\nstate_dir = '~/x'"},
		{"a state folder", map[string]string{"CCSHIP_STATE_DIR": " /d/ "}, ""},
		{"a file", nil, "# mine\nserver_url = \"http://127.0.0.1:5000\"\nroots = ['/a']\nsocket = \"~/in/file.sock\"\n"},
		{"a file with a state folder", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, "state_dir = '/far'\n"},
		{"an empty socket in the file", nil, "socket = ''\nstate_dir = '/far'\n"},
		{"another file", map[string]string{"CCSHIP_CONFIG": "~/.config/ccship/config.toml"}, "socket = '/s'"},
		{"a file that is not there", map[string]string{"CCSHIP_CONFIG": "/none/config.toml"}, "socket = '/s'"},
		{"another user's home", map[string]string{"CCSHIP_SOCKET": "~root/s"}, ""},
		{"a number", nil, "socket = 5"},
		{"no TOML", nil, "socket = ["},
	} {
		env := func(name string) (string, bool) {
			if v, ok := c.env[name]; ok || name != config.HomeVariable {
				return v, ok
			}
			return home, true
		}
		file := filepath.Join(home, ".config", "ccship", "config.toml")
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(c.file), 0o600)
		}
		kit.Must(t, err)
		got, err := sys.Sockets(env)
		cfg, wrong := config.Load(nil, env)
		kit.Check(t, (err == nil) == (wrong == nil), "%s: %v, but the configuration says %v", c.name, err, wrong)
		if want := show.Sockets(cfg); err == nil && strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: a hook asks %q, other commands %q", c.name, got, want)
		}
	}
}

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
