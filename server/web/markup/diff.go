package markup

import "math"

// Op says where a line stands.
type Op byte

const (
	Same    Op = ' '
	Removed Op = '-'
	Added   Op = '+'
)

// Edit is a run of elements that are alike: A up to before AEnd of the old ones, B up to before BEnd of the new ones.
// One of the two is empty unless Op is Same.
type Edit struct {
	Op      Op
	A, AEnd int
	B, BEnd int
}

// maxDistance bounds the work for one difference: above it the old is shown as removed and the new as added. The
// memory for it grows with its square, to 16 MB.
const maxDistance = 2000

// Compare finds a shortest way from a to b (Myers 1986). Both are numbers that stand for lines.
func Compare[T comparable](a, b []T) []Edit {
	edits, _ := compare(a, b, math.MaxInt)
	return edits
}

// compare is Compare in at most about most steps, and says how many it took. A step compares two elements or keeps a
// number.
func compare[T comparable](a, b []T, most int) ([]Edit, int) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []Edit
	out = join(out, Edit{Same, 0, head, 0, head})
	edits, steps := middle(a[head:len(a)-tail], b[head:len(b)-tail], most)
	for _, e := range edits {
		e.A, e.AEnd, e.B, e.BEnd = e.A+head, e.AEnd+head, e.B+head, e.BEnd+head
		out = join(out, e)
	}
	return join(out, Edit{Same, len(a) - tail, len(a), len(b) - tail, len(b)}), steps
}

// join appends e, to the last run when it goes on with it.
func join(list []Edit, e Edit) []Edit {
	if e.A == e.AEnd && e.B == e.BEnd {
		return list
	}
	if n := len(list); n > 0 && list[n-1].Op == e.Op {
		list[n-1].AEnd, list[n-1].BEnd = e.AEnd, e.BEnd
		return list
	}
	return append(list, e)
}

// middle compares what begins and ends differently.
func middle[T comparable](a, b []T, most int) (edits []Edit, steps int) {
	all := []Edit{{Removed, 0, len(a), 0, 0}, {Added, len(a), len(a), 0, len(b)}}
	if len(a) == 0 || len(b) == 0 {
		return all, 0
	}
	limit := min(len(a)+len(b), maxDistance)
	// v[k+limit] is the furthest x on diagonal k = x - y; trace keeps what it was before each step.
	v := make([]int32, 2*limit+2)
	var trace [][]int32
	for d := 0; d <= limit && steps < most; d++ {
		steps += 2*d + 1
		trace = append(trace, append([]int32(nil), v[limit-d:limit+d+1]...))
		for k := -d; k <= d; k += 2 {
			x := step(v, limit, k, d)
			y := int(x) - k
			for int(x) < len(a) && y < len(b) && a[x] == b[y] {
				x++
				y++
				steps++
			}
			v[limit+k] = x
			if int(x) >= len(a) && y >= len(b) {
				return walkBack(trace, len(a), len(b)), steps
			}
		}
	}
	return all, steps
}

// step returns where diagonal k begins in round d: from the better of its neighbours.
func step(v []int32, limit, k, d int) int32 {
	if d == 0 {
		return 0
	}
	if k == -d || k != d && v[limit+k-1] < v[limit+k+1] {
		return v[limit+k+1]
	}
	return v[limit+k-1] + 1
}

// walkBack reads the way from the end to the beginning off the trace.
func walkBack(trace [][]int32, x, y int) []Edit {
	var back []Edit
	for d := len(trace) - 1; d > 0; d-- {
		v := trace[d] // of diagonals -d to d, as they were before round d
		at := func(k int) int { return int(v[k+d]) }
		k := x - y
		before := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			before = k + 1
		}
		px := at(before)
		py := px - before
		// The snake, then the step into it.
		sx, sy := px, py
		if before == k+1 {
			sy++
		} else {
			sx++
		}
		if x > sx {
			back = append(back, Edit{Same, sx, x, sy, y})
		}
		if before == k+1 {
			back = append(back, Edit{Added, px, px, py, py + 1})
		} else {
			back = append(back, Edit{Removed, px, px + 1, py, py})
		}
		x, y = px, py
	}
	if x > 0 {
		back = append(back, Edit{Same, 0, x, 0, y})
	}
	var out []Edit
	for i := len(back) - 1; i >= 0; i-- {
		out = join(out, back[i])
	}
	return out
}
