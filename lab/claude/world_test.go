//go:build unix

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// world is a home with ccship in it, and the server it ships to.
type world struct {
	*home
	root   testing.TB // the test that the programs live as long as
	bin    binaries
	server *url.URL
	key    string
	daemon *kit.Process // nil while it does not run
}

// binaries are the paths of the programs under test.
type binaries struct{ ccship, hook, mcp, server string }

// programs builds the binaries or ends the test.
func programs(t testing.TB) binaries {
	t.Helper()
	return binaries{kit.Program(t, "ccship"), kit.Program(t, "ccship-hook"), kit.Program(t, "ccship-mcp"), kit.Program(t, "ccship-server")}
}

// newWorld starts a server for a home. The daemon does not run yet.
func newWorld(h *home) *world {
	h.t.Helper()
	w := &world{home: h, root: h.t, bin: programs(h.t)}
	store := "sqlite:" + filepath.Join(h.dir, "server", "server.db")
	out, err := w.command(context.Background(), w.bin.server, "key", "create", "--name", "claude", "--store", store).Output()
	w.key = strings.TrimSpace(string(out))
	kit.Require(h.t, err == nil && w.key != "", "key create: %v, stdout %q", err, out)
	must(h.t, os.WriteFile(w.keyFile(), append([]byte(w.key), '\n'), 0o600))
	p := kit.Launch(h.t, w.command(context.Background(), w.bin.server, "serve", "--listen", "127.0.0.1:0", "--store", store))
	base := kit.Try(p.Listening()).Must(h.t)
	w.server = kit.Try(url.Parse(base)).Must(h.t)
	return w
}

func (w *world) keyFile() string { return filepath.Join(w.dir, "key") }

// command is one of our programs with the home's environment. ccship finds everything else at its usual place.
func (w *world) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{
		"HOME=" + w.dir, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "XDG_RUNTIME_DIR=" + filepath.Join(w.dir, "run"),
		"CCSHIP_API_KEY_FILE=" + w.keyFile(),
	}
	if w.server != nil {
		cmd.Env = append(cmd.Env, "CCSHIP_SERVER_URL="+w.server.String())
	}
	return cmd
}

// ccship runs one verb to its end and returns what it printed and its exit code.
func (w *world) ccship(args ...string) (string, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := w.command(ctx, w.bin.ccship, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	kit.Require(w.t, err == nil || errors.As(err, &exit), "ccship %v: %v", args, err)
	if cmd.ProcessState.ExitCode() != 0 {
		out = append(out, stderr.String()...)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// start runs the daemon and returns when it answers.
func (w *world) start() {
	w.t.Helper()
	p := kit.Launch(w.root, w.command(context.Background(), w.bin.ccship, "run"))
	w.daemon = p
	eventually(w.t, "the daemon answers", 30*time.Second, func() bool {
		kit.Require(w.t, !p.Ended(), "ccship run ended:\n%s", p.Log)
		_, code := w.ccship("status", "--json")
		return code == 0
	})
}

// sync waits until everything on disk is acknowledged.
func (w *world) sync() {
	w.t.Helper()
	out, code := w.ccship("sync", "--wait", "--timeout", "60s")
	kit.Require(w.t, code == 0, "sync --wait: exit %d\n%s", code, out)
}

// report is what the tests read of `ccship verify --json`.
type report struct {
	Equal, Proven bool
	Files         int
	Lines         int64
	Dead          int64 `json:"dead_letters"`
	Withheld      int64
	Excluded      int64
	Oversize      int64
	Waiting       int64
}

// verify demands that ccship itself finds the server equal to the disk.
func (w *world) verify() report {
	w.t.Helper()
	out, code := w.ccship("verify", "--timeout", "60s", "--json")
	var r report
	kit.Require(w.t, code == 0 && json.Unmarshal([]byte(out), &r) == nil && r.Equal && r.Proven, "verify: exit %d\n%s",
		code, out)
	return r
}

// get asks the server.
func (w *world) get(path string) (int, []byte) {
	w.t.Helper()
	r := kit.Try(http.NewRequest(http.MethodGet, w.server.String()+path, nil)).Must(w.t)
	r.Header.Set("X-API-Key", w.key)
	answer := kit.Try(http.DefaultClient.Do(r)).Must(w.t)
	defer answer.Body.Close()
	body := kit.Try(io.ReadAll(answer.Body)).Must(w.t)
	return answer.StatusCode, body
}

// streams is the names of all streams the server has.
func (w *world) streams() (names []string) {
	w.t.Helper()
	code, body := w.get("/api/sessions?limit=1000")
	var page struct {
		Sessions []struct {
			SessionID string `json:"session_id"`
		}
		Next *string
	}
	kit.Require(w.t, code == http.StatusOK && json.Unmarshal(body, &page) == nil && page.Next == nil,
		"GET /api/sessions: %d %.500s", code, body)
	for _, s := range page.Sessions {
		names = append(names, s.SessionID)
	}
	return names
}

// generations is how many generations of a stream the server has.
func (w *world) generations(stream string) int {
	w.t.Helper()
	code, body := w.get("/api/sessions/" + url.PathEscape(stream) + "/digest")
	var d struct{ Generations []struct{ Lines int64 } }
	kit.Require(w.t, code == http.StatusOK && json.Unmarshal(body, &d) == nil, "digest of %s: %d %.500s", stream, code,
		body)
	return len(d.Generations)
}
