package library

import (
	"hash/maphash"
	"math"

	"github.com/ccship/ccship/transcript"
)

// answers holds one entry for each answer: about a hundred bytes, whatever the transcripts' size.
//
// An answer is known by its message id and request id. Some gateways give neither request ids nor message ids of their
// own: then the message id counts within its session. Where one copy is a sidechain's, the message id within the
// session is enough: a side question repeats answers of the main conversation under request ids of its own.
type answers struct {
	seed maphash.Seed
	list []answer
	last map[uint64]int32 // 1 + number in list of the newest answer of a message
}

// answer is what counts of one answer.
type answer struct {
	message uint64 // hash of the message id
	request uint32 // hash of the request id, or of the session
	session uint32 // hash of the session's id
	group   int32  // of sums; -1: outside the query's time
	tokens  [6]uint32
	side    bool  // of a sidechain
	copied  bool  // out of another session's history
	before  int32 // 1 + number in list of the message's answer before; 0: none
}

// usage returns the tokens and searches as they are in lines.
func (a *answer) usage() transcript.Usage {
	return transcript.Usage{
		Input: int64(a.tokens[0]), Output: int64(a.tokens[1]), CacheRead: int64(a.tokens[2]),
		CacheWrite5m: int64(a.tokens[3]), CacheWrite1h: int64(a.tokens[4]), WebSearches: int64(a.tokens[5]),
	}
}

// newAnswer returns the answer that a sample is of. No model gives answers of more than four billion tokens.
func (t *answers) newAnswer(s *transcript.UsageSample, session string) answer {
	fit := func(n int64) uint32 { return uint32(min(n, math.MaxUint32)) }
	hash := func(kind, text string) uint64 { return maphash.String(t.seed, kind+text) }
	a := answer{
		message: hash("", s.Key()), request: uint32(hash("request ", s.RequestID)),
		session: uint32(hash("session ", session)), side: s.Sidechain,
		tokens: [6]uint32{fit(s.Usage.Input), fit(s.Usage.Output), fit(s.Usage.CacheRead), fit(s.Usage.CacheWrite5m),
			fit(s.Usage.CacheWrite1h), fit(s.Usage.WebSearches)},
	}
	if s.RequestID == "" {
		a.request = a.session
	}
	return a
}

// supersedes says whether of two copies a counts instead of b, which was found first: the main conversation's before a
// sidechain's, then the one with more output, then the one with more tokens, because earlier lines of an answer hold
// placeholders, then the original.
func (a *answer) supersedes(b *answer) bool {
	if a.side != b.side {
		return b.side
	}
	if a.tokens[1] != b.tokens[1] {
		return a.tokens[1] > b.tokens[1]
	}
	if x, y := a.usage().Total(), b.usage().Total(); x != y {
		return x > y
	}
	return b.copied && !a.copied
}

// add takes a copy of an answer. counts says that it counts, from now on instead of before, if that is not nil.
func (t *answers) add(a answer) (counts bool, before *answer) {
	found, exact := int32(0), false // the first that is the same answer
	for n := t.last[a.message]; n > 0; n = t.list[n-1].before {
		x := &t.list[n-1]
		if x.request == a.request || !exact && x.session == a.session && (x.side || a.side) {
			found, exact = n, x.request == a.request
		}
	}
	if found == 0 {
		a.before = t.last[a.message]
		t.list = append(t.list, a)
		t.last[a.message] = int32(len(t.list))
		return true, nil
	}
	x := &t.list[found-1]
	if !a.supersedes(x) {
		return false, nil
	}
	old := *x
	a.before = old.before
	*x = a
	return true, &old
}
