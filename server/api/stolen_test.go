package api_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

// TestStolenKey: an owner revokes a stolen owner's key, and reads what ended with it.
func TestStolenKey(t *testing.T) {
	first := newRig(t)
	first.person("bob", server.Viewer)
	boss := first.person("boss", server.Owner)
	type made struct{ Key, URL, Secret string }
	first.post(piece{lines: objects("a", 0, 3)}.body("s"))

	first.send("POST", "/api/users", `{"name":"eve","role":"owner"}`, http.StatusCreated)
	eve := first.as(decode[made](t, first.send("POST", "/api/keys", `{"name":"eves","user":"eve"}`, http.StatusCreated)).Key)
	eve.send("PATCH", "/api/users/bob", `{"role":"member"}`, 200)
	eve.send("POST", "/api/shares", `{"owner":"owner","with":"bob","project":"ph"}`, http.StatusCreated)
	link := decode[made](t, eve.send("POST", "/api/sessions/s/share-links", `{"expires":"1h"}`, http.StatusCreated))
	_, secret, _ := strings.Cut(link.URL, "/s/")
	_, ticket, _ := strings.Cut(decode[made](t, eve.send("POST", "/api/tickets", `{}`, http.StatusCreated)).URL, "ticket=")
	access := auth.New(first.store, discard())
	if _, err := access.CheckShareLink(t.Context(), "r", secret); err != nil {
		t.Fatalf("link %q: %v", link.URL, err)
	}

	type ended struct {
		Keys, Users     []string
		Logins, Tickets int
		Links           int `json:"share_links"`
		Reset           []struct{ Name, Role string }
		Shares          []struct{ Owner, With, Project string }
	}
	got := decode[struct{ Ended ended }](t, boss.send("DELETE", "/api/keys/test", "", 200)).Ended
	want := ended{Keys: []string{"eves"}, Users: []string{"eve"}, Tickets: 1, Links: 1}
	want.Reset = append(want.Reset, struct{ Name, Role string }{"bob", "viewer"})
	want.Shares = append(want.Shares, struct{ Owner, With, Project string }{"owner", "bob", "w"})
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ended %+v, want %+v", got, want)
	}
	for name, r := range map[string]*rig{"the key": first, "eve's": eve} {
		if a := r.get("/api/me"); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if _, err := access.CheckShareLink(t.Context(), "r", secret); !errors.Is(err, server.ErrNotFound) {
		t.Errorf("the link: %v", err)
	}
	if _, _, err := access.LoginWithTicket(t.Context(), "r", ticket); !errors.Is(err, auth.ErrUnauthorized) {
		t.Errorf("the one-time link: %v", err)
	}
	if got := boss.sessionsOf(""); got != "owner:s" {
		t.Errorf("sessions %q", got)
	}
}
