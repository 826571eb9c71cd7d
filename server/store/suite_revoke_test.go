package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
)

// stolen is what somebody does with an owner's key.
type stolen struct {
	t      *testing.T
	st     full
	hashes map[string][32]byte // of keys, by what this test calls them
}

func (x *stolen) id(name string) int64 {
	k, err := x.st.FindKey(x.t.Context(), x.hashes[name])
	kit.Require(x.t, err == nil || name == "", "%v %v", name, err)
	return k.ID
}

func (x *stolen) by(key string) server.By { return server.By{Key: x.id(key), At: start} }

func (x *stolen) ok(err error) {
	x.t.Helper()
	kit.Require(x.t, err == nil, "%v", err)
}

func (x *stolen) user(name string, role server.Role, by string) server.User {
	u, err := x.st.AddUser(x.t.Context(), name, role, x.by(by))
	x.ok(err)
	return u
}

func (x *stolen) named(name string) server.User {
	u, err := x.st.FindUser(x.t.Context(), name)
	x.ok(err)
	return u
}

func (x *stolen) key(user server.User, name, by string) {
	_, x.hashes[name] = auth.NewKey()
	x.ok(x.st.AddKey(x.t.Context(), server.Key{User: user, Name: name, Hash: x.hashes[name], Created: start, By: x.id(by)}))
}

func (x *stolen) rotate(name, to, by string) {
	_, x.hashes[to] = auth.NewKey()
	next := server.Key{Name: name, Hash: x.hashes[to], Created: start, By: x.id(by)}
	x.ok(x.st.RotateKey(x.t.Context(), next, start.Add(time.Hour)))
}

func token(name string) [32]byte { return sha256.Sum256([]byte(name)) }

// opens adds a login, a one-time link and a link to a session, all under a name.
func (x *stolen) opens(name string, user server.User, by string, stream int64) {
	ctx, until := x.t.Context(), start.Add(time.Hour)
	l := server.Login{User: user, Key: x.id(by), Until: until}
	x.ok(x.st.AddLogin(ctx, token(name), l))
	x.ok(x.st.AddTicket(ctx, token(name), l))
	x.ok(second(x.st.AddShareLink(ctx, server.ShareLink{Hash: token(name), Stream: stream, By: user, Key: l.Key, Created: start,
		Until: until})))
}

func (x *stolen) expectOpens(name string, want error) {
	x.t.Helper()
	ctx, now := x.t.Context(), start.Add(time.Minute)
	for what, err := range map[string]error{
		"login":         second(x.st.FindLogin(ctx, token(name), now)),
		"one-time link": second(x.st.TakeTicket(ctx, token(name), now)),
		"link":          second(x.st.FindShareLink(ctx, token(name), now)),
	} {
		kit.Check(x.t, errors.Is(err, want), "%s of %s: %v, want %v", what, name, err, want)
	}
}

