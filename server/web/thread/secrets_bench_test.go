package thread

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/server"
)

// BenchmarkSecrets is what marking adds to a page of the first 300 lines of a real transcript.
func BenchmarkSecrets(b *testing.B) {
	files, _ := filepath.Glob("../../../../shared/transcripts/*.jsonl")
	more, _ := filepath.Glob("../../../../shared/transcripts/*/*.jsonl")
	var lines [][]byte
	for _, f := range append(files, more...) {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		if all := bytes.Split(text, []byte("\n")); len(all) > len(lines) {
			lines = all[:min(len(all), PageLines)]
		}
	}
	if len(lines) == 0 {
		b.Skip("no transcripts here")
	}
	s, err := NewSecrets()
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for _, l := range lines {
		size += len(l)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, l := range lines {
			s.in(server.Line{Raw: l})
		}
	}
}
