package api_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

func objects(tag string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf(`{"%s":%d}`, tag, i))
	}
	return out
}

func file(parts ...[]string) string {
	var b strings.Builder
	for _, p := range parts {
		for _, l := range p {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// generationCase is what arrives, and what must be there then.
type generationCase struct {
	pieces []piece
	want   []wantView
}

type wantView struct {
	gen  int64
	file string // "" with missing > 0: not to be had whole
	miss int64
}

func a(from, to int) []string { return objects("a", from, to) }
func b(from, to int) []string { return objects("b", from, to) }
func c(from, to int) []string { return objects("c", from, to) }

func inOrder() map[string]generationCase {
	return map[string]generationCase{
		"grows": {[]piece{{lines: a(0, 3)}, {first: 3, lines: a(3, 5)}}, []wantView{{0, file(a(0, 5)), 0}}},
		"shrinks and goes on": {
			[]piece{{lines: a(0, 10)}, {gen: 1, rewound: 6, first: 6, lines: b(6, 8)}},
			[]wantView{{0, file(a(0, 10)), 0}, {1, file(a(0, 6), b(6, 8)), 0}},
		},
		"regrows past the old end": {
			[]piece{{lines: a(0, 4)}, {gen: 1, rewound: 2, first: 2, lines: b(2, 9)}},
			[]wantView{{0, file(a(0, 4)), 0}, {1, file(a(0, 2), b(2, 9)), 0}},
		},
		"a number of more than 32 bits": {
			[]piece{{lines: a(0, 2)}, {gen: 1<<32 + 1, rewound: 1, first: 1, lines: b(1, 3)}},
			[]wantView{{0, file(a(0, 2)), 0}, {1<<32 + 1, file(a(0, 1), b(1, 3)), 0}},
		},
		"pure shrink": {
			[]piece{{lines: a(0, 4)}, {gen: 1, rewound: 1, first: 1}},
			[]wantView{{0, file(a(0, 4)), 0}, {1, file(a(0, 1)), 0}},
		},
		"to nothing": {
			[]piece{{lines: a(0, 4)}, {gen: 1}},
			[]wantView{{0, file(a(0, 4)), 0}, {1, "", 0}},
		},
		"three deep": {
			[]piece{{lines: a(0, 6)}, {gen: 1, rewound: 4, first: 4, lines: b(4, 8)}, {gen: 2, rewound: 2, first: 2, lines: c(2, 3)}},
			[]wantView{{0, file(a(0, 6)), 0}, {1, file(a(0, 4), b(4, 8)), 0}, {2, file(a(0, 2), c(2, 3)), 0}},
		},
		"rewinds in ascending places": {
			[]piece{{lines: a(0, 6)}, {gen: 1, rewound: 2, first: 2, lines: b(2, 8)}, {gen: 2, rewound: 5, first: 5, lines: c(5, 6)}},
			[]wantView{{1, file(a(0, 2), b(2, 8)), 0}, {2, file(a(0, 2), b(2, 5), c(5, 6)), 0}},
		},
	}
}

func withGaps() map[string]generationCase {
	return map[string]generationCase{
		"a gap is not filled from an older one": {
			[]piece{{lines: a(0, 6)}, {gen: 1, rewound: 2, first: 4, lines: b(4, 6)}},
			[]wantView{{0, file(a(0, 6)), 0}, {1, "", 2}},
		},
		"newer first": {
			[]piece{{gen: 2, rewound: 2, first: 2, lines: c(2, 4)}, {gen: 1, rewound: 1, first: 1, lines: b(1, 3)}, {lines: a(0, 2)}},
			[]wantView{{0, file(a(0, 2)), 0}, {1, file(a(0, 1), b(1, 3)), 0}, {2, file(a(0, 1), b(1, 2), c(2, 4)), 0}},
		},
		"the first not there": {
			[]piece{{gen: 1, rewound: 2, first: 2, lines: b(2, 3)}},
			[]wantView{{1, "", 2}},
		},
		"no newline yet": {
			[]piece{{lines: a(0, 2)}, {first: 2, lines: a(2, 3), noNewline: true}},
			[]wantView{{0, strings.TrimSuffix(file(a(0, 3)), "\n"), 0}},
		},
		"newline later, then repeated without": {
			[]piece{{lines: a(0, 3), noNewline: true}, {first: 2, end: 3}, {lines: a(0, 3), noNewline: true}},
			[]wantView{{0, file(a(0, 3)), 0}},
		},
		"lines left out at the end": {
			[]piece{{lines: a(0, 3), end: 5}},
			[]wantView{{0, "", 2}},
		},
	}
}

func TestGenerations(t *testing.T) {
	for _, table := range []map[string]generationCase{inOrder(), withGaps()} {
		for name, tc := range table {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				for range 2 { // everything again changes nothing
					for _, p := range tc.pieces {
						r.post(p.body("s"))
					}
				}
				for _, w := range tc.want {
					checkView(t, r, w.gen, w.file, w.miss)
				}
			})
		}
	}
}

// checkView compares raw and digest of one generation with the file it must be.
func checkView(t *testing.T, r *rig, gen int64, want string, missing int64) {
	t.Helper()
	query := fmt.Sprintf("?generation=%d", gen)
	if missing == 0 {
		kit.Equal(t, fmt.Sprint("generation ", gen), r.raw("s", query), want)
	} else if a := r.get("/api/sessions/s/raw" + query); a.status != 409 {
		t.Errorf("generation %d with gaps: %d %q", gen, a.status, a.body)
	}
	found := false
	for _, d := range r.digest("s", "").Generations {
		if d.Generation != gen {
			continue
		}
		found = true
		kit.Check(t, d.Missing == missing && d.Lines == d.EndLine-missing, "generation %d: %+v, want %d missing", gen, d, missing)
		whole := want
		if whole != "" && !strings.HasSuffix(whole, "\n") {
			whole += "\n"
		}
		kit.Check(t, missing != 0 || d.SHA256 == sha(whole) && d.Bytes == int64(len(whole)) && d.EOFNewline == (whole == want),
			"generation %d: %+v, want digest of %q", gen, d, whole)
	}
	kit.Check(t, found, "generation %d is not in the digest", gen)
}

func TestEpochsAndMachines(t *testing.T) {
	r := newRig(t)
	r.post(piece{machine: "m1", epoch: "e1", lines: objects("a", 0, 2)}.body("s"))
	r.post(piece{machine: "m1", epoch: "e2", lines: objects("b", 0, 1)}.body("s"))
	r.post(piece{machine: "m1", epoch: "e1", first: 2, lines: objects("a", 2, 3)}.body("s")) // late rows of the old epoch
	for query, want := range map[string]string{
		"":                     file(objects("b", 0, 1)),
		"?epoch=e1":            file(objects("a", 0, 3)),
		"?machine=m1&epoch=e2": file(objects("b", 0, 1)),
	} {
		kit.Equal(t, query, r.raw("s", query), want)
	}
	r.post(piece{machine: "m2", epoch: "f1", lines: objects("c", 0, 1)}.body("s"))
	r.post(bare)
	for query, want := range map[string]string{
		"":            "{\"type\":\"user\"}\n{\"n\":1}\n", // heard last
		"?machine=":   "{\"type\":\"user\"}\n{\"n\":1}\n",
		"?machine=m1": file(objects("b", 0, 1)),
		"?machine=m2": file(objects("c", 0, 1)),
	} {
		kit.Equal(t, query, r.raw("s", query), want)
	}
	for _, query := range []string{"?machine=m3", "?epoch=nope", "?machine=m2&epoch=e1", "?generation=7"} {
		for _, call := range []string{"raw", "digest", "entries"} {
			r.send("GET", "/api/sessions/s/"+call+query, "", 404)
		}
	}
}

// encode is what a client makes of a file: one request with everything that its lines need.
func encode(t *testing.T, session, text string) string {
	t.Helper()
	whole := strings.HasSuffix(text, "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var entries []byte
	edges := [][3]any{}
	for i, line := range lines {
		if i > 0 {
			entries = append(entries, ',')
		}
		l := transcript.Scan([]byte(line))
		if l.Shape != transcript.Object {
			entries = transcript.AppendOpaque(entries, []byte(line), int64(i))
			continue
		}
		if l.Start > 0 || l.End < len(line) {
			b64 := base64.StdEncoding.EncodeToString
			edges = append(edges, [3]any{i, b64([]byte(line[:l.Start])), b64([]byte(line[l.End:]))})
		}
		entries = transcript.AppendEntry(entries, []byte(line), l, int64(i))
	}
	e := kit.Try(json.Marshal(edges)).Must(t)
	return fmt.Sprintf(`{"session_id":%q,"entries":[%s],"ccship":{"v":1,"machine":"m","epoch":"e","generation":0,`+
		`"rewound_to":0,"to":{"offset":%d,"line":%d},"eof_newline":%v,"edges":%s}}`,
		session, entries, len(text), len(lines), whole, e)
}

func TestByteExact(t *testing.T) {
	r := newRig(t)
	for i, text := range []string{
		"{\"a\":1}\r\n{\"b\":2}\r\n",
		"  {\"indented\" :  1 }\t\n\t{ }\n{}\n",
		"{\"lone\":\"\\ud83d\",\"html\":\"<&>\u2028\",\"dup\":1,\"dup\":2}\n",
		"{\"line_index\":77,\"a\":1}\n{\"a\":1,\"line_index\":5}\n",
		"\n\n{\"after\":\"blanks\"}\n\n",
		"{\"glued\":1}{\"glued\":2}\n\x00\x00\x00{\"nul\":1}\ncut {\"type\":\"user\"}\n",
		"\xff\xfe not utf-8\n[1,2]\n\"text\"\n",
		"{\"type\":\"ccship.opaque\",\"encoding\":\"base64\",\"data\":\"AAAA\"}\n",
		"{\"type\":\"ccship.oversize\",\"offset\":1,\"length\":2}\n",
		"{\"no\":\"newline\"}",
		"{\"quotes\":\"\\\\\\\"]}[{\",\"x\":[[{\"y\":\"}\"}]]}\n",
		"\n",
	} {
		session := fmt.Sprintf("exact/%d", i)
		r.post(encode(t, session, text))
		kit.Equal(t, "sent got", r.raw(session, ""), text)
		want := text
		if !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		d := r.digest(session, "").Generations[0]
		kit.Check(t, d.SHA256 == sha(want) && d.Missing == 0, "digest of %q: %+v", text, d)
	}
}

// TestLargeLine sends a line that is larger than what a request gets without waiting.
func TestLargeLine(t *testing.T) {
	r := newRig(t)
	text := `{"big":"` + strings.Repeat("x\\n", 7<<20) + "\"}\n{\"small\":1}\n"
	r.post(encode(t, "large", text))
	kit.Equal(t, fmt.Sprint("bytes came back of ", len(text)), r.raw("large", ""), text)
}

func TestPartialFile(t *testing.T) {
	r := newRig(t)
	r.post(`{"session_id":"s","entries":[{"line_index":0,"a":1},{"line_index":1,"type":"ccship.oversize","offset":8,` +
		`"length":99,"sha256":"` + strings.Repeat("ab", 32) + `"},{"line_index":3,"b":2}],` +
		`"ccship":{"v":1,"machine":"m","epoch":"e","to":{"offset":150,"line":5}}}`)
	kit.Has(t, "the refusal", string(r.send("GET", "/api/sessions/s/raw", "", 409).body), "3 of 5 lines")
	got, want := r.raw("s", "?partial=1"), "{\"a\":1}\n\n\n{\"b\":2}\n\n"
	kit.Check(t, got == want, "partial %q, want %q", got, want)
	g := r.digest("s", "").Generations[0]
	var places transcript.Layout
	places.Line(0)
	places.Oversize(1, transcript.Oversize{Offset: 8, Length: 99, SHA256: [32]byte(bytes.Repeat([]byte{0xab}, 32))})
	places.Line(3)
	lines := sha256.Sum256([]byte("{\"a\":1}\n{\"b\":2}\n"))
	kit.Check(t, g.Lines == 2 && g.Missing == 3 && g.EndLine == 5 && g.SHA256 == hex.EncodeToString(places.Sum(5, lines[:])), "%+v", g)
	kit.Check(t, len(g.Oversize) == 1 && g.Oversize[0].Line == 1 && g.Oversize[0].Offset == 8 && g.Oversize[0].Length == 99,
		"oversize %+v", g.Oversize)
	d := r.digest("s", "?generation=0&from=0&to=6")
	for i, want := range []string{sha("{\"a\":1}\n"), "", "", sha("{\"b\":2}\n"), "", ""} {
		got := ""
		if d.LineHashes[i] != nil {
			got = *d.LineHashes[i]
		}
		kit.Equal(t, fmt.Sprintf("line %d: hash", i), got, want)
	}
}

// TestGoldenRequests takes the requests that the client's end of the wire is pinned to: bodies (.json) or whole
// requests (.http).
func TestGoldenRequests(t *testing.T) {
	names := kit.Try(filepath.Glob("../../e2e/testdata/wire/*")).Must(t)
	names = slices.DeleteFunc(names, func(name string) bool {
		ext := filepath.Ext(name)
		return ext != ".json" && ext != ".http"
	})
	kit.Require(t, len(names) != 0, "no golden request in e2e/testdata/wire")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			body, encoding := golden(t, name)
			takeGolden(t, body, encoding)
		})
	}
}

