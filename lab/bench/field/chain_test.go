//go:build linux

package field_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/load"
	"github.com/ccship/ccship/lab/bench/table"
)

// both is ccship with its server, as tables name them.
const both = "ccship + ccship-server"

// chainPart is all of it: from the disk until people can find a line.
func (w *world) chainPart() part {
	return part{
		title: "Whole chain: disk → server → searchable",
		text: "ccship and ccship-server with SQLite, from the start of both until every line is stored and can be searched; then lines " +
			"appended one after the other, until a search for a word that only the new line has finds it.",
		who: ours,
		run: w.chained,
	}
}

// verifyPart is what it costs to compare everything on the disk with everything on the server.
func (w *world) verifyPart() part {
	return part{
		title: "Verify",
		text: fmt.Sprintf("`ccship verify` of %s that ccship-server with SQLite has: every line on the disk is compared with the server's. "+
			"At most 4 s of CPU for 1 GB are asked of each side.", size(w.verify)),
		who:  ours,
		once: true,
		run: func(t *testing.T, s *table.Table, c *contestant) {
			l := w.history(t, w.verify)
			h := w.newChain(t, c, l)
			kit.Eventually(t, "every line is searchable", 6*w.limit, func() bool { return h.searchable(l.lines) })
			h.verified(s, size(w.verify))
		},
	}
}

// chain is a server and the daemon before it.
type chain struct {
	*place
	server *kit.Process
	client *load.Client
	store  string
	env    []string // of the daemon and of the commands that talk to it
}

func (w *world) newChain(t *testing.T, c *contestant, l *workload) *chain {
	t.Helper()
	p := w.newPlace(t, c, l)
	h := &chain{place: p, store: filepath.Join(p.dir, "server.db")}
	program := kit.Program(t, "ccship-server")
	made := exec.CommandContext(context.Background(), program, "key", "create", "--name", "field", "--store", "sqlite:"+h.store)
	out, err := made.Output()
	kit.Must(t, err)
	key := strings.TrimSpace(string(out))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	address := free.Addr().String()
	kit.Must(t, free.Close())
	h.client = load.NewClient("http://"+address, key, 8)
	t.Cleanup(h.client.Close)
	h.server = kit.Launch(t, exec.CommandContext(context.Background(), program, "serve", "--listen", address, "--store", "sqlite:"+h.store,
		"--log-level", "warn"))
	kit.Eventually(t, "the server answers", time.Minute, func() bool {
		_, err := h.client.Get(context.Background(), "/healthz")
		return err == nil
	})
	cmd := c.command(p)
	file := filepath.Join(p.state, "chain-key")
	kit.Must(t, os.WriteFile(file, []byte(key), 0o600))
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
		return strings.HasPrefix(v, "CCSHIP_SERVER_URL=") || strings.HasPrefix(v, "CCSHIP_API_KEY_FILE=")
	})
	cmd.Env = append(cmd.Env, "CCSHIP_SERVER_URL=http://"+address, "CCSHIP_API_KEY_FILE="+file)
	h.env = cmd.Env
	p.proc = kit.Launch(t, cmd)
	return h
}

func (w *world) chained(t *testing.T, s *table.Table, c *contestant) {
	l := w.history(t, w.chain)
	began := time.Now()
	h := w.newChain(t, c, l)
	kit.Eventually(t, "every line is searchable", w.limit, func() bool { return h.searchable(l.lines) })
	took := time.Since(began)
	server, err := gauge.Tree(h.server.Cmd.Process.Pid)
	kit.Must(t, err)
	cpu := h.cpu() + server.CPU
	s.Add(both, size(w.chain)+": CPU", "s", cpu.Seconds())
	s.Add(both, "time", "s", took.Seconds())
	s.Add(both, "MB per CPU-second", "MB/s", float64(l.bytes)/1e6/cpu.Seconds())
	s.Add(both, "of it the daemon", "s", h.cpu().Seconds())
	h.rest(s)
	path := filepath.Join(h.projects, "-work-chain", session(1)+".jsonl")
	h.searches(s, path, w.appends)
	kit.Must(t, h.proc.Stop())
	h.proc = nil
	kit.Must(t, h.server.Stop())
	s.Add(both, "database ÷ raw", "", float64(weight(h.store))/float64(l.bytes))
	kit.Must(t, os.RemoveAll(filepath.Dir(path)))
}

