package document

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

const sessionA = "0a0a0a0a-0000-4000-8000-000000000001"

const (
	testServer = "https://one.example"
	testFile   = tail.FileID(1) // the transcript of sessionA
)

// harness is a tracker on a real state and real files. Nothing runs: a test checks the documents when it wants to. The
// harness is the tracker's locator and settings. It knows one session, sessionA.
type harness struct {
	*Tracker
	t           *testing.T
	db          *state.DB
	projections *projection.DB
	cwd         string
	conf        atomic.Pointer[config.Config]
	projects    *project.Finder
	masker      *redact.Masker // nil: documents go as they are
	onLocate    func()         // called by Locate; nil: nothing
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	t.Parallel()
	home, cwd := realDir(t), realDir(t)
	conf := kit.Try(config.Load(map[string]string{
		"config": "", "server_url": testServer, "state_dir": filepath.Join(home, "state"), "socket": filepath.Join(home, "s"),
	}, kit.Only(config.HomeVariable, home))).Must(t)
	kit.Must(t, os.MkdirAll(conf.StateDir, 0o700))
	projections := kit.Try(projection.Open(t.Context(), state.Options{Path: filepath.Join(conf.StateDir, "state.db"), HeadRoom: 1})).Must(t)
	db := projections.State
	t.Cleanup(func() { db.Close() })
	step := state.Step{
		Tracked: tail.Tracked{File: tail.File{ID: testFile, Path: filepath.Join(home, sessionA+".jsonl"), Name: sessionA}},
		Routing: state.Routing{Decided: true, Dest: testServer},
	}
	step.Routing.Stream.SessionID, step.Routing.Stream.Cwd = sessionA, cwd
	errs, err := db.Commit(t.Context(), []state.Step{step})
	kit.Require(t, err == nil && errs[0] == nil, "%v %v", errs, err)
	h := &harness{t: t, db: db, projections: projections, cwd: cwd, projects: project.NewFinder()}
	h.conf.Store(&conf)
	h.Excluded(cwd) // the transcript was routed, so the finder knows the project
	h.reload()
	return h
}

// reload replaces the tracker by one that knows what the state knows.
func (h *harness) reload() {
	h.t.Helper()
	tracker, err := Load(h.t.Context(), Deps{
		Projections: h.projections, Locator: h, Introductions: h, Settings: h, Guard: NewGuard(h, h.db), Masking: h, Log: slog.New(slog.DiscardHandler),
	})
	kit.Must(h.t, err)
	h.Tracker = tracker
}

func realDir(t *testing.T) string {
	t.Helper()
	return kit.Try(filepath.EvalSymlinks(t.TempDir())).Must(t)
}

// Locate knows sessionA.
func (h *harness) Locate(_ context.Context, session string) (Location, error) {
	loc := Location{Session: session, File: testFile, Cwd: h.cwd, Dest: testServer, Withheld: h.Excluded(h.cwd)}
	if session != sessionA {
		return loc, control.NoSession("there is no session "+session, "")
	}
	if loc.Withheld != "" {
		loc.Dest = ""
	}
	if h.onLocate != nil {
		h.onLocate()
	}
	return loc, nil
}

// For masks with a key of the test's.
func (h *harness) For(_, _ string) *redact.Masker { return h.masker }

// Excluded asks the project of a folder.
func (h *harness) Excluded(dir string) string {
	policy, err := h.projects.Find(dir)
	switch {
	case err != nil:
		return err.Error()
	case policy.Enabled:
		return ""
	}
	return cmp.Or(policy.Why, "opted out")
}

// Get knows no introductions.
func (h *harness) Get(context.Context, string) (projection.Introduction, bool, error) {
	return projection.Introduction{}, false, nil
}

// Config is the configuration in force.
func (h *harness) Config() *config.Config { return h.conf.Load() }

// check checks all documents once, and returns one of them.
func (h *harness) check(name string, edits ...edit) trackedDocument {
	h.t.Helper()
	h.work.Lock()
	defer h.work.Unlock()
	loc := kit.Try(h.Locate(h.t.Context(), sessionA)).Must(h.t)
	h.checkAll(h.t.Context(), loc, edits)
	for _, d := range h.list(sessionA, false) {
		if d.Path == name {
			return d
		}
	}
	h.t.Fatalf("there is no document %s", name)
	return trackedDocument{}
}

func (h *harness) linkNow(name string) {
	h.t.Helper()
	kit.Must(h.t, h.link(h.t.Context(), linkRequest{session: sessionA, path: name, by: byUser, line: -1}))
}

// saveLinked writes a document and links it.
func (h *harness) saveLinked(name, text string) (path string) {
	h.t.Helper()
	path = saveFile(h.t, h.cwd, name, text)
	h.linkNow(name)
	return path
}

// rows is how many batches wait.
func (h *harness) rows() int64 { return h.db.Outbox.Usage().Batches }

// until waits for something to be so.
func (h *harness) until(what string, so func() bool) {
	h.t.Helper()
	kit.Eventually(h.t, what, 10*time.Second, so)
}

// saveFile writes a file below a working directory.
func saveFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	now := time.Now() // which need not be the time of the disk
	kit.Must(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, now, now)))
	return path
}
