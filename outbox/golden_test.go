package outbox

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
