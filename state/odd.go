package state

import "encoding/binary"

// OddKind says why a line is not an entry of its own record.
type OddKind uint8

// A plain server gets none of them.
const (
	OddBlank     OddKind = iota // or a record that the protocol reserves
	OddMalformed                // no JSON
	OddOversize                 // longer than the cap
	oddKinds
)

// OddLines are the odd lines of a file up to its cursor, ascending, in packed runs, so that a Routing is comparable.
type OddLines string

// oddRun is count lines of one kind from first to last. A run with fewer lines than its length has others in between.
type oddRun struct {
	first, last, count int64
	kind               OddKind
}

// maxOddRuns limits what a file's row holds. Beyond it, runs are joined: only how many of a joined run lie before a
// line inside it is then a guess.
const maxOddRuns = 1024

// oddSums are sums over the files on disk.
type oddSums struct{ withheld, malformed, oversize int64 }

// add adds (sign 1) or takes away (-1) what a file on disk contributes.
func (s *oddSums) add(r *fileRow, sign int64) {
	if r.tracked.Gone != 0 {
		return
	}
	n := r.routing.Odd.Count()
	s.withheld += sign * r.routing.Withheld
	s.malformed += sign * n[OddMalformed]
	s.oversize += sign * n[OddOversize]
}

// OddList collects odd lines.
type OddList struct{ runs []oddRun }

// Add adds a line that lies behind all others.
func (l *OddList) Add(line int64, kind OddKind) { l.add(oddRun{line, line, 1, kind}) }

func (l *OddList) add(r oddRun) {
	n := len(l.runs)
	if n > 0 && l.runs[n-1].kind == r.kind && l.runs[n-1].last+1 == r.first {
		l.runs[n-1].last, l.runs[n-1].count = r.last, l.runs[n-1].count+r.count
		return
	}
	for i := n - 1; n >= maxOddRuns && i >= n-int(oddKinds); i-- {
		if last := &l.runs[i]; last.kind == r.kind {
			last.last, last.count = r.last, last.count+r.count
			return
		}
	}
	l.runs = append(l.runs, r)
}

// Len returns the number of runs.
func (l *OddList) Len() int { return len(l.runs) }

// Clear removes all lines.
func (l *OddList) Clear() { l.runs = l.runs[:0] }

// Plus returns the odd lines with further ones, which lie behind them.
func (o OddLines) Plus(l *OddList) OddLines {
	if l.Len() == 0 {
		return o
	}
	var all OddList
	for r := range o.runs {
		all.add(r)
	}
	for _, r := range l.runs {
		all.add(r)
	}
	return all.pack()
}

// Before returns the odd lines before a line.
func (o OddLines) Before(line int64) OddLines {
	var left OddList
	for r := range o.runs {
		if r.last >= line {
			span, keep := r.last-r.first+1, max(0, line-r.first)
			r.last, r.count = line-1, r.count*keep/span
		}
		if r.count > 0 {
			left.add(r)
		}
	}
	return left.pack()
}

// Count returns how many lines there are of each kind.
func (o OddLines) Count() (n [oddKinds]int64) {
	for r := range o.runs {
		n[r.kind] += r.count
	}
	return n
}

// Total returns the number of odd lines.
func (o OddLines) Total() (n int64) {
	for r := range o.runs {
		n += r.count
	}
	return n
}

func (l *OddList) pack() OddLines {
	var b []byte
	at := int64(0)
	for _, r := range l.runs {
		b = append(b, byte(r.kind))
		b = binary.AppendVarint(b, r.first-at)
		b = binary.AppendVarint(b, r.last-r.first)
		b = binary.AppendVarint(b, r.count)
		at = r.first
	}
	return OddLines(b)
}

// runs yields the runs up to the first that is damaged.
func (o OddLines) runs(yield func(oddRun) bool) {
	b, at := []byte(o), int64(0)
	for len(b) > 0 {
		r := oddRun{kind: OddKind(b[0])}
		b = b[1:]
		for _, to := range []*int64{&r.first, &r.last, &r.count} {
			v, n := binary.Varint(b)
			if n <= 0 || r.kind >= oddKinds {
				return
			}
			*to, b = v, b[n:]
		}
		r.first += at
		r.last += r.first
		if at = r.first; !yield(r) {
			return
		}
	}
}
