//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// What `make chaos` leaves behind: the outcomes, and the page made of them.
const (
	outcomesFile = "../../docs/reliability.json"
	pageFile     = "../../docs/reliability.md"
)

// mergeEnv asks TestPage to take in what a campaign recorded in the folder of kit.OutcomesEnv.
const mergeEnv = "CCSHIP_CHAOS_MERGE"

// groups are the parts of the page, in order, with what stands above their tables.
var groups = []struct{ name, text string }{
	{"programs", "Daemon and server are killed, frozen, stopped and started twice while transcripts grow and are rewound. " +
		"A killed program is started again, as its service manager does."},
	{"steps", "A file system in user space kills the program that uses it before a chosen step of its work on its own files. " +
		"One that does not come to that step within five seconds is killed where it is: between two steps."},
	{"state file", "What the daemon keeps is torn, damaged, made older and newer. “When it runs again” is what `ccship status` advises " +
		"then: nothing, when the damage met no page that was read."},
	{"file system", "A file system in user space below state, transcripts or database refuses, cuts and loses."},
	{"resources", "The daemon has few descriptors, few watches, no room, no rights, or another time since the machine started."},
	{"clocks", "Wall clocks are set while programs run, and are still wrong when the proof is made. The programs are built with " +
		"one line more in `time.Now`."},
	{"connections", "A TCP proxy between daemon and server makes connections bad."},
	{"answers", "A proxy answers in the server's place, and the daemon must not believe it."},
	{"identity", "Machines, state folders and stores that are copied, restored, swapped and joined."},
	{"sizes", "What is large, long, many, or strangely named."},
	{"databases", "PostgreSQL is killed, restarted and replaced by its standby during imports; an S3 server is killed while lines move to it. " +
		"What is killed while the server derives, packs, moves, retires or forgets lines is in [scale.md](scale.md#kills)."},
}

// TestPage holds the page to the outcomes, and the outcomes to zeros.
func TestPage(t *testing.T) {
	if os.Getenv(mergeEnv) != "" {
		merge(t, os.Getenv(kit.OutcomesEnv))
	}
	all := load(t)
	for _, o := range all {
		if bad(o) || o.Runs == 0 {
			t.Errorf("%s, %s: %d runs, %d lost, %d wrong, %d hung, failed %t", o.Group, o.Fault, o.Runs, o.Lost, o.Wrong, o.Hung, o.Failed)
		}
		if !slices.ContainsFunc(groups, func(g struct{ name, text string }) bool { return g.name == o.Group }) {
			t.Errorf("%s has no place on the page", o.Group)
		}
	}
	want := render(all)
	if os.Getenv(mergeEnv) != "" {
		kit.Must(t, os.WriteFile(pageFile, []byte(want), 0o644))
	}
	got, err := os.ReadFile(pageFile)
	kit.Must(t, err)
	if string(got) != want {
		t.Errorf("%s is not what its outcomes say: run `make chaos-page`", pageFile)
	}
}

func load(t *testing.T) (all []*kit.Outcome) {
	t.Helper()
	text, err := os.ReadFile(outcomesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kit.Must(t, err)
	kit.Must(t, json.Unmarshal(text, &all))
	return all
}

// merge takes in recorded outcomes, each in place of the one that it had before. A short one that went well proves less
// than a long one: it replaces none.
func merge(t *testing.T, folder string) {
	t.Helper()
	all := load(t)
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	kit.Must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		kit.Must(t, err)
		o := &kit.Outcome{}
		kit.Must(t, json.Unmarshal(text, o))
		o.Recovery = []float64{round(quantile(o.Recovery, 0.5)), round(quantile(o.Recovery, 1))}
		before := slices.IndexFunc(all, func(p *kit.Outcome) bool { return p.Group == o.Group && p.Fault == o.Fault })
		switch {
		case o.Runs == 0 && !bad(o): // skipped, or not begun
		case before < 0:
			all = append(all, o)
		case o.Runs >= all[before].Runs || bad(o) || bad(all[before]):
			all[before] = o
		}
	}
	for _, o := range all {
		o.Told = plain(o.Told)
	}
	place := func(o *kit.Outcome) int {
		return slices.IndexFunc(groups, func(g struct{ name, text string }) bool { return g.name == o.Group })
	}
	slices.SortFunc(all, func(a, b *kit.Outcome) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a.Fault, b.Fault)
	})
	text, err := json.MarshalIndent(all, "", "\t")
	kit.Must(t, err)
	kit.Must(t, os.WriteFile(outcomesFile, append(text, '\n'), 0o644))
}

