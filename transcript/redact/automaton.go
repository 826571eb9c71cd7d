package redact

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// pattern is a regular expression whose Match is fast: an automaton answers for nearly all texts.
type pattern struct {
	*regexp.Regexp
	automaton *automaton
}

// lazily returns a function that compiles an expression when it is first needed.
func lazily(compile func() *regexp.Regexp) func() *pattern {
	return sync.OnceValue(func() *pattern {
		re := compile()
		return &pattern{re, newAutomaton(re.String(), false)}
	})
}

// Match reports whether the expression matches anywhere in a text.
func (p *pattern) Match(b []byte) bool {
	matches, sure := p.automaton.matches(b)
	return matches && (sure || p.Regexp.Match(b))
}

// automaton is a deterministic one that reports whether an expression matches anywhere in a text: it looks at each byte
// once. Its states are made when a text first reaches them. To have few classes of bytes it takes every character
// beyond ASCII for each one that a set of them has: so it can say wrongly that a text matches, but not that none does.
type automaton struct {
	prog     *syntax.Prog
	loose    bool
	anchored bool       // matches begin where the text does
	beyond   []bool     // by instruction: it takes some character beyond ASCII
	class    [256]uint8 // of each byte
	bytes    []rune     // one of each class; utf8.RuneError is any beyond ASCII, and the last one is the end of the text

	start atomic.Pointer[state]

	mu          sync.Mutex
	states      map[string]*state // by before and at; guarded by mu
	here, after instructions      // guarded by mu
}

// state is where an automaton is in a text.
type state struct {
	at     string // the instructions that come next, in two bytes each
	before rune   // of the class of the last byte; -1 at the beginning
	final  bool   // what follows does not matter
	match  bool
	next   []atomic.Pointer[state] // by class; nil: it is not made yet
}

const (
	mostInstructions = 1 << 15
	mostStates       = 512 // are kept
	mostMade         = 128 // are made for one text: others make automatons slow
	looseFrom        = 8   // repetitions of one thing are not counted
	endOfText        = -1
)

// newAutomaton returns nil, which takes every text for a match, if an expression is too large. A loose one does not
// count how often something is repeated at most: it has far fewer states, and is never sure of a match.
func newAutomaton(expression string, loose bool) *automaton {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	if loose {
		loosen(parsed)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > mostInstructions {
		return nil
	}
	n := len(prog.Inst)
	a := &automaton{prog: prog, loose: loose, beyond: make([]bool, n)}
	a.anchored = prog.StartCond()&syntax.EmptyBeginText != 0
	a.here.seen, a.after.seen = make([]bool, n), make([]bool, n)
	a.classify()
	a.restart()
	return a
}

// loosen takes the limits off repetitions that have a high one.
func loosen(re *syntax.Regexp) {
	if re.Op == syntax.OpRepeat && re.Max > re.Min+looseFrom {
		re.Max = -1
	}
	for _, sub := range re.Sub {
		loosen(sub)
	}
}

// classify finds which bytes the instructions do not distinguish.
func (a *automaton) classify() {
	var first [utf8.RuneSelf + 1]bool // of a class
	split := func(low, high rune) {
		first[min(low, utf8.RuneSelf)], first[min(high+1, utf8.RuneSelf)] = true, true
	}
	for _, word := range []string{"\n\n", "09", "AZ", "__", "az"} { // assertions distinguish them
		split(rune(word[0]), rune(word[1]))
	}
	for i := range a.prog.Inst {
		inst := &a.prog.Inst[i]
		switch inst.Op {
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			a.beyond[i] = true
		case syntax.InstRune, syntax.InstRune1:
			ranges := inst.Rune
			if len(ranges) == 1 { // one character, in all its cases if they do not matter
				r := ranges[0]
				ranges = []rune{r, r}
				for f := unicode.SimpleFold(r); f != r && syntax.Flags(inst.Arg)&syntax.FoldCase != 0; f = unicode.SimpleFold(f) {
					ranges = append(ranges, f, f)
				}
			}
			for n := 0; n+1 < len(ranges); n += 2 {
				split(ranges[n], ranges[n+1])
				a.beyond[i] = a.beyond[i] || ranges[n+1] >= utf8.RuneSelf
			}
		}
	}
	for c := range a.class {
		switch {
		case c > utf8.RuneSelf:
		case c == utf8.RuneSelf:
			a.bytes = append(a.bytes, utf8.RuneError)
		case c == 0 || first[c]:
			a.bytes = append(a.bytes, rune(c))
		}
		a.class[c] = uint8(len(a.bytes) - 1)
	}
	a.bytes = append(a.bytes, endOfText)
}

// restart forgets all states.
func (a *automaton) restart() {
	a.states = map[string]*state{}
	a.after.clear()
	a.follow(&a.after, uint32(a.prog.Start), 0)
	a.start.Store(a.state(&a.after, endOfText))
}

// mayMatch reports whether a text may have a match.
func (a *automaton) mayMatch(text []byte) bool {
	matches, _ := a.matches(text)
	return matches
}

// matches reports whether a text has a match, and whether that is certain.
func (a *automaton) matches(text []byte) (matches, sure bool) {
	if a == nil {
		return true, false
	}
	s, made, seen := a.start.Load(), 0, byte(0)
	for _, c := range text {
		if s.final {
			return s.match, a.sure(seen) || !s.match
		}
		seen |= c
		next := s.next[a.class[c]].Load()
		if next == nil {
			if made++; made > mostMade {
				return true, false
			}
			next = a.make(s, int(a.class[c]))
		}
		s = next
	}
	if !s.final {
		end := len(a.bytes) - 1
		if next := s.next[end].Load(); next != nil {
			s = next
		} else {
			s = a.make(s, end)
		}
	}
	return s.match, a.sure(seen) || !s.match
}

// sure reports whether the automaton takes a text for what the expression does, given all bits of its bytes.
func (a *automaton) sure(seen byte) bool { return seen < utf8.RuneSelf && !a.loose }

// make makes the state that follows one behind a byte of a class.
func (a *automaton) make(s *state, class int) *state {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.states) >= mostStates {
		a.restart()
	}
	c := a.bytes[class]
	a.step(s, c)
	next := a.state(&a.after, c)
	s.next[class].Store(next)
	return next
}

