//go:build linux

package beside

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/bench/gauge"
	"github.com/ccship/ccship/e2e/kit"
)

var must = kit.Must

func TestMain(m *testing.M) { os.Exit(kit.Main(m, "ccbs", closeBrowser)) }

// patience is far beyond what any step takes on the worst machine.
const patience = 15 * time.Minute

// program is one of the two: it imports what is in its home and answers on loopback.
type program interface {
	name() string
	// start begins to import and returns the process and a test whether everything can be searched.
	start(t *testing.T, home string) (p *kit.Process, ready func() bool)
	stored(home string) []string // files and folders in which it keeps what it imported
	searches() map[string]func(phrase string) []string
	cost(t *testing.T) float64                        // US dollars
	list(t *testing.T) (address, login, shown string) // of the list of sessions; what is true when rows are in sight
}

// figures is what was measured of a program.
type figures struct {
	cpu          time.Duration // until everything can be searched
	settled      time.Duration // until nothing is done any more
	peak         int64         // bytes resident, as sampled
	disk         int64
	cost         float64
	found        map[string]int // by kind of search, of all phrases together
	wider        map[string]int // found, with the conversations that only have it in a copy of a file
	weight       int64          // bytes on the wire
	requests     int
	paint, sight time.Duration // first contentful paint; rows are in sight
}

// TestBeside measures both. It holds them to nothing but that ccship finds what it stored.
func TestBeside(t *testing.T) {
	other := os.Getenv("CCSHIP_BESIDE_AGENTSVIEW")
	if other == "" {
		t.Skip("CCSHIP_BESIDE_AGENTSVIEW, the path of agentsview, runs this (make beside)")
	}
	c := newCorpus(t)
	t.Logf("%d conversations, %d files, %.1f MB; %d phrases, in %d conversations altogether",
		len(c.sessions()), len(c.files), float64(c.bytes)/1e6, len(c.phrases), held(c.truth))
	programs := []program{&ccship{}, &agentsview{path: other}}
	var all []figures
	for _, p := range programs {
		all = append(all, measure(t, p, c))
	}
	if all[0].found["search"] < held(c.truth)*98/100 {
		t.Errorf("ccship finds %d of %d", all[0].found["search"], held(c.truth))
	}
	table := render(programs, all, c)
	t.Log("\n" + table)
	if out := os.Getenv("CCSHIP_BESIDE_OUT"); out != "" {
		must(t, os.WriteFile(out, []byte(table), 0o644))
	}
}

// measure runs a program in a home of its own.
func measure(t *testing.T, p program, c *corpus) figures {
	t.Helper()
	home := filepath.Join(kit.Workshop(), "home-"+p.name())
	c.copyTo(t, filepath.Join(home, ".claude", "projects"))
	f := figures{found: map[string]int{}, wider: map[string]int{}}
	process, ready := p.start(t, home)
	pid := process.Cmd.Process.Pid
	use := func() gauge.Use {
		u, err := gauge.Tree(pid)
		must(t, err)
		f.peak = max(f.peak, u.RSS)
		return u
	}
	kit.Eventually(t, p.name()+" has imported everything", patience, func() bool { use(); return ready() })
	f.cpu = use().CPU
	before, calm := f.cpu, 0
	kit.Eventually(t, p.name()+" is at rest", patience, func() bool { // ten looks at a second's distance
		kit.Pass(time.Second)
		now := use().CPU
		if calm++; now-before > 30*time.Millisecond {
			calm = 0
		}
		before = now
		return calm == 10
	})
	f.settled = before
	f.disk = size(t, p.stored(home))
	f.cost = p.cost(t)
	for kind, search := range p.searches() {
		for i, phrase := range c.phrases {
			found, n := map[string]bool{}, 0
			for _, id := range search(phrase) {
				found[c.main(id)] = true
			}
			for id := range found {
				if c.truth[i][id] {
					n++
				}
				if c.wider[i][id] {
					f.wider[kind]++
				}
			}
			f.found[kind] += n
			t.Logf("%s, %s %q: %d of %d", p.name(), kind, phrase, n, len(c.truth[i]))
		}
	}
	address, login, shown := p.list(t)
	f.weight, f.requests, f.paint, f.sight = visit(t, address, login, shown)
	return f
}

// size is how many bytes files have, and those in folders.
func size(t *testing.T, paths []string) (n int64) {
	t.Helper()
	for _, path := range paths {
		must(t, filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				n += info.Size()
			}
			return err
		}))
	}
	return n
}

// render is the table, in Markdown.
func render(programs []program, all []figures, c *corpus) string {
	var b strings.Builder
	row := func(what string, cell func(f figures) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, f := range all {
			b.WriteString(" " + cell(f) + " |")
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%d conversations, %.1f MB, %s\n\n| |", len(c.sessions()), float64(c.bytes)/1e6, time.Now().Format(time.DateOnly))
	for _, p := range programs {
		b.WriteString(" " + p.name() + " |")
	}
	b.WriteString("\n|---|---|---|\n")
	row("import until everything can be searched, CPU-s", func(f figures) string { return fmt.Sprintf("%.1f", f.cpu.Seconds()) })
	row("import until nothing is left to do, CPU-s", func(f figures) string { return fmt.Sprintf("%.1f", f.settled.Seconds()) })
	row("memory at its peak, MiB", func(f figures) string { return fmt.Sprintf("%d", f.peak>>20) })
	row("disk per byte of transcripts", func(f figures) string { return fmt.Sprintf("%.2f", float64(f.disk)/float64(c.bytes)) })
	row(fmt.Sprintf("found by %d searches, of %d", len(c.phrases), held(c.truth)), func(f figures) string {
		return shares(f.found, held(c.truth))
	})
	row(fmt.Sprintf("the same, of %d with copies of files", held(c.wider)), func(f figures) string {
		return shares(f.wider, held(c.wider))
	})
	row("cost of everything", func(f figures) string { return fmt.Sprintf("$%.2f", f.cost) })
	row("list page, cold: weight, requests", func(f figures) string { return fmt.Sprintf("%d KB, %d", f.weight/1000, f.requests) })
	row("list page, cold: first paint, rows in sight", func(f figures) string {
		return fmt.Sprintf("%d ms, %d ms", f.paint.Milliseconds(), f.sight.Milliseconds())
	})
	return b.String()
}

// shares are what each kind of search found of all.
func shares(found map[string]int, all int) string {
	var kinds []string
	for kind, n := range found {
		kinds = append(kinds, fmt.Sprintf("%s %d (%d %%)", kind, n, 100*n/max(1, all)))
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}
