package web

import (
	"net/http"
	"slices"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

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
