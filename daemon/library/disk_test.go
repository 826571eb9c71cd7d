package library

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript"
)

const (
	usageOne = "-work-shop/11111111-0000-4000-8000-000000000001.jsonl"
	usageTwo = "-work-shop/22222222-0000-4000-8000-000000000002.jsonl"
)

// TestOnce: copies of an answer count once, answers of their own each.
func TestOnce(t *testing.T) {
	a := said{message: "m", request: "r", session: "s1", output: 10}
	with := func(change func(*said)) said { b := a; change(&b); return b }
	later := with(func(s *said) { s.output = 40 })
	side := with(func(s *said) { s.request, s.side, s.output = "r2", true, 90 })
	noRequest := with(func(s *said) { s.request = "" })
	for name, c := range map[string]struct {
		first, second []said
		answers, out  int64
	}{
		"blocks of one answer":           {[]said{a, a, a}, nil, 1, 10},
		"placeholder, then the number":   {[]said{a, later}, nil, 1, 40},
		"the number, then a placeholder": {[]said{later, a}, nil, 1, 40},
		"a fork":                         {[]said{later}, []said{with(func(s *said) { s.session = "s2" })}, 1, 40},
		"another request":                {[]said{a, with(func(s *said) { s.request = "r2" })}, nil, 2, 20},
		"another message":                {[]said{a, with(func(s *said) { s.message = "m2" })}, nil, 2, 20},
		"a side question's copy":         {[]said{a, side}, nil, 1, 10},
		"the copy first":                 {[]said{side, a}, nil, 1, 10},
		"in another session":             {[]said{a}, []said{with(func(s *said) { s.session, s.request, s.side = "s2", "r2", true })}, 2, 20},
		"no request ids":                 {[]said{noRequest, noRequest}, nil, 1, 10},
		"no request ids, two sessions":   {[]said{noRequest}, []said{with(func(s *said) { s.request, s.session = "", "s2" })}, 2, 20},
		"no ids at all":                  {[]said{{session: "s1", output: 5}, {session: "s1", output: 5}}, nil, 1, 5},
		"an error":                       {[]said{a, {message: "e", output: 3, more: `"isApiErrorMessage":true`}}, nil, 1, 10},
		"Claude Code's own":              {[]said{a, {message: "e", output: 3, model: "<synthetic>"}}, nil, 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := sum(t, put(t, map[string]string{usageOne: usageLines(c.first...), usageTwo: usageLines(c.second...)}), Session)
			kit.Check(t, r.Total.Answers == c.answers && r.Total.Output == c.out,
				"%d answers, %d output tokens, want %d and %d", r.Total.Answers, r.Total.Output, c.answers, c.out)
			var rows int64
			for _, row := range r.Rows {
				rows += row.Total
			}
			kit.Check(t, rows == r.Total.Total, "the rows sum up to %d, the total is %d", rows, r.Total.Total)
		})
	}
}

// TestBilled: fast mode, an adviser's tokens, web searches and regions count, each answer once.
func TestBilled(t *testing.T) {
	for usages, want := range map[string]struct {
		tokens int64
		cost   float64
	}{
		`{"input_tokens":100000,"output_tokens":10000,"speed":"fast"}`:                                                                                         {110_000, 1.5},
		`{"input_tokens":1000000,"inference_geo":"us"}`:                                                                                                        {1_000_000, 5.5},
		`{"input_tokens":100,"output_tokens":100,"server_tool_use":{"web_search_requests":50}}`:                                                                {200, 0.503},
		`{"input_tokens":10,"iterations":[{"type":"message","input_tokens":10},{"type":"advisor_message","model":"claude-haiku-4-5","input_tokens":1000000}]}`: {1_000_010, 1.00005},
	} {
		line := `{"type":"assistant","requestId":"r","uuid":"u","sessionId":"s","cwd":"/work/shop","timestamp":"2026-11-20T09:00:00Z",` +
			`"message":{"id":"m","model":"claude-opus-4-8","usage":` + usages + "}}\n"
		r := sum(t, put(t, map[string]string{usageOne: line + line}), Model)
		kit.Check(t, r.Total.Total == want.tokens && r.Total.Cost != nil && math.Abs(*r.Total.Cost-want.cost) <= 1e-9,
			"%s: %+v, want %+v", usages, r.Total, want)
	}
}

