package server

import (
	"strings"
	"unicode"
)

// queryToken is a part of a search text.
type queryToken struct {
	raw     string
	not     bool   // after -
	name    string // before a colon, in lower case; "": no filter
	text    string // without quotes, slashes and name
	quoted  bool
	open    bool // the quotation mark is not closed
	pattern bool
}

func (t queryToken) plain(word string) bool { return t.raw == word }

// quotes are what phones and editors make of a quotation mark, each by its bytes.
var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`)

// splitQuery cuts a search text into its parts.
func splitQuery(text string) (out []queryToken) {
	text = quotes.Replace(text)
	for at := 0; at < len(text); {
		if rest := strings.TrimLeftFunc(text[at:], unicode.IsSpace); len(rest) < len(text)-at {
			at = len(text) - len(rest)
			continue
		}
		var t queryToken
		n := t.read(text[at:])
		t.raw = text[at : at+n]
		at += n
		out = append(out, t)
	}
	return out
}

// read reads a token from the beginning of a text: how many bytes it has.
func (t *queryToken) read(text string) int {
	n := 0
	if len(text) > 1 && text[0] == '-' && text[1] != '-' && !unicode.IsSpace(rune(text[1])) { // --flag is a word
		t.not, n = true, 1
	}
	if name, rest, ok := strings.Cut(text[n:], ":"); ok && isFilterName(name) && startsValue(rest) {
		t.name = strings.ToLower(name)
		n += len(name) + 1
		if text[n] == '"' {
			return n + t.phrase(text[n:])
		}
		end := wordEnd(text[n:])
		t.text = text[n : n+end]
		return n + end
	}
	switch {
	case text[n] == '"':
		return n + t.phrase(text[n:])
	case text[n] == '/' && t.expression(text[n:]) > 0:
		return n + t.expression(text[n:])
	}
	end := wordEnd(text[n:])
	t.text = text[n : n+end]
	return n + end
}

// phrase reads a text in quotation marks.
func (t *queryToken) phrase(text string) int {
	inner, _, closed := strings.Cut(text[1:], `"`)
	t.text, t.quoted, t.open = inner, closed, !closed
	if !closed {
		return len(text)
	}
	return len(inner) + 2
}

// expression reads a text between slashes: the second one ends a word, as it does not in a path. 0: there is none.
func (t *queryToken) expression(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '/' && i > 1 && (i+1 == len(text) || unicode.IsSpace(rune(text[i+1]))):
			t.text, t.pattern = strings.ReplaceAll(text[1:i], `\/`, "/"), true
			return i + 1
		case text[i] == '/':
			return 0
		}
	}
	return 0
}

// wordEnd returns where a word ends: before white space or a quotation mark.
func wordEnd(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
	if end < 0 {
		return len(text)
	}
	return max(end, 1)
}

// isFilterName reports whether a text before a colon is meant as a filter's name.
func isFilterName(name string) bool {
	return len(name) > 1 && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

// startsValue reports whether a text after a colon begins with a value: neither space nor what follows in addresses and
// names of programs.
func startsValue(rest string) bool {
	return rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n:/\\")
}

// wordsIn returns the runs of letters and digits of a text.
func wordsIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// values returns those of a filter: separated by commas where it takes only some.
func (t queryToken) values() []string {
	for _, f := range QueryFilters() {
		if f.Name == t.name && f.Values != nil {
			return strings.Split(strings.ToLower(t.text), ",")
		}
	}
	return []string{t.text}
}
