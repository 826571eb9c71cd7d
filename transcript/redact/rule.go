package redact

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Rule describes one kind of secret.
type Rule struct {
	Name   string // in tokens: lower-case letters, digits and hyphens
	Source string // where the format is documented
	// Pattern is an RE2 expression. The secret is its group Group; with Group 0, the first group that matched, or else
	// the whole match.
	Pattern string
	Group   int
	// Literals: one of them is in every match, otherwise the pattern is not tried. None: it is tried everywhere.
	Literals []string
	Fold     bool // letter case of the literals does not matter
	Token    bool // the match starts with the literal, and no letter or digit is before it
	// Before and After are how many bytes around a literal are searched at first; 0: a default.
	Before, After int
	Entropy       float64 // least bits a character of a secret; 0: any
	Path          string  // an expression for the paths of documents; then the rule applies to nothing else
	Allow         []Allow

	near  near // what must follow the literal, checked before the pattern
	mixed bool // what is no more than data with zeros, or hexadecimal digits, is no secret
	many  bool // each group that matched is a secret
	loose bool // the pattern matches by context: placeholders must be distinguished from secrets
}

// Allow lists what a rule must not mask.
type Allow struct {
	Rules     []string // names of the rules that a common allow-list is for; none: all. See NewAllowing
	Patterns  []string // RE2 expressions
	Target    string   // what they look at: "" or "secret", "match", "line"
	StopWords []string // parts of secrets, in lower case
	Paths     []string // expressions for paths of documents
	All       bool     // every kind of condition must hold, not only one
}

// rule is a Rule that is ready to search.
type rule struct {
	Rule
	index      int
	expression func() *regexp.Regexp
	quick      func() *automaton // matches wherever expression does, in far less time; nil: there is none
	path       *regexp.Regexp
	allow      []allow
}

type allow struct {
	patterns, paths []*regexp.Regexp
	def             Allow
}

var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
})

// newRule checks a rule. The expressions of built-in rules are compiled when they are first needed.
func newRule(def Rule) (*rule, error) {
	r := &rule{Rule: def}
	if !nameForm().MatchString(def.Name) {
		return nil, fmt.Errorf("rule %q: the name may have lower-case letters, digits and hyphens only", def.Name)
	}
	for _, l := range def.Literals {
		if len(l) < shortest {
			return nil, fmt.Errorf("rule %q: the keyword %q is too short", def.Name, l)
		}
	}
	if r.Before == 0 {
		r.Before = 96
	}
	if r.After == 0 {
		r.After = 384
	}
	pattern := def.Pattern
	if def.Token {
		pattern = `\A(?:` + pattern + `)`
	}
	r.expression = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	if !def.Token {
		r.quick = sync.OnceValue(func() *automaton { return newAutomaton(pattern, true) })
	}
	if def.Source != "" {
		return r, nil
	}
	return r, r.check(pattern)
}

// check compiles what a person wrote.
func (r *rule) check(pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("rule %q: %w", r.Name, err)
	}
	if r.Group > re.NumSubexp() {
		return fmt.Errorf("rule %q: the expression has no group %d", r.Name, r.Group)
	}
	r.expression = func() *regexp.Regexp { return re }
	if r.Path != "" {
		if r.path, err = regexp.Compile(r.Path); err != nil {
			return fmt.Errorf("rule %q: path: %w", r.Name, err)
		}
	}
	return r.allowing(r.Allow)
}

// allowing adds the allow-lists that concern the rule.
func (r *rule) allowing(lists []Allow) (err error) {
	for _, def := range lists {
		if len(def.Rules) > 0 && !slices.Contains(def.Rules, r.Name) {
			continue
		}
		a := allow{def: def}
		if a.patterns, err = compileAll(def.Patterns); err == nil {
			a.paths, err = compileAll(def.Paths)
		}
		if err != nil {
			return fmt.Errorf("rule %q: allow-list: %w", r.Name, err)
		}
		r.allow = append(r.allow, a)
	}
	return nil
}

func compileAll(patterns []string) ([]*regexp.Regexp, error) {
	var all []*regexp.Regexp
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, err
		}
		all = append(all, re)
	}
	return all, nil
}

