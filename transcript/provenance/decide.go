package provenance

import (
	"cmp"
	"maps"
	"slices"
)

// Why a line is not proven to be a session's.
const (
	ByHand       = "by_hand"       // a session changed the file before, but did not write this line
	Generated    = "generated"     // a program writes the file
	Restored     = "restored"      // an earlier commit had it: it was moved, copied, or brought back
	Masked       = "masked"        // it holds a secret, which is never compared
	Little       = "too_little"    // it also stands in a session, but too little else of the commit does
	NoTranscript = "no_transcript" // no session that can be seen changed the file before
	OtherAuthor  = "bot"           // a program made the commit
	NotCompared  = "not_compared"  // it is blank, or holds a secret
)

// What a session must have written of a commit's telling lines to be named: leastLines of them and leastShare percent,
// or a fifth of them, or enoughLines of a commit of any size. Where no line tells anything, all count.
const (
	leastLines  = 2
	leastShare  = 10
	enoughLines = 40
)

// Line is what is known of an added line.
type Line struct {
	File, Index int // in the commit
	Candidate   int // of the file's candidates; -1: not proven
	Exact       bool
	Reason      string // when not proven
}

// Decision is what is known of a commit.
type Decision struct {
	Lines     []Line // of all files, without those that are masked
	Added     int
	NotProven map[string]int
}

// Decide tells which sessions wrote a commit's lines. candidates are those of each of its files.
func Decide(c Commit, candidates [][]Candidate) Decision {
	d := Decision{NotProven: map[string]int{}}
	for i, f := range c.Files {
		matches := Attribute(f, candidates[i], c.At)
		changed := slices.ContainsFunc(candidates[i], func(x Candidate) bool {
			return !x.At.After(c.At) && f.changedBy(&x)
		})
		for at, m := range matches {
			d.Lines = append(d.Lines, Line{File: i, Index: at, Candidate: m.Candidate, Exact: m.Exact,
				Reason: reasonOf(f, f.Lines[at], changed)})
		}
		d.Added += len(f.Lines) + f.Masked
		if f.Masked > 0 {
			d.NotProven[Masked] += f.Masked
		}
	}
	named := named(c, candidates, d.Lines)
	for i := range d.Lines {
		l := &d.Lines[i]
		if l.Candidate >= 0 && !named[candidates[l.File][l.Candidate].Session] {
			l.Candidate, l.Reason = -1, Little
		}
		if c.Bot {
			l.Candidate, l.Reason = -1, OtherAuthor
		}
		if l.Candidate >= 0 {
			l.Reason = ""
			continue
		}
		d.NotProven[l.Reason]++
	}
	return d
}

// reasonOf returns why a line would not be proven. changed: a session changed the file before.
func reasonOf(f File, l Added, changed bool) string {
	switch {
	case f.Generated:
		return Generated
	case !l.Since.IsZero():
		return Restored
	case changed:
		return ByHand
	}
	return NoTranscript
}

// named returns the sessions that wrote enough of a commit to be named.
func named(c Commit, candidates [][]Candidate, lines []Line) map[int]bool {
	plain := func(l Line) bool { return c.Files[l.File].Lines[l.Index].Plain }
	telling, wrote := 0, map[int]int{}
	for _, l := range lines {
		if !plain(l) {
			telling++
		}
	}
	for _, l := range lines {
		if l.Candidate >= 0 && (telling == 0 || !plain(l)) {
			wrote[candidates[l.File][l.Candidate].Session]++
		}
	}
	out := map[int]bool{}
	for s, n := range wrote {
		out[s] = n >= leastLines && n*100 >= leastShare*telling || n*5 >= telling || n >= enoughLines
	}
	return out
}

// Share is how many lines of a commit a session wrote, and of them each prompt.
type Share struct {
	Session, Lines int
	Same           bool          // as Candidate says
	Prompts        []PromptShare // most lines first
}

// PromptShare is how many lines the turn of a prompt wrote. Edits are the candidates that did, as file and index.
type PromptShare struct {
	Edit  *Edit // the first of the turn
	Lines int
}

// Shares returns the sessions that wrote lines, most lines first.
func (d *Decision) Shares(candidates [][]Candidate) []Share {
	type turn struct {
		session int
		prompt  int64
		agent   string
	}
	by, prompts := map[int]*Share{}, map[turn]*PromptShare{}
	var order []turn
	for _, l := range d.Lines {
		if l.Candidate < 0 {
			continue
		}
		x := &candidates[l.File][l.Candidate]
		s := by[x.Session]
		if s == nil {
			s = &Share{Session: x.Session, Same: x.Same}
			by[x.Session] = s
		}
		s.Lines++
		t := turn{x.Session, x.Prompt, x.Agent}
		if prompts[t] == nil {
			prompts[t] = &PromptShare{Edit: &x.Edit}
			order = append(order, t)
		}
		prompts[t].Lines++
	}
	for _, t := range order {
		by[t.session].Prompts = append(by[t.session].Prompts, *prompts[t])
	}
	out := make([]Share, 0, len(by))
	for _, session := range slices.Sorted(maps.Keys(by)) {
		s := by[session]
		slices.SortStableFunc(s.Prompts, func(a, b PromptShare) int { return cmp.Compare(b.Lines, a.Lines) })
		out = append(out, *s)
	}
	slices.SortStableFunc(out, func(a, b Share) int { return cmp.Compare(b.Lines, a.Lines) })
	return out
}
