//go:build unix

package e2e

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// scribe is a command that writes a conversation to its transcript, and the files by which a test meets it.
type scribe struct {
	*world
	session, path, source string
	all                   []byte
}

// newScribe makes a machine without a service, and a conversation of n lines that is not in its transcript yet.
func newScribe(w *world, seed uint64, n int) *scribe {
	w.t.Helper()
	w.env = append(w.env, "CCSHIP_SOCKET=", "XDG_RUNTIME_DIR=")
	c := newConversation(seed, w.cwd())
	s := &scribe{world: w, session: c.session, all: c.mixed(n), source: filepath.Join(w.dir, "source")}
	s.path = filepath.Join(w.projects(), "-work-shop", c.session+".jsonl") // its folder is the command's to make
	must(w.t, os.WriteFile(s.source, s.all, 0o600))
	return s
}

// patiently is how long a capture of a test waits for the server, unless another --wait comes behind it.
const patiently = "5m"

// capture is how a script runs: $1 is the source, $2 the transcript, $3 a folder for signs between command and test.
func (s *scribe) capture(script string, flags ...string) []string {
	args := append([]string{"capture", "--wait", patiently}, flags...)
	return append(args, "--", "sh", "-c", `mkdir -p "$(dirname "$2")"; `+script, "sh", s.source, s.path, s.dir)
}

// quietly demands an exit code, and that nothing is said.
func (s *scribe) quietly(code int, args ...string) outcome {
	s.t.Helper()
	out := s.ccship(args...)
	kit.Check(s.t, out.code == code && out.stderr == "",
		"%.40q: exit %d, want %d; stderr %q", args, out.code, code, out.stderr)
	return out
}

// TestCapture: what a command wrote is on the server when capture returns, also a last line without a newline; the exit
// code is the command's.
func TestCapture(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		s := newScribe(w, 31, 50)
		s.quietly(7, s.capture(`cat "$1" >>"$2"; exit 7`)...)
		s.same(s.session, s.path)
		s.quietly(0, s.capture(`printf '{"type":"user","uuid":"last"}' >>"$2"; touch -t 202001010000 "$2"`)...) // another clock
		if w.exact != nil {
			s.same(s.session, s.path)
		}
		kit.Equal(t, "a command that is missing: exit", s.ccship("capture", "no-such-command-anywhere").code, 127)
		none := s.ccship("capture", s.source)
		kit.Check(t, none.code == 126 && strings.Contains(none.stderr, "may be executed"), "a file that is no program: %+v", none)
	})
}

// TestCaptureMeanwhile: lines are on the server while the command still runs.
func TestCaptureMeanwhile(t *testing.T) {
	s := newScribe(aloneWorld(t), 32, 30)
	p := s.launch(kit.Program(t, "ccship"), s.capture(`cat "$1" >>"$2"; read line; echo "$line" >"$3/read"`)...)
	eventually(t, "the server has the lines", 5*time.Minute, func() bool {
		return bytes.Equal(s.exact.raw(s.session, ""), s.all)
	})
	kit.Check(t, !p.Ended() || kit.Within(time.Minute, func() bool { _, err := os.Stat(s.dir + "/read"); return err == nil }),
		"it ended before the command")
}

