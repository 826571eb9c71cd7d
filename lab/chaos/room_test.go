//go:build unix

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
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

// room is one machine on which trouble is made: transcripts, a daemon, and a server behind a door.
type room struct {
	t     testing.TB
	dir   string
	rng   *rand.Rand
	d     *kit.Process // the daemon; nil or ended when it does not run
	s     *server
	door  *door
	env   []string // further settings of ccship
	talks []*talk
	out   *kit.Outcome
	began time.Time // when the trouble of this run was over

	large   bool   // what it holds takes long
	machine string // whose transcripts are compared; "": those of the last writer
	wrap    func(*exec.Cmd)
	mount   *mount // of one of the folders

	paths    map[string]string // other places than the usual ones, by setting
	programs map[string]string // other builds than the usual ones, by name
}

// newRoom makes a room with a running server and n transcripts of some lines. The daemon does not run yet.
func newRoom(t testing.TB, out *kit.Outcome, n int) *room {
	t.Helper()
	r := emptyRoom(t, out)
	r.furnish(n)
	return r
}

// furnish puts a running server, a door before it, and n transcripts into a room.
func (r *room) furnish(n int) {
	r.t.Helper()
	r.s = newServer(r, "")
	r.door = newDoor(r.t, r.s)
	kit.Must(r.t, os.WriteFile(r.keyFile(), []byte(r.s.key+"\n"), 0o600))
	for range n {
		r.newTalk(4)
	}
}

func emptyRoom(t testing.TB, out *kit.Outcome) *room {
	t.Helper()
	dir := kit.Try(os.MkdirTemp(kit.Workshop(), "r")).Must(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &room{t: t, dir: dir, out: out, rng: rand.New(rand.NewPCG(seed, seed)), paths: map[string]string{}}
	for _, folder := range []string{r.projects(), r.state(), filepath.Join(dir, "run"), filepath.Join(dir, "server")} {
		kit.Must(t, os.MkdirAll(folder, 0o700))
	}
	kit.Must(t, os.WriteFile(r.config(), nil, 0o600))
	return r
}

func (r *room) at(setting, usual string) string {
	if path, other := r.paths[setting]; other {
		return path
	}
	return filepath.Join(r.dir, usual)
}

func (r *room) projects() string { return r.at("roots", ".claude/projects") }
func (r *room) state() string    { return r.at("state", "state") }
func (r *room) config() string   { return filepath.Join(r.dir, "config.toml") }
func (r *room) keyFile() string  { return filepath.Join(r.dir, "key") }

// environment is what every program of the room is given.
func (r *room) environment() []string {
	env := []string{
		"HOME=" + r.dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "NO_COLOR=1",
		"XDG_CONFIG_HOME=" + r.dir + "/xdg", "XDG_STATE_HOME=" + r.dir + "/xdg", "XDG_RUNTIME_DIR=" + r.dir + "/run",
		"CCSHIP_CONFIG=" + r.config(), "CCSHIP_ROOTS=" + r.projects(), "CCSHIP_STATE_DIR=" + r.state(),
		"CCSHIP_SOCKET=" + r.dir + "/run/s", "CCSHIP_API_KEY_FILE=" + r.keyFile(),
	}
	if r.door != nil {
		env = append(env, "CCSHIP_SERVER_URL="+r.door.url())
	}
	return append(env, r.env...)
}

// program is where a program of ours is.
func (r *room) program(name string) string {
	r.t.Helper()
	if path, other := r.programs[name]; other {
		return path
	}
	return kit.Program(r.t, name)
}

func (r *room) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = r.environment(), r.dir
	return cmd
}

// outcome is what a program printed and how it ended; code -1: a signal, or the limit.
type answer struct {
	stdout, stderr string
	code           int
	hung           bool
}

func (a answer) text() string { return a.stdout + a.stderr }

// verbLimit is how long a verb that does not wait for anything may take on the worst machine.
const verbLimit = 3 * time.Minute

// ccship runs a verb to its end. One that does not end is killed and counted.
func (r *room) ccship(args ...string) answer {
	r.t.Helper()
	return r.run(verbLimit, r.program("ccship"), args...)
}

func (r *room) run(limit time.Duration, program string, args ...string) answer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := r.command(ctx, program, args...)
	cmd.WaitDelay = time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		r.t.Fatalf("run %s %v: %v", filepath.Base(program), args, err)
	}
	a := answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), ctx.Err() != nil}
	if a.hung {
		r.hung("ccship %s does not end", strings.Join(args, " "))
	}
	return a
}

// hung counts something that neither answers nor ends.
func (r *room) hung(format string, args ...any) {
	r.t.Helper()
	r.out.Hung++
	r.t.Errorf("hung: "+format, args...)
	if r.d != nil && !r.d.Ended() {
		r.d.Signal(syscall.SIGQUIT) // where each goroutine waits
		kit.Within(10*time.Second, r.d.Ended)
		r.t.Logf("daemon:\n%s", kit.Tail(r.d.Log.String(), 60000))
	}
}

// launch starts the daemon without waiting for it.
func (r *room) launch(args ...string) *kit.Process {
	r.t.Helper()
	cmd := r.command(context.Background(), r.program("ccship"), append([]string{"run"}, args...)...)
	if r.wrap != nil {
		r.wrap(cmd)
	}
	r.d = kit.Launch(r.t, cmd)
	return r.d
}

