package web

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
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

// helpRow is a part of the search language, with an example that can be tried.
type helpRow struct {
	Form, Help, URL string
}

// searchHelp is the language of the search box.
func (v *Viewer) searchHelp() (out []helpRow) {
	for _, x := range []helpRow{
		{"rounding cart", "words, in any of their forms; the best sessions come first", ""},
		{`"off by one"`, "exactly this", ""},
		{"cart OR basket", "one of them", ""},
		{"cart -docs", "none with that word", ""},
		{`/retr(y|ies) \d+/`, "a regular expression", ""},
	} {
		x.URL = v.Base + page.Address("/search", url.Values{"q": {x.Form}})
		out = append(out, x)
	}
	examples := map[string]string{"project": "shop", "machine": "laptop", "user": "kim", "session": "1e0a84da",
		"file": "cart.go", "tool": "Bash", "kind": "prompt", "branch": "main", "model": "opus", "before": "2026-11",
		"after": "7d", "is": "error"}
	for _, f := range server.QueryFilters() {
		out = append(out, helpRow{f.Name + ":" + examples[f.Name], f.Help, ""})
	}
	return out
}

// mostNames is how many values of one filter are offered.
const mostNames = 200

// commonTools are offered; any other can be typed.
var commonTools = []string{"Bash", "Edit", "Glob", "Grep", "Read", "Skill", "Task", "WebFetch", "WebSearch", "Write",
	"mcp__*"}

// names is GET /search/names: a list of filters with the names that the reader may search by, which completes the
// search box.
func (v *Viewer) names(w http.ResponseWriter, r *http.Request, who server.Login) error {
	list, err := v.filterNames(r.Context(), who)
	if err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "names.html", list)
	return nil
}

// filterNames are filters with the names that a reader may search by.
func (v *Viewer) filterNames(ctx context.Context, who server.Login) (list []string, err error) {
	scope := server.ScopeOf(who.User)
	groups, err := v.store.Groups(ctx, scope, server.GroupQuery{Limit: mostNames})
	if err != nil {
		return nil, err
	}
	users, err := userChips(ctx, v.store, who, nil, allUsers)
	if err != nil {
		return nil, err
	}
	used, err := v.store.Usage(ctx, scope, server.UsageQuery{By: []string{"model"}})
	if err != nil {
		return nil, err
	}
	values := map[string][]string{"tool": commonTools, "kind": server.QueryKinds(), "is": server.SessionStates(),
		"after": {"today", "7d", "30d"}}
	add := func(name, value string) {
		if value != "" && len(values[name]) < mostNames && !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	for _, p := range derive.ProjectsOf(groups.List).List {
		add("project", p.Name)
	}
	for _, g := range groups.List {
		add("machine", g.Host)
	}
	for _, u := range users {
		add("user", u.Name)
	}
	for _, u := range used {
		add("model", u.Model)
	}
	for _, f := range server.QueryFilters() {
		for _, value := range values[f.Name] {
			list = append(list, server.FormatFilter(f.Name, value))
		}
	}
	return list, nil
}
