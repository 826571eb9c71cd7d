//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// home is one person's machine: a home folder, Claude Code's projects in it, and ccship's settings and state.
type home struct {
	t   testing.TB
	dir string
	url string // the server; "" leaves it unset
	key string
	env []string            // further settings; NAME= takes a usual one away
	as  *syscall.Credential // who runs the programs; nil: who runs the test
}

// newHome makes a home with short paths: a socket's path may have only about a hundred bytes.
func newHome(t testing.TB) *home {
	t.Helper()
	dir := kit.Try(os.MkdirTemp(kit.Workshop(), "h")).Must(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &home{t: t, dir: dir, key: "key-of-the-tests"}
	must(t, os.MkdirAll(h.projects(), 0o700))
	must(t, os.MkdirAll(h.cwd(), 0o700))
	h.configure("")
	h.writeKey(h.key)
	return h
}

func (h *home) projects() string { return filepath.Join(h.dir, ".claude", "projects") }
func (h *home) cwd() string      { return filepath.Join(h.dir, "work", "shop") }
func (h *home) state() string    { return filepath.Join(h.dir, "state") }
func (h *home) config() string   { return filepath.Join(h.dir, "config.toml") }
func (h *home) keyFile() string  { return filepath.Join(h.dir, "key") }
func (h *home) socket() string   { return filepath.Join(h.dir, "run", "s") }

// configure writes the configuration file.
func (h *home) configure(toml string) { must(h.t, os.WriteFile(h.config(), []byte(toml), 0o600)) }

func (h *home) writeKey(key string) {
	h.key = key
	must(h.t, os.WriteFile(h.keyFile(), []byte(key+"\n"), 0o600))
}

// path is a file below projects; its folders are made.
func (h *home) path(elements ...string) string {
	path := filepath.Join(append([]string{h.projects()}, elements...)...)
	must(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	return path
}

// add appends to a transcript as Claude Code does: open, one write, close.
func (h *home) add(path string, data []byte) {
	h.t.Helper()
	must(h.t, appendTo(path, data))
}

func appendTo(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// read is the content of a file.
func (h *home) read(path string) []byte {
	h.t.Helper()
	return kit.Try(os.ReadFile(path)).Must(h.t)
}

// keepLines cuts a transcript after its first n lines, in place.
func (h *home) keepLines(path string, n int) {
	h.t.Helper()
	must(h.t, os.Truncate(path, int64(len(firstLines(h.read(path), n)))))
}

// firstLines is the first n lines of data.
func firstLines(data []byte, n int) []byte {
	end := 0
	for range n {
		end += bytes.IndexByte(data[end:], '\n') + 1
	}
	return data[:end]
}

func (h *home) environment() []string {
	env := []string{
		"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "NO_COLOR=1",
		"XDG_CONFIG_HOME=" + filepath.Join(h.dir, "xdg", "config"), "XDG_STATE_HOME=" + filepath.Join(h.dir, "xdg", "state"),
		"XDG_RUNTIME_DIR=" + filepath.Join(h.dir, "run"),
		"CCSHIP_CONFIG=" + h.config(), "CCSHIP_ROOTS=" + h.projects(), "CCSHIP_STATE_DIR=" + h.state(),
		"CCSHIP_SOCKET=" + h.socket(), "CCSHIP_API_KEY_FILE=" + h.keyFile(),
	}
	if h.url != "" {
		env = append(env, "CCSHIP_SERVER_URL="+h.url)
	}
	env = append(env, h.env...)
	return slices.DeleteFunc(env, func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(h.env, name+"=")
	})
}

func (h *home) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = h.environment()
	cmd.Dir = h.dir
	if h.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.as}
	}
	return cmd
}

// outcome is what a command printed and how it ended.
type outcome struct {
	stdout, stderr string
	code           int
}

// ccship runs one verb to its end. On a busy machine a daemon may not answer in the time that a verb waits for it: then
// it is asked again. And verify may sync for as long as it takes.
func (h *home) ccship(args ...string) (out outcome) {
	h.t.Helper()
	if args[0] == "verify" && !slices.Contains(args, "--timeout") {
		args = append(slices.Clone(args), "--timeout", "5m")
	}
	kit.Within(8*time.Minute, func() bool {
		out = h.runProgram(kit.Program(h.t, "ccship"), args...)
		return !contains("accepts but does not answer", out.stdout, out.stderr)
	})
	return out
}

