package search

import (
	"bytes"
	"unicode"
	"unicode/utf8"

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