// golden reads a golden request: its body as sent, and that body's encoding.
func golden(t *testing.T, name string) (body []byte, encoding string) {
	t.Helper()
	b := kit.Try(os.ReadFile(name)).Must(t)
	if filepath.Ext(name) == ".json" {
		return b, ""
	}
	req := kit.Try(http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))).Must(t)
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/api/conversations") {
		t.Skip("not an ingest request")
	}
	body = kit.Try(io.ReadAll(req.Body)).Must(t)
	return body, req.Header.Get("Content-Encoding")
}

func takeGolden(t *testing.T, body []byte, encoding string) {
	t.Helper()
	r := newRig(t)
	a := r.do("POST", "/api/conversations", map[string]string{"Content-Encoding": encoding}, bytes.NewReader(body))
	kit.Require(t, a.status == 200, "%d %s", a.status, a.body)
	if encoding == "zstd" {
		d := kit.Try(zstd.NewReader(nil)).Must(t)
		defer d.Close()
		body = kit.Try(d.DecodeAll(body, nil)).Must(t)
	} else if encoding != "" {
		return // taken; what it holds is another golden's business
	}
	var req struct {
		SessionID string `json:"session_id"`
		Entries   []any
		Ccship    *struct {
			Machine, Epoch string
			Generation     int64
			EOFNewline     bool `json:"eof_newline"`
		}
	}
	kit.Must(t, json.Unmarshal(body, &req))
	kit.Equal(t, "lines stored", r.count("lines"), len(req.Entries))
	d := r.digest(req.SessionID, "")
	x := req.Ccship
	kit.Check(t, x == nil || d.Machine == x.Machine && d.Epoch == x.Epoch && d.Generations[0].Generation == x.Generation &&
		d.Generations[0].EOFNewline == x.EOFNewline, "stored as %+v", d)
	r.send("GET", "/api/sessions/"+url.PathEscape(req.SessionID)+"/raw?partial=1", "", 200)
}

