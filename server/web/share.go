package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
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
