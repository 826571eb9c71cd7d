package library

import (
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// TestCopyOfUser: of two users' sessions with one id and machine none is chosen, until the user is named.
func TestCopyOfUser(t *testing.T) {
	r := newRoom(t)
	session := func(user, machine string) *remote.Session {
		return &remote.Session{SessionID: one, User: user, Machine: machine, Host: "h"}
	}
	both := Found{Session: one, Stored: []*remote.Session{session("bob", here), session("ann", here), session("eve", abroad)}}
	for name, c := range map[string]struct {
		which      Copy
		user, code string
	}{
		"nobody named":        {Copy{}, "", control.CodeAmbiguous},
		"machine named":       {Copy{Machine: here}, "", control.CodeAmbiguous},
		"ann":                 {Copy{User: "ann"}, "ann", ""},
		"bob, machine":        {Copy{User: "bob", Machine: here}, "bob", ""},
		"eve, elsewhere only": {Copy{User: "eve"}, "eve", ""},
		"eve, not here":       {Copy{User: "eve", Machine: here}, "", control.CodeNoSession},
		"somebody else":       {Copy{User: "kim"}, "", control.CodeNoSession},
	} {
		got, err := r.stored(t.Context(), both, c.which)
		if c.code != "" {
			kit.Check(t, remote.Is(err, c.code), "%s: %+v, %v, want %s", name, got, err, c.code)
			continue
		}
		kit.Check(t, err == nil && got.User == c.user, "%s: %+v, %v, want that of %s", name, got, err, c.user)
	}
}
