package api

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/limit"
	"github.com/ccship/ccship/server/wire"
)

// call answers one request of a key's user. A returned error becomes the answer.
type call func(w http.ResponseWriter, r *http.Request, who server.Key) error

// need is what a user must be to make a call.
type need int

const (
	anyone  need = iota // with a key
	shipper             // member or owner
	manager             // owner
)

// route is one call of the API.
type route struct {
	pattern string // as http.ServeMux has it
	need    need
	listens bool // without a slot: goes on for as long as the client likes, or has a queue of its own
	call    call
}

// routes is the whole API; openapi.yaml describes it, and a test compares the two.
func (s *Server) routes() []route {
	return slices.Concat(s.writeRoutes(), s.keptRoutes(), s.peopleRoutes(), []route{
		{"GET /api/link-requests", shipper, false, s.ask(s.pendingLinkRequests)},
		{"GET /api/blobs/{sha256}", anyone, false, s.blob},
		{"GET /api/checkpoints", anyone, false, s.ask(s.checkpoints)},
		{"GET /api/checkpoints/{id}", anyone, false, s.ask(s.checkpoint)},
		{"GET /api/sessions/{id}/checkpoints", anyone, false, s.ask(s.checkpoints)},
		{"GET /api/sessions/{id}/documents", anyone, false, s.ask(s.documents)},
		{"POST /api/sessions/{id}/documents", shipper, false, s.requestLink},
		{"DELETE /api/sessions/{id}/documents", shipper, false, s.requestLink},
		{"GET /api/sessions/{id}/documents/{path}", anyone, false, s.document},
		{"GET /api/sessions/{id}/documents/{path}/versions", anyone, false, s.ask(s.versions)},
		{"GET /api/sessions/{id}/blobs", anyone, false, s.ask(s.listBlobs)},
		{"GET /api/sessions/{id}/link-requests", anyone, false, s.ask(s.linkRequests)},
		{"GET /api/sessions", anyone, false, s.ask(s.sessions)},
		{"GET /api/groups", anyone, false, s.ask(s.groups)},
		{"GET /api/sessions/{id}", anyone, false, s.session},
		{"DELETE /api/sessions/{id}", shipper, false, s.ask(s.forget)},
		{"GET /api/sessions/{id}/entries", anyone, false, s.entries},
		{"GET /api/sessions/{id}/raw", anyone, false, s.raw},
		{"GET /api/sessions/{id}/digest", anyone, false, s.digest},
		{"GET /api/sessions/{id}/export", anyone, false, s.export},
		{"POST /api/sessions/{id}/export", anyone, false, s.export},
		{"POST /api/digests", anyone, false, s.digests},
		{"GET /api/sessions/{id}/timeline", anyone, false, s.ask(s.timeline)},
		{"GET /api/search", anyone, false, s.ask(s.search)},
		{"GET /api/why", anyone, false, s.why},
		{"POST /api/why", anyone, false, s.why},
		{"GET /api/usage", anyone, false, s.ask(s.usage)},
		{"GET /api/drops", anyone, false, s.ask(s.drops)},
		{"GET /api/events", anyone, true, s.events},
		{"GET /api/forgotten", anyone, false, s.ask(s.forgotten)},
		{"GET /api/maskings", anyone, false, s.ask(s.maskings)},
		{"GET /api/openapi.yaml", anyone, false, s.openapi},
		{"/api/", anyone, false, s.noCall},
	})
}

// keptRoutes are the calls about what users keep about sessions, and about links.
func (s *Server) keptRoutes() []route {
	return []route{
		{"GET /api/sessions/{id}/mark", anyone, false, s.account(marked)},
		{"PUT /api/sessions/{id}/mark", anyone, false, s.account(marked)},
		{"POST /api/sessions/{id}/share-links", anyone, false, s.account(addShareLink)},
		{"GET /api/share-links", anyone, false, s.account(shareLinks)},
		{"DELETE /api/share-links/{id}", anyone, false, s.account(removeShareLink)},
		{"GET /api/views", anyone, false, s.account(savedViews)},
		{"PUT /api/views/{name}", anyone, false, s.account(saveView)},
		{"DELETE /api/views/{name}", anyone, false, s.account(removeView)},
		{"POST /api/tickets", anyone, false, s.account(addTicket)},
	}
}

