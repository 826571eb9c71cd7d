package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func objects(tag string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf(`{"%s":%d}`, tag, i))
	}
	return out
}

func file(parts ...[]string) string {
	var b strings.Builder
	for _, p := range parts {
		for _, l := range p {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// generationCase is what arrives, and what must be there then.
type generationCase struct {
	pieces []piece
	want   []wantView
}

type wantView struct {
	gen  int64
	file string // "" with missing > 0: not to be had whole
	miss int64
}

func a(from, to int) []string { return objects("a", from, to) }
func b(from, to int) []string { return objects("b", from, to) }
func c(from, to int) []string { return objects("c", from, to) }

func inOrder() map[string]generationCase {
	return map[string]generationCase{
		"grows": {[]piece{{lines: a(0, 3)}, {first: 3, lines: a(3, 5)}}, []wantView{{0, file(a(0, 5)), 0}}},
		"shrinks and goes on": {
			[]piece{{lines: a(0, 10)}, {gen: 1, rewound: 6, first: 6, lines: b(6, 8)}},
			[]wantView{{0, file(a(0, 10)), 0}, {1, file(a(0, 6), b(6, 8)), 0}},
		},
		"regrows past the old end": {
			[]piece{{lines: a(0, 4)}, {gen: 1, rewound: 2, first: 2, lines: b(2, 9)}},
			[]wantView{{0, file(a(0, 4)), 0}, {1, file(a(0, 2), b(2, 9)), 0}},
		},
		"pure shrink": {
			[]piece{{lines: a(0, 4)}, {gen: 1, rewound: 1, first: 1}},
			[]wantView{{0, file(a(0, 4)), 0}, {1, file(a(0, 1)), 0}},
		},
		"to nothing": {
			[]piece{{lines: a(0, 4)}, {gen: 1}},
			[]wantView{{0, file(a(0, 4)), 0}, {1, "", 0}},
		},
		"three deep": {
			[]piece{{lines: a(0, 6)}, {gen: 1, rewound: 4, first: 4, lines: b(4, 8)}, {gen: 2, rewound: 2, first: 2, lines: c(2, 3)}},
			[]wantView{{0, file(a(0, 6)), 0}, {1, file(a(0, 4), b(4, 8)), 0}, {2, file(a(0, 2), c(2, 3)), 0}},
		},
		"rewinds in ascending places": {
			[]piece{{lines: a(0, 6)}, {gen: 1, rewound: 2, first: 2, lines: b(2, 8)}, {gen: 2, rewound: 5, first: 5, lines: c(5, 6)}},
			[]wantView{{1, file(a(0, 2), b(2, 8)), 0}, {2, file(a(0, 2), b(2, 5), c(5, 6)), 0}},
		},
	}
}

func withGaps() map[string]generationCase {
	return map[string]generationCase{
		"a gap is not filled from an older one": {
			[]piece{{lines: a(0, 6)}, {gen: 1, rewound: 2, first: 4, lines: b(4, 6)}},
			[]wantView{{0, file(a(0, 6)), 0}, {1, "", 2}},
		},
		"newer first": {
			[]piece{{gen: 2, rewound: 2, first: 2, lines: c(2, 4)}, {gen: 1, rewound: 1, first: 1, lines: b(1, 3)}, {lines: a(0, 2)}},
			[]wantView{{0, file(a(0, 2)), 0}, {1, file(a(0, 1), b(1, 3)), 0}, {2, file(a(0, 1), b(1, 2), c(2, 4)), 0}},
		},
		"the first not there": {
			[]piece{{gen: 1, rewound: 2, first: 2, lines: b(2, 3)}},
			[]wantView{{1, "", 2}},
		},
		"no newline yet": {
			[]piece{{lines: a(0, 2)}, {first: 2, lines: a(2, 3), noNewline: true}},
			[]wantView{{0, strings.TrimSuffix(file(a(0, 3)), "\n"), 0}},
		},
		"newline later, then repeated without": {
			[]piece{{lines: a(0, 3), noNewline: true}, {first: 2, end: 3}, {lines: a(0, 3), noNewline: true}},
			[]wantView{{0, file(a(0, 3)), 0}},
		},
		"lines left out at the end": {
			[]piece{{lines: a(0, 3), end: 5}},
			[]wantView{{0, "", 2}},
		},
	}
}

func TestGenerations(t *testing.T) {
	for _, table := range []map[string]generationCase{inOrder(), withGaps()} {
		for name, tc := range table {
			t.Run(name, func(t *testing.T) {
				r := newRig(t)
				for range 2 { // everything again changes nothing
					for _, p := range tc.pieces {
						r.post(p.body("s"))
					}
				}
				for _, w := range tc.want {
					checkView(t, r, w.gen, w.file, w.miss)
				}
			})
		}
	}
}

// checkView compares raw and digest of one generation with the file it must be.
func checkView(t *testing.T, r *rig, gen int64, want string, missing int64) {
	t.Helper()
	query := fmt.Sprintf("?generation=%d", gen)
	if missing == 0 {
		kit.Equal(t, fmt.Sprint("generation ", gen), r.raw("s", query), want)
	} else if a := r.get("/api/sessions/s/raw" + query); a.status != 409 {
		t.Errorf("generation %d with gaps: %d %q", gen, a.status, a.body)
	}
	found := false
	for _, d := range r.digest("s", "").Generations {
		if d.Generation != gen {
			continue
		}
		found = true
		kit.Check(t, d.Missing == missing && d.Lines == d.EndLine-missing, "generation %d: %+v, want %d missing", gen, d,
			missing)
		whole := want
		if whole != "" && !strings.HasSuffix(whole, "\n") {
			whole += "\n"
		}
		kit.Check(t, missing != 0 || d.SHA256 == sha(whole) && d.Bytes == int64(len(whole)) && d.EOFNewline == (whole == want),
			"generation %d: %+v, want digest of %q", gen, d, whole)
	}
	kit.Check(t, found, "generation %d is not in the digest", gen)
}

func TestEpochsAndMachines(t *testing.T) {
	r := newRig(t)
	r.post(piece{machine: "m1", epoch: "e1", lines: objects("a", 0, 2)}.body("s"))
	r.post(piece{machine: "m1", epoch: "e2", lines: objects("b", 0, 1)}.body("s"))
	r.post(piece{machine: "m1", epoch: "e1", first: 2, lines: objects("a", 2, 3)}.body("s")) // late rows of the old epoch
	for query, want := range map[string]string{
		"":                     file(objects("b", 0, 1)),
		"?epoch=e1":            file(objects("a", 0, 3)),
		"?machine=m1&epoch=e2": file(objects("b", 0, 1)),
	} {
		kit.Equal(t, query, r.raw("s", query), want)
	}
	r.post(piece{machine: "m2", epoch: "f1", lines: objects("c", 0, 1)}.body("s"))
	r.post(bare)
	for query, want := range map[string]string{
		"":            "{\"type\":\"user\"}\n{\"n\":1}\n", // heard last
		"?machine=":   "{\"type\":\"user\"}\n{\"n\":1}\n",
		"?machine=m1": file(objects("b", 0, 1)),
		"?machine=m2": file(objects("c", 0, 1)),
	} {
		kit.Equal(t, query, r.raw("s", query), want)
	}
	for _, query := range []string{"?machine=m3", "?epoch=nope", "?machine=m2&epoch=e1", "?generation=7"} {
		for _, call := range []string{"raw", "digest", "entries"} {
			r.send("GET", "/api/sessions/s/"+call+query, "", 404)
		}
	}
}
