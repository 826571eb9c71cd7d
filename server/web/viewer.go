package web

import (
	"embed"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

//go:embed assets
var assets embed.FS

// Store is what pages read, and what the account page changes.
type Store interface {
	server.Library
	server.Accounts
	server.Quotas
	server.Marks
	server.ShareLinks
	server.SavedViews
	server.Retention
}

// Viewer serves the pages. Set the exported fields before Handler.
type Viewer struct {
	*page.Site
	// Hub announces new lines; nil: pages do not follow.
	Hub *server.Hub
	// Prices is what tokens cost; nil: the list that comes with the program.
	Prices *transcript.Prices
	// Quota is how much a user without limits of its own may store.
	Quota server.Quota
	// Rates bounds how many pages a user asks for, together with requests of the API; nil: no limit.
	Rates *limit.Rates
	// Now is the clock of the pages; New sets time.Now.
	Now func() time.Time

	store    Store
	access   *auth.Access
	accounts *accountPages
	shared   *sharePages

	coloured markup.Cache
	secrets  *thread.Secrets
}

// New makes a viewer of store. access decides who may log in.
func New(store Store, access *auth.Access) (*Viewer, error) {
	v := &Viewer{store: store, access: access, Now: time.Now}
	var err error
	if v.Site, err = page.New(assets, access, v.functions()); err != nil {
		return nil, err
	}
	// Tokens stand in shared pages instead of secrets, and say no more than that: the key is of this process.
	masker, err := redact.New(redact.NewKey())
	if err != nil {
		return nil, fmt.Errorf("load rules of secrets: %w", err)
	}
	held := &heldAnswers{limit.NewSlots(heldBytes, heldOfOne)}
	v.secrets, v.Users = &thread.Secrets{Masker: masker}, store
	v.shared = &sharePages{site: v.Site, store: store, access: access, masker: masker, now: time.Now,
		slots: limit.NewSlots(mostAtOnce, 0), held: held}
	v.accounts = &accountPages{site: v.Site, store: store, access: access, held: held, now: time.Now}
	return v, nil
}

// Handler serves everything below /. Call it once.
func (v *Viewer) Handler() http.Handler {
	if v.Prices == nil {
		v.Prices = transcript.DefaultPrices()
	}
	v.Follow = v.Hub != nil
	v.accounts.Quota, v.accounts.rates = v.Quota, v.Rates
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", v.Asset)
	mux.HandleFunc("POST /theme", v.SetTheme)
	pages := map[string]page.Handler{
		"GET /sessions/{id}":                  v.conversation,
		"GET /sessions/{id}/L/{line}":         v.permalink,
		"GET /sessions/{id}/tail":             v.tail,
		"GET /sessions/{id}/prompts":          v.prompts,
		"GET /sessions/{id}/entry/{line}":     v.entry,
		"GET /sessions/{id}/bytes/{line}":     v.bytes,
		"GET /sessions/{id}/image/{line}/{n}": v.image,
		"GET /sessions/{id}/compare":          v.compare,
		"GET /sessions/{id}/export":           v.export,
		"GET /sessions/{id}/context":          v.contextOf,
		"GET /sessions/{id}/artifacts":        v.artifactsPiece,
		"POST /sessions/{id}/documents":       v.requestLink,
		"GET /sessions/{id}/document":         v.document,
		"GET /sessions/{id}/document/bytes":   v.documentBytes,
		"GET /sessions/{id}/document/image":   v.documentImage,
		"GET /sessions/{id}/document/compare": v.compareVersions,
		"GET /sessions/{id}/file":             v.file,
		"GET /search":                         v.search,
		"GET /search/names":                   v.names,
		"GET /usage":                          v.usage,
		"GET /drops":                          v.drops,
		"GET /why":                            v.why,
		"GET /events":                         v.events,
	}
	first := &homePages{site: v.Site, store: v.store, now: v.Now, Prices: v.Prices}
	maps.Copy(pages, first.Routes())
	maps.Copy(pages, v.shared.Routes())
	for pattern, show := range pages {
		mux.HandleFunc(pattern, v.accounts.Guard(show))
	}
	v.accounts.Route(mux)
	v.shared.rates = v.Rates
	v.shared.Route(mux)
	mux.HandleFunc("/", v.accounts.Missing)
	return v.Harden(http.NewCrossOriginProtection().Handler(mux))
}
