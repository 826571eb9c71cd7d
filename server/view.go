package server

import "fmt"

// View is a file at the end of one generation. A line comes from the newest generation that starts at or before it, and
// only from there: what that generation lacks is a gap, never filled from an older one.
type View struct {
	Generation Generation
	Spans      []Span // where its lines are stored, ascending and adjacent
	Total      int64  // lines of the file, stored or not
}

// NewestView returns the view of the newest generation of a snapshot: the file as it is now.
func NewestView(snap Snapshot) (View, error) {
	gens := snap.Generations()
	return ViewOf(gens, gens[len(gens)-1].Number)
}

// ViewOf assembles the view of generation number. gens are ascending; some may be missing, because they may arrive in
// any order. ErrNotFound for a number that is not among them.
func ViewOf(gens []Generation, number int64) (View, error) {
	at := -1
	for i, g := range gens {
		if g.Number == number {
			at = i
		}
	}
	if at < 0 {
		return View{}, fmt.Errorf("generation %d: %w", number, ErrNotFound)
	}
	v := View{Generation: gens[at], Total: max(gens[at].EndLine, gens[at].RewoundTo)}
	upper := v.Total
	for i := at; i >= 0 && upper > 0; i-- {
		from := gens[i].RewoundTo
		if from >= upper {
			continue
		}
		v.Spans = append(v.Spans, Span{Generation: gens[i].Number, From: from, To: upper})
		upper = from
	}
	for i, j := 0, len(v.Spans)-1; i < j; i, j = i+1, j-1 {
		v.Spans[i], v.Spans[j] = v.Spans[j], v.Spans[i]
	}
	return v, nil
}

// Between returns the view's spans, cut to lines from from to before to.
func (v View) Between(from, to int64) []Span {
	var out []Span
	for _, s := range v.Spans {
		s.From, s.To = max(s.From, from), min(s.To, to)
		if s.From < s.To {
			out = append(out, s)
		}
	}
	return out
}
