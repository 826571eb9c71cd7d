//go:build linux

package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/gauge"
)

// TestChain measures all of it, from the disk until people find a line: ccship, ccship-server and its database, the
// comparison of both sides, lines appended one after the other until a search for a word of theirs finds them, and
// capture.
func TestChain(t *testing.T) {
	kit.OnlyInLab(t)
	w := newWorld(t)
	for range kit.SettingNumber("rounds", 1) {
		for _, size := range w.sizes {
			for _, store := range w.stores {
				f := &figures{w, fmt.Sprintf("%s, %g GB", store, size)}
				t.Run(f.column, func(t *testing.T) { w.chain(t, f, store, size) })
			}
		}
	}
}

func (w *world) chain(t *testing.T, f *figures, store string, size float64) {
	const chain = "Whole chain: disk → server → searchable"
	b := newBench(t, w, w.now, store)
	_, all := w.sessions(t, size)
	m := b.machine()
	_, raw, err := corpus.Write(m.projects(), all, w.source)
	kit.Must(t, err)
	before, began := b.use(), time.Now()
	m.ship()
	took, spent := time.Since(began), b.use().Sub(before).CPU
	mb := float64(raw) / 1e6
	f.Add(chain, "time until searchable", took.Seconds(), "s")
	f.Add(chain, "CPU until searchable", (m.cpu()+spent).Seconds()/mb*1000, "CPU-s/GB")
	f.Add(chain, "… MB a CPU-second", mb/(m.cpu()+spent).Seconds(), "MB/s")
	f.Add(chain, "… of it the daemon", m.cpu().Seconds()/mb*1000, "CPU-s/GB")
	b.quiet()
	f.Add(chain, "CPU until at rest", (m.cpu()+b.use().Sub(before).CPU).Seconds()/mb*1000, "CPU-s/GB")
	f.Add(chain, "database ÷ raw, while the server runs", float64(b.db.size())/float64(raw), "")
	daemon, server := m.cpu(), b.use()
	m.ccship("verify")
	f.Add(chain, "verify: the daemon", (m.cpu()-daemon).Seconds()/mb*1000, "CPU-s/GB").Target = "≤ 4"
	f.Add(chain, "verify: the server", b.use().Sub(server).CPU.Seconds()/mb*1000, "CPU-s/GB").Target = "≤ 4"
	m.searches(f, chain, 100)
	m.d.MustStop(t)
	b.captures(f)
	b.stop()
	f.Add(chain, "database ÷ raw, at rest", float64(b.db.size())/float64(raw), "")
}

// machine is a home with transcripts, and the daemon that ships them.
type machine struct {
	b   *bench
	dir string
	env []string
	d   *kit.Process
}

func (b *bench) machine() *machine {
	b.t.Helper()
	kit.Program(b.t, "ccship") // built here, not while something is timed
	dir := home(b.t)
	m := &machine{b: b, dir: dir, env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + dir,
		"CCSHIP_SERVER_URL=http://" + b.listen, "CCSHIP_API_KEY_FILE=" + filepath.Join(dir, "key")}}
	kit.Must(b.t, errors.Join(os.MkdirAll(m.projects(), 0o700), os.WriteFile(filepath.Join(dir, "key"), []byte(b.ownerKey+"\n"), 0o600)))
	return m
}

func (m *machine) projects() string { return filepath.Join(m.dir, ".claude", "projects") }

func (m *machine) ccship(args ...string) string {
	m.b.t.Helper()
	return execute(m.b.t, m.env, kit.Program(m.b.t, "ccship"), args...)
}

// ship starts the daemon and waits until everything on the disk can be searched.
func (m *machine) ship() {
	m.b.t.Helper()
	cmd := exec.CommandContext(context.Background(), kit.Program(m.b.t, "ccship"), "run")
	cmd.Env = m.env
	m.d = kit.Launch(m.b.t, cmd)
	kit.Eventually(m.b.t, "the daemon answers", 12*time.Minute, func() bool {
		ask := exec.CommandContext(context.Background(), kit.Program(m.b.t, "ccship"), "status")
		ask.Env = m.env
		return ask.Run() == nil || m.d.Ended()
	})
	m.ccship("sync", "--wait", "--timeout", "6h")
	m.b.derived()
}

// cpu is the processor time of the daemon.
func (m *machine) cpu() time.Duration {
	m.b.t.Helper()
	u := kit.Try(gauge.Tree(m.d.Cmd.Process.Pid)).Must(m.b.t)
	return u.CPU
}

// searches appends lines and adds how long each takes until a search finds it. It ends before n lines when they take
// longer than anybody waits.
func (m *machine) searches(f *figures, group string, n int) {
	m.b.t.Helper()
	path := filepath.Join(m.projects(), "-work", "00000000-0000-4000-8000-000000000001.jsonl")
	kit.Must(m.b.t, os.MkdirAll(filepath.Dir(path), 0o700))
	var ms []float64
	for begin := time.Now(); len(ms) <= n && (len(ms) < 6 || time.Since(begin) < time.Minute); {
		word, at := fmt.Sprintf("kite%dfield%x", len(ms), time.Now().UnixNano()), time.Now()
		kit.Must(m.b.t, appendMessage(path, word))
		kit.Eventually(m.b.t, "a search finds an appended line", 36*time.Minute, func() bool {
			text, err := m.b.owner.Get(context.Background(), "/api/search?q="+word)
			return err == nil && bytes.Contains(text, []byte(word))
		})
		ms = append(ms, time.Since(at).Seconds()*1000)
	}
	ms = ms[1:] // the first one begins a session
	slices.Sort(ms)
	f.Add(group, "append → searchable, p50", ms[len(ms)/2], "ms")
	f.Add(group, "… p99", ms[(len(ms)*99-1)/100], "ms")
}

// appendMessage appends a line with a word, complete enough for a program that shows conversations.
func appendMessage(path, word string) error {
	now, id := time.Now().UTC(), strings.TrimSuffix(filepath.Base(path), ".jsonl")
	line := fmt.Appendf(nil, `{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/work","sessionId":%q,"version":"2.1.235",`+
		`"type":"user","message":{"role":"user","content":"Please look for %s"},"uuid":"00000000-0000-4000-8000-%012x","timestamp":%q}`+"\n",
		id, word+strings.Repeat(" in the words of this line", 50), now.UnixNano()&0xffffffffffff, now.Format("2006-01-02T15:04:05.000Z"))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
