package show

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/remote"
)

// ShareLinks lists links to sessions, one a line.
func (v View) ShareLinks(links []remote.ShareLink) string {
	if len(links) == 0 {
		return "no links\n"
	}
	rows := make([][]string, len(links))
	for i, l := range links {
		rows[i] = []string{strconv.FormatInt(l.ID, 10), "until " + l.Until.In(v.Zone).Format(time.DateTime),
			term.Printable(l.By), l.SessionID[:min(len(l.SessionID), 8)],
			term.Cut(term.Printable(strings.Join(strings.Fields(l.Title), " ")), 100)}
	}
	var b strings.Builder
	for _, line := range aligned("><<<<", rows) {
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}

// SavedViews lists saved views, one a line.
func (v View) SavedViews(list []remote.SavedView) string {
	if len(list) == 0 {
		return "no saved views\n"
	}
	rows := make([][]string, len(list))
	for i, x := range list {
		rows[i] = []string{term.Printable(x.Name), x.Page, term.Printable(filters(x.Query))}
	}
	var b strings.Builder
	for _, line := range aligned("<<<", rows) {
		b.WriteString(v.fit(line) + "\n")
	}
	return b.String()
}

// filters says what the query of a page's address filters by.
func filters(query string) string {
	q, err := url.ParseQuery(query)
	if err != nil {
		return query
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		value := strings.Join(q[name], ", ")
		if name == "q" {
			out = append(out, strconv.Quote(value))
			continue
		}
		out = append(out, name+" "+value)
	}
	return strings.Join(out, "; ")
}

// Mark is what a user keeps about a session.
func Mark(m remote.Mark) string {
	var b strings.Builder
	row := func(name, text string) { b.WriteString(term.Pad(name, 6) + text + "\n") }
	star := "no"
	if m.Star {
		star = "yes"
	}
	row("star", star)
	row("name", cmp.Or(term.Printable(m.Name), unknown))
	row("tags", cmp.Or(term.Printable(strings.Join(m.Tags, ", ")), unknown))
	row("note", cmp.Or(term.Printable(m.Note), unknown))
	return b.String()
}