// revokeDeep: what a stolen key made ends with it at any depth: users, their keys, what these made. What it gave to
// others is as it was before.
func (s suite) revokeDeep(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	x := &stolen{t, st, map[string][32]byte{}}
	ann, bob := x.user("ann", server.Owner, ""), x.user("bob", server.Member, "")
	cat, dan := x.user("cat", server.Viewer, ""), x.user("dan", server.Member, "")
	put(t, st, batch("a", object(0, `{}`)), func(b *server.Batch) { b.Owner = bob.ID })
	at, err := st.Resolve(ctx, server.ScopeOf(ann), server.Ref{SessionID: "a"})
	x.ok(err)
	x.ok(st.DisableUser(ctx, dan.ID, true, server.By{At: start.Add(-time.Hour)}))

	x.key(ann, "laptop", "")
	x.key(ann, "other", "")
	x.key(bob, "bobs key", "other")
	x.rotate("laptop", "thief", "laptop")
	eve := x.user("eve", server.Owner, "thief")
	x.key(eve, "given", "") // an owner believes eve, and makes a key without one
	fay := x.user("fay", server.Owner, "given")
	x.key(fay, "deep", "")
	x.key(fay, "deeper", "deep")
	good := x.user("good", server.Member, "other")
	for _, role := range []server.Role{server.Member, server.Owner} { // cat is what it was before the first
		x.ok(st.SetRole(ctx, cat.ID, role, x.by("deeper")))
	}
	x.ok(st.SetRole(ctx, bob.ID, server.Owner, x.by("other")))
	x.ok(st.DisableUser(ctx, dan.ID, false, x.by("thief")))
	for _, h := range []server.Share{{Owner: bob.ID, With: cat.ID, Project: "shop", ProjectHash: "1", By: x.id("deeper")},
		{Owner: bob.ID, With: good.ID, Project: "shop", ProjectHash: "1", By: x.id("other")}} {
		h.Created = start
		x.ok(st.AddShare(ctx, h))
	}
	x.opens("thief", ann, "thief", at.Stream)
	x.opens("fay", fay, "", at.Stream)
	x.opens("deeper", fay, "deeper", at.Stream)
	x.opens("other", ann, "other", at.Stream)

	ended, err := st.RevokeKey(ctx, "laptop", start)
	x.ok(err)
	var reset []string
	for _, u := range ended.Reset {
		reset = append(reset, fmt.Sprint(u.Name, " ", u.Role, " ", u.Disabled.IsZero()))
	}
	kit.Equal(t, "as they were", reset, []string{"cat viewer true", "dan member false"})
	old, err := st.FindKey(ctx, x.hashes["laptop"])
	x.ok(err)
	ended.Reset = nil
	if want := (server.Ended{Keys: []string{"deep", "deeper", "given", old.Name}, Logins: 3, Tickets: 3, Links: 3,
		Users: []string{"eve", "fay"}, Shares: []server.EndedShare{{Owner: "bob", With: "cat", Project: "shop"}}}); !reflect.DeepEqual(ended, want) {
		t.Errorf("ended\n%+v, want\n%+v", ended, want)
	}
	for _, name := range []string{"thief", "fay", "deeper"} {
		x.expectOpens(name, server.ErrNotFound)
	}
	x.expectOpens("other", nil)
	for name, want := range map[string]string{"ann": "owner true", "bob": "owner true", "good": "member true", "cat": "viewer true",
		"dan": "member false", "eve": "owner false", "fay": "owner false"} {
		u, err := st.FindUser(ctx, name)
		got := fmt.Sprint(u.Role, " ", u.Disabled.IsZero())
		kit.Check(t, err == nil && got == want, "%s: %s, %v; want %s", name, got, err, want)
	}
	if list, err := st.Shares(ctx); err != nil || len(list) != 1 || list[0].With != good.ID {
		t.Errorf("shares left: %+v, %v", list, err)
	}
	x.lateActs("deeper", bob, cat)
	x.lostRights()
	x.ok(st.DisableUser(ctx, eve.ID, false, server.By{At: start})) // an owner's will; the key ends nothing again
	ended, err = st.RevokeKey(ctx, "laptop", start)
	kit.Check(t, err == nil && reflect.DeepEqual(ended, server.Ended{}), "again: %+v, %v", ended, err)
}

// lostRights has owners who were demoted or disabled act by requests that began before, and a viewer who was a member.
func (x *stolen) lostRights() {
	ctx := x.t.Context()
	victim, with := x.user("victim", server.Member, ""), x.user("with", server.Member, "")
	x.key(victim, "victims key", "")
	for name, lose := range map[string]func(u server.User) error{
		"demoted":  func(u server.User) error { return x.st.SetRole(ctx, u.ID, server.Member, server.By{At: start}) },
		"disabled": func(u server.User) error { return x.st.DisableUser(ctx, u.ID, true, server.By{At: start}) },
	} {
		u := x.user(name, server.Owner, "")
		x.key(u, name, "")
		x.ok(x.st.AddKey(ctx, server.Key{User: victim, Name: "by " + name, Hash: token("by " + name), Created: start, By: x.id(name)}))
		x.ok(lose(u))
		x.lateActs(name, victim, with)
	}
	own := server.Key{User: x.named("demoted"), Name: "own", Hash: token("own"), Created: start, By: x.id("demoted")}
	x.ok(x.st.AddKey(ctx, own)) // what is its own, it may still do
	x.ok(x.st.SetRole(ctx, own.User.ID, server.Viewer, server.By{At: start}))
	own.Name, own.Hash = "also own", token("also own")
	x.ok(x.st.AddKey(ctx, own))
	share := server.Share{Owner: own.User.ID, With: with.ID, ProjectHash: "3", Created: start, By: own.By}
	kit.Err(x.t, "a viewer who was a member shares", server.ErrNotFound)(x.st.AddShare(ctx, share))
}

// lateActs are requests that could be made with a key when they began.
func (x *stolen) lateActs(key string, user, with server.User) {
	ctx, late := x.t.Context(), server.By{Key: x.id(key), At: start.Add(time.Second)}
	for what, err := range map[string]error{
		"a user":     second(x.st.AddUser(ctx, "late", server.Owner, late)),
		"a role":     x.st.SetRole(ctx, with.ID, server.Owner, late),
		"a user set": x.st.DisableUser(ctx, with.ID, true, late),
		"a share":    x.st.AddShare(ctx, server.Share{Owner: user.ID, With: with.ID, ProjectHash: "2", Created: late.At, By: late.Key}),
		"a key":      x.st.AddKey(ctx, server.Key{User: user, Name: "late", Hash: token("late"), Created: late.At, By: late.Key}),
		"a rotation": x.st.RotateKey(ctx, server.Key{Name: user.Name + "s key", Hash: token("late"), Created: late.At, By: late.Key}, late.At),
	} {
		kit.Check(x.t, errors.Is(err, server.ErrNotFound), "%s with the key %s: %v", what, key, err)
	}
}
