package library

import (
	"hash/maphash"
	"math"

	"github.com/ccship/ccship/transcript"
)

// answers holds one entry for each answer: about 60 bytes, whatever the transcripts' size. It is a hash table with open
// addressing over a list in blocks, which are never copied.
//
// An answer is known by its message id and request id. Some gateways give neither request ids nor message ids of their
// own: then the message id counts within its session. Where one copy is a sidechain's, the message id within the
// session is enough: a side question repeats answers of the main conversation under request ids of its own.
type answers struct {
	seed maphash.Seed
	list [][]answer
	n    int     // answers in list
	at   []int32 // 1 + number in list, by message; 0: free. Its length is a power of two.
}

// perBlock is how many answers a block has.
const perBlock = 4096

// entry returns the answer of a number.
func (t *answers) entry(n int32) *answer { return &t.list[n/perBlock][n%perBlock] }

// answer is what counts of one answer.
type answer struct {
	message uint64 // hash of the message id
	request uint32 // hash of the request id, or of the session
	session uint32 // hash of the session's id
	group   int32  // of sums; -1: outside the query's time
	tokens  [6]uint32
	side    bool // of a sidechain
	copied  bool // out of another session's history
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
	if 4*(t.n+1) > 3*len(t.at) {
		t.grow()
	}
	found, free := int32(-1), -1
	for i := int(a.message) & (len(t.at) - 1); ; i = (i + 1) & (len(t.at) - 1) {
		if t.at[i] == 0 {
			free = i
			break
		}
		x := t.entry(t.at[i] - 1)
		if x.message != a.message {
			continue
		}
		if x.request == a.request {
			found = t.at[i] - 1
			break
		}
		if found < 0 && x.session == a.session && (x.side || a.side) {
			found = t.at[i] - 1
		}
	}
	if found < 0 {
		if t.n%perBlock == 0 {
			t.list = append(t.list, make([]answer, perBlock))
		}
		*t.entry(int32(t.n)) = a
		t.n++
		t.at[free] = int32(t.n)
		return true, nil
	}
	x := t.entry(found)
	if !a.supersedes(x) {
		return false, nil
	}
	old := *x
	*x = a
	return true, &old
}

func (t *answers) grow() {
	t.at = make([]int32, max(1024, 2*len(t.at)))
	for n := range int32(t.n) {
		i := int(t.entry(n).message) & (len(t.at) - 1)
		for t.at[i] != 0 {
			i = (i + 1) & (len(t.at) - 1)
		}
		t.at[i] = n + 1
	}
}
