package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

// TestFoundText: each line has its session and number; an answer has space for what is best, and counts the rest.
func TestFoundText(t *testing.T) {
	hit := func(line int, current bool, text string) map[string]any {
		return map[string]any{"line": line, "kind": "prompt", "current": current, "at": "2026-11-20T10:00:00Z",
			"snippet": []any{map[string]any{"text": text[:3]}, map[string]any{"text": text[3:]}}}
	}
	text := func(doc map[string]any) string {
		t.Helper()
		out := kit.Try(json.Marshal(doc)).Must(t)
		return kit.Try(foundText(out)).Must(t)
	}
	got := text(map[string]any{"total": 2, "missing": []string{"gift"}, "notes": []string{"a: is no filter"}, "sessions": []any{
		map[string]any{"session": "s-1", "user": "kim", "project": "shop", "title": "Fix\nit", "missing": []string{"gift"},
			"hits": []any{hit(4, true, "fix the\ncart"), hit(7, false, "old cart")}},
		map[string]any{"session": "h", "user": "kim", "gone_session": "s-0", "hits": []any{hit(0, true, "count it")}},
	}})
	want := `note: a: is no filter
no session has all words; the best lacks: gift
session s-1 (kim, shop) "Fix it" without gift
  line 5, prompt, 2026-11-20: fix the cart
  line 8, prompt, 2026-11-20, rewound since: old cart
prompt history of kim; only prompts are left of s-0
  line 1, prompt, 2026-11-20: count it`
	kit.Check(t, got == want, "got:\n%s\nwant:\n%s", got, want)
	forged := hit(1, true, "a line")
	forged["kind"] = "prompt\nINJECTED"
	got = text(map[string]any{"total": 1, "sessions": []any{map[string]any{"session": "s-1\nINJECTED", "user": "eve\nINJECTED",
		"project": "p\nINJECTED", "title": "t\nINJECTED", "gone_session": nil, "missing": []string{"w\nINJECTED"}, "hits": []any{forged}}}})
	kit.Check(t, !strings.Contains(got, "\nINJECTED") && strings.Count(got, "INJECTED") == 6,
		"what others chose begins a line:\n%s", got)
	kit.Equal(t, "text", text(map[string]any{}), "nothing found")
	var many []any
	for i := range 100 {
		many = append(many, map[string]any{"session": fmt.Sprint("s-", i), "title": strings.Repeat("장바구니", 1000),
			"hits": []any{hit(i, true, strings.Repeat("장바구니 ", 1000)), hit(i, true, strings.Repeat("x", 1000))}})
	}
	got = text(map[string]any{"total": 100, "sessions": many})
	kit.Check(t, len(got) <= foundBytes+200 && utf8.ValidString(got) && strings.Contains(got, "s-0 ") && strings.Contains(got, "further sessions"),
		"%d bytes:\n%s", len(got), got)
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestBadLines: what is no message is answered by JSON-RPC's error, with its id if any, and what follows as ever.
func TestBadLines(t *testing.T) {
	nested := func(n int) string {
		return `{"jsonrpc":"2.0","id":7,"method":"ping","params":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	r, cmd := start(t, "-socket", "/nowhere")
	r.ask(hello)
	for name, c := range map[string]struct {
		line string
		code int
		id   any
	}{
		"no JSON":             {`{nope`, -32700, nil},
		"a NUL":               {"\x00\x00", -32700, nil},
		"half a message":      {`{"jsonrpc":"2.0","id":7,"method":"ping"`, -32700, nil},
		"two messages":        {`{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"ping"}`, -32700, nil},
		"a message and more":  {`{"jsonrpc":"2.0","id":7,"method":"ping"} x`, -32700, nil},
		"nesting 20 000 deep": {nested(20_000), -32700, nil},
		"nesting 2 000 deep":  {nested(2_000), -32600, 7.0},
		"no batch":            {`[]`, -32600, nil},
		"a batch":             {`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, -32600, nil},
		"a number":            {`5`, -32600, nil},
		"null":                {`null`, -32600, nil},
		"a string":            {`"ping"`, -32600, nil},
		"nothing said":        {`{}`, -32600, nil},
		"an id alone":         {`{"id":{}}`, -32600, nil},
		"no version":          {`{"id":7,"method":"ping"}`, -32600, 7.0},
		"another version":     {`{"jsonrpc":"1.0","id":"seven","method":"ping"}`, -32600, "seven"},
		"a number as version": {`{"jsonrpc":2.0,"id":7,"method":"ping"}`, -32600, 7.0},
		"an object as method": {`{"jsonrpc":"2.0","id":7,"method":{}}`, -32600, 7.0},
		"an object as id":     {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, nil},
		"a list as id":        {`{"jsonrpc":"2.0","id":[7],"method":"ping"}`, -32600, nil},
		"half an id":          {`{"jsonrpc":"2.0","id":7.5,"method":"ping"}`, -32600, nil},
		"an id too long":      {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, -32600, nil},
		"params of no kind":   {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"x"}`, -32602, 7.0},
		"a huge line":         {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"` + strings.Repeat("x", 20<<20) + `"}}`, -32600, nil},
		"a huge word":         {strings.Repeat("\x00", 33<<20), -32600, nil},
	} {
		if a := r.ask(c.line); a.Error == nil || a.Error.Code != c.code || a.ID != c.id {
			t.Errorf("%s: %+v, %+v, want %d for %v", name, a, a.Error, c.code, c.id)
		}
		a := r.ask(`{"jsonrpc":"2.0","id":77,"method":"ping"}`)
		kit.Require(t, a.Error == nil && a.ID == 77.0, "after %s: %+v", name, a)
	}
	r.end(cmd)
}

// TestLinesWithoutAnswer: blank lines, notifications and answers, whole or broken, are not answered.
func TestLinesWithoutAnswer(t *testing.T) {
	r, cmd := start(t, "-socket", "/nowhere")
	r.ask(hello)
	for _, line := range []string{
		"", " \t\r", `{"jsonrpc":"2.0","method":"no/such"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","id":999,"result":{}}`, `{"jsonrpc":"2.0","id":999,"error":"no"}`, `{"id":999,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, `{"jsonrpc":"2.0","id":{},"result":{}}`,
	} {
		a := r.ask(line + "\n" + `{"jsonrpc":"2.0","id":77,"method":"ping"}` + "\r")
		kit.Check(t, a.Error == nil && a.ID == 77.0, "%q is answered with %+v, %+v", line, a, a.Error)
	}
	r.end(cmd)
}

// TestLargestLine: a message as long as they may be is taken; so is one that comes in pieces.
func TestLargestLine(t *testing.T) {
	r, cmd := start(t, "-socket", "/nowhere")
	r.ask(hello)
	line := `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":""}}`
	full := strings.Replace(line, `""`, `"`+strings.Repeat("x", maxLine-len(line))+`"`, 1)
	a := r.ask(full)
	kit.Check(t, a.Error == nil && a.ID == 7.0, "%d bytes: %+v, %+v", len(full), a, a.Error)
	a = r.ask(full + " ")
	kit.Check(t, a.Error != nil && a.Error.Code == -32600, "a byte more: %+v", a)
	for part := range slices.Chunk([]byte(line), 5) {
		kit.Try(r.in.Write(part)).Must(t)
	}
	a = r.ask("")
	kit.Check(t, a.Error == nil && a.ID == 7.0, "in pieces: %+v", a)
	r.end(cmd)
}

// TestBadLinesAmongCalls: errors and answers that are written at the same time are whole lines.
func TestBadLinesAmongCalls(t *testing.T) {
	r, cmd := start(t, "-socket", "/nowhere")
	r.ask(hello)
	const n = 300
	go func() {
		for i := range n {
			_, _ = fmt.Fprintf(r.in, "{nope\n"+`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"list_documents","arguments":{}}}`+"\n", i)
		}
	}()
	answers := map[any]int{}
	for range 2 * n {
		var a struct{ ID any }
		kit.Require(t, r.out.Scan(), "the answers have ended")
		if err := json.Unmarshal(r.out.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, r.out.Bytes())
		}
		answers[a.ID]++
	}
	kit.Check(t, len(answers) == n+1 && answers[nil] == n,
		"%d different ids, %d errors without one, want %d and %d", len(answers), answers[nil], n+1, n)
	r.end(cmd)
}

// TestUnfinishedLine: a last line without a newline is taken, or answered; then the program ends as ever.
func TestUnfinishedLine(t *testing.T) {
	r, cmd := start(t, "-socket", "/nowhere")
	r.ask(hello)
	kit.Try(io.WriteString(r.in, `{"jsonrpc":"2.0","id":7`)).Must(t)
	kit.Must(t, r.in.Close())
	kit.Check(t, r.out.Scan() && strings.Contains(r.out.Text(), "-32700"), "answered with %q", r.out.Text())
	err := cmd.Wait()
	kit.Check(t, err == nil, "it ends with %v", err)
}