// bad reports whether an outcome is not the zeros that it must be.
func bad(o *kit.Outcome) bool { return o.Failed || o.Lost+o.Wrong+o.Hung != 0 }

// plain counts texts together that differ only in what differs from run to run.
func plain(told map[string]int) map[string]int {
	together := map[string]int{}
	for text, n := range told {
		together[kit.Plain(text)] += n
	}
	return together
}

func round(x float64) float64 { return float64(int(x*10+0.5)) / 10 }

// quantile of no values is 0.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

const preface = `# Reliability

What was done to the real programs, how often, and what came of it. ` + "`make chaos`" + ` makes this page; it takes hours. A short
form of it is part of ` + "`make test`" + `.

After every run, the same proof: the trouble is over, ` + "`ccship sync --wait`" + ` ends, every line on disk is what the server
answers (` + "`/raw`" + `, byte for byte), and ` + "`ccship verify`" + ` ends with 0. **Lost** are lines on disk that the server lacks.
**Wrong** are lines that it has with other bytes, and failures of ` + "`verify`" + `. **Hung** are programs that neither answered nor
ended. **Recovery** is the time in seconds from the end of the trouble until everything was on the server, median and longest,
the start of programs included, on a busy machine. **Told** is what ` + "`ccship status`" + `, ` + "`ccship doctor`" + ` or the last line of
a program that ended said while the trouble lasted, most frequent first.
`

// render is the page.
func render(all []*kit.Outcome) string {
	var b strings.Builder
	b.WriteString(preface)
	var runs, lost, wrong, hung int
	for _, o := range all {
		runs, lost, wrong, hung = runs+o.Runs, lost+o.Lost, wrong+o.Wrong, hung+o.Hung
	}
	fmt.Fprintf(&b, "\n**%d kinds of trouble, %d runs: %d lines lost, %d wrong, %d programs hung.**\n", len(all), runs, lost, wrong, hung)
	for _, g := range groups {
		mine := slices.DeleteFunc(slices.Clone(all), func(o *kit.Outcome) bool { return o.Group != g.name })
		if len(mine) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", strings.ToUpper(g.name[:1])+g.name[1:], g.text)
		b.WriteString("| trouble | runs | lost | wrong | hung | recovery | told |\n|---|--:|--:|--:|--:|--:|---|\n")
		for _, o := range mine {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s | %s |\n", cell(o.Fault), o.Runs, o.Lost, o.Wrong, o.Hung, recovery(o), cell(told(o)))
		}
	}
	b.WriteString(soaked)
	return b.String()
}

// soaked stands at the end of the page.
const soaked = `
## An hour, accelerated

` + "`make soak`" + ` has sixty sessions written without a pause, with rewinds, outages of the server and questions in between, and
demands that the daemon's memory, descriptors and goroutines do not grow from the second third of the time to the last. The state
file is as large as the longest backlog so far needed it, until it is compacted above 64 MiB: it must not grow within the
last third. ` + "`DURATION`" + ` says how long, by default an hour; the title of the picture says how long the run behind it was.

![RSS, RssAnon, descriptors, goroutines and state file of the daemon over time](soak.svg)
`

func recovery(o *kit.Outcome) string {
	if len(o.Recovery) < 2 || o.Recovery[1] == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f, %.1f", o.Recovery[0], o.Recovery[1])
}

// told is the two most frequent things that people read.
func told(o *kit.Outcome) string {
	var texts []string
	for text := range o.Told {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		if d := o.Told[b] - o.Told[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return strings.Join(texts[:min(2, len(texts))], " · ")
}

var unmarked = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*", "_", "\\_", "~", "\\~")

// cell is a text as a cell of a table.
func cell(text string) string { return unmarked.Replace(text) }