// TestCaptureStdin: the command's input and output are those of capture.
func TestCaptureStdin(t *testing.T) {
	s := newScribe(aloneWorld(t), 33, 3)
	cmd := s.command(context.Background(), kit.Program(t, "ccship"), s.capture(`cat "$1" >>"$2"; cat; echo said >&2`)...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("a\x00b\n"), &stdout, &stderr
	must(t, cmd.Run())
	kit.Check(t, stdout.String() == "a\x00b\n" && stderr.String() == "said\n",
		"stdout %q, stderr %q", stdout.String(), stderr.String())
	s.same(s.session, s.path)
}

// TestCaptureLacks: without a server the command's code stays, what the server lacks is counted, and the next capture
// with the same spool delivers it, even when the transcript is gone.
func TestCaptureLacks(t *testing.T) {
	s := newScribe(aloneWorld(t), 34, 12)
	spool := filepath.Join(s.dir, "volume", strings.Repeat("spool", 30)) // longer than the path of a socket may be
	var sent atomic.Bool                                                 // a request with lines was made: they are in the spool
	s.gate.set(onPost(func(r *http.Request) *verdict {
		sent.Store(true)
		return unreachable(r)
	}))
	out := s.ccship(s.capture(`cat "$1" >>"$2"; exit 3`, "--wait", "5s", "--spool", spool)...)
	kit.Check(t, out.code == 3 && strings.Contains(out.stderr, "12 lines") && strings.Contains(out.stderr, spool) &&
		!strings.Contains(out.stderr, "--timeout"),
		"exit %d, %q", out.code, out.stderr)
	eventually(t, "the lines are in the spool", time.Minute, func() bool { // where five seconds were too short
		if !sent.Load() {
			s.ccship("capture", "--wait", "10s", "--spool", spool, "true")
		}
		return sent.Load()
	})
	s.gate.set(nil)
	must(t, os.Remove(s.path))
	s.quietly(0, "capture", "--wait", patiently, "--spool", spool, "true")
	s.holds(s.session, s.all)
}

// TestCaptureClosedStderr: who reads stderr no more still gets the command's exit code.
func TestCaptureClosedStderr(t *testing.T) {
	s := newScribe(aloneWorld(t), 36, 4)
	s.gate.set(onPost(unreachable))
	read, write, err := os.Pipe()
	must(t, err)
	must(t, read.Close())
	defer write.Close()
	cmd := s.command(context.Background(), kit.Program(t, "ccship"), s.capture(`cat "$1" >>"$2"; exit 6`, "--wait", "1s")...)
	cmd.Stderr = write
	_ = cmd.Run()
	kit.Equal(t, "exit", cmd.ProcessState.ExitCode(), 6)
}

// TestCaptureNoServer: a configuration that cannot deliver keeps no command from running.
func TestCaptureNoServer(t *testing.T) {
	w := aloneWorld(t)
	w.url = ""
	s := newScribe(w, 35, 4)
	for _, toml := range []string{"", "no such option = 1\n"} {
		s.configure(toml)
		out := s.ccship(s.capture(`cat "$1" >"$2"; exit 4`, "--wait", "5m")...)
		kit.Check(t, out.code == 4 && strings.Contains(out.stderr, "not on the server"),
			"%q: exit %d, %q", toml, out.code, out.stderr)
	}
}

// TestCaptureSignals: what is sent to capture reaches the command, once; what it writes then is delivered.
func TestCaptureSignals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		trap   string
		code   int
	}{
		"TERM": {syscall.SIGTERM, `trap 'cat "$1" >>"$2"; exit 9' TERM`, 9},
		"INT":  {syscall.SIGINT, `trap 'cat "$1" >>"$2"; exit 8' INT`, 8},
		"USR1": {syscall.SIGUSR1, `trap 'cat "$1" >>"$2"; exit 6' USR1`, 6},
		"HUP":  {syscall.SIGHUP, `cat "$1" >>"$2"`, 128 + int(syscall.SIGHUP)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScribe(aloneWorld(t), 36+uint64(c.signal), 7)
			p := s.launch(kit.Program(t, "ccship"), s.capture(c.trap+`; : >"$3/ready"; while :; do sleep 0.05; done`)...)
			eventually(t, "the command runs", 5*time.Minute, func() bool { _, err := os.Stat(s.dir + "/ready"); return err == nil })
			p.Signal(c.signal)
			<-p.Done()
			kit.Check(t, p.Code() == c.code, "exit %d, want %d: %s", p.Code(), c.code, p.Log)
			s.same(s.session, s.path)
		})
	}
}