// TestKeysAreCounted: a user has a hundred keys at most; one that is revoked frees its slot, and others are not
// hindered.
func TestKeysAreCounted(t *testing.T) {
	owner := newRig(t)
	eve := owner.person("eve", server.Viewer) // with a key
	for i := range 99 {
		eve.send("POST", "/api/keys", fmt.Sprintf(`{"name":"k%d"}`, i), http.StatusCreated)
	}
	eve.send("POST", "/api/keys", `{"name":"more"}`, http.StatusConflict)
	owner.send("POST", "/api/keys", `{"name":"others"}`, http.StatusCreated)
	eve.send("DELETE", "/api/keys/k0", "", http.StatusOK)
	eve.send("POST", "/api/keys", `{"name":"more"}`, http.StatusCreated)
}

// TestLinksAreCounted: a user has two hundred links to sessions that work at most.
func TestLinksAreCounted(t *testing.T) {
	owner := newRig(t)
	ann := owner.person("ann", server.Member)
	ann.send("POST", "/api/conversations", `{"project_hash":"p","session_id":"s","entries":[{"line_index":0,"type":"user","message":{"role":"user","content":"a"}}]}`, http.StatusOK)
	for range 200 {
		ann.send("POST", "/api/sessions/s/share-links", `{}`, http.StatusCreated)
	}
	ann.send("POST", "/api/sessions/s/share-links", `{}`, http.StatusConflict)
}