// peopleRoutes are the calls about who uses the server.
func (s *Server) peopleRoutes() []route {
	return []route{
		{"GET /api/me", anyone, false, s.account(answerMe)},
		{"GET /api/users", manager, false, s.account(listUsers)},
		{"POST /api/users", manager, false, s.account(addUser)},
		{"PATCH /api/users/{name}", manager, false, s.account(changeUser)},
		{"GET /api/keys", anyone, false, s.account(listKeys)},
		{"POST /api/keys", anyone, false, s.account(addKey)},
		{"DELETE /api/keys/{name}", anyone, false, s.account(revokeKey)},
		{"POST /api/keys/{name}/rotate", anyone, false, s.account(rotateKey)},
		{"GET /api/shares", anyone, false, s.account(listShares)},
		{"POST /api/shares", shipper, false, s.account(addShare)},
		{"DELETE /api/shares", shipper, false, s.account(removeShare)},
	}
}

// ask makes a call of a function that finds an answer.
func (s *Server) ask(find func(r *http.Request, who server.Key) (answer any, err error)) call {
	return func(w http.ResponseWriter, r *http.Request, who server.Key) error {
		answer, err := find(r, who)
		if err == nil {
			s.answer(w, http.StatusOK, answer)
		}
		return err
	}
}

// account turns a function about users, or about what they keep, into a call: it fills in the request and writes the
// answer.
func (s *Server) account(to func(*accountRequest) (status int, answer any, err error)) call {
	return func(w http.ResponseWriter, r *http.Request, who server.Key) error {
		status, answer, err := to(&accountRequest{Request: r, Who: who, Ref: refOf(r), Base: s.publicBase(r),
			Store: s.store.people, Kept: s.store.kept, Access: s.access, Quota: s.Quota, Log: s.logOf(r),
			Read: func(to any) error { return s.readBody(w, r, maxDocument, to) }})
		if err == nil {
			s.answer(w, status, answer)
		}
		return err
	}
}

// writeRoutes are the calls with which daemons send data.
func (s *Server) writeRoutes() []route {
	return []route{
		{"POST /api/conversations", shipper, true, s.ingest},
		{"POST /api/checkpoints", shipper, false, s.putCheckpoints},
		{"POST /api/documents", shipper, false, s.putDocuments},
		{"POST /api/blobs/{sha256}/start", shipper, false, s.startBlob},
		{"PUT /api/blobs/{sha256}", shipper, false, s.putBlob},
		{"POST /api/blobs/{sha256}/end", shipper, false, s.endBlob},
		{"GET /api/ledger", shipper, false, s.ask(s.ledger)},
		{"POST /api/sessions/{id}/copy", shipper, false, s.copyLines},
		{"POST /api/sessions/{id}/mask", shipper, false, s.mask},
	}
}

func (s *Server) noCall(http.ResponseWriter, *http.Request, server.Key) error {
	return wire.Refuse(http.StatusNotFound, "not_found", "no such call; GET /api/openapi.yaml lists those there are")
}

// guard admits a call with a key of the right role, once there is a slot for it.
func (s *Server) guard(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := s.admit(w, r, to)
		if err == nil {
			defer limit.Known(r.Context(), who.User.ID)()
		}
		if err == nil && !to.listens {
			var release func()
			began := time.Now()
			if release, err = s.slots.Acquire(r.Context(), who.User.ID, 1, s.Patience); err == nil {
				defer release()
				if time.Since(began) >= s.recheck { // rights may have gone while it waited
					who, err = s.stillMay(r, to)
				}
			}
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if r.Method != http.MethodGet && s.Version != "" {
			w.Header().Set(protocol.HeaderServer, s.Version)
		}
		now := func() (server.User, error) {
			who, err := s.access.Key(r.Context(), s.access.Remote(r), r.Header.Get("X-API-Key"))
			return who.User, err
		}
		if err := to.call(&auth.Answer{ResponseWriter: w, User: who.User, Who: now, Every: s.recheck}, r, who); err != nil {
			s.refuse(w, r, err)
		}
	}
}

