package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
)

const (
	// shortName is how many characters of an id a short name has at least, and leastPrefix how many one may be given as.
	shortName   = 8
	leastPrefix = 4
	// maxAlike is how many ids with one beginning are compared.
	maxAlike = 200
)

// span returns the range of texts that begin with a prefix: from it to before end. ok is false for prefixes that no id
// has.
func span(prefix string) (end string, ok bool) {
	last := len(prefix) - 1
	if last < 0 || strings.ContainsFunc(prefix, func(r rune) bool { return r <= ' ' || r >= '~' }) {
		return "", false
	}
	return prefix[:last] + string(prefix[last]+1), true
}

// whole completes the id of a ref that is the beginning of one: what a scope does not see does not count. An agent's is
// that of its session, and its own name. When several ids begin so, the error is an *server.AmbiguousError.
func (l lookup) whole(ctx context.Context, ref server.Ref) (server.Ref, error) {
	prefix, agent, isAgent := strings.Cut(ref.SessionID, "/")
	end, ok := span(prefix)
	if !ok || len(prefix) < leastPrefix {
		return ref, server.ErrNotFound
	}
	var f Filter
	l.limit(&f, l.scope)
	f.Add(`s.parent = '' AND s.session_id >= ? AND s.session_id < ?`, prefix, end)
	f.Streams(ref.Machine, ref.Owner)
	ids, err := List(ctx, l, `SELECT s.session_id FROM streams s `+f.Where()+`
GROUP BY s.session_id ORDER BY max(s.last_received) DESC LIMIT ?`, append(f.Args, server.MaxChoices), scanName)
	switch {
	case err != nil:
		return ref, fmt.Errorf("find session: %w", err)
	case len(ids) == 0:
		return ref, server.ErrNotFound
	case len(ids) == 1:
		if ref.SessionID = ids[0]; isAgent {
			ref.SessionID += "/" + agent
		}
		return ref, nil
	}
	no := &server.AmbiguousError{Session: prefix}
	for _, id := range ids {
		x, err := l.find(ctx, server.Ref{SessionID: id, Machine: ref.Machine, Owner: ref.Owner})
		if err != nil {
			return ref, err
		}
		no.Choices = append(no.Choices, x)
	}
	return ref, no
}

func scanName(row Scanner) (name string, err error) { return name, row.Scan(&name) }

// ShortNames implements server.Library.
func (p *Artifacts) ShortNames(ctx context.Context, scope server.Scope, ids []string) (map[string]string, error) {
	var alike Filter
	beginnings := map[string]bool{}
	for _, id := range ids {
		prefix := id[:min(len(id), shortName)]
		end, ok := span(prefix)
		if ok && !beginnings[prefix] {
			beginnings[prefix] = true
			alike.Add(`s.session_id >= ? AND s.session_id < ?`, prefix, end)
		}
	}
	if len(beginnings) == 0 {
		return nil, nil //nolint:nilnil // no names
	}
	var f Filter
	f.Scope(scope)
	f.Add(`s.parent = ''`)
	f.Add(`(`+strings.Join(alike.Conditions, ` OR `)+`)`, alike.Args...)
	names, err := List(ctx, p.db, `SELECT s.session_id FROM streams s `+f.Where()+` ORDER BY s.session_id LIMIT ?`,
		append(f.Args, maxAlike*len(beginnings)), scanName)
	if err != nil {
		return nil, fmt.Errorf("list sessions with like ids: %w", err)
	}
	out := map[string]string{}
	for _, id := range ids {
		if short, ok := shortest(names, id); ok {
			out[id] = short
		}
	}
	return out, nil
}

// shortest returns the shortest beginning of an id that no other one of sorted names has; false if the id is there
// twice.
func shortest(names []string, id string) (string, bool) {
	at, there := slices.BinarySearch(names, id)
	if !there || at+1 < len(names) && names[at+1] == id {
		return "", false
	}
	n := shortName
	for _, other := range []int{at - 1, at + 1} {
		if other < 0 || other >= len(names) {
			continue
		}
		same := 0
		for same < min(len(id), len(names[other])) && id[same] == names[other][same] {
			same++
		}
		n = max(n, same+1)
	}
	return id[:min(n, len(id))], true
}
