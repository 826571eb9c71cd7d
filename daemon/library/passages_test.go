package library

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/transcript"
)

// spoken is a record of the user's or of Claude's words.
func spoken(n int, role, text string) string {
	return fmt.Sprintf(`{"type":%q,"uuid":"u%d","parentUuid":"u%d","cwd":"/home/kim/shop","message":{"role":%q,"id":"m%d","content":[{"type":"text","text":%q}]}}`+"\n",
		role, n, n-1, role, n, text)
}

// TestGrep finds words wherever they are in a line, phrases as they are, and what a person or Claude said first.
func TestGrep(t *testing.T) {
	r := newRoom(t)
	r.Library.Server = nil
	r.write("-shop/"+one+".jsonl", spoken(1, "user", "Round the CART's \"total\", 장바구니 Ünder a<B&c:\\d")+
		`{"type":"user","cwd":"/cart/total","message":{"role":"user","content":"nothing"}}`+"\n", 0)
	r.write("-shop/"+two+".jsonl", `{"type":"system","cart":"total"}`+"\n"+spoken(1, "assistant", "no such\nthing"), 0)
	for text, want := range map[string]string{
		"total cart": one + " 0 prompt", `"cart's"`: one + " 0 prompt", `"the cart"`: one + " 0 prompt", `"cart the"`: "",
		"장바구니 ünder": one + " 0 prompt", `a<b&C:\d`: one + " 0 prompt", "such": two + " 1 answer", "absent": "", "": "",
	} {
		got := ""
		for _, m := range r.Grep(t.Context(), text, "", 9) {
			got += fmt.Sprint(m.Session, " ", m.Line, " ", m.Kind)
		}
		kit.Check(t, got == want, "%q: %q, want %q", text, got, want)
	}
	if m := r.Grep(t.Context(), "total", "", 9); len(m) != 1 || m[0].Snippet[1] != (protocol.Piece{Text: "total", Match: true}) ||
		m[0].Project != "shop" {
		t.Errorf("%+v", m)
	}
	m := r.Grep(t.Context(), "total", "other", 9)
	kit.Check(t, len(m) == 0, "in another project: %+v", m)
}

// TestGrepRanks: words may stand in several lines of a session; what has more of them in one line that was said comes
// first, then what changed last. A session that lacks a word is none.
func TestGrepRanks(t *testing.T) {
	r := newRoom(t)
	r.Library.Server = nil
	for i, text := range []string{
		spoken(1, "user", "round it up") + spoken(2, "assistant", "the cart is done"),
		spoken(1, "user", "go on") + `{"type":"assistant","cwd":"/home/kim/shop","message":{"role":"assistant","id":"m2","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"round cart"}}]}}` + "\n",
		spoken(1, "user", "round the cart"),
		spoken(1, "user", "what was the cart again"),
		spoken(1, "user", "the cart is round again"),
	} {
		r.write(fmt.Sprintf("-shop/%d%s.jsonl", i, one[1:]), text, time.Duration(i)*time.Hour)
	}
	for _, c := range []struct {
		limit int
		want  string
	}{{9, "2410"}, {2, "24"}, {1, "2"}} {
		got := ""
		for _, m := range r.Grep(t.Context(), "round cart", "", c.limit) {
			got += m.Session[:1]
		}
		kit.Equal(t, fmt.Sprint("limit ", c.limit), got, c.want)
	}
}

// TestGrepUnread finds a line with all words behind many that have some of them only in what nobody reads.
func TestGrepUnread(t *testing.T) {
	r := newRoom(t)
	r.Library.Server = nil
	noise := strings.Repeat(`{"type":"system","message":"x","banana":1}`+"\n", 2*maxUnread)
	for i, words := range []string{"content", "banana"} { // in each record's names, in those of noise
		r.write(fmt.Sprintf("-shop/%d%s.jsonl", i, one[1:]), noise+strings.Repeat(spoken(1, "user", "nothing"), 2*maxUnread)+
			spoken(2, "user", words+" of the parser"), 0)
		m := r.Grep(t.Context(), words+" parser", "", 1)
		kit.Check(t, len(m) == 1 && m[0].Line == 4*maxUnread, "%s: %+v", words, m)
	}
}

// TestGrepEscapes finds a word whose letters a record has as escapes, beside another.
func TestGrepEscapes(t *testing.T) {
	r := newRoom(t)
	r.Library.Server = nil
	r.write("-shop/"+one+".jsonl", strings.Replace(spoken(1, "user", "the Café's parser"), "é", `\u00e9`, 1), 0)
	m := r.Grep(t.Context(), "café parser", "", 1)
	kit.Check(t, len(m) == 1, "%+v", m)
}

