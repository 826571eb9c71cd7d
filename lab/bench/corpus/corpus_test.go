package corpus_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
)

const size = 12_000_000

func source(t *testing.T) *corpus.Source {
	t.Helper()
	src := kit.Try(corpus.Standard()).Must(t)
	return src
}

// TestShape holds invented conversations to what was counted in real ones.
func TestShape(t *testing.T) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	kit.Require(t, err == nil, "%v", err)
	got := measure(corpus.Plan{Seed: 1, Bytes: size}.Sessions(), source(t),
		func(dst, raw []byte) []byte { return encoder.EncodeAll(raw, dst) })
	for _, c := range []struct {
		what           string
		got, low, high float64
	}{ // a third around what real ones have
		{"half of the lines are shorter than", float64(got.P50), 800, 1600},
		{"nine in ten lines are shorter than", float64(got.P90), 3000, 7000},
		{"lines above 64 KiB", got.Long, .001, .006},
		{"bytes of tools' results", got.Share["user/tool_result"], .5, .75},
		{"bytes of thinking", got.Share["assistant/thinking"], .06, .17},
		{"compressed", got.PackedToRaw, .17, .30},
	} {
		kit.Check(t, c.got >= c.low && c.got <= c.high, "%s %g, want %g to %g", c.what, c.got, c.low, c.high)
	}
}

// TestFolder: a folder's transcripts are sessions as they are, and Write writes them.
func TestFolder(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	const text = `{"uuid":"0a1b2c3d"}` + "\nno JSON\n"
	kit.Must(t, os.WriteFile(dir+"/one.jsonl", []byte(text), 0o600))
	all, err := corpus.Plan{Seed: 1}.Folder(dir)
	kit.Require(t, err == nil && len(all) == 1, "%d sessions, %v", len(all), err)
	lines, bytes, err := corpus.Write(to, all, nil)
	got, e := os.ReadFile(to + "/" + all[0].Path)
	kit.Check(t, err == nil && e == nil && lines == 2 && bytes == int64(len(text)) && string(got) == text,
		"%d lines, %d bytes, %q, %v %v", lines, bytes, got, err, e)
}

// shape is what matters to a store about lines: how long they are, what they are, and how far they can be compressed.
type shape struct {
	P50, P90    int                // bytes of a line
	Long        float64            // share of lines above 64 KiB
	Share       map[string]float64 // of the bytes, by kind of record
	PackedToRaw float64            // blocks of 128 KiB, compressed
}

// measure measures sessions; pack compresses a block.
func measure(all []corpus.Session, src *corpus.Source, pack func(dst, raw []byte) []byte) shape {
	var lengths []int
	var total, packed int
	var block []byte
	s := shape{Share: map[string]float64{}}
	for _, session := range all {
		for _, chunk := range session.Chunks(src) {
			for _, line := range chunk.Lines {
				n := len(line) + 1
				lengths, total = append(lengths, n), total+n
				s.Share[kind(line)] += float64(n)
				if block = append(append(block, line...), '\n'); len(block) >= 128<<10 {
					packed, block = packed+len(pack(nil, block)), block[:0]
				}
			}
		}
	}
	packed += len(pack(nil, block))
	slices.Sort(lengths)
	at := func(q float64) int { return lengths[int(q*float64(len(lengths)-1))] }
	s.P50, s.P90 = at(.5), at(.9)
	long, _ := slices.BinarySearch(lengths, 64<<10+1)
	s.Long = float64(len(lengths)-long) / float64(len(lengths))
	for kind := range s.Share {
		s.Share[kind] /= float64(total)
	}
	s.PackedToRaw = float64(packed) / float64(total)
	return s
}

// kind is a line's type, and that of its first block.
func kind(line string) string {
	var record struct {
		Type    string
		Message struct{ Content any }
	}
	if json.Unmarshal([]byte(line), &record) != nil {
		return "other"
	}
	if list, ok := record.Message.Content.([]any); ok && len(list) > 0 {
		if block, ok := list[0].(map[string]any); ok {
			name, _ := block["type"].(string)
			return record.Type + "/" + name
		}
	}
	return record.Type
}
