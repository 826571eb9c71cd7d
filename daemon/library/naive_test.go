package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// cell is what sums are compared by.
type cell struct{ day, model string }

// tokens are input, output, cache writes and cache reads.
type tokens [4]int64

// naiveRecord is what a naive counter reads of a line.
type naiveRecord struct {
	Type, Timestamp, RequestID, SessionID string
	IsSidechain                           bool
	Message                               *struct {
		ID, Model string
		Usage     *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			Write  int64 `json:"cache_creation_input_tokens"`
			Read   int64 `json:"cache_read_input_tokens"`
		}
	}
	Data struct{ Message *naiveRecord }
}

// naive counts as simply as can be, without any code of this program: all answers in memory, in the order of the files.
func naive(t *testing.T, root string) map[cell]tokens {
	t.Helper()
	type found struct {
		naiveRecord
		all int64
	}
	var kept []*found
	at := map[[2]string]*found{}
	count := func(r naiveRecord) {
		if r.Message == nil || r.Message.Usage == nil || r.Timestamp == "" || r.Message.Model == "<synthetic>" {
			return
		}
		u := r.Message.Usage
		f := &found{r, u.Input + u.Output + u.Write + u.Read}
		key := [2]string{r.Message.ID, "request " + r.RequestID}
		if r.RequestID == "" {
			key[1] = "session " + r.SessionID
		}
		before := at[key]
		if before == nil {
			for _, k := range kept {
				if k.Message.ID == r.Message.ID && k.SessionID == r.SessionID && (k.IsSidechain || r.IsSidechain) {
					before = k
				}
			}
		}
		switch {
		case before == nil:
			kept = append(kept, f)
			at[key] = f
		case before.IsSidechain && !r.IsSidechain, before.IsSidechain == r.IsSidechain && f.all > before.all:
			*before = *f
		}
	}
	for _, line := range allLines(t, root) {
		var r naiveRecord
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		if r.Type == "progress" && r.Data.Message != nil {
			r.Data.Message.SessionID = r.SessionID
			r = *r.Data.Message
		}
		count(r)
	}
	out := map[cell]tokens{}
	for _, k := range kept {
		when := kit.Try(time.Parse(time.RFC3339, k.Timestamp)).Must(t)
		c := cell{when.UTC().Format(time.DateOnly), k.Message.Model}
		u, x := k.Message.Usage, out[c]
		out[c] = tokens{x[0] + u.Input, x[1] + u.Output, x[2] + u.Write, x[3] + u.Read}
	}
	return out
}

func allLines(t *testing.T, root string) (out [][]byte) {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".jsonl") {
			paths = append(paths, path)
		}
		return err
	})
	slices.Sort(paths)
	for _, path := range paths {
		text, e := os.ReadFile(path)
		if e != nil {
			err = e
		}
		out = append(out, bytes.Split(text, []byte("\n"))...)
	}
	kit.Must(t, err)
	return out
}

// ours are the sums of this program, by day and model.
func ours(t *testing.T, root string) map[cell]tokens {
	t.Helper()
	out := map[cell]tokens{}
	for _, r := range sum(t, root, Day, Model).Rows {
		out[cell{r.Day, r.Model}] = tokens{r.Input, r.Output, r.CacheWrite5m + r.CacheWrite1h, r.CacheRead}
	}
	return out
}

// corpora are projects folders of real transcripts, where there are any: those next to the repository, and that of
// CCSHIP_TEST=corpus=FOLDER.
func corpora(t *testing.T) []string {
	t.Helper()
	var roots []string
	for _, root := range []string{"../../../shared/transcripts", kit.Setting("corpus", "")} {
		if info, err := os.Stat(root); root != "" && err == nil && info.IsDir() {
			roots = append(roots, laidOut(t, root))
		}
	}
	if len(roots) == 0 {
		t.Skip("no real transcripts here")
	}
	return roots
}

// laidOut is a projects folder with every *.jsonl file below a folder: a collection has them at any depth, under names
// that Claude Code would not give them.
func laidOut(t *testing.T, from string) string {
	t.Helper()
	project := filepath.Join(t.TempDir(), "-corpus")
	err := os.Mkdir(project, 0o700)
	n := 0
	walked := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		n++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(project, fmt.Sprintf("%06d-%s", n, d.Name())), text, 0o600)
	})
	kit.Must(t, errors.Join(err, walked))
	return filepath.Dir(project)
}

// equal reports every difference between two counts.
func equal(t *testing.T, got, want map[cell]tokens) {
	t.Helper()
	for c := range maps.Keys(want) {
		kit.Check(t, got[c] == want[c], "%s %s: %v, want %v", c.day, c.model, got[c], want[c])
	}
	for c := range maps.Keys(got) {
		_, ok := want[c]
		kit.Check(t, ok, "%s %s: %v, want none", c.day, c.model, got[c])
	}
}