// TestAround reads a part of a long conversation: near a line, or its end.
func TestAround(t *testing.T) {
	r := newRoom(t)
	var text strings.Builder
	const lines = 400
	for i := range lines {
		text.WriteString(spoken(i, []string{"user", "assistant"}[i%2], fmt.Sprint("number ", i)))
	}
	r.write("-shop/"+one+".jsonl", text.String(), 0)
	path := filepath.Join(r.Roots[0], "-shop", one+".jsonl")
	for line, want := range map[int64][2]string{200: {"number 170", "number 259"}, 0: {"number 0", "number 59"}, -1: {"number 310", "number 399"},
		lines - 1: {"number 369", "number 399"}} {
		all, err := r.Around(t.Context(), Spot{Path: path, Line: line})
		kit.Require(t, err == nil && len(all) != 0, "line %d: %v", line, err)
		got := [2]string{all[0].Text, all[len(all)-1].Text}
		kit.Check(t, got == want, "around line %d: from %q to %q, want %q", line, got[0], got[1], want)
	}
	_, err := r.Around(t.Context(), Spot{Path: path + "x", Line: 1})
	kit.Check(t, err != nil, "a file that is not there has lines")
}

// TestRunning are the sessions that live processes have open.
func TestRunning(t *testing.T) {
	r := newRoom(t)
	list := filepath.Join(filepath.Dir(r.Roots[0]), "sessions")
	kit.Must(t, os.MkdirAll(list, 0o700))
	for name, session := range map[string]string{fmt.Sprint(os.Getpid()): one, "99999999": two, "x": two} {
		kit.Must(t, os.WriteFile(filepath.Join(list, name+".json"), []byte(`{"sessionId":"`+session+`","status":"busy"}`), 0o600))
	}
	all := r.Running()
	kit.Check(t, len(all) == 1 && all[one] == (Process{os.Getpid(), "busy"}), "%+v", all)
}

// answered is an answer's line, with 10 tokens in and some out.
func answered(id string, output int) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"a%s%d","message":{"id":%q,"model":"claude-haiku-4-5","content":[{"type":"text","text":"x"}],`+
		`"usage":{"input_tokens":10,"output_tokens":%d}}}`+"\n", id, output, id, output)
}

// progress repeats an agent's answer in its parent's transcript.
func progress(id string, output int) string {
	return fmt.Sprintf(`{"type":"progress","uuid":"p%s","data":{"message":%s}}`+"\n", id, strings.TrimSpace(answered(id, output)))
}

// TestNumbersOfDisk: numbers of a session that is only on disk are those of all of it and its agents, or none.
func TestNumbersOfDisk(t *testing.T) {
	r := newRoom(t)
	r.Server = nil
	filler := fmt.Sprintf(`{"type":"mode","mode":%q}`+"\n", strings.Repeat("x", 1<<16))
	text := prompt("first") + answered("m1", 1) + answered("m1", 5) + progress("g1", 3) + progress("g2", 7)
	r.write("-p/"+one+".jsonl", text+strings.Repeat(filler, 6)+answered("m2", 10), time.Hour)
	r.write("-p/"+one+"/subagents/agent-a.jsonl", answered("g1", 4), time.Hour)
	r.write("-p/"+two+".jsonl", text+strings.Repeat(filler, 80)+answered("m2", 10), 2*time.Hour)
	items, _, err := r.List(t.Context(), Filter{Limit: 9})
	kit.Require(t, err == nil && len(items) == 2, "%d sessions, %v", len(items), err)
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Session, b.Session) })
	got := func(i Item) string {
		return fmt.Sprint(i.Counts, " ", i.Messages, " ", i.Tokens, " ", i.Cost != nil, " ", i.Agents, " ", i.Title)
	}
	// The answers m1, m2, g1 of the agent's own transcript, and g2, which only the progress record has.
	const want = "complete 3 66 true 1 first"
	kit.Equal(t, "listed", got(items[0]), want)
	if g, want := got(items[1]), "unknown 0 0 false 0 first"; g != want {
		t.Errorf("a long one: %s, want %s", g, want)
	}
	for session, want := range map[string]string{one: want, two: "complete 3 65 true 0 first"} {
		shown, err := r.Show(t.Context(), session, View{Messages: 9})
		g := got(shown.Item)
		kit.Check(t, err == nil && g == want, "shown: %s, %v, want %s", g, err, want)
		n := len(shown.Last)
		kit.Check(t, n != 0 && shown.Last[n-1].Line == shown.Lines-1, "the last messages are %+v of %d lines", shown.Last, shown.Lines)
	}
}

// TestShownResultIsNotEmpty: a call that printed nothing says so.
func TestShownResultIsNotEmpty(t *testing.T) {
	r := newRoom(t)
	r.Server = nil
	r.write("-p/"+one+".jsonl", prompt("first")+
		`{"type":"assistant","uuid":"c1","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"true"}}]}}`+"\n"+
		`{"type":"user","uuid":"c2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":""}]}}`+"\n", time.Hour)
	shown, err := r.Show(t.Context(), one, View{Messages: 9})
	kit.Require(t, err == nil && len(shown.Last) > 0, "%+v, %v", shown.Last, err)
	kit.Equal(t, "the last message", shown.Last[len(shown.Last)-1].Text, "Bash: (no output)")
}

