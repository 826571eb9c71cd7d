package route

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// shown is a batch as the tests compare it.
type shown struct {
	Kind    outbox.Kind
	From    string
	To      string
	Entries int
	Body    string
	Edges   string
	Open    bool // no newline yet
}

func show(t *testing.T, batches []outbox.Batch) []shown {
	t.Helper()
	d := kit.Try(zstd.NewReader(nil)).Must(t)
	defer d.Close()
	var out []shown
	for _, b := range batches {
		s := shown{Kind: b.Kind, Entries: b.Entries, Open: b.NoNewline}
		s.From, s.To = fmt.Sprint(b.From), fmt.Sprint(b.To)
		if len(b.Frame) > 0 {
			body := kit.Try(d.DecodeAll(b.Frame, nil)).Must(t)
			kit.Check(t, int64(len(body)) == b.Raw, "Raw is %d, the frame holds %d bytes", b.Raw, len(body))
			s.Body = string(body)
		}
		for _, e := range b.Edges {
			s.Edges += fmt.Sprintf("%d:%q:%q ", e.Line, e.Before, e.After)
		}
		out = append(out, s)
	}
	return out
}

// chunkOf is a chunk of a file from its start, or from a cursor.
func chunkOf(lines string, from tail.Cursor) *tail.Chunk {
	to := from
	to.Offset += int64(len(lines))
	to.Line += int64(strings.Count(lines, "\n"))
	return &tail.Chunk{Prev: from, From: from, To: to, Lines: []byte(lines)}
}

