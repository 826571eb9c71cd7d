package outbox

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
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
	agent.Parent = "1c0e5a52-0000-4000-8000-000000000001"
	odd := conversation(3)
	odd.SessionID, odd.Cwd, odd.Project = `odd"name\`, "/work/<shop> & söhne\n", "-work-shop"
	marker := Batch{Kind: Marker, Generation: 2, RewoundTo: 1, From: Position{20, 1}, To: Position{20, 1}}
	provisional := batchOf(Objects, 2, `{"line_index":2,"type":"summary"}`)
	provisional.NoNewline, provisional.To.Offset = true, provisional.To.Offset-1
	edged := batchOf(Objects, 0, `{"line_index":0}`, `{"line_index":1, "line_index" : 9 }`)
	edged.Edges = []Edge{{Line: 0, Before: []byte("  ")}, {Line: 1, After: []byte("\r")}}
	more := batchOf(Objects, 2, "{\"line_index\":2,\"text\":\"\\ud83d <&>\"}")
	more.Edges = []Edge{{Line: 2, Before: []byte("\t"), After: []byte(" \r")}}
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
			r.start()
			r.drained()
			if n := r.count(); n != 1 {
				t.Fatalf("%d requests", n)
			}
			got := r.last().body
			name := filepath.Join("..", "e2e", "testdata", "wire", test.name+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("request differs from %s; go test -update writes it anew\n got %s\nwant %s", name, got, want)
			}
			packed := compressed(t, test.stream, test.batches, test.bare)
			if !bytes.Equal(packed, want) {
				t.Errorf("as zstd it differs:\n got %s\nwant %s", packed, want)
			}
		})
	}
}

// compressed is the same request as zstd frames, decoded again.
func compressed(t *testing.T, s Stream, batches []Batch, bare bool) []byte {
	req := request{stream: &s, batches: batches, bare: bare, encoding: zstdCoding}
	p, err := req.payload(&origin, &codecs{})
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(p.open()); err != nil || int64(raw.Len()) != p.length {
		t.Fatalf("%d bytes of %d, %v", raw.Len(), p.length, err)
	}
	body, err := decode("zstd", raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return body
}
