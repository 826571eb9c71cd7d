package api_test

import (
	"bytes"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestClientBeforeTheLedger: a client of the version before the ledger delivers lines, more of them, and a rewind, each
// request twice, as after a lost answer. Then it is updated, and goes on with the same state.
func TestClientBeforeTheLedger(t *testing.T) {
	const session, dir = "11111111-1111-4111-8111-111111111111", "../../e2e/testdata/wire-before-ledger/"
	line := func(n, word string) string {
		cwd := ""
		if n == "1" {
			cwd = `"sessionId":"` + session + `","cwd":"/w",`
		}
		return `{"type":"user","uuid":"u` + n + `",` + cwd + `"message":{"role":"user","content":"` + word + "\"}}\n"
	}
	first, rewound := line("1", "one")+line("2", "two")+line("3", "three"), line("1", "one")+line("4", "four")
	r := newRig(t)
	var last []byte
	for _, step := range []struct{ file, now string }{
		{"1.json", line("1", "one") + line("2", "two")}, {"2.json", first}, {"3.json", ""}, {"4.json", rewound},
	} {
		body, err := os.ReadFile(dir + step.file)
		must(t, err)
		for range 2 {
			if a := r.do("POST", "/api/conversations", nil, bytes.NewReader(body)); a.status != 200 || !strings.Contains(string(a.body), `"success":true`) {
				t.Fatalf("%s: %d %s", step.file, a.status, a.body)
			}
		}
		if got := r.raw(session, ""); got != step.now {
			t.Errorf("after %s: %q, want %q", step.file, got, step.now)
		}
		last = body
	}
	if got := r.raw(session, "?generation=0"); got != first {
		t.Errorf("the generation before: %q", got)
	}
	d := &writes{r: r, incarnation: "a", count: "0"}
	next := strings.NewReplacer(`"line":0},"to":{"offset":203,"line":2}`, `"line":2},"to":{"offset":280,"line":3}`,
		`"offset":0,`, `"offset":203,`).Replace(string(last))
	next = next[:strings.Index(next, `[{`)] + `[{"line_index":2,"type":"user","uuid":"u5"}]` + next[strings.Index(next, `,"ccship"`):]
	if status, c := d.post("/api/conversations", next); status != http.StatusConflict || c.Error.Code != "writer_behind" {
		t.Errorf("the first write after the update: %d %+v", status, c)
	}
	var at struct {
		Store string
		Count int64
	}
	r.getJSON("/api/ledger?machine=000102030405060708090a0b0c0d0e0f&since=0", &at)
	d.store, d.count = at.Store, strconv.FormatInt(at.Count, 10)
	if status, c := d.post("/api/conversations", next); status != http.StatusOK {
		t.Errorf("and once it knows the ledger: %d %+v", status, c)
	}
	if got := r.raw(session, ""); got != rewound+`{"type":"user","uuid":"u5"}`+"\n" {
		t.Errorf("then %q", got)
	}
}
