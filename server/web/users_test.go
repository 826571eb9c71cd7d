package web_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
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
	kit.Check(c.t, most <= 201, "a page reads %d users", most)
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
	v := kit.Try(web.New(crowd{s.store, t}, s.access)).Must(t)
	s.Config.Handler = v.Handler()
	page := s.get(t, "/")
	mustHave(t, page, "<span>user204</span>", "<span>kim</span>")
	mustLack(t, page, "user3<")
	page = s.get(t, "/?user=user204")
	mustHave(t, page, "<span>user204</span>", `name="user" value="user204"`)
	mustLack(t, page, `data-session="kims"`, `<select name="user"`)
	mustHave(t, s.get(t, "/?user=nobody"), "<span>user204</span>", "<span>kim</span>")
	mustHave(t, s.get(t, "/search?q=lasts+user:user204"), "lasts", "<span>user204</span>", "1 session, best first")
	s.get(t, "/usage?by=user")
	page = s.get(t, "/beside?user=user204")
	mustHave(t, page, "lasts")
	mustLack(t, page, "kims")
	s.get(t, "/activity")
}
