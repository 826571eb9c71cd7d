package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"

	"github.com/ccship/ccship/server/web/page"
)

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