// TestDayOfAnswer: an answer over midnight belongs to the day of the first of its lines with the whole usage.
func TestDayOfAnswer(t *testing.T) {
	line := func(at string, output int) string {
		return fmt.Sprintf(`{"type":"assistant","requestId":"r","uuid":"u%s","sessionId":"s","timestamp":"%s","message":{"id":"m",`+
			`"model":"claude-opus-4-8","usage":{"input_tokens":1,"output_tokens":%d}}}`+"\n", at, at, output)
	}
	root := put(t, map[string]string{usageOne: line("2026-11-20T23:59:58Z", 1) + line("2026-11-20T23:59:59Z", 7) + line("2026-11-21T00:00:01Z", 7)})
	rows := sum(t, root, Day).Rows
	kit.Check(t, len(rows) == 1 && rows[0].Day == "2026-11-20" && rows[0].Output == 7, "%+v", rows)
}

// TestAgents: the answers of agents are their session's, in every place where Claude Code puts them.
func TestAgents(t *testing.T) {
	const session = "11111111-0000-4000-8000-000000000001"
	answer := func(n int) string {
		return said{message: fmt.Sprint("m", n), request: fmt.Sprint("r", n), session: session, output: 1 << n, side: n > 0}.line() + "\n"
	}
	progress := `{"type":"progress","uuid":"p","sessionId":"` + session + `","cwd":"/work/shop","timestamp":"2026-11-20T09:00:01.000Z",` +
		`"data":{"type":"agent_progress","message":` + strings.TrimSuffix(answer(4), "\n") + "}}\n"
	root := put(t, map[string]string{
		usageOne: answer(0) + progress,
		"-work-shop/" + session + "/subagents/agent-a1.jsonl":             answer(1),
		"-work-shop/" + session + "/subagents/workflows/w/agent-a2.jsonl": answer(2),
		"-work-shop/agent-a3.jsonl":                                       answer(3),
	})
	r := sum(t, root, Session)
	kit.Check(t, len(r.Rows) == 1 && r.Rows[0].Session == session && r.Total.Output == 1+2+4+8+16, "%+v", r)
}

// TestForkBelongsToItsOrigin: of two equal copies the one that says it is a copy does not count.
func TestForkBelongsToItsOrigin(t *testing.T) {
	a := said{message: "m", request: "r", session: "s1", output: 10}
	copied := a
	copied.more = `"forkedFrom":{"sessionId":"22222222-0000-4000-8000-000000000002","messageUuid":"u"}`
	r := sum(t, put(t, map[string]string{usageOne: usageLines(copied), usageTwo: usageLines(a)}), Session)
	kit.Check(t, len(r.Rows) == 1 && strings.HasPrefix(r.Rows[0].Session, "2222"), "%+v", r.Rows)
}

// TestWorktreeBeside: what git made a worktree of has its repository's project and name.
func TestWorktreeBeside(t *testing.T) {
	root := put(t, map[string]string{
		usageOne: usageLines(said{message: "a", output: 1}),
		usageTwo: strings.ReplaceAll(usageLines(said{message: "b", output: 2}), "/work/shop", "/work/shop-beside"),
	})
	rows := sum(t, root, Project).Rows
	kit.Check(t, len(rows) == 1 && rows[0].Project == "shop" && rows[0].Output == 3, "%+v", rows)
}