// secrets returns the positions of the secrets of a match.
func (r *rule) secrets(loc []int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		if !r.many {
			yield(r.secret(loc))
			return
		}
		for i := 2; i+1 < len(loc) && (loc[i] < 0 || yield(loc[i], loc[i+1])); i += 2 {
		}
	}
}

// secret returns where the secret of a match is, or the first one.
func (r *rule) secret(loc []int) (from, to int) {
	if r.Group > 0 {
		return loc[2*r.Group], loc[2*r.Group+1]
	}
	for i := 2; i+1 < len(loc); i += 2 {
		if loc[i] >= 0 {
			return loc[i], loc[i+1]
		}
	}
	return loc[0], loc[1]
}

// badge is before a token that is for all who see the picture of a project's state.
const badge = "badge.svg?token="

// allowed reports whether a match counts: it is no placeholder, random enough, and on no allow-list.
func (r *rule) allowed(part []byte, loc []int, secret []byte, path string) bool {
	switch {
	case r.path != nil && (path == "" || !r.path.MatchString(path)):
		return false
	case r.Entropy > 0 && entropy(secret) < r.Entropy:
		return false
	case r.Source != "" && placeholder(secret, r.loose), r.loose && ordinary(secret, r.near):
		return false
	case r.mixed && (5*bytes.Count(secret, []byte("A")) > len(secret) || isHex(secret)):
		return false
	case r.near == vendor && isNoKey(part, loc, secret):
		return false
	case r.loose && bytes.Contains(part[max(0, loc[0]-len(badge)):loc[1]], []byte(badge)):
		return false
	case slices.Contains([]near{assignment, quotation, element, member, unquoted}, r.near):
		// What is assigned to its own name is a variable.
		from, _ := r.secret(loc)
		if bytes.Contains(bytes.ToLower(part[loc[0]:from]), bytes.ToLower(secret)) {
			return false
		}
	}
	for _, a := range r.allow {
		if a.covers(part, loc, secret, path) {
			return false
		}
	}
	return true
}

// digests are words between a vendor's name and what identifies a version or a file.
var digests = []string{"commit", "sha", "rev", "ref", "hash", "digest", "head", "tree", "parent", "checksum",
	"integrity", "etag", "tag"}

// isNoKey reports whether what follows a vendor's name is a hash, as the words between say, or code.
func isNoKey(part []byte, loc []int, secret []byte) bool {
	between := bytes.ToLower(part[loc[0]:loc[2]])
	rest := part[loc[3]:]
	return len(rest) > 0 && hasAny(rest[:1], "({[<") && !bytes.HasPrefix(rest, []byte("</")) || isHex(secret) &&
		slices.ContainsFunc(digests, func(word string) bool { return bytes.Contains(between, []byte(word)) })
}

// covers reports whether an allow-list names a match.
func (a *allow) covers(part []byte, loc []int, secret []byte, path string) bool {
	var asked, held int
	ask := func(given bool, holds func() bool) {
		if given {
			asked++
			if holds() {
				held++
			}
		}
	}
	ask(len(a.patterns) > 0, func() bool { return anyMatch(a.patterns, a.target(part, loc, secret)) })
	ask(len(a.paths) > 0, func() bool { return path != "" && anyMatch(a.paths, []byte(path)) })
	ask(len(a.def.StopWords) > 0, func() bool {
		text := strings.ToLower(string(secret))
		for _, w := range a.def.StopWords {
			if strings.Contains(text, strings.ToLower(w)) {
				return true
			}
		}
		return false
	})
	if a.def.All {
		return asked > 0 && held == asked
	}
	return held > 0
}

func (a *allow) target(part []byte, loc []int, secret []byte) []byte {
	switch a.def.Target {
	case "match":
		return part[loc[0]:loc[1]]
	case "line":
		from, to := loc[0], loc[1]
		for from > 0 && part[from-1] != '\n' {
			from--
		}
		for to < len(part) && part[to] != '\n' {
			to++
		}
		return part[from:to]
	}
	return secret
}

func anyMatch(all []*regexp.Regexp, b []byte) bool {
	for _, re := range all {
		if re.Match(b) {
			return true
		}
	}
	return false
}

// entropy is Shannon's, in bits a character.
func entropy(b []byte) float64 {
	var counts [256]int
	for _, c := range b {
		counts[c]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(b))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
