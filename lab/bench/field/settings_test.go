//go:build linux

package field_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/e2e/kit/setting"
	"github.com/ccship/ccship/lab/bench/corpus"
)

// settings say what is measured. What is not given is as the form says: quick, or in full.
type settings struct {
	rounds  int
	parts   []string
	only    []string // short names of contestants; none: all
	folder  string   // of transcripts to take instead of invented ones
	imports []int    // MB
	hookMB  int      // the hook reads each file again for every hundred lines: it imports no more than this
	many    int      // files of the import of many files
	appends int
	files   []int // of the idle measurement
	idle    time.Duration
	quiet   time.Duration // before idling is measured: what was just made may be taken for being written
	rewinds []int         // MB of the file that is rewound
	outage  int           // MB written while the server is away
	away    time.Duration
	chain   int   // MB, of the whole chain
	verify  int   // MB that are verified
	grow    []int // files, for the growth of memory and idle time
	active  []int // sessions that are written to
	limit   time.Duration
}

// scenarios are all parts.
var scenarios = []string{"import", "files", "append", "active", "first", "idle", "rewind", "probes", "outage", "prompt", "chain", "verify",
	"grow", "sessions"}

func newSettings() settings {
	s := settings{
		rounds: 3, imports: []int{20, 100, 1000}, hookMB: 20, many: 10_000, appends: 100, files: []int{2000, 10_000},
		idle: time.Minute, quiet: 150 * time.Second, rewinds: []int{1, 10, 100}, outage: 50, away: 20 * time.Second,
		grow: []int{1000, 10_000, 50_000, 100_000}, chain: 100, verify: 1000, active: []int{10, 100, 300, 1000},
		limit: 10 * time.Minute,
	}
	if setting.IsQuick() {
		s = settings{
			rounds: 2, imports: []int{20}, hookMB: 5, many: 1000, appends: 20, files: []int{1000},
			idle: 5 * time.Second, quiet: 5 * time.Second, rewinds: []int{1, 10}, outage: 5, away: 3 * time.Second,
			grow: []int{100, 1000, 4000}, chain: 5, verify: 5, active: []int{5, 20, 50},
			limit: 2 * time.Minute,
		}
	}
	s.parts = setting.Words("parts", scenarios...)
	s.only = setting.Words("only")
	s.folder = setting.Text("folder", "")
	s.rounds = setting.Number("rounds", s.rounds)
	s.imports = setting.Numbers("imports", s.imports...)
	s.files, s.grow = setting.Numbers("files", s.files...), setting.Numbers("files", s.grow...)
	return s
}

// say shows progress.
func say(format string, args ...any) { fmt.Fprintln(os.Stderr, fmt.Sprintf(format, args...)) }

// workload is a folder of transcripts, made once for all contestants.
type workload struct {
	dir   string // a projects folder
	paths []string
	lines int64
	bytes int64
}

// world is what all measurements share.
type world struct {
	settings
	source *corpus.Source
	all    []*contestant
	made   map[string]*workload
}

// history is a workload of so many MB of conversations.
func (w *world) history(t *testing.T, mb int) *workload {
	t.Helper()
	return w.make(t, fmt.Sprintf("mb%d", mb), func() []corpus.Session {
		plan := corpus.Plan{Seed: 1, Bytes: int64(mb) * 1e6}
		if w.folder == "" {
			return plan.Sessions()
		}
		all, err := plan.Folder(w.folder)
		kit.Must(t, err)
		return all
	})
}

// sessions is a workload of so many short sessions.
func (w *world) sessions(t *testing.T, n int) *workload {
	t.Helper()
	return w.make(t, fmt.Sprintf("n%d", n), func() []corpus.Session { return corpus.Plan{Seed: 2}.Many(n) })
}

func (w *world) make(t *testing.T, name string, sessions func() []corpus.Session) *workload {
	t.Helper()
	if w.made[name] != nil {
		return w.made[name]
	}
	l := &workload{dir: filepath.Join(kit.Workshop(), "work", name)}
	all := sessions()
	for i, s := range all {
		path := filepath.Join(l.dir, s.Path)
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		var text strings.Builder
		for _, line := range s.Chunks(w.source)[0].Lines {
			text.WriteString(line)
			text.WriteByte('\n')
			if json.Valid([]byte(line)) { // a plain server gets no others
				l.lines++
			}
		}
		kit.Must(t, os.WriteFile(path, []byte(text.String()), 0o600))
		l.paths, l.bytes = append(l.paths, path), l.bytes+int64(text.Len())
		// A history is older than today; what a program does with files of the last minutes is measured by other scenarios.
		old := time.Now().Add(-90 * 24 * time.Hour / time.Duration(len(all)+1) * time.Duration(len(all)-i+1))
		kit.Must(t, os.Chtimes(path, old, old))
		kit.Must(t, os.Chtimes(filepath.Dir(path), old, old))
	}
	w.made[name] = l
	return l
}

// drop frees the disk.
func (w *world) drop(t *testing.T) {
	t.Helper()
	kit.Must(t, os.RemoveAll(filepath.Join(kit.Workshop(), "work")))
	clear(w.made)
}
