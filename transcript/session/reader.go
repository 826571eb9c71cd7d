package session

import (
	"cmp"
	"slices"

	"github.com/ccship/ccship/transcript"
)

// TimelineReader makes the timeline of a transcript from its lines. The zero value has no lines. Its memory grows with
// the number of moments, not with the transcript. For one goroutine.
type TimelineReader struct {
	fold    Fold
	builder TimelineBuilder
	moments map[place]Moment
}

// place identifies a moment.
type place struct {
	line int64
	part int
}

// Line adds a line (0-based), without its newline. What is no record is passed over.
func (t *TimelineReader) Line(line int64, raw []byte) {
	for _, r := range transcript.Records(raw) {
		t.record(line, r)
	}
}

func (t *TimelineReader) record(line int64, r transcript.Record) {
	if t.moments == nil {
		t.moments = map[place]Moment{}
	}
	for _, m := range t.builder.Add(line, &r, t.fold.Add(line, r)) {
		if m.Gone {
			delete(t.moments, place{m.Line, m.Part})
			continue
		}
		t.moments[place{m.Line, m.Part}] = m
	}
}

// Moments returns the moments so far, in the order of their lines.
func (t *TimelineReader) Moments() []Moment {
	out := make([]Moment, 0, len(t.moments))
	for _, m := range t.moments {
		out = append(out, m)
	}
	slices.SortFunc(out, CompareMoments)
	return out
}

// CompareMoments orders moments as their transcript has them.
func CompareMoments(a, b Moment) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Part, b.Part))
}