// start has the daemon run, as a service manager does: it starts one that has ended again.
func (r *room) start() {
	r.t.Helper()
	var last answer
	if !kit.Within(verbLimit, func() bool {
		if r.d == nil || r.d.Ended() {
			r.launch()
		}
		last = r.ccship("status", "--json")
		return last.code == 0
	}) {
		r.hung("the daemon does not answer: %s", last.text())
	}
}

// stop ends the daemon as a service manager does.
func (r *room) stop() {
	r.t.Helper()
	if r.d == nil || r.d.Ended() {
		return
	}
	if err := r.d.Stop(); err != nil && strings.Contains(err.Error(), "did not end") {
		r.hung("%v", err)
	}
}

// server is a running ccship-server with its own database.
type server struct {
	r       *room
	p       *kit.Process
	store   string
	key     string
	address string // fixed after the first start, so that a new one is found
	flags   []string
}

func newServer(r *room, store string) *server {
	r.t.Helper()
	if store == "" {
		store = "sqlite:" + filepath.Join(r.dir, "server", "server.db")
	}
	s := &server{r: r, store: store, address: "127.0.0.1:0"}
	made := r.run(verbLimit, r.program("ccship-server"), "key", "create", "--name", "chaos", "--store", s.store)
	s.key = strings.TrimSpace(made.stdout)
	if made.code != 0 || s.key == "" {
		r.t.Fatalf("key create: %d %s", made.code, made.text())
	}
	s.start()
	return s
}

func (s *server) launch() {
	args := append([]string{"serve", "--listen", s.address, "--store", s.store}, s.flags...)
	s.p = kit.Launch(s.r.t, s.r.command(context.Background(), s.r.program("ccship-server"), args...))
}

// start runs the server and waits until it listens.
func (s *server) start() {
	s.r.t.Helper()
	s.launch()
	base := kit.Try(s.p.Listening()).Must(s.r.t)
	u := kit.Try(url.Parse(base)).Must(s.r.t)
	s.address = u.Host
}

// raw is a session's file as the server has it, of one machine or, "", of the one that wrote last.
func (s *server) raw(session, machine string) ([]byte, error) {
	if machine != "" {
		machine = "?machine=" + url.QueryEscape(machine)
	}
	return s.get(session, "/raw"+machine)
}

// get asks about a session; one that the server does not know is empty.
func (s *server) get(session, what string) ([]byte, error) {
	ask, err := http.NewRequest(http.MethodGet, "http://"+s.address+"/api/sessions/"+url.PathEscape(session)+what, nil)
	if err != nil {
		return nil, err
	}
	ask.Header.Set("X-API-Key", s.key)
	got, err := (&http.Client{Timeout: 5 * time.Minute}).Do(ask)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	switch {
	case got.StatusCode == http.StatusNotFound:
		return nil, nil
	case got.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s of %s: %d %.200s", what, session, got.StatusCode, body)
	}
	return body, err
}

// proof is what every run ends in: everything on disk arrives, /raw has it to the last byte, verify agrees.
func (r *room) proof() {
	r.t.Helper()
	r.start()
	done := r.sync()
	if done.code != 0 {
		r.hung("sync --wait ends with %d: %s", done.code, done.text())
		return
	}
	if !r.began.IsZero() {
		r.out.Recovery = append(r.out.Recovery, time.Since(r.began).Seconds())
	}
	for _, c := range r.talks {
		r.compare(c)
	}
	v := r.run(r.patience(), r.program("ccship"), "verify")
	if v.code != 0 {
		r.out.Wrong++
		r.t.Errorf("verify ends with %d: %s", v.code, v.text())
	}
}

// patience is how long a machine that has much else to do may take for what the room holds.
func (r *room) patience() time.Duration {
	if r.large {
		return 3 * time.Hour
	}
	return 20 * time.Minute
}

// sync waits until the server has everything.
func (r *room) sync() answer {
	r.t.Helper()
	limit := r.patience()
	return r.run(limit+verbLimit, r.program("ccship"), "sync", "--wait", "--timeout", limit.String())
}

// compare counts lines of a transcript that the server lacks or has with other bytes.
func (r *room) compare(c *talk) {
	r.t.Helper()
	want := kit.Try(os.ReadFile(c.path)).Must(r.t)
	got := kit.Try(r.s.raw(c.session, r.machine)).Must(r.t)
	lost, wrong := difference(got, want)
	if lost+wrong > 0 {
		r.out.Lost += lost
		r.out.Wrong += wrong
		r.t.Errorf("%s: %d lines are lost, %d wrong (%d bytes on disk, %d on the server)", c.session, lost, wrong, len(want), len(got))
	}
}

// difference counts lines of want that got lacks, and lines in which the two differ.
func difference(got, want []byte) (lost, wrong int) {
	if bytes.Equal(got, want) {
		return 0, 0
	}
	has, should := bytes.SplitAfter(got, []byte("\n")), bytes.SplitAfter(want, []byte("\n"))
	has, should = trimEmpty(has), trimEmpty(should)
	for i, line := range should {
		switch {
		case i >= len(has):
			lost++
		case !bytes.Equal(line, has[i]):
			wrong++
		}
	}
	return lost, wrong + max(0, len(has)-len(should))
}

func trimEmpty(lines [][]byte) [][]byte {
	return slices.DeleteFunc(lines, func(line []byte) bool { return len(line) == 0 })
}
