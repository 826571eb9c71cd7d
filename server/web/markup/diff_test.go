package markup_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/web/markup"
)

// TestCompare: the way found leads from a to b, alternates, and leaves out no common element that a simple search for
// the longest common part would keep.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]byte("abc"))
		a, b := rapid.SliceOfN(letter, 0, 40).Draw(t, "a"), rapid.SliceOfN(letter, 0, 40).Draw(t, "b")
		var old, rebuilt []byte
		same, x, y := 0, 0, 0
		for i, e := range markup.Compare(a, b) {
			if e.A != x || e.B != y {
				t.Fatalf("edit %d begins at %d/%d, want %d/%d", i, e.A, e.B, x, y)
			}
			switch e.Op {
			case markup.Same:
				if !slices.Equal(a[e.A:e.AEnd], b[e.B:e.BEnd]) {
					t.Fatalf("unequal: %q and %q", a[e.A:e.AEnd], b[e.B:e.BEnd])
				}
				same += e.AEnd - e.A
			case markup.Removed:
				if e.B != e.BEnd || e.A == e.AEnd {
					t.Fatalf("removed: %+v", e)
				}
			case markup.Added:
				if e.A != e.AEnd || e.B == e.BEnd {
					t.Fatalf("added: %+v", e)
				}
			}
			old, rebuilt = append(old, a[e.A:e.AEnd]...), append(rebuilt, b[e.B:e.BEnd]...)
			x, y = e.AEnd, e.BEnd
		}
		if !slices.Equal(old, a) || !slices.Equal(rebuilt, b) {
			t.Fatalf("from %q to %q came %q to %q", a, b, old, rebuilt)
		}
		if want := longestCommon(a, b); same != want {
			t.Fatalf("%d of %q and %q are kept, want %d", same, a, b, want)
		}
	})
}

func longestCommon(a, b []byte) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			diagonal, row[j+1] = row[j+1], max(row[j+1], row[j], diagonal+map[bool]int{true: 1}[a[i] == b[j]])
		}
	}
	return row[len(b)]
}

// TestCompareGivesUp: what has nothing in common is shown as such, without the memory that a search would take.
func TestCompareGivesUp(t *testing.T) {
	a, b := make([]int, 50_000), make([]int, 50_000)
	for i := range a {
		a[i], b[i] = i, -i
	}
	edits := markup.Compare(a, b)
	kit.Check(t, len(edits) == 3 && edits[0].AEnd == 1 && edits[1].Op == markup.Removed && edits[2].Op == markup.Added,
		"%+v", edits)
}

func show(lines []markup.DiffLine) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Folded > 0 {
			fmt.Fprintf(&b, "(%d)\n", l.Folded)
			continue
		}
		fmt.Fprintf(&b, "%d %d %s%s\n", l.Old, l.New, l.Sign(), l.HTML)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	before := "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
	for name, test := range map[string]struct{ after, want string }{
		"equal":    {before, "1 1  one\n"},
		"changed":  {strings.Replace(before, "six", "SIX and", 1), "(2)\n3 3  three\n4 4  four\n5 5  five\n6 0 -six\n0 6 +SIX and\n7 7  seven\n8 8  eight\n9 9  nine\n10 10  ten\n"},
		"appended": {before + "eleven\n", "(7)\n8 8  eight\n9 9  nine\n10 10  ten\n0 11 +eleven\n"},
		"emptied":  {"", "1 0 -one\n"},
	} {
		lines, more := markup.NewBudget().Diff(before, test.after, 3, 100)
		if got := show(lines); !strings.HasPrefix(got, test.want) && name != "equal" || more != 0 {
			t.Errorf("%s:\n%swant\n%s", name, got, test.want)
		}
	}
	lines, _ := markup.NewBudget().Diff("\ttotal := float64(n) * 2\n", "\ttotal := int64(n) * 2\n", 3, 100)
	want := "1 0 -\ttotal := <mark>float64</mark>(n) * 2\n0 1 +\ttotal := <mark>int64</mark>(n) * 2\n"
	kit.Equal(t, "marks", show(lines), want)
	lines, more := markup.NewBudget().Diff(strings.Repeat("x\n", 500), strings.Repeat("y\n", 500), 3, 50)
	kit.Check(t, len(lines) == 50 && more == 950, "%d lines and %d more", len(lines), more)
}
