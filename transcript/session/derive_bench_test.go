package session_test

import (
	"testing"

	"github.com/ccship/ccship/transcript"
	. "github.com/ccship/ccship/transcript/session"
)

// BenchmarkDerive is what deriving costs next to the scan that delivery pays anyway. The import as a whole takes about
// ten times as long as its scan.
func BenchmarkDerive(b *testing.B) {
	conversations := map[string][][]byte{}
	var c hashChain
	for range 2000 {
		conversations["short lines"] = append(conversations["short lines"], c.next())
	}
	b.Run("short lines", func(b *testing.B) { deriving(b, conversations["short lines"]) })
	b.Run("real", func(b *testing.B) {
		_, files := realFiles(b)
		var lines [][]byte
		for _, file := range files {
			lines = append(lines, objects(b, file)...)
		}
		deriving(b, lines)
	})
}

func deriving(b *testing.B, lines [][]byte) {
	size := 0
	for _, line := range lines {
		size += len(line)
	}
	scans := make([]transcript.Line, len(lines))
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for i, line := range lines {
				scans[i] = transcript.Scan(line)
			}
		}
	})
	b.Run("derive", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			var s Fold
			for i, line := range lines {
				s.Add(int64(i), transcript.ParseScanned(line, scans[i]))
			}
		}
	})
}