// TestNaiveInvented: the naive counter agrees on invented transcripts, whose sums are recorded.
func TestNaiveInvented(t *testing.T) {
	a := said{message: "a", request: "ra", session: "s1", input: 3, output: 1}
	final, fork, side := a, a, a
	final.output, fork.session, fork.output = 500, "s2", 500
	side.request, side.side, side.output = "rs", true, 900
	root := put(t, map[string]string{
		usageOne: usageLines(a, a, final, said{message: "b", session: "s1", output: 8, model: "claude-haiku-4-5", at: "2026-11-21T00:00:00.000Z"}),
		usageTwo: usageLines(fork, said{message: "c", request: "rc", session: "s2", output: 16}),
		strings.TrimSuffix(usageOne, ".jsonl") + "/subagents/agent-aside_question-1.jsonl": usageLines(side),
	})
	want := map[cell]tokens{
		{"2026-11-20", "claude-opus-5"}: {3, 516, 60, 14}, {"2026-11-21", "claude-haiku-4-5"}: {0, 8, 30, 7},
	}
	equal(t, naive(t, root), want)
	equal(t, ours(t, root), want)
}

// TestNaiveReal: the naive counter agrees on real transcripts, to the token.
func TestNaiveReal(t *testing.T) {
	for _, root := range corpora(t) {
		want := naive(t, root)
		kit.Check(t, len(want) != 0, "%s has no answers", root)
		equal(t, ours(t, root), want)
	}
}

// TestCCUsage: ccusage agrees on real transcripts, to the token. npx runs it.
func TestCCUsage(t *testing.T) {
	program := kit.Setting("ccusage", "")
	if program == "" {
		t.Skip("lab ccusage runs it")
	}
	for _, root := range append(corpora(t), billed(t)) {
		home := t.TempDir()
		kit.Must(t, os.CopyFS(filepath.Join(home, "projects"), os.DirFS(root)))
		cmd := exec.Command("npx", "--yes", program, "claude", "daily", "--json", "--offline", "--timezone", "UTC")
		cmd.Env = append(os.Environ(), "CLAUDE_CONFIG_DIR="+home)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		kit.Require(t, err == nil, "%v\n%s", err, stderr.String())
		var said struct {
			Daily []struct {
				Date            string
				ModelBreakdowns []struct {
					ModelName                                                       string
					InputTokens, OutputTokens, CacheCreationTokens, CacheReadTokens int64
				}
			}
			Totals struct{ TotalCost float64 }
		}
		kit.Must(t, json.Unmarshal(text, &said))
		want := map[cell]tokens{}
		for _, d := range said.Daily {
			for _, m := range d.ModelBreakdowns {
				want[cell{d.Date, m.ModelName}] = tokens{m.InputTokens, m.OutputTokens, m.CacheCreationTokens, m.CacheReadTokens}
			}
		}
		got := ours(t, root)
		equal(t, got, want)
		if cost := sum(t, root, Day).Total.Cost; cost == nil || math.Abs(*cost-said.Totals.TotalCost) > 1e-6 {
			t.Errorf("%s costs %v, want %v", root, *cost, said.Totals.TotalCost)
		}
		var all tokens
		for _, x := range got {
			for i := range all {
				all[i] += x[i]
			}
		}
		t.Logf("%s: %d days and models, input %d, output %d, cache writes %d, cache reads %d", root, len(got), all[0], all[1],
			all[2], all[3])
	}
}

// billed is a folder of invented answers whose price depends on more than the model and the tokens.
func billed(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for i, a := range []struct{ at, more string }{
		{"2026-11-20T10:00:00Z", `,"speed":"fast"`},
		{"2026-11-20T11:00:00Z", `,"iterations":[{"type":"message","input_tokens":1000,"output_tokens":10},` +
			`{"type":"advisor_message","model":"claude-haiku-4-5","input_tokens":500,"output_tokens":7}]`},
		{"2026-11-20T12:00:00Z", `,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_1h_input_tokens":60,"ephemeral_5m_input_tokens":40}`},
	} {
		fmt.Fprintf(&text, `{"type":"assistant","requestId":"r%d","uuid":"u%d","sessionId":"s","cwd":"/w","timestamp":"%s","version":"2.1.300",`+
			`"message":{"id":"m%d","role":"assistant","model":"claude-opus-4-8","usage":{"input_tokens":1000,"output_tokens":10%s},"content":[]}}`+"\n",
			i, i, a.at, i, a.more)
	}
	for i, at := range []string{"2026-11-20T23:59:59Z", "2026-11-21T00:00:01Z"} {
		fmt.Fprintf(&text, `{"type":"assistant","requestId":"o","uuid":"o%d","sessionId":"s","cwd":"/w","timestamp":"%s","version":"2.1.300",`+
			`"message":{"id":"o","role":"assistant","model":"claude-opus-4-8","usage":{"input_tokens":5,"output_tokens":6},"content":[]}}`+"\n", i, at)
	}
	return put(t, map[string]string{usageOne: text.String()})
}
