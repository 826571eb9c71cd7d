package corpus_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/lab/bench/corpus"
)

const size = 12_000_000

func source(t *testing.T) *corpus.Source {
	t.Helper()
	src, err := corpus.Standard()
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestShape holds invented conversations to what was counted in real ones.
func TestShape(t *testing.T) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	got := corpus.Measure(corpus.Plan{Seed: 1, Bytes: size}.Sessions(), source(t),
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
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s %g, want %g to %g", c.what, c.got, c.low, c.high)
		}
	}
}

// TestSame holds the plan to its promise: the same seed gives the same lines, another one others, and each line is JSON.
func TestSame(t *testing.T) {
	src := source(t)
	all := corpus.Plan{Seed: 1, Bytes: 3_000_000}.Sessions()
	again := corpus.Plan{Seed: 1, Bytes: 3_000_000}.Sessions()
	other := corpus.Plan{Seed: 2, Bytes: 3_000_000}.Sessions()
	if other[0].ID == all[0].ID {
		t.Error("another seed gives the same session")
	}
	var made int64
	rewound := 0
	for i, s := range all {
		chunks := s.Chunks(src)
		if !reflect.DeepEqual(chunks, again[i].Chunks(src)) {
			t.Fatalf("session %d differs when it is made again", i)
		}
		rewound += len(chunks) - 1
		for _, line := range chunks[0].Lines {
			made += int64(len(line)) + 1
			if !json.Valid([]byte(line)) {
				t.Fatalf("session %d: no JSON: %.200s", i, line)
			}
		}
	}
	if made < 2_700_000 || made > 4_500_000 {
		t.Errorf("%d bytes, want 3 MB", made)
	}
	t.Logf("%d sessions, %d rewound", len(all), rewound)
}

// TestFolder repeats a folder's transcripts: what is theirs stays, ids differ from copy to copy.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	line := `{"uuid":"0a1b2c3d-0000-4000-8000-000000000001","id":"msg_01QwErTyUiOpAsDfGhJkLzXc","text":"a_01 b-1"}`
	if err := os.WriteFile(dir+"/one.jsonl", []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := corpus.Plan{Seed: 1, Bytes: int64(3 * (len(line) + 1))}.Folder(dir)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d sessions, %v", len(all), err)
	}
	seen := map[string]bool{}
	for i, s := range all {
		got := s.Chunks(nil)[0].Lines
		if len(got) != 1 || len(got[0]) != len(line) || !json.Valid([]byte(got[0])) || seen[got[0]] || seen[s.ID] {
			t.Errorf("copy %d: %q", i, got)
		}
		seen[got[0]], seen[s.ID] = true, true
	}
	if !seen[line] {
		t.Error("no copy is as it was")
	}
}
