package proof_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
)

var quiet = slog.New(slog.DiscardHandler)

func itoa(n int) string { return strconv.Itoa(n) }

// modelMachine is a machine: transcripts, a state folder, and the daemon that may run on them.
type modelMachine struct {
	name   string // the one that it has from the system
	dir    string
	root   string // projects
	cfg    config.Config
	server *modelServer
	lines  *int // written so far, on all machines

	kept []machineSnapshot
	stop func() error // nil: no daemon runs
	log  *trace
}

// machineSnapshot is a copy of a machine's folders.
type machineSnapshot struct{ state, root map[string][]byte }

// trace is what happened, for the reader of a failure.
type trace struct {
	mu    sync.Mutex
	text  bytes.Buffer
	delay func(message string) // unless nil, what logs a message waits until it returns; set before a daemon starts
}

// delayed is a log handler whose records wait.
type delayed struct {
	slog.Handler
	trace *trace
}

func (d delayed) Handle(ctx context.Context, r slog.Record) error {
	if d.trace.delay != nil {
		d.trace.delay(r.Message)
	}
	return d.Handler.Handle(ctx, r)
}

func (t *trace) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *trace) say(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func newModelMachine(dir, name string, s *modelServer, log *trace, lines *int) *modelMachine {
	m := &modelMachine{name: name, dir: filepath.Join(dir, name), server: s, log: log, lines: lines}
	m.root = filepath.Join(m.dir, "projects")
	must(os.MkdirAll(filepath.Join(m.root, "-w"), 0o700))
	keyFile := filepath.Join(m.dir, "key")
	must(os.WriteFile(keyFile, []byte(s.key), 0o600))
	cfg, err := config.Load(map[string]string{
		"config": "", "server_url": s.http.URL, "state_dir": filepath.Join(m.dir, "state"), "api_key_file": keyFile,
		"socket": filepath.Join(m.dir, "s"), "roots": m.root, "head_room": "1", "watch": "poll",
	}, kit.Only(config.HomeVariable, m.dir))
	must(err)
	cfg.Version = name
	text := slog.NewTextHandler(log, nil).WithAttrs([]slog.Attr{slog.String("m", name)})
	cfg.Log = slog.New(delayed{text, log})
	m.cfg = cfg
	m.nameState()
	return m
}

// nameState gives the state folder the name that the system gives the machine, unless it has one.
func (m *modelMachine) nameState() {
	must(os.MkdirAll(m.cfg.StateDir, 0o700))
	path := filepath.Join(m.cfg.StateDir, "machine.json")
	if _, err := os.Stat(path); err == nil {
		return
	}
	text, err := json.Marshal(sys.Identity{Name: m.name, Host: m.name})
	must(err)
	must(os.WriteFile(path, text, 0o600))
}

// start runs the daemon.
func (m *modelMachine) start() {
	if m.stop != nil {
		return
	}
	m.nameState()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, m.cfg) }()
	m.stop = func() error {
		cancel()
		m.stop = nil
		return <-ended
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; {
		if _, err := m.client().Status(ctx); err == nil {
			return
		}
		select {
		case err := <-ended:
			panic(fmt.Sprint("the daemon ended: ", err))
		case <-tick.C:
		}
		if time.Since(began) > reconcilePatience {
			panic("the daemon does not answer")
		}
	}
}

// patience is how long something may take on the slowest machine.
const reconcilePatience = 2 * time.Minute

func (m *modelMachine) client() *control.Client {
	c := control.Dial(m.cfg.Socket)
	c.Patient = true
	return c
}

// halt stops the daemon and reports whether it ran.
func (m *modelMachine) halt() bool {
	if m.stop == nil {
		return false
	}
	must(m.stop())
	return true
}

// stopped runs fn while no daemon runs.
func (m *modelMachine) stopped(fn func()) {
	ran := m.halt()
	fn()
	if ran {
		m.start()
	}
}

// kill leaves the state as it is in this moment: what the daemon does at a stop does not count.
func (m *modelMachine) kill() {
	if m.stop == nil {
		return
	}
	now := m.copyState()
	m.halt()
	writeFolder(m.cfg.StateDir, now)
}

// copyState copies the state folder of a daemon that may run.
func (m *modelMachine) copyState() map[string][]byte {
	for {
		a, b := readFolder(m.cfg.StateDir), readFolder(m.cfg.StateDir)
		if maps.EqualFunc(a, b, bytes.Equal) {
			return a
		}
	}
}

func (m *modelMachine) path(session string) string {
	return filepath.Join(m.root, "-w", session+".jsonl")
}

