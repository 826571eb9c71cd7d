package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

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
