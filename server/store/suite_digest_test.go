package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// digests: different views never have one digest, whatever is missing where, and the same view has the same one however
// it came about.
func (s suite) digests(t *testing.T) {
	st := s.open(t)
	note := func(i, offset int64, sum byte) server.Line {
		return server.Line{Index: i, Kind: server.Oversize, Raw: transcript.AppendOversize(nil, i, offset, 9, [32]byte{sum})}
	}
	kinds := []func(i int64) server.Line{
		nil, // it is missing
		func(i int64) server.Line { return object(i, "a") },
		func(i int64) server.Line { return object(i, "b") },
		func(i int64) server.Line { return note(i, 5, 1) },
		func(i int64) server.Line { return note(i, 6, 1) },
		func(i int64) server.Line { return note(i, 5, 2) },
	}
	seen := map[string][]int{}
	var try func(view []int)
	try = func(view []int) {
		var list []server.Line
		for i, k := range view {
			if kinds[k] != nil {
				list = append(list, kinds[k](int64(i)))
			}
		}
		if len(list) > 0 {
			name := fmt.Sprint("s", view)
			put(t, st, batch(name, list...), func(b *server.Batch) { b.Head.EndLine = int64(len(view)) })
			v, _ := views(t, st, name)
			other, twice := seen[v[0].SHA256]
			kit.Check(t, !twice, "%v and %v have one digest", other, view)
			seen[v[0].SHA256] = slices.Clone(view)
			if last := view[len(view)-1]; len(view) == 3 && kinds[view[0]] != nil && kinds[last] != nil {
				kit.Equal(t, fmt.Sprintf("%v after a rewind has another digest", view), s.rewoundDigest(t, st, name, list),
					v[0].SHA256)
			}
		}
		for k := range kinds {
			if len(view) < 2 || len(view) == 2 && k%2 == 1 { // each put is durable, so not all of three lines
				try(append(view, k))
			}
		}
	}
	try(nil)
	kit.Equal(t, "digests", len(seen), 6+36+36*3-2)
}

// rewoundDigest is the digest of lines of which all but the first came with a rewind.
func (s suite) rewoundDigest(t *testing.T, st full, name string, list []server.Line) string {
	t.Helper()
	name += "rewound"
	put(t, st, batch(name, list[0], object(1, "x"), object(2, "x"), object(3, "x")))
	put(t, st, generationOf(name, 1, 1, server.Writer{}, list[1:]...))
	v, _ := views(t, st, name)
	return v[1].SHA256
}