// write appends lines that were never written before.
func (m *modelMachine) write(session string, n int) {
	f, err := os.OpenFile(m.path(session), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	defer f.Close()
	_, err = f.WriteString(m.text(n))
	must(err)
}

func (m *modelMachine) text(n int) string {
	var b strings.Builder
	for range n {
		*m.lines++
		fmt.Fprintf(&b, `{"type":"x","cwd":"/w","n":"%s%d"}`+"\n", m.name, *m.lines)
	}
	return b.String()
}

// rewind cuts a transcript in place and goes on with other lines. Something is left: of an empty file that a state does
// not know nobody can say that it was cut.
func (m *modelMachine) rewind(session string, keep, n int) {
	data, err := os.ReadFile(m.path(session))
	if err != nil {
		return
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	kept := bytes.Join(lines[:min(keep, len(lines))], nil)
	if len(kept) == 0 {
		n = max(n, 1)
	}
	must(os.WriteFile(m.path(session), append(kept, m.text(n)...), 0o600))
}

// snapshot keeps copies of the folders.
func (m *modelMachine) snapshot() {
	m.kept = append(m.kept, machineSnapshot{m.copyState(), readFolder(m.root)})
}

// restore puts copies back: the state alone, or the transcripts with it.
func (m *modelMachine) restore(n int, home bool) {
	m.stopped(func() {
		writeFolder(m.cfg.StateDir, m.kept[n].state)
		if home {
			writeFolder(m.root, m.kept[n].root)
		}
	})
}

// exchange starts the daemon with a state folder of its own, or with the one from before that.
func (m *modelMachine) exchange() {
	m.stopped(func() {
		m.nameState()
		other := m.cfg.StateDir + ".aside"
		must(os.MkdirAll(other, 0o700))
		must(os.Rename(other, other+"2"))
		must(os.Rename(m.cfg.StateDir, other))
		must(os.Rename(other+"2", m.cfg.StateDir))
	})
}

// lose removes the state.
func (m *modelMachine) lose() { m.stopped(func() { must(os.RemoveAll(m.cfg.StateDir)) }) }

// cloneTo makes other a copy of this machine: its state and, with home, its transcripts. The state then knows the
// transcripts where they are on the other machine, as if both had the same paths.
func (m *modelMachine) cloneTo(other *modelMachine, home bool) {
	kept := machineSnapshot{m.copyState(), readFolder(m.root)}
	other.stopped(func() {
		writeFolder(other.cfg.StateDir, kept.state)
		if home {
			writeFolder(other.root, kept.root)
		}
		ctx := context.Background()
		db, err := projection.Open(ctx, state.Options{Path: filepath.Join(other.cfg.StateDir, "state.db"), Log: quiet})
		must(err)
		files, err := db.State.Files.Load(ctx)
		must(err)
		for i := range files {
			f := &files[i].File
			f.Path, f.Root = strings.Replace(f.Path, m.root, other.root, 1), other.root
		}
		must(db.State.Files.Update(ctx, files))
		must(db.State.Close())
	})
}

// sessions are the transcripts on disk.
func (m *modelMachine) sessions() []string {
	var names []string
	for path := range readFolder(m.root) {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".jsonl"))
	}
	return slices.Sorted(slices.Values(names))
}

// read waits until every whole line on disk is queued, also while the server is cut off.
func (m *modelMachine) read() error {
	r, err := m.client().Sync(context.Background(), control.SyncRequest{Timeout: reconcilePatience.String()})
	if err == nil && !r.Done {
		err = fmt.Errorf("%s: %s", r.Reason, r.Detail)
	}
	return err
}

// sync waits until everything is delivered, at most so long. The result is nil when it is.
func (m *modelMachine) sync(limit time.Duration) error {
	r, err := m.client().Sync(context.Background(), control.SyncRequest{Wait: true, Timeout: limit.String()})
	if err == nil && !r.Done {
		err = fmt.Errorf("%s: %s", r.Reason, r.Detail)
	}
	return err
}

// verify compares what is on disk, and with deep the past, with the server. A daemon that starves on a busy machine is
// asked again.
func (m *modelMachine) verify(deep bool) (r control.VerifyReport, err error) {
	req := control.VerifyRequest{Timeout: reconcilePatience.String(), Deep: deep}
	for began := time.Now(); time.Since(began) < reconcilePatience; {
		r, err = m.client().Verify(context.Background(), req, nil)
		if e, ok := errors.AsType[*control.Error](err); !ok || e.Code != control.CodeNoAnswer {
			break
		}
	}
	return r, err
}

// identity is the name that the machine has now.
func (m *modelMachine) identity() sys.Identity {
	id, err := sys.LoadIdentity(m.cfg.StateDir)
	must(err)
	return id
}

// readFolder reads all files below a folder, by their relative paths.
func readFolder(dir string) map[string][]byte {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				files[rel] = data
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // it vanished meanwhile
			return nil
		}
		return err
	})
	must(err)
	return files
}

// writeFolder makes a folder hold exactly these files. Files that are there already keep their inodes.
func writeFolder(dir string, files map[string][]byte) {
	for rel := range readFolder(dir) {
		if _, ok := files[rel]; !ok {
			must(os.Remove(filepath.Join(dir, rel)))
		}
	}
	for rel, data := range files {
		path := filepath.Join(dir, rel)
		must(os.MkdirAll(filepath.Dir(path), 0o700))
		must(os.WriteFile(path, data, 0o600))
	}
}
