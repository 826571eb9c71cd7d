package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript/redact"
)

// shareStore is what the pages read, and the links they make.
type shareStore interface {
	server.SessionFinder
	server.ShareLinks
}

const (
	// mostAtOnce is how many pages of links are made at once: their readers are nobody whom the server knows. Half of
	// them may be of the links of one user.
	mostAtOnce = 4
	// sharePatience is how long a page may wait to be made.
	sharePatience = 20 * time.Second
)

// sharePages are the pages of links.
type sharePages struct {
	site   *page.Site
	store  shareStore
	access *auth.Access
	masker *redact.Masker
	slots  *limit.Slots
	held   *heldAnswers
	rates  *limit.Rates // of all visitors of one user's links, apart from the user's own requests; set before Route
	now    func() time.Time
}

// Route adds what a link shows to mux.
func (p *sharePages) Route(mux *http.ServeMux) {
	for path, show := range map[string]shower{
		"":                                p.first,
		"/sessions/{id}":                  p.conversation,
		"/sessions/{id}/tail":             p.tail,
		"/sessions/{id}/prompts":          p.prompts,
		"/sessions/{id}/L/{line}":         p.permalink,
		"/sessions/{id}/entry/{line}":     p.entry,
		"/sessions/{id}/image/{line}/{n}": p.image,
	} {
		mux.HandleFunc("GET /s/{secret}"+path, p.withLink(show))
	}
}

// Routes returns the pages on which users make and end links.
func (p *sharePages) Routes() map[string]page.Handler {
	return map[string]page.Handler{
		"GET /sessions/{id}/share":  p.ofSession,
		"POST /sessions/{id}/share": p.add,
		"GET /share-links":          p.all,
		"POST /share-links/end":     p.end,
	}
}

// visit is a request with a link that works.
type visit struct {
	server.ShareLink
	base  string // of addresses
	scope server.Scope
}

type shower func(w http.ResponseWriter, r *http.Request, v visit) error

// withLink serves a page to a reader whose link works, and refuses others.
func (p *sharePages) withLink(show shower) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
		h.Set("Referrer-Policy", "no-referrer")
		secret := r.PathValue("secret")
		if embedded(r) {
			p.site.Fail(w, r, http.StatusForbidden, "Open this link by itself: other sites cannot show what is behind it.")
			return
		}
		l, err := p.access.CheckShareLink(r.Context(), p.access.Remote(r), secret)
		tooMany, is := errors.AsType[*auth.TooManyError](err)
		switch {
		case is:
			h.Set("Retry-After", strconv.Itoa(tooMany.Seconds()))
			p.site.Fail(w, r, http.StatusTooManyRequests, "Too many wrong links from this address. Try again in a minute.")
			return
		case errors.Is(err, server.ErrNotFound):
			p.site.Fail(w, r, http.StatusNotFound,
				"This link shows nothing: it has expired or was ended. Ask its sender for another one.")
			return
		case err != nil:
			p.site.Answer(w, r, err)
			return
		}
		if p.rates.Take(-l.By.ID, p.now()) != nil {
			h.Set("Retry-After", "1")
			p.site.Fail(w, r, http.StatusTooManyRequests,
				"The links of this link's sender were asked for more in a minute than the server allows. Reload in a moment.")
			return
		}
		answer := &wholeAnswer{header: h}
		v := visit{l, p.site.Base + "/s/" + secret, server.Scope{Only: l.Stream, User: l.By.ID}}
		if err := p.inSlot(answer, r, show, v); err != nil {
			p.site.Answer(w, r, err)
			return
		}
		// No slot is held meanwhile: the reader may be slow.
		page.Whole(p.held.of(w, -l.By.ID), cmp.Or(answer.status, http.StatusOK), answer.body.Bytes())
	}
}

// embedded reports whether a page of another site asks for a part of itself, a picture say. Its guesses are not the
// reader's.
func embedded(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none" && r.Header.Get("Sec-Fetch-Dest") != "document"
}

// inSlot serves a page in one of the slots of the user who made the link.
func (p *sharePages) inSlot(w http.ResponseWriter, r *http.Request, show shower, v visit) error {
	release, err := p.slots.Acquire(r.Context(), v.By.ID, 1, sharePatience)
	if err != nil {
		return cmp.Or(r.Context().Err(), server.ErrBusy)
	}
	defer release()
	return show(w, r, v)
}

// wholeAnswer is an answer that is kept until it is whole.
type wholeAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *wholeAnswer) Header() http.Header { return a.header }

func (a *wholeAnswer) WriteHeader(status int) { a.status = cmp.Or(a.status, status) }

