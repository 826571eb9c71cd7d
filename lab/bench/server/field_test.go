//go:build linux

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/load"
)

// The versions that are run. deja is built from its repository, at a commit of its main branch of 22 August 2026.
const (
	dejaCommit = "b264ec72cff452f9314d58096d1659416b2b0c68"
	ccusage    = "ccusage@20.0.24"
	claudeRun  = "claude-run@0.3.0"
)

// rival is a program that people would use instead, on one machine. What is nil it does not have.
type rival struct {
	name  string
	get   func(t *testing.T) (program string, err error)
	ready []string // arguments with which it makes everything searchable
	serve []string // arguments with which it serves its pages, and goes on
	place func(d *desktop, text string, exact bool, id string) int
	bill  []string             // arguments with which it reports the cost
	keeps string               // folder of what it keeps, below the home
	carry func(d, to *desktop) // takes what it knows to another machine
}

const dejaRepository = "https://github.com/vshulcz/deja-vu"

var rivals = []rival{
	{name: "deja, main of 22 August 2026", get: buildDeja, ready: []string{"index"}, place: (*desktop).dejaPlace, keeps: ".cache/deja", carry: dejaCarry},
	{name: claudeRun, get: npm(claudeRun, "claude-run"), serve: []string{"--no-open", "--port"}},
	{name: ccusage, get: npm(ccusage, "ccusage"), bill: []string{"claude", "daily", "--json", "--offline"}},
}

// desktop is where a rival works: a home with transcripts.
type desktop struct {
	t             *testing.T
	home, program string
	spent         time.Duration // by what has ended
}

// TestField measures ccship and what people would use instead on the same transcripts, in turn: what it takes until all
// of them can be searched, how sessions are found by what is remembered of them, what the first page weighs.
func TestField(t *testing.T) {
	kit.OnlyInLab(t)
	w := newWorld(t)
	all := w.forgetful(t)
	var sessions []corpus.Session
	for _, x := range all {
		sessions = append(sessions, x.Session)
	}
	t.Run("ccship", func(t *testing.T) { w.ours(t, all, sessions) })
	for _, r := range rivals {
		t.Run(r.name, func(t *testing.T) {
			program, err := r.get(t)
			if err != nil {
				t.Skipf("not measured: %v", err)
			}
			d := &desktop{t: t, home: home(t), program: program}
			_, raw, err := corpus.Write(filepath.Join(d.home, ".claude", "projects"), sessions, nil)
			kit.Must(t, err)
			r.measure(d, &figures{w, r.name}, all, float64(raw)/1e9)
		})
	}
}

const field = "Beside what people use"

func (w *world) ours(t *testing.T, all []remembered, sessions []corpus.Session) {
	f := &figures{w, "ccship, SQLite"}
	b := newBench(t, w, w.now, "SQLite")
	m := b.machine()
	_, raw, err := corpus.Write(m.projects(), sessions, nil)
	kit.Must(t, err)
	before, began, gb := b.use(), time.Now(), float64(raw)/1e9
	m.ship()
	f.Add(field, "time until searchable", time.Since(began).Seconds(), "s")
	f.Add(field, "CPU until searchable", (m.cpu()+b.use().Sub(before).CPU).Seconds()/gb, "CPU-s/GB")
	b.quiet()
	before, idle := b.use(), m.cpu()
	kit.Pass(w.idle())
	f.Add(field, "idle", percent(m.cpu()-idle+b.use().Sub(before).CPU, w.idle()), "% of a core")
	before = b.use()
	recall(t, f, all, func() time.Duration { return b.use().Sub(before).CPU },
		func(text string, exact bool, id string) int { return b.place(b.owner, text, exact, id) })
	kit.Must(t, b.owner.Login(context.Background()))
	f.Add(field, "first page with its scripts", weigh(t, b.owner)/1000, "kB")
	d := &desktop{t: t, home: m.dir, program: kit.Program(t, "ccship")}
	d.run("usage", "--offline", "--json")
	f.Add(field, "a report of the cost: CPU", d.spent.Seconds(), "s")
	other := b.machine()
	f.Add(field, elsewhere, moved(all, other.dir, func(id string) { other.ccship("resume", id, "--here") }), "of 20")
	m.searches(f, field, 20)
	m.d.MustStop(t)
	b.stop()
	f.Add(field, "kept ÷ raw, at rest", float64(b.db.size()+weight(filepath.Join(m.dir, ".local")))/float64(raw), "")
}