// TestCaptureBesideDaemon: where a daemon delivers already, capture waits for that one, and it goes on.
func TestCaptureBesideDaemon(t *testing.T) {
	w := aloneWorld(t)
	w.start()
	s := newScribe(w, 60, 40)
	s.quietly(0, s.capture(`cat "$1" >>"$2"`, "--spool", s.dir+"/spool")...)
	s.same(s.session, s.path)
	kit.Check(t, !w.d.Ended(), "the daemon has ended")
}

// TestCaptureTwice: of two captures in one home one delivers for both; when it ends, the other takes over.
func TestCaptureTwice(t *testing.T) {
	s := newScribe(aloneWorld(t), 61, 40)
	until := func(sign string) string { return `until [ -e "$3/` + sign + `" ]; do sleep 0.05; done; ` }
	first := s.launch(kit.Program(t, "ccship"), s.capture(`: >"$3/begun"; `+until("end"))...)
	eventually(t, "the first begins", 5*time.Minute, func() bool { _, err := os.Stat(s.dir + "/begun"); return err == nil })
	second := s.launch(kit.Program(t, "ccship"), s.capture(until("write")+`cat "$1" >>"$2"`)...)
	must(t, os.WriteFile(s.dir+"/end", nil, 0o600))
	<-first.Done()
	must(t, os.WriteFile(s.dir+"/write", nil, 0o600))
	<-second.Done()
	kit.Check(t, first.Code()+second.Code() == 0 && first.Log.String()+second.Log.String() == "",
		"exit %d, %q; exit %d, %q", first.Code(), first.Log, second.Code(), second.Log)
	s.same(s.session, s.path)
}

// TestCaptureKilled: capture is killed at 20 random moments, while the command writes or a request is on its way; the
// next one with the same spool completes all 200 lines.
func TestCaptureKilled(t *testing.T) {
	s := newScribe(aloneWorld(t), 62, 200)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	spool := filepath.Join(s.dir, "spool")
	const kills, each = 20, 10
	script := `head -n $(($4 + 10)) "$1" | tail -n 10 | while IFS= read -r line; do printf '%s\n' "$line" >>"$2"; done`
	for i := range kills {
		upto := int64(len(firstLines(s.all, (i+1)*each)))
		size := func() int64 { data, _ := os.ReadFile(s.path); return int64(len(data)) }
		args := append(s.capture(script, "--spool", spool), strconv.Itoa(i*each))
		p := s.launch(kit.Program(t, "ccship"), args...)
		if moment := rng.IntN(3); moment == 0 {
			from := int64(len(firstLines(s.all, i*each)))
			target := from + rng.Int64N(upto-from)
			eventually(t, "the command writes", 5*time.Minute, func() bool { return size() > target || p.Ended() })
		} else {
			s.dieIn(p, moment == 1)
		}
		p.Kill()
		eventually(t, "the command has written", 5*time.Minute, func() bool { return size() >= upto })
	}
	s.gate.set(nil)
	s.gate.onAnswer(nil)
	s.quietly(0, "capture", "--wait", patiently, "--spool", spool, "true")
	s.same(s.session, s.path)
	s.holds(s.session, s.all)
}

// dieIn returns when a request of a capture is on its way, or its answer is, or capture has ended.
func (s *scribe) dieIn(p *kit.Process, before bool) {
	s.t.Helper()
	var met atomic.Bool
	if before {
		s.gate.set(onPost(func(*http.Request) *verdict { met.Store(true); return nil }))
	} else {
		s.gate.onAnswer(func() { met.Store(true) })
	}
	eventually(s.t, "a request", 5*time.Minute, func() bool { return met.Load() || p.Ended() })
}

