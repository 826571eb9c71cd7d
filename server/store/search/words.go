package search

import (
	"bytes"
	"context"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript"
)

// term is a word in the form in which all of its forms are alike, hashed. Two words that share one are distinguished by
// nobody: of a million words, one in four thousand.
type term uint32

const (
	// longestWord is how long a word may be, in bytes: longer ones are encoded data.
	longestWord = 40
	// longestNumber is how many digits a number has that is a word.
	longestNumber = 6
)

// eachWord calls yield with the words of a text in their order: each with what stands there, in lower case, and its
// term. A name in camel case is its parts and then the whole. The bytes are valid until yield returns.
func eachWord(text string, yield func(word []byte, t term)) {
	text = transcript.Compose(text)
	var buf [longestWord + utf8.UTFMax]byte
	for i := 0; i < len(text); {
		r, size := decode(text[i:])
		if !isWord(r) {
			i += size
			continue
		}
		if unsegmented(r) {
			i += bigrams(text[i:], buf[:0], yield)
			continue
		}
		i += run(text[i:], buf[:0], yield)
	}
}

func decode(text string) (rune, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(text)
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// unsegmented is a letter of a script that has no spaces between words, or joins them to others.
func unsegmented(r rune) bool {
	return r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai,
		unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// bigrams gives each two letters of a run that has no spaces: how many bytes it has.
func bigrams(text string, word []byte, yield func([]byte, term)) int {
	before, at, n := rune(-1), 0, 0
	for at < len(text) {
		r, size := decode(text[at:])
		if !unsegmented(r) {
			break
		}
		if before >= 0 {
			word = utf8.AppendRune(utf8.AppendRune(word[:0], before), r)
			yield(word, hash(word))
			n++
		}
		before, at = r, at+size
	}
	if n == 0 {
		word = utf8.AppendRune(word[:0], before)
		yield(word, hash(word))
	}
	return at
}

// run gives the words of a run of letters and digits: how many bytes it has.
func run(text string, word []byte, yield func([]byte, term)) int {
	var before, last rune
	at, from, parts, digits := 0, 0, 0, 0
	long := false
	var forms [longestWord + utf8.UTFMax]byte
	give := func(w []byte) {
		if !long && len(w) > 1 {
			yield(w, hash(stem(append(forms[:0], w...))))
		}
	}
	for at < len(text) {
		r, size := decode(text[at:])
		if !isWord(r) || unsegmented(r) {
			break
		}
		if r >= '0' && r <= '9' {
			digits++
		}
		switch {
		case !unicode.IsUpper(r):
			if last != 0 && unicode.IsUpper(last) && unicode.IsUpper(before) && unicode.IsLower(r) && len(word)-from > 1 {
				n := len(word) - utf8.RuneLen(unicode.ToLower(last))
				give(word[from:n])
				from, parts = n, parts+1
			}
		case unicode.IsLower(last) && len(word) > from:
			give(word[from:])
			from, parts = len(word), parts+1
		}
		if long = long || len(word) >= longestWord; !long {
			word = utf8.AppendRune(word, unicode.ToLower(r))
		}
		before, last, at = last, r, at+size
	}
	letters := len(word) - digits
	if letters == 0 && digits > longestNumber || digits > 2 && letters > 2 && len(word) >= 8 {
		return at // a time, or an id: the index of parts of texts finds it
	}
	if give(word[from:]); parts > 0 {
		give(word)
	}
	return at
}

// stem removes what plural, -ing and -ed add to an English word. It changes w.
func stem(w []byte) []byte {
	if len(w) < 4 || bytes.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return w
	}
	has := func(end string) bool { return len(w) > len(end)+1 && string(w[len(w)-len(end):]) == end }
	switch {
	case has("ies") && len(w) > 4, has("ied") && len(w) > 4:
		return append(w[:len(w)-3], 'y')
	case has("sses"), has("xes"), has("zes"), has("ches"), has("shes"):
		w = w[:len(w)-2]
	case has("s") && !has("ss") && !has("us") && !has("is"):
		w = w[:len(w)-1]
	}
	for _, end := range []string{"ing", "ed"} {
		if n := len(w) - len(end); n > 2 && has(end) && bytes.ContainsAny(w[:n], "aeiouy") {
			if w = w[:n]; n > 2 && w[n-1] == w[n-2] && !bytes.ContainsAny(w[n-1:], "lsz") {
				w = w[:n-1]
			}
			break
		}
	}
	if n := len(w); n > 3 && w[n-1] == 'e' {
		w = w[:n-1]
	}
	return w
}

// hash is FNV-1a, with its bits mixed.
func hash(w []byte) term {
	h := uint64(14695981039346656037)
	for _, c := range w {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return term((h * 0x9e3779b97f4a7c15) >> 32)
}

// turnID names a turn.
type turnID struct{ stream, epoch, generation, line int64 }

// turn is a turn that has a word of the query.
type turn struct {
	turnID
	docs  []*doc // its parts
	in    []uint8
	size  int64
	time  int64
	score float64
	have  []bool
}

// weights is what a word counts in a field.
var weights = [fields]float64{inResult: .05, inOther: .05, inTool: .4, inAnswer: 1, oftenAnswered: 1.2, inPrompt: 4,
	oftenPrompted: 5, inTitle: 6}

const (
	// saturation and lengthShare are k1 and b of BM25.
	saturation  = 1.2
	lengthShare = .4
	// oldView weakens turns and lines that a rewind took out.
	oldView = .5
)

// findTurns finds the turns that have words of the query, scores them and adds them to their sessions.
func (r *ranking) findTurns(ctx context.Context) error {
	if len(r.terms) == 0 {
		return nil
	}
	found, err := r.match(ctx)
	if err == nil {
		found, err = r.best(ctx, found)
	}
	if err == nil {
		err = r.readTurns(ctx, found)
	}
	if err != nil {
		return err
	}
	var ids []int64
	for _, t := range r.turns {
		ids = append(ids, t.stream)
	}
	if err := r.load(ctx, ids); err != nil {
		return err
	}
	r.read = len(r.turns)
	for id, t := range r.turns {
		if !r.seen(t) {
			delete(r.turns, id)
			continue
		}
		if t.docs[0].Kinds&bitsOf([]string{server.HistoryKind}) != 0 {
			delete(r.turns, id)
			r.history = append(r.history, t)
		}
	}
	r.countTurns()
	for _, t := range r.turns {
		r.scoreTurn(t)
		if g := r.groupOf(r.infos[t.stream], ""); t.score > 0 && g != nil {
			g.add(t)
		}
	}
	return nil
}

// seen leaves out parts of a turn that count no more; false if none is left, or the scope does not see it.
func (r *ranking) seen(t *turn) bool {
	x := r.infos[t.stream]
	if x == nil {
		return false
	}
	t.docs = slices.DeleteFunc(t.docs, func(d *doc) bool {
		_, there := x.epochOf(d)
		return !there || d.Round < x.purged || !x.counts(d, d.Last())
	})
	return len(t.docs) > 0
}

// countTurns counts how many of the found turns have each term, unless best has counted more of them than are read, and
// their mean length. What the scope does not see does not count.
func (r *ranking) countTurns() {
	size, df := int64(0), make([]float64, len(r.terms))
	for _, t := range r.turns {
		for i, in := range t.in {
			if r.tells(in) {
				df[i]++
			}
		}
		size += t.size
	}
	r.mean = float64(size) / math.Max(1, float64(len(r.turns)))
	if r.df == nil {
		r.df, r.counted = df, float64(len(r.turns))
	}
}

// tells reports whether a term in these fields counts for how rare it is.
func (r *ranking) tells(in uint8) bool {
	return in&^(1<<inResult) != 0 || in != 0 && r.fields != math.MaxUint8
}

// rarity returns the weight of a term by how few turns have it: BM25's IDF.
func (r *ranking) rarity(i int) float64 {
	n := 2 * r.counted
	return math.Log(1 + (n-r.df[i]+.5)/(r.df[i]+.5))
}

// scoreTurn scores a turn. Titles are of the whole session.
func (r *ranking) scoreTurn(t *turn) {
	t.have = make([]bool, len(r.clauses))
	norm := 1 - lengthShare + lengthShare*float64(t.size)/math.Max(1, r.mean)
	t.score = r.bm25(t.in, r.titles[t.stream], norm, t.have)
	if x := r.infos[t.stream]; !slices.ContainsFunc(t.docs, func(d *doc) bool { return x.shows(d, d.First()) }) {
		t.score *= oldView
	}
}

// bm25 scores terms by the fields that they are in, and adds to have which clauses are there whole.
func (r *ranking) bm25(terms, titles []uint8, norm float64, have []bool) (score float64) {
	one := func(i int) float64 {
		in, tf := terms[i], 0.0
		if titles != nil {
			in |= titles[i]
		}
		for f := range fields {
			if in>>f&1 == 1 {
				tf += weights[f]
			}
		}
		return r.rarity(i) * tf * (saturation + 1) / (tf + saturation*norm)
	}
	for i, c := range r.clauses {
		best := 0.0
		for _, a := range c.alts {
			sum, all := 0.0, a.fuzzy()
			for _, k := range a.terms {
				x := one(k)
				sum, all = sum+x, all && x > 0
			}
			if have[i] = have[i] || all; !all {
				sum /= 2
			}
			best = max(best, sum)
		}
		score += best
	}
	return score
}

// add counts a turn for its session: a session is as good as its best turn.
func (g *group) add(t *turn) {
	if t.score > g.score {
		g.score, g.time = t.score, t.time
	}
	for i, has := range t.have {
		g.have[i] = g.have[i] || has
	}
	for _, in := range t.in {
		g.in |= in
	}
	i, _ := slices.BinarySearchFunc(g.turns, t, func(a, b *turn) int {
		if a.score > b.score || a.score == b.score && a.time > b.time {
			return -1
		}
		return 1
	})
	g.turns = slices.Insert(g.turns, i, t)
	g.turns = g.turns[:min(len(g.turns), bestTurns)]
}

// takeTurn adds a part of a turn.
func (r *ranking) takeTurn(d *doc, in []uint8) {
	for i, x := range in {
		if x>>inTitle&1 == 1 {
			if r.titles[d.Stream] == nil {
				r.titles[d.Stream] = make([]uint8, len(r.terms))
			}
			r.titles[d.Stream][i] |= 1 << inTitle
		}
	}
	if d.Newest() < r.since || d.Oldest() > r.upper {
		return
	}
	id := turnID{d.Stream, d.Epoch, d.Generation, d.Turn}
	t := r.turns[id]
	if t == nil {
		r.turns[id] = &turn{turnID: id, docs: []*doc{d}, in: in, size: d.Size, time: d.Newest()}
		return
	}
	t.docs, t.size, t.time = append(t.docs, d), t.size+d.Size, max(t.time, d.Newest())
	for i, x := range in {
		t.in[i] |= x
	}
}
