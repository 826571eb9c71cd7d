package web

import (
	"net/http"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/web/page"
)

// rotateGrace is how long a rotated key's old value still works.
const rotateGrace = 24 * time.Hour

type keyRow struct {
	server.Key
	Who   string
	Valid bool
	Until time.Time // zero: for ever
}

// keys are those that the reader may change: one's own, or for owners all.
func (p *accountPages) keys(r *http.Request, who server.Login) ([]server.Key, error) {
	if who.User.Role == server.Owner {
		return p.store.Keys(r.Context(), 0)
	}
	return p.store.Keys(r.Context(), who.User.ID)
}

func (p *accountPages) keyRows(r *http.Request, who server.Login, names map[int64]string) ([]keyRow, error) {
	keys, err := p.keys(r, who)
	var out []keyRow
	for _, k := range keys {
		out = append(out, keyRow{k, names[k.User.ID], k.Revoked.IsZero() || k.Revoked.After(p.now()), k.Revoked})
	}
	return out, err
}

func (p *accountPages) addKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	name, err := formName(r)
	if err != nil {
		return "", "", err
	}
	key, hash := auth.NewKey()
	k := server.Key{User: who.User, Name: name, Hash: hash, Created: p.now(), By: who.Key}
	if err := p.access.AddKey(r.Context(), k); err != nil {
		return "", "", err
	}
	return "This is the key " + name + ". Copy it now: the server keeps only a hash of it.", key, nil
}

// ownKey finds the key that a form names.
func (p *accountPages) ownKey(r *http.Request, who server.Login) (server.Key, error) {
	keys, err := p.keys(r, who)
	if err != nil {
		return server.Key{}, err
	}
	for _, k := range keys {
		if k.Name == r.PostForm.Get("name") {
			return k, nil
		}
	}
	return server.Key{}, page.BadRequestError("No such key.")
}

func (p *accountPages) revokeKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	k, err := p.ownKey(r, who)
	if err != nil {
		return "", "", err
	}
	ended, err := p.store.RevokeKey(r.Context(), k.Name, p.now())
	if err != nil {
		return "", "", err
	}
	return "The key " + k.Name + " is revoked. With it ended: " + ended.String() + ".", "", nil
}

func (p *accountPages) rotateKey(r *http.Request, who server.Login) (notice, secret string, err error) {
	k, err := p.ownKey(r, who)
	if err != nil {
		return "", "", err
	}
	key, hash := auth.NewKey()
	next := server.Key{Name: k.Name, Hash: hash, Created: p.now(), By: who.Key}
	if err := p.access.RotateKey(r.Context(), next, p.now().Add(rotateGrace)); err != nil {
		return "", "", err
	}
	return "This is the new value of the key " + k.Name + ". Copy it now: the server keeps only a hash of it. " +
			"The old value works for 24 more hours.",
		key, nil
}
