package provenance

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// linkOf is an address's text with any content.
func linkOf(t *testing.T, plain string) string {
	t.Helper()
	var b bytes.Buffer
	w := kit.Try(flate.NewWriter(&b, flate.BestCompression)).Must(t)
	kit.Try(w.Write([]byte(plain))).Must(t)
	kit.Must(t, w.Close())
	return base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// TestBombs: a short address, and a question of many empty parts, take little memory.
func TestBombs(t *testing.T) {
	empty := func(n int, part string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(part+",", n), ",") + "]"
	}
	for name, plain := range map[string]string{
		"commits": empty(1_300_000, "{}"), "null": empty(800_000, "null"), "files": `[{"files":` + empty(1_300_000, "{}") + `}]`,
		"lines": `[{"files":[{"paths":["a"],"lines":` + empty(1_300_000, "{}") + `}]}]`, "paths": `[{"files":[{"paths":` + empty(1_300_000, `""`) + `}]}]`,
	} {
		var commits Commits
		link := linkOf(t, plain)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, errLink := ParseLink(link)
		errJSON := commits.UnmarshalJSON([]byte(plain))
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		if t.Logf("%s: %d MiB from an address of %d bytes", name, took, len(link)); took > 64 || errLink == nil || errJSON == nil {
			t.Errorf("%s: %d MiB, %v, %v", name, took, errLink, errJSON)
		}
	}
}

// TestDecideIsBounded: lines, paths and edits that all look alike are decided in a time that grows with their number,
// not with its square: then this test would never end.
func TestDecideIsBounded(t *testing.T) {
	noon := time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)
	brace, _, _ := SumOf("}")
	telling, _, _ := SumOf("func telling(of string) error {")
	f := File{Paths: []string{"a.go"}}
	for i := range 40_000 {
		l := Added{Number: i + 1, Sum: brace, Plain: true}
		if i%2 == 0 {
			l = Added{Number: i + 1, Sum: telling}
		}
		f.Lines = append(f.Lines, l)
	}
	var list []Candidate
	for i := range 2000 {
		sums := make([]Sum, 500)
		for k := range sums {
			sums[k] = brace
		}
		list = append(list, Candidate{Session: i, Edit: Edit{Path: "/w/a.go", At: noon.Add(time.Duration(i) * time.Second), Sums: sums}})
	}
	list = append(list, Candidate{Session: 2000, Edit: Edit{Path: "/w/a.go", At: noon, Sums: []Sum{telling}}})
	d := Decide(Commit{At: noon.Add(time.Hour), Files: []File{f}}, [][]Candidate{list})
	kit.Check(t, d.Added == 40_000 && d.NotProven[ByHand] == 20_000, "%d lines, not proven %v", d.Added, d.NotProven)
}