// TestOldAgentsOfDisk: agents' transcripts of old versions of Claude Code lie next to their sessions.
func TestOldAgentsOfDisk(t *testing.T) {
	r := newRoom(t)
	r.Server = nil
	r.write("-p/"+one+".jsonl", prompt("first")+answered("m1", 5), time.Hour)
	r.write("-p/agent-a.jsonl", strings.Replace(answered("g1", 4), `"type"`, `"sessionId":"`+one+`","type"`, 1), time.Hour)
	r.write("-p/agent-b.jsonl", strings.Replace(answered("g2", 9), `"type"`, `"sessionId":"`+two+`","type"`, 1), time.Hour)
	items, _, err := r.List(t.Context(), Filter{Limit: 9})
	shown, errShow := r.Show(t.Context(), one, View{})
	kit.Require(t, err == nil && errShow == nil && len(items) == 1, "%v %v %v", items, err, errShow)
	for what, i := range map[string]Item{"listed": items[0], "shown": shown.Item} {
		kit.Check(t, i.Agents == 1 && i.Tokens == 29, "%s: %d agents, %d tokens", what, i.Agents, i.Tokens)
	}
}

// TestCostOfDisk: a session that is only on disk costs what its requests do, long ones too, by the list that is in
// force.
func TestCostOfDisk(t *testing.T) {
	r := newRoom(t)
	r.Server = nil
	long := strings.Replace(answered("m1", 1_000_000), `"input_tokens":10`, `"input_tokens":1000000`, 1)
	r.write("-p/"+one+".jsonl", prompt("x")+strings.Replace(long, "claude-haiku-4-5", "claude-sonnet-4-5", 1), time.Hour)
	list, err := transcript.ReadPrices(strings.NewReader(`{"schema_version":1,"currency":"USD","per_tokens":1000000,"models":[` +
		`{"match":"*","input":1,"output":2,"long_context":{"input":7,"output":8}}]}`))
	kit.Must(t, err)
	for usd, prices := range map[float64]*transcript.Prices{6 + 22.5: nil, 7 + 8: list} {
		r.Prices = prices
		shown, err := r.Show(t.Context(), one, View{})
		kit.Check(t, err == nil && shown.Cost != nil && *shown.Cost == usd, "it costs %v (%v), want %v", shown.Cost, err, usd)
	}
}

// TestWorktreeOfDisk: a session in a worktree belongs to its repository.
func TestWorktreeOfDisk(t *testing.T) {
	r := newRoom(t)
	r.Server = nil
	r.write("-p/"+one+".jsonl", strings.Replace(prompt("x"), "/home/kim/shop", "/home/kim/shop/.claude/worktrees/a/sub", 1), 0)
	r.write("-q/"+two+".jsonl", strings.Replace(prompt("x"), "/home/kim/shop", "/home/kim/beside/sub", 1), 0)
	r.Repository = func(cwd string) string { return map[string]string{"/home/kim/beside/sub": "/home/kim/shop"}[cwd] }
	items, _, err := r.List(t.Context(), Filter{Limit: 9, Project: "shop"})
	kit.Check(t, err == nil && len(items) == 2 && items[0].Project == "shop" && items[1].Project == "shop",
		"%+v, %v", items, err)
}

// TestCountsOfServer: a server that is far behind says so; one that is a moment behind does not.
func TestCountsOfServer(t *testing.T) {
	for _, tt := range []struct {
		lines, read int64
		want        string
	}{{0, 0, Complete}, {5, 0, Reading}, {5, 5, Complete}, {500, 490, Complete}, {50_000, 490, Reading}} {
		s := remote.Session{Lines: tt.lines, Summary: remote.Summary{Lines: tt.read}}
		kit.Equal(t, fmt.Sprintf("%d of %d lines", tt.read, tt.lines), countsOf(&s), tt.want)
	}
}

// TestDescribeCompaction: what a transcript does not say of a compaction is not made up.
func TestDescribeCompaction(t *testing.T) {
	for _, c := range []struct {
		compact transcript.Compact
		want    string
	}{
		{transcript.Compact{}, ""},
		{transcript.Compact{Pre: 167000}, "at 167000 tokens"},
		{transcript.Compact{Trigger: "auto", Pre: 167000, Post: 9000}, "auto, at 167000 tokens, 9000 left"},
	} {
		kit.Equal(t, fmt.Sprintf("%+v", c.compact), describeCompaction(&c.compact), c.want)
	}
}