// admit finds whose key a request has, and whether that user may make this call now.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, to route) (server.Key, error) {
	who, err := s.access.Key(r.Context(), s.access.Remote(r), r.Header.Get("X-API-Key"))
	if err != nil {
		return who, err
	}
	if err := s.Rates.Take(who.User.ID, time.Now()); err != nil {
		return who, err
	}
	if err := to.need.check(who.User.Role); err != nil {
		return who, err
	}
	if r.Method != http.MethodGet {
		valid := func() error {
			_, err := s.stillMay(r, to)
			return err
		}
		r.Body = &keyedBody{r.Body, valid, s.recheck, time.Now()}
	}
	w.Header().Set(protocol.HeaderStore, s.store.writes.StoreID())
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		// A filter that is passed over would show too much.
		return who, wire.BadRequest("bad_query", "the query cannot be read")
	}
	if q.Get("user") == auth.Me {
		q.Set("user", who.User.Name)
		r.URL.RawQuery = q.Encode()
	}
	return who, nil
}

// stillMay refuses a request whose key was revoked, or whose user may no longer make the call.
func (s *Server) stillMay(r *http.Request, to route) (server.Key, error) {
	who, err := s.access.Key(r.Context(), s.access.Remote(r), r.Header.Get("X-API-Key"))
	if errors.Is(err, auth.ErrUnauthorized) {
		return who, wire.Refuse(http.StatusUnauthorized, "unauthorized", "the key was revoked while the request was read")
	}
	if err != nil {
		return who, err
	}
	return who, to.need.check(who.User.Role)
}

func (n need) check(role server.Role) error {
	switch {
	case n == manager && role != server.Owner:
		return wire.Refuse(http.StatusForbidden, "forbidden", "only an owner may do this")
	case n == shipper && role != server.Owner && role != server.Member:
		return wire.Refuse(http.StatusForbidden, "forbidden", "a viewer may only read")
	}
	return nil
}

// rebase serves everything below Base, and health at the root too, for checks that bypass the proxy.
func (s *Server) rebase(next http.Handler) http.Handler {
	if s.Base == "" {
		return next
	}
	below := http.StripPrefix(s.Base, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
			next.ServeHTTP(w, r)
		case r.URL.Path == s.Base && r.Method == http.MethodGet:
			http.Redirect(w, r, s.Base+"/", http.StatusPermanentRedirect)
		case strings.HasPrefix(r.URL.Path, s.Base+"/"):
			if to := cleanPath(r.URL.EscapedPath()); to != r.URL.EscapedPath() {
				redirect(w, r, to) // the mux would, and leave Base out
				return
			}
			below.ServeHTTP(w, r)
		default:
			s.refuse(w, r, wire.Refuse(http.StatusNotFound, "not_found", "everything is below "+s.Base+"/"))
		}
	})
}

// cleanPath is an escaped path without empty elements, "." and "..".
func cleanPath(escaped string) string {
	clean := path.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// redirect sends a request, as it is, to another path.
func redirect(w http.ResponseWriter, r *http.Request, escaped string) {
	if r.URL.RawQuery != "" {
		escaped += "?" + r.URL.RawQuery
	}
	http.Redirect(w, r, escaped, http.StatusTemporaryRedirect)
}

// checkHost refuses names that are not this server's: no web page can have its own name point here (DNS rebinding).
func (s *Server) checkHost(next http.Handler) http.Handler {
	if len(s.Hosts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && !protocol.OverSocket(r) && !s.knows(r.Host) {
			s.refuse(w, r, wire.Refuse(http.StatusMisdirectedRequest, "wrong_host", "this server does not go by that name"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows reports whether a Host header names this server.
func (s *Server) knows(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}