func (a *wholeAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

// pin opens the session that the address names, which must be the link's or one of its agents', while fn runs.
func (p *sharePages) pin(r *http.Request, v visit, fn func(sharedView) error) error {
	show := func(snap server.Snapshot, view server.View) error {
		return fn(sharedView{snap, view, thread.StreamOf(snap.Session()), p.masker})
	}
	return openView(r.Context(), p.store.View, v.scope, parseStream(r), show)
}

// sharedView is a session as a link shows it: the newest state of its file, with secrets masked.
type sharedView struct {
	server.Snapshot
	server.View
	stream thread.Stream
	masker *redact.Masker
}

// Lines implements server.Snapshot.
func (s sharedView) Lines(ctx context.Context, span server.Span, yield func(server.Line) error) error {
	return s.Snapshot.Lines(ctx, thread.Heads(span), func(l server.Line) error {
		switch {
		case l.Cut > 0: // a secret is found in a whole line
			l.Raw, l.Cut = nil, l.Size()
		case l.Kind != server.Oversize:
			l.Raw, _ = s.masker.Line(l.Raw)
		}
		return yield(l)
	})
}

// builder makes items of what a link shows.
func (s sharedView) builder(r *http.Request, v visit) (*thread.Builder, error) {
	b := thread.NewBuilder(v.base, s.stream, thread.Focused)
	b.Public, b.East = true, page.Zone(r)
	var err error
	b.Story, err = thread.ReadStory(r.Context(), s, s.View)
	return b, err
}

// term is how long a link may work, for the reader to choose.
type term struct {
	Value, Name string
	On          bool
}

func terms() []term {
	return []term{{"1h", "1 hour", false}, {"24h", "1 day", false}, {"7d", "7 days", true}, {"30d", "30 days", false},
		{"365d", "1 year", false}}
}

// linksPage are links that work, perhaps only those to one session.
type linksPage struct {
	page.Layout
	Back   string
	Action string // makes a link to the session; "" when the reader may not
	Terms  []term
	Links  []server.ShareLink
	Secret string // address of the link that was just made
	Here   string // where to come back to
	One    bool   // they are to one session
}

// ofSession is GET /sessions/{id}/share: the links to a session.
func (p *sharePages) ofSession(w http.ResponseWriter, r *http.Request, who server.Login) error {
	return p.links(w, r, who, "")
}

// stream returns what the address of a session names, for its reader.
func (p *sharePages) stream(r *http.Request, who server.Login) (thread.Stream, server.Address, error) {
	s := parseStream(r)
	at, err := p.store.Resolve(r.Context(), server.ScopeOf(who.User), s.Ref())
	s.User, s.Machine = at.Owner, &at.Machine
	return s, at, err
}

func (p *sharePages) links(w http.ResponseWriter, r *http.Request, who server.Login, secret string) error {
	s, at, err := p.stream(r, who)
	if err != nil {
		return err
	}
	x := linksPage{Layout: p.site.Layout(r, who, "Share", "sessions"), Back: p.site.Base + s.Path(""), Terms: terms(),
		Secret: secret, Here: s.Path("/share"), One: true}
	x.Layout.Here = x.Here
	if auth.MayShare(who.User, at) {
		x.Action = p.site.Base + s.Path("/share")
	}
	choice := server.ShareLinksOf(who.User)
	choice.Stream = at.Stream
	if x.Links, err = p.store.ShareLinks(r.Context(), choice, p.now()); err != nil {
		return err
	}
	p.site.Render(w, http.StatusOK, "share.html", x)
	return nil
}

// add is POST /sessions/{id}/share with expires: makes a link, and shows its address this once.
func (p *sharePages) add(w http.ResponseWriter, r *http.Request, who server.Login) error {
	_, at, err := p.stream(r, who)
	if err != nil {
		return err
	}
	if !auth.MayShare(who.User, at) {
		return page.BadRequestError("Only its owner can share a session by a link.")
	}
	ttl, err := auth.ParseShareTime(r.PostForm.Get("expires"))
	if err != nil || !slices.ContainsFunc(terms(), func(t term) bool { return t.Value == r.PostForm.Get("expires") }) {
		return page.BadRequestError("Choose how long the link works.")
	}
	link := server.ShareLink{Stream: at.Stream, By: who.User, Key: who.Key}
	secret, _, err := p.access.NewShareLink(r.Context(), link, ttl)
	if err != nil {
		return err
	}
	return p.links(w, r, who, auth.ShareURL(p.site.Origin(r)+p.site.Base, secret))
}

// all is GET /share-links: the reader's links, and those to the reader's sessions.
func (p *sharePages) all(w http.ResponseWriter, r *http.Request, who server.Login) error {
	x := linksPage{Layout: p.site.Layout(r, who, "Shared links", "account"), Back: p.site.Base + "/account",
		Here: "/share-links"}
	var err error
	if x.Links, err = p.store.ShareLinks(r.Context(), server.ShareLinksOf(who.User), p.now()); err != nil {
		return err
	}
	p.site.Render(w, http.StatusOK, "share.html", x)
	return nil
}

// end is POST /share-links/end with id and next.
func (p *sharePages) end(w http.ResponseWriter, r *http.Request, who server.Login) error {
	id := page.Number(r.PostForm.Get("id"), 0)
	if err := p.store.RemoveShareLink(r.Context(), server.ShareLinksOf(who.User), id); err != nil {
		return err
	}
	http.Redirect(w, r, p.site.Base+page.LocalPath(r.PostForm.Get("next")), http.StatusSeeOther)
	return nil
}
