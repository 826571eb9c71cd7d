package screen

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/daemon/library"
	"github.com/ccship/ccship/daemon/remote"
)

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
