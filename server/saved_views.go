package server

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Pages whose filters can be saved.
const (
	SessionsPage = "sessions"
	SearchPage   = "search"
)

// SavedView is a list of sessions, or a search, with its filters, which one user keeps under a name: for nobody else.
type SavedView struct {
	Name    string    `json:"name"`
	Page    string    `json:"page"`  // SessionsPage or SearchPage
	Query   string    `json:"query"` // of the page's address: the filters
	Updated time.Time `json:"updated"`
}

// SavedViews keeps the views that users save. They go with their user. Safe for concurrent use.
type SavedViews interface {
	// SavedViews lists a user's views, by name.
	SavedViews(ctx context.Context, owner int64) ([]SavedView, error)
	// SaveView keeps a view, and replaces the user's one of that name. A ViewError when there are too many,
	// ErrNotFound when there is no such user.
	SaveView(ctx context.Context, owner int64, v SavedView) error
	// RemoveView returns ErrNotFound when the user has no view of that name.
	RemoveView(ctx context.Context, owner int64, name string) error
}

const (
	// MaxSavedViews is how many views one user may save.
	MaxSavedViews = 100
	maxViewName   = 80      // bytes
	maxViewQuery  = 4 << 10 // bytes
)

// ViewError says what is wrong with a view.
type ViewError string

func (e ViewError) Error() string { return string(e) }

// Tidy trims a view's name and leaves out of its query what filters nothing. A view that can't be kept is a ViewError.
func (v *SavedView) Tidy() error {
	v.Name = strings.Join(strings.Fields(v.Name), " ")
	if v.Page == "" {
		v.Page = SessionsPage
	}
	q, err := url.ParseQuery(strings.TrimPrefix(v.Query, "?"))
	if err != nil {
		return ViewError("The filters of a view are the query of a page’s address.")
	}
	for name, values := range q {
		kept := values[:0]
		for _, x := range values {
			if x != "" {
				kept = append(kept, x)
			}
		}
		if q[name] = kept; len(kept) == 0 || passing(name) || v.Page == SearchPage && name != "q" {
			delete(q, name)
		}
	}
	v.Query = q.Encode()
	switch {
	case v.Name == "":
		return ViewError("A view needs a name.")
	case len(v.Name) > maxViewName || !utf8.ValidString(v.Name) || strings.ContainsRune(v.Name, 0):
		return ViewError("The name of a view has at most 80 bytes of text.")
	case v.Page != SessionsPage && v.Page != SearchPage:
		return ViewError("A view is of sessions or of a search.")
	case v.Page == SearchPage && q.Get("q") == "":
		return ViewError("A search needs words or a filter.")
	case v.Query == "":
		return ViewError("A view needs at least one filter.")
	case len(v.Query) > maxViewQuery:
		return ViewError("The filters of a view have at most 4096 bytes.")
	}
	return nil
}

// passing are the parameters of an address that say what is shown of a list, not what is in it.
func passing(name string) bool {
	switch name {
	case "after", "by", "filters", "bare", "current":
		return true
	}
	return false
}

// Is says whether an address shows this view.
func (v *SavedView) Is(page string, q url.Values) bool {
	other := SavedView{Name: v.Name, Page: page, Query: q.Encode()}
	return other.Tidy() == nil && other.Page == v.Page && other.Query == v.Query
}

// Path returns the view's address below the viewer's.
func (v *SavedView) Path() string {
	if v.Page == SearchPage {
		return "/search?" + v.Query
	}
	return "/?" + v.Query
}

// Call returns the call of the API that answers what the page of the view shows at now, for a reader east of UTC.
func (v *SavedView) Call(now time.Time, east time.Duration) string {
	q, _ := url.ParseQuery(v.Query) // Tidy wrote it
	if v.Page == SearchPage {
		zone := time.FixedZone("", int(east/time.Second))
		return "/api/search?" + url.Values{"q": q["q"], "zone": {now.In(zone).Format("Z07:00")}}.Encode()
	}
	from, to := Days(q.Get("since"), q.Get("until"), now, east)
	find := SessionQuery{Since: from, Until: to}
	find.ApplyView(q.Get("view"), now)
	from = find.Since
	if q.Has("q") {
		q.Set("text", q.Get("q"))
	}
	set(q, "failed", find.Failed, "1")
	set(q, "starred", find.Starred, "1")
	set(q, "before", !find.Before.IsZero(), stamp(find.Before))
	q.Set("order", cmp.Or(OrderOf(q.Get("view")), "recent"))
	q.Set("agents", "0")
	q.Del("q")
	q.Del("view")
	q.Del("since")
	q.Del("until")
	set(q, "since", !from.IsZero(), stamp(from))
	set(q, "until", !to.IsZero(), stamp(to))
	if q.Get("machine") == "-" {
		q["machine"] = []string{""} // a plain client
	}
	return "/api/sessions?" + q.Encode()
}

