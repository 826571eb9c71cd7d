package web

import (
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/ccship/ccship/server/web/markup"
)

// Private characters stand for the beginning and the end of a match while a snippet is rendered.
const (
	matchBegin = "\ue000"
	matchEnd   = "\ue001"
)

// The store marks a match by control characters.
var (
	toPrivate = strings.NewReplacer(matchBegin, "", matchEnd, "", "\x02", matchBegin, "\x03", matchEnd)
	unmarked  = strings.NewReplacer("\x02", "", "\x03", "")
	noMatch   = strings.NewReplacer(matchBegin, "", matchEnd, "", "%EE%80%80", "", "%EE%80%81", "", "%ee%80%80", "",
		"%ee%80%81", "")

	// sequences are those that colour a terminal, perhaps with a match in them. The store shows ESC as white space.
	// cutSequence is the end of one.
	sequences   = regexp.MustCompile(`\x1b?\[([0-9;` + matchBegin + matchEnd + `]*[0-9;]` + matchEnd + `?m|K)`)
	cutSequence = regexp.MustCompile(`^…\[?[0-9;]{1,16}m`)
	// headings and fences stand in the middle of the one line that a snippet is.
	headings = regexp.MustCompile("(^|[ …])(?:#{1,6} |```[a-z]* ?)")
)

// prose are the kinds of texts that are written in Markdown. What others show may have a terminal's colours.
var prose = []string{"prompt", "message", "answer", "thinking", "title"}

// snippet returns a piece of a text around what a search found in it.
func snippet(kind, text string) template.HTML {
	text = toPrivate.Replace(text)
	budget := markup.NewBudget()
	var html template.HTML
	if slices.Contains(prose, kind) {
		html, _ = budget.Markdown(headings.ReplaceAllString(text, "$1")) // a snippet is short
	} else {
		text = sequences.ReplaceAllStringFunc(cutSequence.ReplaceAllString(text, "…"), func(s string) string {
			return "\x1b" + strings.TrimPrefix(noMatch.Replace(s), "\x1b")
		})
		html, _ = budget.ANSI(text)
	}
	return template.HTML(markMatches(string(html))) //nolint:gosec // safe before, and only marks are added
}

// inlineSnippet returns a snippet as text, with marks: for places where no other element may stand.
func inlineSnippet(text string) template.HTML {
	text = sequences.ReplaceAllString(cutSequence.ReplaceAllString(toPrivate.Replace(text), "…"), "")
	html, _ := markup.NewBudget().Text(text)
	return template.HTML(markMatches(string(html))) //nolint:gosec // escaped by Text
}

// markMatches puts matches between marks, each part that stands in an element of its own by itself.
func markMatches(html string) string {
	var b strings.Builder
	in := false
	set := func(on bool) {
		if in != on {
			b.WriteString(map[bool]string{true: "<mark>", false: "</mark>"}[on])
		}
		in = on
	}
	matched := false
	for html != "" {
		i := strings.IndexAny(html, "<"+matchBegin+matchEnd)
		if i < 0 {
			i = len(html)
		}
		if i > 0 {
			set(matched)
			b.WriteString(html[:i])
			html = html[i:]
		}
		switch {
		case html == "":
		case html[0] == '<':
			end := strings.IndexByte(html, '>') + 1
			if end == 0 {
				end = len(html)
			}
			set(false)
			b.WriteString(noMatch.Replace(html[:end]))
			html = html[end:]
		default:
			matched = strings.HasPrefix(html, matchBegin)
			html = html[len(matchBegin):]
		}
	}
	set(false)
	return b.String()
}
