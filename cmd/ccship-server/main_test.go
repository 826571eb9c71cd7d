package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	"github.com/ccship/ccship/cmd/ccship/showtest"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript/planted"
)

// asServer in the environment makes the test binary be the program, for tests that need to kill it.
const asServer = "CCSHIP_SERVER_TEST_MAIN"

func TestMain(m *testing.M) {
	asKilled()
	if os.Getenv(asServer) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){
		"ccship-server": main,
		"systemctl":     kit.FakeSystemctl, "journalctl": kit.FakeJournalctl, "loginctl": kit.FakeLoginctl,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			if strings.HasSuffix(e.WorkDir, "script-service") {
				release, err := kit.LockPorts()
				if err != nil {
					return err
				}
				e.Defer(func() { _ = release() }) // last
			}
			known, home := e.WorkDir+"/systemd", e.WorkDir+"/home"
			for name, value := range map[string]string{
				"XDG_STATE_HOME": e.WorkDir + "/state", "HOME": home, "FAKE_SYSTEMD": known, "FAKE_LINGER": "yes", "USER": "kim",
			} {
				e.Setenv(name, value)
			}
			e.Defer(func() { kit.FakeSystemd{Dir: known, Unit: "ccship-server.service"}.Stop() })
			return errors.Join(os.Mkdir(known, 0o700), os.Mkdir(home, 0o700))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE ARGS… runs the program, which must end with that code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec("ccship-server", args[1:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("run: %v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit %d, want %s", code, args[0])
	}
}

// TestFlagWords: what a flag takes is one word, neither the flag's own name nor a type of Go.
func TestFlagWords(t *testing.T) { showtest.FlagWords(t, newRoot()) }

// TestCompose: what the compose files and the image start is a command line that this program takes.
func TestCompose(t *testing.T) {
	var main struct {
		Services map[string]struct {
			Command []string
			Ports   []string
		}
	}
	readYAML(t, "../../packaging/compose/compose.yaml", &main)
	server := main.Services["server"]
	c, flags, err := newRoot().Find(server.Command)
	kit.Require(t, err == nil && c.Name() == "serve", "%q is %v, %v", server.Command, c.Name(), err)
	kit.Must(t, c.ParseFlags(flags))
	for _, p := range server.Ports {
		kit.Check(t, strings.HasPrefix(p, "127.0.0.1:"), "port %s is open to others", p)
	}
	var postgres struct {
		Services map[string]struct {
			Environment map[string]string
		}
	}
	readYAML(t, "../../packaging/compose/compose.postgres.yaml", &postgres)
	url := postgres.Services["server"].Environment["CCSHIP_SERVER_STORE"]
	kit.Check(t, strings.HasPrefix(url, "postgres://"), "the store is %q", url)
	image := kit.Try(os.ReadFile("../../packaging/compose/Dockerfile")).Must(t)
	for _, want := range []string{"USER 65532:65532", `ENTRYPOINT ["/ccship-server"]`, "CCSHIP_SERVER_STORE=sqlite:/data/"} {
		kit.Check(t, strings.Contains(string(image), want), "the image has no %s", want)
	}
}

func readYAML(t *testing.T, name string, to any) {
	t.Helper()
	b := kit.Try(os.ReadFile(name)).Must(t)
	err := yaml.Unmarshal(b, to)
	kit.Require(t, err == nil, "%s: %v", name, err)
}

// hostileName sets the clipboard, clears the screen, turns letters around, hides some, and begins lines and cells of
// its own. Names of sessions, projects and keys are whatever a client sent.
const hostileName = "T\x1b]52;c;aGk=\x07\x1b[2J\u009b2J\u202egnp.exe\u2066\U000e0041\r\nINJECTED\tCELL\u2028\x7f\x1b[8m"

// TestHostileNames: what others chose cannot steer the operator's terminal, nor look like a line of ours.
func TestHostileNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	at := "sqlite:" + path
	s := kit.Try(sqlite.Open(t.Context(), path, sqlstore.Opening{})).Must(t)
	must := func(err error) {
		t.Helper()
		kit.Must(t, err)
	}
	ann, err := s.AddUser(t.Context(), "ann", server.Owner, server.By{At: time.Now()})
	must(err)
	bob, err := s.AddUser(t.Context(), "bob\u202e", server.Member, server.By{At: time.Now()})
	must(err)
	must(s.AddKey(t.Context(), server.Key{User: ann, Name: hostileName, Hash: [32]byte{1}, Created: time.Now()}))
	k, err := s.FindKey(t.Context(), [32]byte{1})
	must(err)
	must(s.AddShare(t.Context(), server.Share{Owner: ann.ID, With: bob.ID, ProjectHash: hostileName, Project: hostileName, Created: time.Now(), By: k.ID}))
	eve, err := s.AddUser(t.Context(), "eve"+hostileName, server.Viewer, server.By{Key: k.ID, At: time.Now()})
	must(err)
	must(s.AddKey(t.Context(), server.Key{User: eve, Name: "made" + hostileName, Hash: [32]byte{2}, Created: time.Now()}))
	for _, id := range []string{hostileName, "s"} {
		must(s.Put(t.Context(), &server.Batch{Owner: ann.ID, Received: time.Now(), Lines: []server.Line{{Raw: []byte(`{"a":"AKIA` + "Q3EGRIJ7T6FGM2XY" + `"}`)}},
			Head: server.Head{SessionID: id, Machine: hostileName, Epoch: "e", Host: hostileName, Project: hostileName, Path: hostileName, Cwd: hostileName, EndLine: 1}}))
	}
	must(s.Close())
	shown, ended := 0, false
	for _, args := range [][]string{
		{"user", "list"}, {"key", "list"}, {"share", "list"}, {"verify"}, {"verify", "--secrets"}, {"retention"},
		{"retention", "hold", "--project", hostileName, "--why", hostileName},
		{"retention", "--log", "9"}, {"key", "revoke", "--name", "no" + hostileName}, {"key", "revoke", "--name", hostileName},
		{"forget", "no" + hostileName, "--yes"}, {"forget", hostileName, "--yes"}, {hostileName},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			var out, words strings.Builder
			_ = run(t.Context(), append(append(append([]string{}, args...), more...), "--store", at), &out, &words)
			all := out.String() + words.String()
			shown += strings.Count(all, "INJECTED")
			ended = ended || strings.Contains(all, "with it ended: keys \"made") && strings.Contains(all, "now disabled: \"eve") &&
				strings.Contains(all, "--enable")
			for _, r := range all {
				kit.Require(t, r == '\n' || r == '\t' || !term.Steers(r), "%q %q prints %q:\n%q", args, more, r, all)
			}
			for line := range strings.Lines(all) {
				kit.Check(t, !strings.HasPrefix(line, "INJECTED"), "%q: a line is not ours:\n%s", args, all)
			}
			kit.Check(t, more == nil || out.Len() == 0 || json.Valid([]byte(out.String())),
				"%q prints no JSON: %s", args, out.String())
		}
	}
	kit.Check(t, ended, "revoking a key does not say what ended with it")
	kit.Check(t, shown >= 10, "the name is shown %d times", shown)
}