// step leaves the instructions that come next, behind a state and a character, in a.after.
func (a *automaton) step(s *state, c rune) {
	a.here.clear()
	a.after.clear()
	known := syntax.EmptyOpContext(s.before, c)
	for i := 0; i < len(s.at); i += 2 {
		a.follow(&a.here, uint32(s.at[i])<<8|uint32(s.at[i+1]), known)
	}
	for _, pc := range a.here.list {
		inst := &a.prog.Inst[pc]
		switch {
		case inst.Op == syntax.InstMatch:
			a.after.list = append(a.after.list[:0], pc)
			return
		case inst.Op == syntax.InstEmptyWidth, c == endOfText:
		case c != utf8.RuneError:
			if inst.MatchRune(c) {
				a.follow(&a.after, inst.Out, 0)
			}
		case a.beyond[pc]: // the character may have further bytes
			a.follow(&a.after, pc, 0)
			a.follow(&a.after, inst.Out, 0)
		}
	}
	if !a.anchored && c != endOfText {
		a.follow(&a.after, uint32(a.prog.Start), 0)
	}
}

// state returns the state of some instructions behind a character.
func (a *automaton) state(set *instructions, before rune) *state {
	switch {
	case before == utf8.RuneError, before >= 0 && before != '\n' && !syntax.IsWordChar(before):
		before = ' '
	case before >= 0 && before != '\n':
		before = 'a'
	}
	slices.Sort(set.list)
	key := []byte{byte(before)}
	match := false
	for _, pc := range set.list {
		key = append(key, byte(pc>>8), byte(pc))
		match = match || a.prog.Inst[pc].Op == syntax.InstMatch
	}
	if s := a.states[string(key)]; s != nil {
		return s
	}
	name := string(key) // at is a part of it, so that both take the memory of one
	s := &state{at: name[1:], before: before, match: match, final: match || len(set.list) == 0}
	if !s.final {
		s.next = make([]atomic.Pointer[state], len(a.bytes))
	}
	a.states[name] = s
	return s
}

// instructions is a set of them.
type instructions struct {
	list []uint32
	seen []bool
}

func (s *instructions) clear() {
	s.list = s.list[:0]
	clear(s.seen)
}

// follow adds an instruction, or those that it leads to without a character, as far as assertions hold.
func (a *automaton) follow(set *instructions, pc uint32, known syntax.EmptyOp) {
	if set.seen[pc] {
		return
	}
	set.seen[pc] = true
	switch inst := &a.prog.Inst[pc]; inst.Op {
	case syntax.InstFail:
	case syntax.InstAlt, syntax.InstAltMatch:
		a.follow(set, inst.Out, known)
		a.follow(set, inst.Arg, known)
	case syntax.InstCapture, syntax.InstNop:
		a.follow(set, inst.Out, known)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(inst.Arg)&^known == 0 {
			a.follow(set, inst.Out, known)
			return
		}
		set.list = append(set.list, pc)
	default:
		set.list = append(set.list, pc)
	}
}
