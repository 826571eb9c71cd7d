package api

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

const (
	// pageDefault and PageMax are how many items a page has.
	pageDefault = 100
	pageMax     = 1000
	// maxFilter bounds one value of a query, in bytes.
	maxFilter = 4 << 10
)

// namesOf is users' names by ID.
type namesOf map[int64]string

// unknownUser is the ID of no user. A filter for an unknown user matches nothing, like one for a user whose sessions
// are not visible.
const unknownUser = -1

// ID returns the user of that name, or UnknownUser.
func (n namesOf) ID(name string) int64 {
	for id, x := range n {
		if x == name {
			return id
		}
	}
	return unknownUser
}

// filterOf reads a query's values and keeps the first error. For one goroutine.
type filterOf struct {
	Err   error // nil: all values read so far can be used
	q     url.Values
	names namesOf
}

// newQuery makes a filter of a query. names may be nil when the query has no user.
func newQuery(q url.Values, names namesOf) *filterOf { return &filterOf{q: q, names: names} }

// Fail refuses the request unless it is refused already: name is not what is wanted.
func (f *filterOf) Fail(name, want string) {
	if f.Err == nil {
		f.Err = wire.BadRequest("bad_query", name+" is not "+want)
	}
}

// Text returns a value as it is. NUL and invalid UTF-8 are in no name, and not every database takes them.
func (f *filterOf) Text(name string) string {
	v := f.q.Get(name)
	if len(v) > maxFilter || !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
		f.Fail(name, "a text of UTF-8 without NUL, of at most "+strconv.Itoa(maxFilter)+" bytes")
		return ""
	}
	return v
}

// Machine distinguishes plain clients ("machine=") from all clients (no parameter).
func (f *filterOf) Machine() *string {
	if !f.q.Has("machine") {
		return nil
	}
	m := f.Text("machine")
	return &m
}

// User returns the ID of the named user, 0 when none is named.
func (f *filterOf) User() int64 {
	name := f.Text("user")
	if name == "" {
		return 0
	}
	return f.names.ID(name)
}

// Moment reads a time, or a day, which begins at midnight UTC.
func (f *filterOf) Moment(name string) time.Time {
	v := f.Text(name)
	if v == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, v); err == nil && t.Year() > 0 {
			return t
		}
	}
	f.Fail(name, "a time such as 2026-11-21T08:00:00Z or a day such as 2026-11-21")
	return time.Time{}
}

// Zone reads an offset from UTC: Z, +09:00, -0330.
func (f *filterOf) Zone() time.Duration {
	v := f.Text("zone")
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
	f.Fail("zone", "an offset from UTC such as +09:00")
	return 0
}

// Flag reads 1 or 0; absent when there is none.
func (f *filterOf) Flag(name string, absent bool) bool {
	switch f.q.Get(name) {
	case "":
		return absent
	case "1", "true":
		return true
	case "0", "false":
		return false
	}
	f.Fail(name, "1 or 0")
	return absent
}

// OneOf reads one of some words; the first when there is none.
func (f *filterOf) OneOf(name string, words ...string) string {
	v := f.q.Get(name)
	if v == "" {
		return words[0]
	}
	if slices.Contains(words, v) {
		return v
	}
	f.Fail(name, "one of "+strings.Join(words, ", "))
	return words[0]
}

// List reads words separated by commas, all of which must be known.
func (f *filterOf) List(name string, known ...string) []string {
	v := f.Text(name)
	if v == "" {
		return nil
	}
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		if !slices.Contains(known, part) {
			f.Fail(name, "a list of "+strings.Join(known, ", "))
			return nil
		}
		if !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

// Limit returns how many items a page has.
func (f *filterOf) Limit() int { return f.Number("limit", pageDefault, pageMax) }

// Number returns a number from 1; a larger one than most is most.
func (f *filterOf) Number(name string, absent, most int64) int {
	n, err := numberOf(f.q, name, absent)
	if err != nil || n < 1 {
		f.Fail(name, "a number from 1")
		return 1
	}
	return int(min(n, most))
}

// numberOf reads a whole number ≥ 0 from the query.
func numberOf(q url.Values, name string, absent int64) (int64, error) {
	if !q.Has(name) {
		return absent, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 || n > wire.MaxNumber {
		return 0, wire.BadRequest("bad_query", name+" is not a whole number from 0")
	}
	return n, nil
}

// filter reads a request's query, with the name of the user that it names.
func (s *Server) filter(r *http.Request) *filterOf {
	named, err := namedUser(r, s.store.users)
	f := newQuery(r.URL.Query(), named)
	f.Err = err
	return f
}

// userOf is the named user, else the one whose session a listing is narrowed to: of several users' sessions with one id
// a listing shows one user's, as reading does. 0: nothing is narrowed, or there is no such session.
func (s *Server) userOf(r *http.Request, who server.Key, f *filterOf, session string) (int64, error) {
	user := f.User()
	if user != 0 || session == "" || f.Err != nil {
		return user, f.Err
	}
	ref := server.Ref{SessionID: session, Machine: f.Machine()}
	x, err := s.store.sessions.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if errors.Is(err, server.ErrNotFound) {
		return 0, nil
	}
	return x.Owner, err
}

// namedUser reads the name of the user that a request names; none when it names nobody that there is.
func namedUser(r *http.Request, st server.Users) (namesOf, error) {
	name := r.URL.Query().Get("user")
	if name == "" {
		return nil, nil //nolint:nilnil // no names
	}
	u, err := st.FindUser(r.Context(), name)
	if errors.Is(err, server.ErrNotFound) {
		return nil, nil //nolint:nilnil // no names
	}
	return namesOf{u.ID: u.Name}, err
}

// ownersOf reads the names of the users that the items of a list are of: there may be many others.
func ownersOf[T any](r *http.Request, st server.Users, list []T, of func(*T) int64) (namesOf, error) {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = of(&list[i])
	}
	return st.UserNames(r.Context(), ids)
}