// TestCaptureSharedSpool: what others put into a folder that all may write to is neither followed nor waited for nor
// believed. The command runs all the same, and once it is gone the next capture delivers.
func TestCaptureSharedSpool(t *testing.T) {
	s := newScribe(aloneWorld(t), 90, 9)
	mine, fresh := filepath.Join(s.dir, "profile"), filepath.Join(s.dir, "fresh")
	must(t, os.WriteFile(mine, []byte("mine\n"), 0o600))
	theirs := filepath.Join(s.dir, "theirs")
	must(t, os.WriteFile(theirs, []byte(`{"name":"theirs"}`), 0o600))
	plants := map[string]func(at string) error{
		"capture.log":   func(at string) error { return os.Symlink(mine, at) },
		"state.db.lock": func(at string) error { return os.Symlink(fresh, at) },
		"state.db":      func(at string) error { return syscall.Mkfifo(at, 0o666) },
		"machine.json":  func(at string) error { return os.Rename(theirs, at) },
	}
	if os.Geteuid() != 0 || os.Chown(theirs, 65534, 65534) != nil {
		delete(plants, "machine.json") // only root can make a file of another user
	}
	var spool string
	for name, plant := range plants {
		spool = filepath.Join(s.dir, "spool of "+name)
		must(t, os.Mkdir(spool, 0o700))
		must(t, os.Chmod(spool, 0o777))
		must(t, plant(filepath.Join(spool, name)))
		out := s.ccship(s.capture(`cat "$1" >"$2"; exit 5`, "--spool", spool)...)
		kit.Check(t, out.code == 5 && strings.Contains(out.stderr, "not a file of this user"),
			"%s: exit %d, %q", name, out.code, out.stderr)
		must(t, os.Remove(filepath.Join(spool, name)))
	}
	must(t, os.Symlink(mine, filepath.Join(spool, "proven_servers")))
	s.quietly(0, "capture", "--wait", patiently, "--spool", spool, "true")
	s.same(s.session, s.path)
	kit.Equal(t, "a file behind a link has", string(s.read(mine)), "mine\n")
	_, err := os.Lstat(fresh)
	kit.Check(t, err != nil, "a file was made behind a link")
}

// TestCaptureKeepsSecrets: as with a service, secrets are masked before they are in the spool, excluded projects stay
// here, and nothing in the spool can be used by others.
func TestCaptureKeepsSecrets(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, "CCSHIP_REDACT=on", "CCSHIP_LOG_LEVEL=debug")
	s, secret := newScribe(w, 91, 4), &secrets{t, rand.New(rand.NewPCG(8, 8)), map[string]string{}}
	_, beside, _ := secretSession(w, secret)
	excluded := filepath.Join(w.dir, "excluded")
	must(t, os.MkdirAll(filepath.Join(excluded, ".codetracker"), 0o700))
	must(t, os.WriteFile(filepath.Join(excluded, ".codetracker", "config.json"), []byte(`{"conversation_tracking":{"enabled":false}}`), 0o600))
	private := newConversation(92, excluded)
	w.add(w.path("-excluded", private.session+".jsonl"), private.even(3, 500))
	spool := filepath.Join(s.dir, "spool")
	s.quietly(0, s.capture(`cat "$1" >>"$2"`, "--spool", spool)...)
	s.same(s.session, s.path)
	id := strings.TrimSuffix(filepath.Base(beside), ".jsonl")
	raw := w.exact.raw(id, "")
	w.sameShape(raw, w.read(beside))
	must(t, filepath.WalkDir(spool, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		kit.Check(t, info.Mode().Perm()&0o077 == 0, "%s: %v", path, info.Mode())
		if info.Mode().IsRegular() {
			raw = append(raw, w.read(path)...)
		}
		return err
	}))
	found := secret.in(raw)
	kit.Check(t, len(found)*50 <= len(secret.needles), "%d of %d secrets are on the server or in the spool: %q", len(found), len(secret.needles), found)
	code, _ := w.exact.get("/api/sessions/" + private.session)
	kit.Check(t, code == 404 && !bytes.Contains(raw, []byte(private.session)), "an excluded session: %d", code)
}
