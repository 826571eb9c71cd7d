package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store/sqlite"
	"github.com/ccship/ccship/server/web"
)

// crowd is a store that reads no more users than a page shows or offers.
type crowd struct {
	*sqlite.Store
	t *testing.T
}

// Users fails: pages that it is not a list of users on must not ask for all of them.
func (c crowd) Users(ctx context.Context) ([]server.User, error) {
	c.t.Error("a page reads all users")
	return c.Store.Users(ctx)
}

func (c crowd) FirstUsers(ctx context.Context, most int) ([]server.User, error) {
	if most > 201 {
		c.t.Errorf("a page reads %d users", most)
	}
	return c.Store.FirstUsers(ctx, most)
}

// TestManyUsers: with more users than a list can offer a page asks for a name, and shows sessions of that user. It
// never reads all users.
func TestManyUsers(t *testing.T) {
	s := loggedIn(t)
	var last server.User
	for i := range 205 {
		last = s.addUser(t, fmt.Sprint("user", i), server.Member)
	}
	s.putAs(t, s.owner, head("kims"), prompt("kims", "m", ago(0))...)
	s.putAs(t, last, head("lasts"), prompt("lasts", "m", ago(0))...)
	v, err := web.New(crowd{s.store, t}, s.access)
	must(t, err)
	srv := httptest.NewServer(v.Handler())
	defer srv.Close()
	get := func(path string) string {
		res, err := s.client.Get(srv.URL + path)
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
		}
		return string(body)
	}
	expect := func(path string, words ...string) {
		t.Helper()
		page := get(path)
		for _, w := range words {
			if rest, no := strings.CutPrefix(w, "-"); strings.Contains(page, rest) == no {
				t.Errorf("%s: %q is there: %t", path, rest, no)
			}
		}
	}
	expect("/", "<span>user204</span>", "<span>kim</span>", "-user3<")
	expect("/?user=user204", "<span>user204</span>", "-data-session=\"kims\"", `name="user" value="user204"`, "-<select name=\"user\"")
	expect("/?user=nobody", "<span>user204</span>", "<span>kim</span>")
	expect("/search?q=lasts+user:user204", "lasts", "<span>user204</span>", "1 session, best first")
	expect("/usage?by=user")
	expect("/beside?user=user204", "lasts", "-kims")
	expect("/activity")
}
