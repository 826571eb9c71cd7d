//go:build unix

package claude_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// TestRealClaudeElsewhere begins a session on one machine and goes on with it on another, in each version: the model
// sees there what was said here.
func TestRealClaudeElsewhere(t *testing.T) {
	kit.OnlyInLab(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { resumeElsewhere(t, version) })
	}
}

func resumeElsewhere(t *testing.T, version string) {
	program := installed(t, version)
	api := newStub(t)
	api.keeps = true
	there := newWorld(newHome(t, program, api))
	there.version = version
	there.start()
	said := "remember the number 4711, and that this is " + there.cwd()
	session := there.prompt(said).SessionID
	there.prompt(`@Task {"description":"A look","subagent_type":"general-purpose","prompt":"@Bash {\"command\":\"echo from-the-agent\",\"description\":\"Say it\"}"}`,
		"--resume", session)
	there.prompt(`@Bash {"command":"seq -f 'line %06.0f of a large output' 8000","description":"Much"}`, "--resume", session)
	there.sync()

	here := &world{home: newHome(t, program, api), root: t, bin: there.bin, server: there.server, key: there.key}
	here.version = version
	must(t, os.MkdirAll(here.projects(), 0o700))
	must(t, os.WriteFile(here.keyFile(), append([]byte(here.key), '\n'), 0o600))
	command, errors := here.bring(session[:8])
	want := "cd " + here.cwd() + " && claude --resume " + session + "\n"
	kit.Require(t, command == want, "it printed %q, want %q\n%s", command, want, errors)
	for name, path := range transcripts(t, there.projects()) {
		if before := read(t, path); len(before) > 0 && strings.HasPrefix(name, session) { // 2.0.76 warms up others
			moved := transcripts(t, here.projects())[name]
			if moved == "" {
				t.Errorf("%s is not here", name)
			} else if got := read(t, moved); bytes.Count(got, []byte("\n")) != bytes.Count(before, []byte("\n")) ||
				bytes.Contains(got, []byte(`"cwd":"`+there.cwd())) {
				t.Errorf("%s is another one here", name)
			}
		}
	}
	spilled := kit.Try(filepath.Glob(filepath.Join(there.projects(), "*", session, "*", "*.txt"))).Must(t)
	brought := kit.Try(filepath.Glob(filepath.Join(here.projects(), "*", session, "*", "*.txt"))).Must(t)
	kit.Equal(t, fmt.Sprintf("files beside it: %q, there were %q", brought, spilled), len(brought), len(spilled))

	before := len(api.told(0))
	main := transcripts(t, here.projects())[session]
	size := len(read(t, main))
	o := here.prompt("and on, elsewhere", "--resume", session)
	kit.Check(t, o.SessionID == session && strings.Contains(o.Result, "and on, elsewhere"),
		"Claude Code answered %.300q in session %s", o.Result, o.SessionID)
	told := strings.Join(api.told(before), "\n")
	for _, want := range []string{"remember the number 4711, and that this is " + there.cwd(), "from-the-agent", "and on, elsewhere"} {
		kit.Has(t, "the model does", told, want)
	}
	if after := read(t, main); len(after) <= size || !bytes.Contains(after[size:], []byte(`"cwd":"`+here.cwd())) {
		t.Error("the session did not go on in the file that was brought")
	}
	_, errors = here.bring(session)
	kit.Check(t, strings.Contains(errors, "that the server's copy"), "a longer past here: %s", errors)
}

// bring runs `ccship resume --here` in the working directory, and returns what it printed and said. The limit of
// what counts as live is over for every file.
func (w *world) bring(session string) (stdout, stderr string) {
	w.t.Helper()
	for _, path := range transcripts(w.t, w.projects()) {
		old := time.Now().Add(-time.Hour)
		must(w.t, os.Chtimes(path, old, old))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := w.command(ctx, w.bin.ccship, "resume", session, "--here")
	cmd.Dir = w.cwd()
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	_ = cmd.Run() // what it printed tells
	return out.String(), errors.String()
}
