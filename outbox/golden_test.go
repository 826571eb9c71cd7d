package outbox

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

var update = flag.Bool("update", false, "write the golden requests anew")

// golden is a request that both ends of the wire are pinned to.
type golden struct {
	name    string
	stream  Stream
	batches []Batch
	bare    bool
}

func goldens() []golden {
	agent := conversation(2)
	agent.SessionID, agent.Path = "1c0e5a52-0000-4000-8000-000000000001/agent-a0b1", "-work-shop/1c0e5a52-0000-4000-8000-000000000001/subagents/agent-a0b1.jsonl"
	agent.Parent, agent.Repository = "1c0e5a52-0000-4000-8000-000000000001", "r-1"
	odd := conversation(3)
	odd.SessionID, odd.Cwd, odd.Project = `odd"name\`, "/work/<shop> & söhne\n", "-work-shop"
	marker := Batch{Kind: Marker, Generation: 2, RewoundTo: 1, From: protocol.Position{Offset: 20, Line: 1}, To: protocol.Position{Offset: 20, Line: 1}}
	provisional := batchOf(Objects, 2, `{"line_index":2,"type":"summary"}`)
	provisional.NoNewline, provisional.To.Offset = true, provisional.To.Offset-1
	edged := batchOf(Objects, 0, `{"line_index":0}`, `{"line_index":1, "line_index" : 9 }`)
	edged.Edges = []protocol.Edge{{Line: 0, Before: []byte("  ")}, {Line: 1, After: []byte("\r")}}
	more := batchOf(Objects, 2, "{\"line_index\":2,\"text\":\"\\ud83d <&>\"}")
	more.Edges = []protocol.Edge{{Line: 2, Before: []byte("\t"), After: []byte(" \r")}}
	opaque := batchOf(Opaque, 1, `{"line_index":1,"type":"ccship.opaque","encoding":"base64","data":"AAAA"}`,
		`{"line_index":2,"type":"ccship.oversize","offset":40,"length":70000000,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`)
	return []golden{
		{"plain", conversation(1), rowsOf(0, 3, 2), true},
		{"extension", agent, rowsOf(0, 3, 2), false},
		{"marker", conversation(1), []Batch{marker}, false},
		{"provisional", conversation(1), append(rowsOf(0, 2, 2), provisional), false},
		{"edges", odd, []Batch{edged, more}, false},
		{"opaque", conversation(1), append(rowsOf(0, 1, 1), opaque), false},
	}
}

// TestGoldenRequests pins the bytes of requests. The server reads the same files from its side.
func TestGoldenRequests(t *testing.T) {
	for _, test := range goldens() {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			took(r)
			r.codings = ""
			r.queue.learned.Zstd = false
			r.drainer.dest.Plain = test.bare
			r.queue.add(test.stream, test.batches...)
			r.drain()
			n := r.count()
			kit.Require(t, n == 1, "%d requests", n)
			got := r.last().body
			name := filepath.Join("..", "e2e", "testdata", "wire", test.name+".json")
			if *update {
				kit.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
				kit.Must(t, os.WriteFile(name, got, 0o644))
			}
			want := kit.Try(os.ReadFile(name)).Must(t)
			kit.Equal(t, fmt.Sprintf("request differs from %s; go test -update writes it anew", name), got, want)
			packed := compressed(t, test.stream, test.batches, test.bare)
			kit.Equal(t, "as zstd it differs", packed, want)
		})
	}
}

// TestGoldenBeside pins the bytes of requests for what lies next to lines.
func TestGoldenBeside(t *testing.T) {
	agent := conversation(2)
	agent.SessionID, agent.Path = "1c0e5a52-0000-4000-8000-000000000001/agent-a0b1", "-work-shop/1c0e5a52-0000-4000-8000-000000000001/subagents/agent-a0b1.jsonl"
	agent.Parent = "1c0e5a52-0000-4000-8000-000000000001"
	p := NewPacker()
	text := []byte("spilled text\n")
	blob := p.Blob(refOf("tool-results/toolu_0001.txt", text), text)
	for name, batch := range map[string]Batch{
		"checkpoints": p.Checkpoints(itemsOf(
			`{"id":"cp-1","session_id":"1c0e5a52-0000-4000-8000-000000000001","tokens_used":171000,"token_budget":200000,"trigger_type":"auto","context_hash":"aa11","summary":"half < way & on","active_files":["a.go"],"created_at":"2026-03-01T12:00:00Z","generation":1,"line":42}`,
			`{"id":"cp-2","session_id":"1c0e5a52-0000-4000-8000-000000000001","port_id":"p-7","tokens_used":190000,"token_budget":200000,"trigger_type":"compact","context_hash":"bb22","summary":"","active_files":[],"created_at":"2026-03-01T12:05:00Z","generation":1,"line":57}`)),
		"documents": p.Documents(itemsOf(
			`{"path":"docs/plan.md","change":"linked","by":"claude","added_at":"2026-03-01T12:00:00Z","at":"2026-03-01T12:00:00Z","version":1,"size":6,"sha256":"1ee55b7ae632bd99dfea4f2d791ff06b1119975e96d4f822050923e7499f44cb","encoding":"utf-8","content":"# Plan"}`,
			`{"path":"docs/plan.md","change":"deleted","by":"other","added_at":"2026-03-01T12:00:00Z","at":"2026-03-01T13:00:00Z","version":2,"size":0,"sha256":""}`)),
	} {
		r, s := newShelf(t)
		took(r)
		r.queue.learned.Zstd, r.queue.learned.Accepts = false, Kinds(0).With(batch.Kind)
		r.queue.add(agent, batch)
		r.drain()
		pin(t, name, s.bodies...)
		kit.Equal(t, "as zstd it differs", compressed(t, agent, []Batch{batch}, false), s.bodies[0])
	}
	r, s, _ := newUploads(t)
	r.queue.add(conversation(1), blob)
	r.drain()
	pin(t, "blob_start", s.bodies[0])
	pin(t, "blob_end", s.bodies[1])
}

// pin compares a request with the one on disk.
func pin(t *testing.T, name string, got ...[]byte) {
	t.Helper()
	kit.Require(t, len(got) == 1, "%s: %d requests", name, len(got))
	file := filepath.Join("..", "e2e", "testdata", "wire", "artifacts", name+".json")
	if *update {
		kit.Must(t, os.WriteFile(file, got[0], 0o644))
	}
	want := kit.Try(os.ReadFile(file)).Must(t)
	kit.Equal(t, fmt.Sprintf("request differs from %s; go test -update writes it anew", file), got[0], want)
}

// compressed is the same request as zstd frames, decoded again.
func compressed(t *testing.T, s Stream, batches []Batch, bare bool) []byte {
	req := request{stream: &s, batches: batches, bare: bare, zstd: true}
	p := kit.Try(req.payload(&origin, &codecs{})).Must(t)
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(p.open()); err != nil || int64(raw.Len()) != p.length {
		t.Fatalf("%d bytes of %d, %v", raw.Len(), p.length, err)
	}
	return kit.Try(decode("zstd", raw.Bytes())).Must(t)
}

func TestSplitEntries(t *testing.T) {
	tests := []struct {
		raw  string
		want []string // nil: an error
	}{
		{`{}`, []string{`{}`}},
		{`{},{}`, []string{`{}`, `{}`}},
		{`{"a":"},{"},{"b":"\"},{\\"}`, []string{`{"a":"},{"}`, `{"b":"\"},{\\"}`}},
		{`{"a":[{"b":{}},[]],"c":1},{"d":"\\\\"}`, []string{`{"a":[{"b":{}},[]],"c":1}`, `{"d":"\\\\"}`}},
		{"{\"a\":\"\xff\\ud83d\"},{ }", []string{"{\"a\":\"\xff\\ud83d\"}", "{ }"}},
		{``, []string{}},
		{`{},`, nil}, {`,{}`, nil}, {`{}{}`, nil}, {`{`, nil}, {`{"a`, nil}, {`{"a\"`, nil}, {`[]`, nil}, {`{}, {}`, nil}, {`x`, nil},
	}
	for _, test := range tests {
		got, err := splitEntries([]byte(test.raw))
		if (err != nil) != (test.want == nil) {
			t.Errorf("%s: %v", test.raw, err)
			continue
		}
		kit.Check(t, err != nil || string(bytes.Join(got, []byte("|"))) == strings.Join(test.want, "|"),
			"%s: %q, want %q", test.raw, got, test.want)
	}
}

func TestLineIndex(t *testing.T) {
	for entry, want := range map[string]int64{
		`{"line_index":0}`: 0, `{"line_index":12,"type":"user"}`: 12, `{"line_index":123456789012345678,"`: 123456789012345678,
		`{"line_index":}`: -1, `{"line_index":12`: -1, `{"line_index":-1}`: -1, `{"line_index":1.5}`: -1, `{}`: -1, ``: -1,
		`{"line_index":1234567890123456789}`: -1,
	} {
		got, ok := lineIndex([]byte(entry))
		kit.Check(t, ok == (want >= 0) && (!ok || got == want), "%s: %d, %t", entry, got, ok)
	}
}

// FuzzSplitEntries: objects joined by commas come apart again, and nothing makes the splitter fall over.
func FuzzSplitEntries(f *testing.F) {
	f.Add([]byte(`{"a":"},{"}`), []byte(`{"b":"\"\\"}`))
	f.Add([]byte(`{"a":[{},"\\\""]}`), []byte(`{}`))
	f.Add([]byte("{\"\xff\":\"\\ud83d\"}"), []byte(`{"line_index":7}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if parts, err := splitEntries(a); err == nil {
			got := bytes.Join(parts, []byte{','})
			kit.Require(t, bytes.Equal(got, a), "%q came apart as %q", a, parts)
		}
		if !object(a) || !object(b) {
			return
		}
		parts, err := splitEntries(bytes.Join([][]byte{a, b, a}, []byte{','}))
		kit.Require(t, err == nil && len(parts) == 3 && bytes.Equal(parts[0], a) && bytes.Equal(parts[1], b),
			"%q and %q came apart as %q, %v", a, b, parts, err)
	})
}

func object(b []byte) bool { return len(b) > 1 && b[0] == '{' && b[len(b)-1] == '}' && json.Valid(b) }

// TestPack: what is packed comes out again, whole and as a stream, whatever its size.
func TestPack(t *testing.T) {
	p, c := NewPacker(), &codecs{}
	random := rand.New(rand.NewPCG(1, 2))
	prefix := []byte("kept")
	for _, n := range []int{1, 100, 10 << 10, frameWindow - 1, frameWindow, frameWindow + 1, wholeFrame, wholeFrame + 1, 5 << 20} {
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = byte(random.IntN(64)) + ' '
		}
		out := p.Pack(bytes.Clone(prefix), raw)
		b := Batch{Raw: int64(n), Frame: out[len(prefix):], Entries: 1}
		kit.Check(t, bytes.HasPrefix(out, prefix), "%d: what was in dst is gone", n)
		whole, err := c.Unpack(bytes.Clone(prefix), &b)
		kit.Check(t, err == nil && bytes.Equal(whole, append(bytes.Clone(prefix), raw...)), "%d: unpacked %d bytes, %v",
			n, len(whole), err)
		var req request
		stream := newPayload(&req, c, []framePart{{Packed: &b}})
		got, err := io.ReadAll(stream.open())
		kit.Check(t, err == nil && bytes.Equal(got, raw) && stream.length == int64(n), "%d: streamed %d bytes, %v", n,
			len(got), err)
		// A header that lies is noticed before the request is whole.
		for _, lie := range []int64{-1, 1} {
			wrong := b
			wrong.Raw += lie
			_, err := io.ReadAll(newPayload(&req, c, []framePart{{Packed: &wrong}}).open())
			kit.Check(t, err != nil && req.damaged.Load() != nil, "%d: length %+d passed", n, lie)
		}
	}
}

// TestHalve: two halves have the row's entries and edges, each where it belongs.
func TestHalve(t *testing.T) {
	c := &codecs{}
	b := batchOf(Objects, 10, entry(10, "a"), entry(11, "b"), entry(14, "c"), entry(15, "d"), entry(16, "e"))
	b.Seq, b.NoNewline, b.RewoundTo = 7, true, 3
	b.Edges = []protocol.Edge{{Line: 10}, {Line: 11}, {Line: 14}, {Line: 16}}
	first, second, err := c.halve(&b)
	kit.Must(t, err)
	for _, half := range []struct {
		b     Batch
		want  string
		edges int
	}{
		{first, entry(10, "a") + "," + entry(11, "b"), 2},
		{second, entry(14, "c") + "," + entry(15, "d") + "," + entry(16, "e"), 2},
	} {
		raw, err := c.Unpack(nil, &half.b)
		if err != nil || string(raw) != half.want || len(half.b.Edges) != half.edges || half.b.To != b.To || half.b.Seq != 7 {
			t.Errorf("half %+v holds %s, %v", half.b, raw, err)
		}
	}
	kit.Check(t, first.Entries == 2 && second.Entries == 3 && second.Edges[0].Line == 14,
		"%d and %d entries, edges %+v", first.Entries, second.Entries, second.Edges)
}

func TestNormalizeURL(t *testing.T) {
	tests := []struct{ raw, want, wrong string }{
		{raw: "http://localhost:5000", want: "http://localhost:5000"},
		{raw: " HTTPS://Example.COM:443/ ", want: "https://example.com"},
		{raw: "http://example.com:80/ccship/", want: "http://example.com/ccship"},
		{raw: "https://example.com:80", want: "https://example.com:80"},
		{raw: "http://example.com/a//b/../c", want: "http://example.com/a/c"},
		{raw: "http://example.com/x/api/conversations/", want: "http://example.com/x"},
		{raw: "http://[::1]:5000/", want: "http://[::1]:5000"},
		{raw: "http://[::1]:80/", want: "http://[::1]"},
		{raw: "", wrong: "empty"},
		{raw: "localhost:5000", wrong: "write http://localhost:5000"},
		{raw: "me:secret@example.com", wrong: "write http://example.com"},
		{raw: "ftp://example.com", wrong: "only http"},
		{raw: "ftp://me:secret@example.com", wrong: "API key file"},
		{raw: "http://", wrong: "no host"},
		{raw: "http://me:secret@example.com", wrong: "API key file"},
		{raw: "http://example.com/?a=b", wrong: "query"},
		{raw: "http://example.com:port", wrong: "port"},
		{raw: "http://example.com:0", wrong: "port"},
		{raw: "http://example.com:65536", wrong: "port"},
		{raw: "http://example.com/B%20c%2Fd", want: "http://example.com/B%20c%2Fd"},
	}
	for _, test := range tests {
		u, key, err := NormalizeURL(test.raw)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v, want words about %q", test.raw, err, test.wrong)
			}
		case err != nil || key != test.want || u.String() != test.want:
			t.Errorf("%q: %q, %v, want %q", test.raw, key, err, test.want)
		default:
			_, again, err := NormalizeURL(key)
			kit.Check(t, err == nil && again == key, "%q becomes %q, %v when normalised again", key, again, err)
		}
	}
}

// TestLineIndexOfEmptyObjects reads the number of every entry that can be queued: one without members keeps the white space between
// its braces.
func TestLineIndexOfEmptyObjects(t *testing.T) {
	for entry, want := range map[string]int64{
		`{"line_index":0}`: 0, `{"line_index":7,"a":1}`: 7, `{"line_index":11 }`: 11, "{\"line_index\":12\t}": 12, "{\"line_index\":13\r}": 13,
		`{"line_index":1x}`: -1, `{"line_index":}`: -1, `{"a":1}`: -1, `{"line_index":5`: -1,
	} {
		n, ok := lineIndex([]byte(entry))
		kit.Check(t, ok == (want >= 0) && (!ok || n == want), "%s: %d %v, want %d", entry, n, ok, want)
	}
}

// TestHalveAtAnEmptyObject cuts a row in the middle, where an object without members stands.
func TestHalveAtAnEmptyObject(t *testing.T) {
	raw := []byte(`{"line_index":0,"a":1},{"line_index":1 },{"line_index":2,"a":1}`)
	b := Batch{Entries: 3, Raw: int64(len(raw)), Frame: NewPacker().Pack(nil, raw)}
	first, second, err := new(codecs).halve(&b)
	kit.Check(t, err == nil && first.Entries == 1 && second.Entries == 2, "halves of %d and %d entries, %v",
		first.Entries, second.Entries, err)
}