// TestColumns: each column, and that days are those of the zone.
func TestColumns(t *testing.T) {
	root := put(t, map[string]string{
		usageOne: usageLines(said{message: "a", output: 1, at: "2026-11-20T23:30:00.000Z"}, said{message: "b", output: 2, model: "claude-haiku-4-5"}),
		usageTwo: strings.ReplaceAll(usageLines(said{message: "c", output: 4}), "/work/shop", `C:\\src\\shop\\.claude\\worktrees\\x`),
	})
	type sums = map[string]int64
	for by, want := range map[string]sums{
		"day":     {"2026-11-20": 6, "2026-11-21": 1},
		"model":   {"claude-haiku-4-5": 2, "claude-opus-5": 5},
		"machine": {"m1 laptop": 7},
		"session": {"11111111-0000-4000-8000-000000000001": 3, "22222222-0000-4000-8000-000000000002": 4},
		"project": {"/work/shop|-work-shop shop": 3, `C:\src\shop|-work-shop shop`: 4},
	} {
		r := kit.Try(disk(root).Sum(t.Context(), Query{By: []string{by}, Zone: time.FixedZone("UTC+1", 3600)})).Must(t)
		got := sums{}
		for _, x := range r.Rows {
			got[strings.TrimSpace(x.Day+x.Model+x.Session+x.Machine+x.ProjectHash+" "+x.Host+x.Project)] = x.Output
		}
		kit.Check(t, maps.Equal(got, want), "by %s: %v, want %v", by, got, want)
	}
}

// TestTimes: since is included, until is not; a copy outside does not bring an answer back in.
func TestTimes(t *testing.T) {
	at := func(id, when string) said { return said{message: id, request: id, output: 1, at: when} }
	root := put(t, map[string]string{usageOne: usageLines(at("a", "2026-11-19T23:59:59.999Z"), at("b", "2026-11-20T00:00:00.000Z"),
		at("c", "2026-11-20T23:59:59.999Z"), at("d", "2026-11-21T00:00:00.000Z"))})
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for want, q := range map[int64]Query{
		4: {}, 3: {Since: day}, 2: {Since: day, Until: day.AddDate(0, 0, 1)}, 1: {Until: day}, 0: {Since: day.AddDate(1, 0, 0)},
	} {
		q.Zone = time.UTC
		r, err := disk(root).Sum(t.Context(), q)
		kit.Check(t, err == nil && r.Total.Answers == want && len(r.Rows) == 0,
			"%v to %v: %d answers, want %d, %v", q.Since, q.Until, r.Total.Answers, want, err)
	}
}

// TestBadLines: a bad line is reported and skipped, what can be recovered of it counts; a line that is being written is
// not reported.
func TestBadLines(t *testing.T) {
	a, b, c := said{message: "a", output: 1}.line(), said{message: "b", output: 2}.line(), said{message: "c", output: 4}.line()
	root := put(t, map[string]string{
		usageOne: a + "\n" + "{\"broken\": \n" + b + c + "\n\n" + c[:40],
		usageTwo: "\x00\x00\x00\n",
	})
	r := sum(t, root)
	kit.Check(t, r.Total.Output == 7 && r.Skipped == 3 && len(r.Faults) == 2 && r.Faults[0].Line == 2 &&
		r.Faults[0].Lines == 2 && strings.HasSuffix(r.Faults[1].Path, filepath.FromSlash(usageTwo)),
		"%+v", r)
}

// TestUnreadable: a file or folder that cannot be read is reported, and stops nothing.
func TestUnreadable(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("root, and Windows, may read everything")
	}
	root := put(t, map[string]string{usageOne: usageLines(said{message: "a", output: 1}), usageTwo: usageLines(said{message: "b", output: 2}), "-x/a.jsonl": ""})
	kit.Must(t, errors.Join(os.Chmod(filepath.Join(root, usageOne), 0), os.Chmod(filepath.Join(root, "-x"), 0)))
	defer func() { _ = os.Chmod(filepath.Join(root, "-x"), 0o700) }()
	r := sum(t, root)
	kit.Check(t, r.Total.Output == 2 && len(r.Faults) == 2 && r.Files == 1, "%+v", r)
}