// TestPrintsThroughTerm: nothing is printed past package term.
func TestPrintsThroughTerm(t *testing.T) {
	files, err := filepath.Glob("*.go")
	kit.Require(t, err == nil && len(files) >= 20, "%v %v", err, files)
	for _, file := range files {
		text := kit.Try(os.ReadFile(file)).Must(t)
		for _, past := range []string{"fmt.Fprint", "fmt.Print", "os.Stdout", "os.Stderr", "tabwriter"} {
			kit.Check(t, strings.HasSuffix(file, "_test.go") || file == "main.go" || !strings.Contains(string(text), past),
				"%s prints with %s", file, past)
		}
	}
}

// say sends a line with a text.
func (p *program) say(t *testing.T, key, session string, line int, text string) {
	t.Helper()
	body := kit.Try(json.Marshal(map[string]any{"session_id": session, "entries": []any{map[string]any{
		"line_index": line, "type": "user", "message": map[string]any{"role": "user", "content": text}}}})).Must(t)
	p.must(t, key, http.MethodPost, "/api/conversations", body)
}

// TestScan: secrets in a running server are found, also where other bytes have replaced a line; none is printed.
func TestScan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	at := "sqlite:" + path
	p := launch(t, path)
	p.say(t, key, "clean", 0, "nothing to see")
	if out, words := tool(t, 0, "verify", "--secrets", "--store", at); out != "" || !strings.Contains(words, "read 1 transcripts, 1 lines") {
		t.Errorf("a clean store: %s%s", out, words)
	}
	r := rand.New(rand.NewPCG(1, 1))
	kinds := planted.Kinds()
	names := slices.Sorted(maps.Keys(kinds))
	var secrets []string
	for i, name := range names {
		text, secret := planted.Plant(r, kinds[name])
		secrets = append(secrets, secret)
		p.say(t, key, "dirty", i, "before\n"+text+"\nafter")
	}
	p.say(t, key, "dirty", 0, "taken back") // the replaced bytes are kept
	out, words := tool(t, exitFailed, "verify", "--secrets", "--json", "--store", at)
	var doc scanReport
	err := json.Unmarshal([]byte(out), &doc)
	kit.Require(t, err == nil && words == "", "%v in %s%s", err, out, words)
	found := map[int64]bool{}
	for _, f := range doc.Findings {
		found[f.Line] = true
		kit.Check(t, f.SessionID == "dirty" && f.User == "owner" && f.Replaced == (f.Line == 0) && len(f.Rules) != 0,
			"%+v", f)
	}
	for i, name := range names {
		kit.Check(t, found[int64(i)], "%s is not found", name)
	}
	human, words := tool(t, exitFailed, "verify", "--secrets", "--store", at)
	kit.Check(t, strings.Contains(human, `"dirty" of "owner"`) && strings.Contains(words, "hint: revoke"),
		"%s%s", human, words)
	for i, secret := range secrets {
		kit.Check(t, len(secret) <= 8 || !strings.Contains(out+human+words, secret),
			"the report has the secret of %s", names[i])
	}
	want := fmt.Sprintf("%d places", len(names))
	kit.Check(t, strings.Contains(words, want), "%s, want %s", words, want)
}
