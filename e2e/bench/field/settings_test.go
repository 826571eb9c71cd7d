//go:build linux

package field_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/bench/corpus"
	"github.com/ccship/ccship/e2e/kit"
)

// settings say what is measured. What is not given is as the form says: quick, or in full.
type settings struct {
	form    string
	rounds  int
	parts   []string
	only    []string // names of contestants; none: all
	out     string   // folder of the page
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
	bytes   []int // MB of an import
	narrow  bool  // sizes are given: the figures of others stay
	limit   time.Duration
}

// scenarios are all parts, in the order of the page.
var scenarios = []string{"import", "files", "append", "active", "first", "idle", "rewind", "probes", "outage", "prompt", "chain", "verify",
	"grow", "sessions", "bytes"}

// held are the parts that `make bench-check` compares: their figures are counts and processor time that differ little
// between two runs in short, however busy the machine is.
var held = []string{"import", "files", "append", "rewind", "probes"}

func newSettings(t *testing.T) settings {
	t.Helper()
	root, err := kit.Root()
	kit.Must(t, err)
	s := settings{
		form: "full", rounds: 3, imports: []int{20, 100, 1000}, hookMB: 20, many: 10_000, appends: 100, files: []int{2000, 10_000},
		idle: time.Minute, quiet: 150 * time.Second, rewinds: []int{1, 10, 100}, outage: 50, away: 20 * time.Second, grow: []int{1000, 10_000, 50_000, 100_000},
		chain: 100, verify: 1000, active: []int{10, 100, 300, 1000}, bytes: []int{20, 100, 300, 1000},
		limit: 10 * time.Minute,
	}
	if os.Getenv("CCSHIP_FIELD_QUICK") != "" {
		s = settings{
			form: "quick", rounds: 2, imports: []int{20}, hookMB: 5, many: 1000, appends: 20, files: []int{1000},
			idle: 5 * time.Second, quiet: 5 * time.Second, rewinds: []int{1, 10}, outage: 5, away: 3 * time.Second, grow: []int{100, 1000, 4000},
			chain: 5, verify: 5, active: []int{5, 20, 50}, bytes: []int{2, 5, 10},
			limit: 2 * time.Minute,
		}
	}
	s.parts = words(t, "PARTS", append(slices.Clone(scenarios), "page"))
	if os.Getenv("CCSHIP_FIELD_PARTS") == "" {
		s.parts = scenarios
	}
	s.only = strings.Split(os.Getenv("CCSHIP_FIELD_ONLY"), ",")
	s.folder = os.Getenv("CCSHIP_FIELD_FOLDER")
	if s.out = os.Getenv("CCSHIP_FIELD_OUT"); s.out == "" {
		s.out = filepath.Join(root, "docs")
	}
	s.sizes(t)
	return s
}

// sizes takes in what is given in numbers.
func (s *settings) sizes(t *testing.T) {
	t.Helper()
	numbers := func(name string) (all []int) {
		for _, word := range strings.Fields(os.Getenv("CCSHIP_FIELD_" + name)) {
			n, err := strconv.Atoi(word)
			kit.Must(t, err)
			all = append(all, n)
		}
		return all
	}
	for name, into := range map[string]*[]int{"IMPORTS": &s.imports, "FILES": &s.files, "REWINDS": &s.rewinds, "GROW": &s.grow,
		"SESSIONS": &s.active, "BYTES": &s.bytes} {
		if all := numbers(name); len(all) > 0 {
			*into, s.narrow = all, true
		}
	}
	for name, into := range map[string]*int{"CHAIN": &s.chain, "VERIFY": &s.verify, "ROUNDS": &s.rounds} {
		if all := numbers(name); len(all) > 0 {
			*into = all[0]
		}
	}
}

// words are those of a setting, of which all are known; none given: all.
func words(t *testing.T, name string, known []string) []string {
	t.Helper()
	given := strings.Fields(os.Getenv("CCSHIP_FIELD_" + name))
	for _, word := range given {
		if !slices.Contains(known, word) {
			t.Fatalf("%s has %q; it takes %s", name, word, strings.Join(known, " "))
		}
	}
	if len(given) == 0 {
		return known
	}
	return given
}

func (s settings) takes(name string) bool {
	return s.only[0] == "" || slices.Contains(s.only, name)
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
	checks bool // bench-check: what needs no comparison is measured of ccship alone
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