// TestLinks: folders behind links are read, each once, also when links go round.
func TestLinks(t *testing.T) {
	root := put(t, map[string]string{usageOne: usageLines(said{message: "a", output: 1})})
	elsewhere := put(t, map[string]string{usageOne: usageLines(said{message: "b", output: 2})})
	err := errors.Join(os.Symlink(filepath.Join(elsewhere, "-work-shop"), filepath.Join(root, "-there")),
		os.Symlink(root, filepath.Join(root, "-round")), os.Symlink(filepath.Join(root, "none"), filepath.Join(root, "-gone")))
	if err != nil {
		t.Skip("no links: ", err)
	}
	r := sum(t, root)
	kit.Check(t, r.Total.Output == 3 && r.Files == 2 && len(r.Faults) == 0, "%+v", r)
}

// TestCost: writes of both durations, the price of long contexts by each request, and models without a price.
func TestCost(t *testing.T) {
	root := put(t, map[string]string{usageOne: usageLines(
		said{message: "a", model: "claude-sonnet-4-5", input: 199_963, output: 1000},
		said{message: "b", model: "claude-sonnet-4-5", input: 199_964, output: 1000},
		said{message: "c", model: "new", input: 1, output: 1},
	)})
	r := sum(t, root, Model)
	kit.Require(t, len(r.Rows) == 2 && r.Rows[0].Model == "claude-sonnet-4-5" && r.Rows[0].Cost != nil &&
		r.Rows[1].Cost == nil && r.Rows[1].Unpriced == 39 && r.Total.Unpriced == 39,
		"%+v", r)
	short := (3*199_963 + 15*1000 + 0.3*7 + 3.75*10 + 6*20) / 1e6
	long := (6*199_964 + 22.5*1000 + 0.6*7 + 7.5*10 + 12*20) / 1e6
	if got := *r.Rows[0].Cost; math.Abs(got-short-long) > 1e-6 || math.Abs(*r.Total.Cost-got) > 1e-6 {
		t.Errorf("$%v, total $%v, want $%v", got, *r.Total.Cost, short+long)
	}
	r = sum(t, put(t, nil))
	kit.Check(t, r.Total.Cost != nil && *r.Total.Cost == 0 && r.Prices == transcript.DefaultPrices().AsOf, "nothing: %+v", r)
}

// TestStops: a count that is interrupted ends.
func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := put(t, map[string]string{usageOne: usageLines(said{message: "a", output: 1})})
	kit.Err(t, "Sum", context.Canceled)(disk(root).Sum(ctx, Query{Zone: time.UTC}))
}

// TestManyFiles: memory does not grow with the size of what is read, and progress reaches the end.
func TestManyFiles(t *testing.T) {
	files := map[string]string{}
	filler := strings.Repeat(`{"type":"user","message":{"content":"`+strings.Repeat("x", 1000)+"\"}}\n", 8)
	for i := range 3000 {
		files[fmt.Sprintf("-p%d/%d.jsonl", i%50, i)] = filler + usageLines(said{message: fmt.Sprint(i), request: "r", output: 1})
	}
	d := disk(put(t, files))
	clear(files)
	var last, total int64
	held := func() int64 { // what is held counts, not how soon garbage is collected
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, asked := held(), int64(0), int64(0)
	d.Progress = func(done, all int64) {
		if done-asked > all/20 {
			most, asked = max(most, held()), done
		}
		last, total = max(last, done), all
	}
	r, err := d.Sum(t.Context(), Query{By: []string{Day}, Zone: time.UTC})
	kit.Require(t, err == nil && r.Total.Answers == 3000 && r.Files == 3000, "%+v, %v", r.Total, err)
	kit.Check(t, total >= 24<<20 && last >= total*9/10, "progress: %d of %d", last, total)
	grown := max(most, held()) - before
	kit.Check(t, grown <= 16<<20, "%d MiB for %d MiB of transcripts", grown>>20, total>>20)
}