func (r rival) measure(d *desktop, f *figures, all []remembered, gb float64) {
	d.t.Helper()
	if r.ready != nil {
		began := time.Now()
		d.run(r.ready...)
		f.Add(field, "time until searchable", time.Since(began).Seconds(), "s")
		f.Add(field, "CPU until searchable", d.spent.Seconds()/gb, "CPU-s/GB")
		f.Add(field, "kept ÷ raw, at rest", float64(weight(filepath.Join(d.home, r.keeps)))/1e9/gb, "")
	}
	if r.place != nil {
		d.spent = 0
		recall(d.t, f, all, func() time.Duration { return d.spent }, func(text string, exact bool, id string) int { return r.place(d, text, exact, id) })
	}
	if r.place != nil {
		const id, word = "00000000-0000-4000-8000-00000000f1e1", "kitefieldlater"
		path, began := filepath.Join(d.home, ".claude", "projects", "-work", id+".jsonl"), time.Now()
		kit.Must(d.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), appendMessage(path, word)))
		kit.Eventually(d.t, "an appended line is found", 12*time.Minute, func() bool { return r.place(d, word, false, id) >= 0 })
		f.Add(field, "append → searchable, p50", time.Since(began).Seconds()*1000, "ms")
	}
	if r.carry != nil {
		to := &desktop{t: d.t, home: home(d.t), program: d.program}
		r.carry(d, to)
		f.Add(field, elsewhere, moved(all, to.home, func(id string) { _ = to.command("resume", id, "--exec").Run() }), "of 20") // files tell
	}
	if r.bill != nil {
		d.spent = 0
		d.run(r.bill...)
		f.Add(field, "a report of the cost: CPU", d.spent.Seconds(), "s")
	}
	if r.serve == nil {
		return
	}
	_, port, _ := strings.Cut(kit.Address(d.t), ":")
	p := kit.Launch(d.t, d.command(append(r.serve, port)...))
	client := load.NewClient("http://localhost:"+port, "", 2)
	kit.Eventually(d.t, "it serves", 12*time.Minute, func() bool {
		_, err := client.Get(context.Background(), "/")
		return err == nil
	})
	f.Add(field, "first page with its scripts", weigh(d.t, client)/1000, "kB")
	before := kit.Try(gauge.Tree(p.Cmd.Process.Pid)).Must(d.t)
	kit.Pass(f.w.idle())
	after := kit.Try(gauge.Tree(p.Cmd.Process.Pid)).Must(d.t)
	f.Add(field, "idle", percent(after.CPU-before.CPU, f.w.idle()), "% of a core")
}

const elsewhere = "whole below another machine's ~/.claude after `resume`"

// moved resumes twenty sessions on a machine that had none of them, and counts those whose transcripts are whole there.
func moved(all []remembered, home string, resume func(id string)) (whole float64) {
	for _, x := range all[:min(20, len(all))] {
		resume(x.ID)
		found, _ := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", x.ID+".jsonl")) // the pattern is right
		if len(found) == 1 {
			if text, err := os.ReadFile(found[0]); err == nil && bytes.Count(text, []byte("\n")) >= len(x.Chunks(nil)[0].Lines) {
				whole++
			}
		}
	}
	return whole
}

func (w *world) idle() time.Duration { return time.Duration(2*w.seconds) * time.Second }

func percent(used, of time.Duration) float64 { return 100 * used.Seconds() / of.Seconds() }

func home(t *testing.T) string {
	t.Helper()
	return kit.Try(os.MkdirTemp(kit.Workshop(), "h")).Must(t)
}

func (d *desktop) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), d.program, args...)
	cmd.Dir, cmd.Env = d.home, []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	return cmd
}

// run runs the program to its end, counts what it used, and returns what it printed.
func (d *desktop) run(args ...string) []byte {
	d.t.Helper()
	cmd := d.command(args...)
	out := kit.Try(cmd.Output()).Must(d.t)
	d.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return out
}

// dejaPlace asks deja: for words, or for exactly this.
func (d *desktop) dejaPlace(text string, exact bool, id string) int {
	d.t.Helper()
	args := []string{"search", "--json", "--limit", "100"}
	if exact {
		args, text = append(args, "--re"), strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`)
	}
	var found struct {
		Hits []struct{ Session struct{ Path string } }
	}
	kit.Must(d.t, json.Unmarshal(d.run(append(args, "--", text)...), &found))
	for at, hit := range found.Hits {
		if filepath.Base(hit.Session.Path) == id+".jsonl" {
			return at
		}
	}
	return -1
}

func dejaCarry(d, to *desktop) {
	dir := home(d.t)
	d.run("sync", "export", dir)
	to.run("sync", "import", dir)
}

func buildDeja(t *testing.T) (string, error) {
	dir := home(t)
	program := filepath.Join(dir, "deja")
	script := `git clone --quiet "$0" "$1/source" && cd "$1/source" && git checkout --quiet "$2" && CGO_ENABLED=0 go build -o "$3" ./cmd/deja`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, kit.Setting("deja", dejaRepository), dir, dejaCommit, program).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, kit.Tail(string(out), 300))
	}
	return program, nil
}

// npm installs a package at a version.
func npm(at, program string) func(t *testing.T) (string, error) {
	return func(t *testing.T) (string, error) {
		dir := home(t)
		cmd := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", at)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.Join(err, errors.New(kit.Tail(string(out), 300)))
		}
		return filepath.Join(dir, "node_modules", ".bin", program), nil
	}
}

var assets = regexp.MustCompile(`(?:src|href)="(/[^"]+\.(?:js|css)[^"]*)"`)

// weigh is what the first page and the scripts and styles that it names have, in bytes. What scripts load is not in it.
func weigh(t *testing.T, client *load.Client) float64 {
	t.Helper()
	page := kit.Try(client.Get(context.Background(), "/")).Must(t)
	total := len(page)
	for _, asset := range assets.FindAllStringSubmatch(string(page), -1) {
		text := kit.Try(client.Get(context.Background(), asset[1])).Must(t)
		total += len(text)
	}
	return float64(total)
}

// weight is what the files below a folder take on the disk, in bytes.
func weight(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what is not there weighs nothing
		var st syscall.Stat_t
		if err == nil && e.Type().IsRegular() && syscall.Stat(path, &st) == nil {
			total += 512 * st.Blocks
		}
		return nil
	})
	return total
}