// rest waits until both use nothing any more, and adds what they have used by then.
func (h *chain) rest(s *table.Table) {
	h.t.Helper()
	used := func() time.Duration {
		u, err := gauge.Tree(h.server.Cmd.Process.Pid)
		kit.Must(h.t, err)
		return h.cpu() + u.CPU
	}
	before, calm := used(), 0
	kit.Eventually(h.t, "both are at rest", 15*time.Minute, func() bool { // ten looks at a second's distance
		kit.Pass(time.Second)
		now := used()
		if calm++; now-before > 30*time.Millisecond {
			calm = 0
		}
		before = now
		return calm == 10
	})
	s.Add(both, "CPU until at rest", "s", before.Seconds())
}

// searches appends lines and adds how long each takes until a search finds it. It ends before n lines when they take
// longer than anybody waits.
func (h *chain) searches(s *table.Table, path string, n int) {
	h.t.Helper()
	var ms []float64
	kit.Must(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	for begin := time.Now(); len(ms) <= n && (len(ms) < 6 || time.Since(begin) < time.Minute); {
		word := fmt.Sprintf("kite%dfield%x", len(ms), time.Now().UnixNano())
		at := time.Now()
		h.add(path, message(path, word, h.dir))
		kit.Eventually(h.t, "a search finds an appended line", 3*time.Minute, func() bool { return h.finds(word) })
		ms = append(ms, time.Since(at).Seconds()*1000)
	}
	ms = ms[1:] // the first one begins a session
	slices.Sort(ms)
	s.Add(both, "append → searchable, p50", "ms", ms[len(ms)/2])
	s.Add(both, "p99", "ms", ms[(len(ms)*99-1)/100])
}

// message is a line with a word, complete enough for a program that shows conversations.
func message(path, word, cwd string) []byte {
	now := time.Now().UTC()
	return fmt.Appendf(nil, `{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":%q,"sessionId":%q,"version":"2.1.235",`+
		`"type":"user","message":{"role":"user","content":"Please look for %s %s"},"uuid":"00000000-0000-4000-8000-%012x","timestamp":%q}`+"\n",
		cwd, strings.TrimSuffix(filepath.Base(path), ".jsonl"), word, strings.Repeat("in the words of this line ", 50), now.UnixNano()&0xffffffffffff,
		now.Format("2006-01-02T15:04:05.000Z"))
}

// verified compares disk and server, and adds what that costs each side.
func (h *chain) verified(s *table.Table, what string) {
	h.t.Helper()
	daemon := h.cpu()
	server, err := gauge.Tree(h.server.Cmd.Process.Pid)
	kit.Must(h.t, err)
	cmd := exec.CommandContext(context.Background(), h.c.program, "verify")
	cmd.Dir, cmd.Env = h.dir, h.env
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Errorf("verify: %v\n%s", err, kit.Tail(string(out), 1000))
		return
	}
	took := time.Since(began)
	after, err := gauge.Tree(h.server.Cmd.Process.Pid)
	kit.Must(h.t, err)
	s.Add(both, what+": CPU of the daemon", "s", (h.cpu() - daemon).Seconds())
	s.Add(both, what+": CPU of the server", "s", (after.CPU - server.CPU).Seconds())
	s.Add(both, what+": time", "s", took.Seconds())
}

// searchable reports whether so many lines are stored, and nothing waits to be derived.
func (h *chain) searchable(lines int64) bool {
	stored, err := h.client.Metric(context.Background(), "ccship_server_ingested_entries_total")
	if err != nil || int64(stored) < lines {
		return false
	}
	lag, err := h.client.Metric(context.Background(), "ccship_server_derive_lag_streams")
	return err == nil && lag == 0
}

func (h *chain) finds(word string) bool {
	text, err := h.client.Get(context.Background(), "/api/search?q="+word)
	return err == nil && bytes.Contains(text, []byte(word))
}

// weight is what a database's files weigh.
func weight(store string) (total int64) {
	files, err := filepath.Glob(store + "*")
	if err != nil {
		return 0
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode()&fs.ModeType == 0 {
			total += info.Size()
		}
	}
	return total
}