// look runs a verb, and demands how it ends and a text that it prints.
func (h *home) look(want string, code int, args ...string) outcome {
	h.t.Helper()
	out := h.ccship(args...)
	kit.Check(h.t, out.code == code && contains(want, out.stdout, out.stderr),
		"%v: exit %d, want %d and %q\n%s%s", args, out.code, code, want, out.stdout, out.stderr)
	return out
}

// equal demands the content of a file.
func (h *home) equal(path string, want []byte) {
	h.t.Helper()
	got := h.read(path)
	kit.Check(h.t, bytes.Equal(got, want), "%s: %s", path, firstDifference(got, want))
}

func (h *home) runProgram(program string, args ...string) outcome {
	h.t.Helper()
	const longest = 8 * time.Minute // go test ends all tests after ten
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	cmd := h.command(ctx, program, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	kit.Require(h.t, ctx.Err() == nil, "%s %v does not end within %s:\n%s%s", filepath.Base(program), args, longest, &stdout, &stderr)
	var exit *exec.ExitError
	kit.Require(h.t, err == nil || errors.As(err, &exit), "run %s %v: %v", filepath.Base(program), args, err)
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// status is what the tests read of `ccship status --json`.
type status struct {
	SchemaVersion int    `json:"schema_version"`
	Running       bool   `json:"running"`
	State         string `json:"state"`
	Servers       []struct {
		State, Protocol, Kind, Detail string
	} `json:"servers"`
	Files struct {
		Tracked, Excluded, Vanished int
		Bytes                       int64 `json:"bytes"`
		ReadBytes                   int64 `json:"read_bytes"`
		Lines, Rewinds              int64
	} `json:"files"`
	Outbox struct {
		Batches, Entries, Bytes, Stored int64
		Dead                            int64 `json:"dead_letters"`
		Withheld                        int64
	} `json:"outbox"`
	Sent    struct{ Entries, Bytes, Requests int64 } `json:"sent"`
	Watch   struct{ Unread []string }                `json:"watch"`
	Notices []struct{ Kind, Text, Hint string }      `json:"advice"`
	TookUS  int64                                    `json:"took_us"`
}

// status asks the daemon through the command line.
func (h *home) status() status {
	h.t.Helper()
	out := h.ccship("status", "--json")
	var s status
	err := json.Unmarshal([]byte(out.stdout), &s)
	kit.Require(h.t, err == nil, "status --json: %v: %q %q", err, out.stdout, out.stderr)
	return s
}

// dead demands a number of dead letters.
func (h *home) dead(want int64) {
	h.t.Helper()
	kit.Equal(h.t, "dead letters", h.status().Outbox.Dead, want)
}

// entriesSent demands a number of entries that were sent since the daemon started.
func (h *home) entriesSent(want int64) {
	h.t.Helper()
	kit.Equal(h.t, "entries were sent since the start", h.status().Sent.Entries, want)
}

// until waits for a state of the daemon.
func (h *home) until(what string, cond func(status) bool) status {
	h.t.Helper()
	var last status
	eventually(h.t, what, 60*time.Second, func() bool { last = h.status(); return cond(last) })
	return last
}

// giveTo hands the whole home to another user.
func (h *home) giveTo(uid, gid uint32) {
	h.t.Helper()
	h.as = &syscall.Credential{Uid: uid, Gid: gid}
	must(h.t, filepath.WalkDir(h.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(uid), int(gid))
	}))
}

// stateFile is the daemon's database, the largest file in its folder.
func stateFile(h *home) string {
	h.t.Helper()
	entries := kit.Try(os.ReadDir(h.state())).Must(h.t)
	var path string
	var size int64 = -1
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Size() > size {
			path, size = filepath.Join(h.state(), entry.Name()), info.Size()
		}
	}
	if path == "" {
		h.t.Fatalf("no file in %s", h.state())
	}
	return path
}