func TestBatches(t *testing.T) {
	rewound := chunkOf("", tail.Cursor{Offset: 40, Line: 4, Generation: 2})
	rewound.Prev.Generation = 1
	sealed := chunkOf("{\"a\":1}\n", tail.Cursor{Offset: 10, Line: 1})
	sealed.Sealed = true
	more := chunkOf("{\"a\":1}\n{\"b\":2}\n", tail.Cursor{Offset: 10, Line: 1})
	more.Sealed = true
	open := chunkOf("{\"a\":1}\n", tail.Cursor{})
	open.Provisional = []byte(`{"b":2}`)
	over := chunkOf("", tail.Cursor{Offset: 8, Line: 1})
	over.To = tail.Cursor{Offset: 109, Line: 2}
	over.Oversize = &tail.Oversize{Offset: 8, Length: 100}
	for name, c := range map[string]struct {
		chunk *tail.Chunk
		want  []shown
	}{
		"objects": {chunkOf("{\"type\":\"user\"}\n{}\n", tail.Cursor{}), []shown{
			{From: "{0 0}", To: "{19 2}", Entries: 2, Body: `{"line_index":0,"type":"user"},{"line_index":1}`},
		}},
		"edges": {chunkOf(" {\"a\":1}\r\n", tail.Cursor{}), []shown{
			{From: "{0 0}", To: "{10 1}", Entries: 1, Body: `{"line_index":0,"a":1}`, Edges: `0:" ":"\r" `},
		}},
		"an opaque line between objects": {chunkOf("{\"a\":1}\n\n{\"b\":2}\n", tail.Cursor{}), []shown{
			{From: "{0 0}", To: "{8 1}", Entries: 1, Body: `{"line_index":0,"a":1}`},
			{Kind: outbox.Opaque, From: "{8 1}", To: "{9 2}", Entries: 1, Body: `{"line_index":1,"type":"ccship.opaque","encoding":"base64","data":""}`},
			{From: "{9 2}", To: "{17 3}", Entries: 1, Body: `{"line_index":2,"b":2}`},
		}},
		"a record with a line_index of its own": {chunkOf("{\"a\":1,\"line_\\u0069ndex\":7}\n", tail.Cursor{}), []shown{{
			Kind: outbox.Opaque, From: "{0 0}", To: "{28 1}", Entries: 1,
			Body: `{"line_index":0,"type":"ccship.opaque","encoding":"base64","data":"eyJhIjoxLCJsaW5lX1x1MDA2OW5kZXgiOjd9"}`,
		}}},
		"left out": {chunkOf("{\"type\":\"noise\"}\n{\"b\":2}\n{\"type\":\"noise\"}\n", tail.Cursor{}), []shown{
			{From: "{0 0}", To: "{42 3}", Entries: 1, Body: `{"line_index":1,"b":2}`},
		}},
		"pure rewind":                   {rewound, []shown{{Kind: outbox.Marker, From: "{40 4}", To: "{40 4}"}}},
		"newline of a line sent before": {sealed, []shown{{Kind: outbox.Marker, From: "{10 1}", To: "{18 2}"}}},
		"newline of a line sent before, and another": {more, []shown{
			{From: "{10 1}", To: "{26 3}", Entries: 1, Body: `{"line_index":2,"b":2}`},
		}},
		"last line without newline": {open, []shown{
			{From: "{0 0}", To: "{8 1}", Entries: 1, Body: `{"line_index":0,"a":1}`},
			{From: "{8 1}", To: "{15 2}", Entries: 1, Body: `{"line_index":1,"b":2}`, Open: true},
		}},
		"longer than the cap": {over, []shown{{
			Kind: outbox.Opaque, From: "{8 1}", To: "{109 2}", Entries: 1,
			Body: `{"line_index":1,"type":"ccship.oversize","offset":8,"length":100,"sha256":"` + strings.Repeat("0", 64) + `"}`,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &batcher{packer: outbox.NewPacker(), rules: &Rules{ExcludeTypes: map[string]bool{"noise": true}}}
			got := show(t, b.build(c.chunk, &state.Routing{}))
			kit.Same(t, "batches", cmp.Diff(c.want, got))
		})
	}
}

// TestBatchesAreCut holds batches to their two limits, and every line to exactly one batch.
func TestBatchesAreCut(t *testing.T) {
	long := `{"text":"` + strings.Repeat("x", batchBytes/3) + "\"}\n"
	for name, c := range map[string]struct {
		lines string
		max   int
		want  []int // entries of the batches
	}{
		"by entries":     {strings.Repeat("{\"a\":1}\n", 7), 3, []int{3, 3, 1}},
		"by bytes":       {strings.Repeat(long, 5), 100, []int{2, 2, 1}},
		"one longer one": {`{"text":"` + strings.Repeat("x", 2*batchBytes) + "\"}\n{}\n", 100, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &batcher{packer: outbox.NewPacker(), rules: &Rules{}}
			chunk := chunkOf(c.lines, tail.Cursor{})
			batches := b.build(chunk, &state.Routing{Stream: outbox.Stream{MaxEntries: c.max}})
			var entries []int
			at := protocol.Position{}
			for _, b := range batches {
				entries = append(entries, b.Entries)
				kit.Check(t, b.From == at, "a batch starts at %v, the one before it ended at %v", b.From, at)
				at = b.To
			}
			kit.Same(t, "entries of the batches", cmp.Diff(c.want, entries))
			want := (protocol.Position{Offset: chunk.To.Offset, Line: chunk.To.Line})
			kit.Check(t, at == want, "the batches end at %v, the chunk at %v", at, want)
		})
	}
}

// TestBatchesSentBefore leaves out what an earlier hook has sent, in the first generation only.
func TestBatchesSentBefore(t *testing.T) {
	b := &batcher{packer: outbox.NewPacker(), rules: &Rules{}}
	facts := &state.Routing{SentBefore: 2}
	lines := strings.Repeat("{\"a\":1}\n", 3)
	got := b.build(chunkOf(lines, tail.Cursor{}), facts)
	kit.Check(t, len(got) == 1 && got[0].Entries == 1, "generation 0: %d batches, want one of one entry", len(got))
	got = b.build(chunkOf(lines, tail.Cursor{Generation: 1}), facts)
	kit.Check(t, len(got) == 1 && got[0].Entries == 3, "generation 1: %d batches, want one of three entries", len(got))
}
