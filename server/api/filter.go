package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

const (
	pageDefault = 100
	pageMax     = 1000
	// maxFilter bounds one value of a query, in bytes.
	maxFilter = 4 << 10
)

// names is users' names by ID.
type names map[int64]string

// names reads all users' names. There are few.
func (s *Server) names(ctx context.Context) (names, error) {
	list, err := s.store.Users(ctx)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	out := make(names, len(list))
	for _, u := range list {
		out[u.ID] = u.Name
	}
	return out, nil
}

// unknownUser is the ID of no user. A filter for an unknown user matches nothing, like one for a user whose sessions
// are not visible.
const unknownUser = -1

func (n names) id(name string) int64 {
	for id, x := range n {
		if x == name {
			return id
		}
	}
	return unknownUser
}

// filter reads a query's values and keeps the first error.
type filter struct {
	q     url.Values
	names names
	err   error
}

func newFilter(q url.Values, names names) *filter { return &filter{q: q, names: names} }

func (f *filter) fail(name, want string) {
	if f.err == nil {
		f.err = wire.BadRequest("bad_query", name+" is not "+want)
	}
}

// text is a value as it is. NUL and invalid UTF-8 are in no name, and not every database takes them.
func (f *filter) text(name string) string {
	v := f.q.Get(name)
	if len(v) > maxFilter || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		f.fail(name, "a text of UTF-8 without NUL, of at most "+strconv.Itoa(maxFilter)+" bytes")
		return ""
	}
	return v
}

// machine distinguishes plain clients ("machine=") from all clients (no parameter).
func (f *filter) machine() *string {
	if !f.q.Has("machine") {
		return nil
	}
	m := f.text("machine")
	return &m
}

// user is the ID of the named user, 0 when none is named.
func (f *filter) user() int64 {
	name := f.text("user")
	if name == "" {
		return 0
	}
	return f.names.id(name)
}

// userOf is the named user, else the one whose session a listing is narrowed to: of several users' sessions with one id
// a listing shows one user's, as reading does. 0: nothing is narrowed, or there is no such session.
func (s *Server) userOf(r *http.Request, who server.Key, f *filter, session string) (int64, error) {
	user := f.user()
	if user != 0 || session == "" || f.err != nil {
		return user, f.err
	}
	ref := server.Ref{SessionID: session, Machine: f.machine()}
	x, err := s.store.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}

// moment reads a time, or a day, which begins at midnight UTC.
func (f *filter) moment(name string) time.Time {
	v := f.text(name)
	if v == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil && t.Year() > 0 {
			return t
		}
	}
	f.fail(name, "a time such as 2026-11-21T08:00:00Z or a day such as 2026-11-21")
	return time.Time{}
}

// zone reads an offset from UTC: Z, +09:00, -0330.
func (f *filter) zone() time.Duration {
	v := f.text("zone")
	if v == "" {
		return 0
	}
	v = strings.Replace(v, " ", "+", 1) // what an unescaped + has become
	for _, layout := range []string{"Z07:00", "Z0700"} {
		if t, err := time.Parse(layout, v); err == nil {
			_, seconds := t.Zone()
			return time.Duration(seconds) * time.Second
		}
	}
	f.fail("zone", "an offset from UTC such as +09:00")
	return 0
}

func (f *filter) flag(name string, absent bool) bool {
	switch f.q.Get(name) {
	case "":
		return absent
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	f.fail(name, "1 or 0")
	return absent
}

// oneOf reads one of some words; the first when there is none.
func (f *filter) oneOf(name string, words ...string) string {
	v := f.q.Get(name)
	if v == "" {
		return words[0]
	}
	for _, w := range words {
		if v == w {
			return v
		}
	}
	f.fail(name, "one of "+strings.Join(words, ", "))
	return words[0]
}

// list reads words separated by commas, all of which must be known.
func (f *filter) list(name string, known ...string) []string {
	v := f.text(name)
	if v == "" {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		ok := false
		for _, k := range known {
			ok = ok || part == k
		}
		if !ok {
			f.fail(name, "a list of "+strings.Join(known, ", "))
			return nil
		}
		if !seen[part] {
			out = append(out, part)
		}
		seen[part] = true
	}
	return out
}

func (f *filter) limit() int {
	n, err := number(f.q, "limit", pageDefault)
	if err != nil || n < 1 {
		f.fail("limit", "a number from 1")
		return 1
	}
	return int(min(n, pageMax))
}

// number reads a whole number ≥ 0 from the query.
func number(q url.Values, name string, absent int64) (int64, error) {
	if !q.Has(name) {
		return absent, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 || n > wire.MaxNumber {
		return 0, wire.BadRequest("bad_query", name+" is not a whole number from 0")
	}
	return n, nil
}
