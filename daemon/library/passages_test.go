package library

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
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
