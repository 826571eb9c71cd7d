package screen

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/protocol"
)

// listLines returns the lines of the list: the number of a row, or -1 for a heading.
func (m *model) listLines() (lines []int) {
	for i, r := range m.page.rows {
		if i == 0 && r.group != "" || i > 0 && r.group != m.page.rows[i-1].group {
			lines = append(lines, -1)
		}
		lines = append(lines, i)
	}
	return lines
}

// list draws the part of the list that has the selected row.
func (m *model) list(l layout) []string {
	lines := m.listLines()
	m.top = topOf(lines, m.at, m.top, l.list)
	p := painter{colours: m.colours}
	columns := m.columns(l.listWidth)
	out := make([]string, l.list)
	for i := range out {
		n := m.top + i
		if n >= len(lines) {
			break
		}
		if at := lines[n]; at >= 0 {
			out[i] = term.Cut(m.row(&p, &m.page.rows[at], at == m.at, columns), l.listWidth)
		} else {
			out[i] = p.paint(bold, cut(m.heading(m.page.rows[lines[n+1]].group), l.listWidth))
		}
	}
	return out
}

func (m *model) heading(group string) string {
	if group == groupHere {
		return group + " · " + term.Printable(m.source.Project)
	}
	return group
}

// topOf returns the first line in sight, so that the selected row is too, with its heading if that is just above.
func topOf(lines []int, selected, top, height int) int {
	at := max(0, slices.Index(lines, selected))
	first := at
	if at > 0 && lines[at-1] < 0 {
		first = at - 1
	}
	top = min(top, first)
	return max(top, at-height+1, 0)
}

// columns are the widths of a row's parts.
type columns struct{ title, project, machine, when, match int }

// most of these parts is enough.
const (
	mostProject = 14
	mostMachine = 10
	whenColumns = 4
)

// columns shares a width among the parts; the title and what matched get what is left.
func (m *model) columns(width int) columns {
	c := columns{when: whenColumns}
	for i := range m.page.rows {
		r := &m.page.rows[i]
		c.project = min(max(c.project, term.Width(term.Printable(r.Project))), mostProject)
		c.machine = min(max(c.machine, term.Width(m.machine(r))), mostMachine)
	}
	rest := max(20, width-2-c.when-c.project-c.machine-4*2)
	c.title = rest
	for i := range m.page.rows {
		if r := &m.page.rows[i]; len(r.snippet) > 0 || r.state != "" {
			c.title = rest * 11 / 20
			c.match = rest - c.title
			break
		}
	}
	return c
}

// machine returns where a session ran, as people call it.
func (m *model) machine(r *row) string {
	if r.Machine == m.source.Library.Machine {
		return "here"
	}
	return term.Printable(cmp.Or(r.Host, r.Machine))
}

// row returns a session in one line.
func (m *model) row(p *painter, r *row, selected bool, c columns) string {
	sign := "  "
	if selected {
		sign = "› "
	}
	cells := func(text string, width int) string { return term.Pad(term.Cut(text, width), width) }
	left := sign + cells(cmp.Or(term.Printable(r.Title), protocol.Untitled), c.title) + "  "
	middle := cells(term.Printable(r.Project), c.project) + "  " + cells(m.machine(r), c.machine) + "  " +
		cells(ago(m.source.now(), r.ChangedAt), c.when) + "  "
	if selected && p.colours {
		return p.paint(picked, left+middle+cells(matched(r), c.match))
	}
	found := *p
	found.words = r.words()
	return strings.TrimRight(left+p.paint(faint, middle)+found.line(plain, cut(matched(r), c.match)), " ")
}

// matched returns what was found, from a little before it on, or what the session does.
func matched(r *row) string {
	if r.state != "" {
		return "● " + r.state
	}
	var b strings.Builder
	for _, piece := range r.snippet {
		text := piece.Text
		if words := strings.Fields(text); !piece.Match && b.Len() == 0 && len(words) > 2 { // only a little before it
			text = text[strings.LastIndex(text, words[len(words)-2]):]
		}
		b.WriteString(text)
	}
	text := term.Printable(b.String())
	if r.kind != "" && text != "" {
		return r.kind + ": " + text
	}
	return text
}

// ago returns how long a time is past, in at most four columns.
func ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d < 730*24*time.Hour:
		return fmt.Sprintf("%dmo", d/(30*24*time.Hour))
	default:
		return fmt.Sprintf("%dy", d/(365*24*time.Hour))
	}
}

// find asks a server for the sessions in which a text is, the best first.
func find(ctx context.Context, server *remote.Client, query string) (page, error) {
	found, err := server.Search(ctx, remote.Find{Text: query, Limit: foundSessions, Each: 1})
	if err != nil {
		return page{}, err
	}
	p := page{query: query, more: found.Next != nil || found.More, note: strings.Join(found.Notes, "; ")}
	if p.note == "" && len(found.Missing) > 0 {
		p.note = "no session has all words; the best lacks " + strings.Join(found.Missing, ", ")
	}
	for i := range found.Sessions {
		p.rows = append(p.rows, foundRow(server, &found.Sessions[i]))
	}
	return p, nil
}

// foundRow returns a session with the best of its lines.
func foundRow(server *remote.Client, x *remote.RankedSession) row {
	r := rowOf(server, &x.Session)
	r.Title = x.Title
	if x.Gone != nil { // only the prompt history names it
		r.Session, r.Title, r.address = *x.Gone, "(gone: only prompts are left)", ""
	}
	if len(x.Hits) == 0 {
		return r
	}
	h := &x.Hits[0]
	r.line, r.kind, r.snippet, r.address = h.Line, h.Kind, slices.Clone(h.Snippet), h.URL
	r.spot.Line = h.Line
	if h.SessionID != "" {
		r.spot.Ref.Session = h.SessionID
	}
	if h.Time != nil {
		r.ChangedAt = *h.Time
	}
	if !h.Current {
		r.spot.Ref.Generation = &h.Generation
	}
	return r
}

// rowOf returns a session of the server without a hit.
func rowOf(server *remote.Client, x *remote.Session) row {
	address := server.Base.String() + "/sessions/" + url.PathEscape(x.SessionID) + "/L/" +
		strconv.FormatInt(max(0, x.Lines-1), 10) + "?" + url.Values{"machine": {x.Machine}}.Encode()
	return row{
		Item: library.Item{Session: x.SessionID, Title: x.Summary.Title, Project: x.Project,
			Cwd: x.Cwd, Machine: x.Machine, Host: x.Host, ChangedAt: x.Last, State: library.OnServer, Agents: x.Agents},
		user: x.User, parent: x.Parent, line: -1, address: address,
		spot: library.Spot{Ref: remote.Ref{Session: x.SessionID, User: x.User, Machine: &x.Machine}, Line: -1,
			Lines: x.Lines},
	}
}