func set(q url.Values, name string, is bool, value string) {
	if is {
		q.Set(name, value)
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Days reads days as people in a zone east of UTC write them: from the beginning of the first to the end of the last.
// 7d as the first is that many days before now. What is no day is no limit.
func Days(first, last string, now time.Time, east time.Duration) (from, to time.Time) {
	if t, err := time.Parse(time.DateOnly, first); err == nil {
		from = t.Add(-east)
	} else if days, ok := strings.CutSuffix(first, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			from = now.AddDate(0, 0, -int(n))
		}
	}
	if t, err := time.Parse(time.DateOnly, last); err == nil {
		to = t.AddDate(0, 0, 1).Add(-east)
	}
	return from, to
}

const (
	day = 24 * time.Hour
	// keptFor is how long Claude Code keeps a transcript after its last write, by default, and expiresSoon a week before.
	keptFor     = 30 * day
	expiresSoon = 23 * day
)

// ApplyView narrows a query to a view that everybody has. One that puts some sessions first narrows nothing.
func (q *SessionQuery) ApplyView(view string, now time.Time) {
	switch view {
	case "starred":
		q.Starred = true
	case "failed":
		q.Failed = true
	case "expiring":
		if from := now.Add(-keptFor); from.After(q.Since) {
			q.Since = from
		}
		q.Before = now.Add(-expiresSoon)
	case "expired":
		q.Before = now.Add(-keptFor)
	}
}

// OrderOf returns what the sessions that a view puts first have the most of: "cost", "tokens", "time". "": of nothing.
func OrderOf(view string) string {
	return map[string]string{"costly": "cost", "tokens": "tokens", "long": "time"}[view]
}

// ShareLink lets anyone with it read one session and its agents' transcripts, without a login. The store keeps a hash
// of its secret.
type ShareLink struct {
	ID      int64
	Hash    [32]byte // sha256 of the secret
	Stream  int64
	Session string // session id of the stream
	Title   string // of the session, or its first prompt
	By      User   // who made it
	Key     int64  // with which key; 0: none
	Created time.Time
	Until   time.Time
	Most    int64 // working links that By may have with it, when it is added; 0: any number
}

// ShareLinks keeps links to sessions. One works until its time is over, it is removed, the user who made it is disabled
// or may no longer share the session, the key it was made with is revoked, or the session is forgotten. Safe for
// concurrent use.
type ShareLinks interface {
	// AddShareLink keeps a link and returns its ID. ErrNotFound when there is no such stream or user, ErrHasMany when the
	// link would be one more than l.Most.
	AddShareLink(ctx context.Context, l ShareLink) (int64, error)
	// FindShareLink returns ErrNotFound for a link that is unknown or does not work at now.
	FindShareLink(ctx context.Context, hash [32]byte, now time.Time) (ShareLink, error)
	// ShareLinks lists the links that work at now, newest first.
	ShareLinks(ctx context.Context, q ShareLinkQuery, now time.Time) ([]ShareLink, error)
	// RemoveShareLink ends a link that the query also lists. ErrNotFound when there is none.
	RemoveShareLink(ctx context.Context, q ShareLinkQuery, id int64) error
}

// ShareLinkQuery chooses links.
type ShareLinkQuery struct {
	User   int64 // made by this user, or to its sessions; 0: of all users
	Stream int64 // to this stream; 0: to any
}

// ShareLinksOf returns the links that a user may see and end.
func ShareLinksOf(u User) ShareLinkQuery {
	if u.Role == Owner {
		return ShareLinkQuery{}
	}
	return ShareLinkQuery{User: u.ID}
}

// Mark is what one user keeps about a session: for nobody else. The zero Mark is none.
type Mark struct {
	Stream  int64     `json:"-"`
	Star    bool      `json:"star"`
	Name    string    `json:"name"` // instead of the session's title
	Note    string    `json:"note"`
	Tags    []string  `json:"tags"`
	Updated time.Time `json:"updated,omitzero"`
}

// Empty reports whether there is nothing to keep.
func (m *Mark) Empty() bool { return !m.Star && m.Name == "" && m.Note == "" && len(m.Tags) == 0 }

// Marks keeps what users keep about sessions. Forgetting a session removes the marks of all users. Safe for concurrent
// use. It does not ask whether the reader may see a stream: its callers do.
type Marks interface {
	// Marks returns a reader's marks of streams, by stream. Those without one are left out.
	Marks(ctx context.Context, reader int64, streams []int64) (map[int64]Mark, error)
	// SetMark replaces a reader's mark of a stream; an empty one is removed. ErrNotFound when there is no such stream.
	SetMark(ctx context.Context, reader int64, m Mark) error
	// Tags lists a reader's tags, in their order; of more than MaxListedTags those that were given last.
	Tags(ctx context.Context, reader int64) ([]string, error)
}

const (
	maxMarkName = 200  // bytes
	maxMarkNote = 4000 // bytes
	maxTags     = 20
	// MaxListedTags is how many of a reader's tags a page lists.
	MaxListedTags = 200
	maxTag        = 40 // bytes
)

// MarkError says what is wrong with a mark.
type MarkError string

func (e MarkError) Error() string { return string(e) }

// Tidy trims a mark, sorts its tags and drops doubles. A mark that is too long is a MarkError.
func (m *Mark) Tidy() error {
	m.Name, m.Note = strings.Join(strings.Fields(m.Name), " "), strings.TrimSpace(m.Note)
	var tags []string
	for _, t := range m.Tags {
		if t = strings.Join(strings.Fields(t), "-"); t != "" {
			tags = append(tags, t)
		}
	}
	slices.Sort(tags)
	m.Tags = slices.Compact(tags)
	switch {
	case len(m.Name) > maxMarkName:
		return MarkError("A name has at most 200 bytes.")
	case len(m.Note) > maxMarkNote:
		return MarkError("A note has at most 4000 bytes.")
	case len(m.Tags) > maxTags:
		return MarkError("A session has at most 20 tags.")
	}
	for _, t := range m.Tags {
		if len(t) > maxTag || strings.Contains(t, ",") {
			return MarkError("A tag has at most 40 bytes and no comma.")
		}
	}
	return nil
}
