package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	reset := kit.Each(ended.Reset, func(u server.User) string { return fmt.Sprint(u.Name, " ", u.Role, " ", u.Disabled.IsZero()) })
	kit.Equal(t, "as they were", reset, []string{"cat viewer true", "dan member false"})
	old, err := st.FindKey(ctx, x.hashes["laptop"])
	x.ok(err)
	ended.Reset = nil
	kit.Equal(t, "ended", ended, server.Ended{Keys: []string{"deep", "deeper", "given", old.Name}, Logins: 3, Tickets: 3, Links: 3,
		Users: []string{"eve", "fay"}, Shares: []server.EndedShare{{Owner: "bob", With: "cat", Project: "shop"}}})
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
	list, err := st.Shares(ctx)
	kit.Check(t, err == nil && len(list) == 1 && list[0].With == good.ID, "shares left: %+v, %v", list, err)
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

// shareLinks: a link shows one session and its agents' transcripts, and works as long as everything does that it
// depends on.
func (s suite) shareLinks(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	boss, ann := addUser(t, st, "boss", server.Owner), addUser(t, st, "ann", server.Member)
	other := addUser(t, st, "other", server.Member)
	kit.Must(t, st.AddKey(ctx, server.Key{User: ann, Name: "laptop", Hash: sha256.Sum256([]byte("k")), Created: start}))
	keys := kit.Try(st.Keys(ctx, ann.ID)).Must(t)
	for _, x := range []struct{ name, parent string }{{"a", ""}, {"a/agent-1", "a"}, {"b", ""}, {"b/agent-1", "b"}} {
		put(t, st, batch(x.name, object(0, `{}`)), func(b *server.Batch) { b.Owner, b.Head.Parent = ann.ID, x.parent })
	}
	hers := server.ScopeOf(ann)
	at := kit.Try(st.Resolve(ctx, hers, server.Ref{SessionID: "a"})).Must(t)
	add := func(by server.User, key int64, secret string) int64 {
		t.Helper()
		id := kit.Try(st.AddShareLink(ctx, server.ShareLink{Hash: sha256.Sum256([]byte(secret)), Stream: at.Stream, By: by,
			Key: key, Created: start, Until: start.Add(time.Hour)})).Must(t)
		return id
	}
	works := func(secret string, now time.Time, want bool) {
		t.Helper()
		l, err := st.FindShareLink(ctx, sha256.Sum256([]byte(secret)), now)
		kit.Check(t, (!want || err == nil && l.Stream == at.Stream && l.Session == "a" &&
			l.Hash == sha256.Sum256([]byte(secret))) && (want || errors.Is(err, server.ErrNotFound)),
			"link %q at %v: %+v, %v; want it to work: %v", secret, now, l, err, want)
	}
	lists := func(q server.ShareLinkQuery, want string) {
		t.Helper()
		list, err := st.ShareLinks(ctx, q, start)
		by := kit.Each(list, func(l server.ShareLink) string { return l.By.Name })
		got := strings.Join(by, " ")
		kit.Check(t, err == nil && got == want, "%+v lists links of %q, %v; want %q", q, got, err, want)
	}
	mine := add(ann, keys[0].ID, "mine")
	add(ann, 0, "second")
	add(boss, 0, "boss")
	add(other, 0, "thief") // nobody makes one of what is not theirs; if a user could, it would not work
	works("mine", start, true)
	works("mine", start.Add(time.Hour), false)
	works("boss", start, true)
	works("thief", start, false)
	works("unknown", start, false)
	lists(server.ShareLinksOf(boss), "boss ann ann")
	lists(server.ShareLinksOf(ann), "boss ann ann") // a link to her session, by any user
	lists(server.ShareLinksOf(other), "")
	lists(server.ShareLinkQuery{Stream: at.Stream + 1}, "")
	kit.Err(t, "another user ends a link", server.ErrNotFound)(nil, st.RemoveShareLink(ctx, server.ShareLinksOf(other), mine))
	works("mine", start, true)

	only := server.Scope{Only: at.Stream}
	expectNames(t, "through the link", names(t, st, only, server.SessionQuery{Agents: true}), "a", "a/agent-1")
	for _, ref := range []server.Ref{{SessionID: "b", Owner: ann.ID}, {SessionID: "b/agent-1", Owner: ann.ID}, {Stream: at.Stream + 2}} {
		kit.Err(t, fmt.Sprintf("the link shows %+v", ref), server.ErrNotFound)(st.Resolve(ctx, only, ref))
	}

	for _, step := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"its user is disabled", func() error { return st.DisableUser(ctx, ann.ID, true, server.By{At: start}) }, false},
		{"its user is enabled", func() error { return st.DisableUser(ctx, ann.ID, false, server.By{At: start}) }, true},
		{"its key is revoked", func() error { return second(st.RevokeKey(ctx, "laptop", start)) }, false},
	} {
		err := step.do()
		kit.Require(t, err == nil, "%v %v", step.what, err)
		t.Log(step.what)
		works("mine", start, step.want)
	}
	works("second", start, true)
	for role, want := range map[server.Role]bool{server.Viewer: false, ann.Role: true} { // a viewer makes none
		kit.Must(t, st.SetRole(ctx, ann.ID, role, server.By{}))
		works("second", start, want)
		kit.Must(t, st.SetRole(ctx, ann.ID, ann.Role, server.By{}))
	}
	kit.Must(t, st.SetRole(ctx, boss.ID, server.Member, server.By{}))
	works("boss", start, false)
	list, err := st.ShareLinks(ctx, server.ShareLinksOf(ann), start)
	kit.Require(t, err == nil && len(list) == 1, "%d links left, %v", len(list), err)
	kit.Must(t, st.RemoveShareLink(ctx, server.ShareLinksOf(ann), list[0].ID))
	works("second", start, false)

	add(ann, 0, "last")
	kit.Err(t, "a link to nothing", server.ErrNotFound)(st.AddShareLink(ctx, server.ShareLink{Stream: 999_999, By: ann}))
	kit.Try(st.Forget(ctx, hers, "a", 0, start)).Must(t)
	works("last", start, false)
	lists(server.ShareLinkQuery{}, "")
}

// hasMany: of many who add keys, links or shares of a user at once, so many as the user may have are added.
func (s suite) hasMany(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	put(t, st, batch("a", object(0, `{}`)), func(b *server.Batch) { b.Owner = ann.ID })
	at := kit.Try(st.Resolve(ctx, server.ScopeOf(ann), server.Ref{SessionID: "a"})).Must(t)
	const most, tries = 5, 20
	hash := func(i int) [32]byte { return sha256.Sum256([]byte{byte(i)}) }
	atOnce := func(what string, add func(i int) error) {
		t.Helper()
		var group sync.WaitGroup
		var added atomic.Int64
		for i := range tries {
			group.Go(func() {
				err := add(i)
				if err == nil {
					added.Add(1)
				} else if !errors.Is(err, server.ErrHasMany) {
					t.Errorf("%s %d: %v", what, i, err)
				}
			})
		}
		group.Wait()
		kit.Equal(t, fmt.Sprintf("of %d are added: %s", tries, what), added.Load(), most)
	}
	key := func(i int) server.Key {
		return server.Key{User: ann, Name: "k" + strconv.Itoa(i), Hash: hash(i), Created: start, Most: most}
	}
	atOnce("keys", func(i int) error { return st.AddKey(ctx, key(i)) })
	atOnce("links", func(i int) error {
		_, err := st.AddShareLink(ctx, server.ShareLink{Hash: hash(i), Stream: at.Stream, By: ann, Created: start,
			Until: start.Add(time.Hour), Most: most})
		return err
	})
	bob := addUser(t, st, "bob", server.Member)
	share := server.Share{Owner: ann.ID, With: bob.ID, Created: start, Most: most}
	atOnce("shares", func(i int) error {
		x := share
		x.ProjectHash = strconv.Itoa(i)
		return st.AddShare(ctx, x)
	})
	shared, err := st.Shares(ctx)
	kit.Require(t, err == nil && len(shared) == most, "%d shares, %v", len(shared), err)
	share.ProjectHash, share.Documents = shared[0].ProjectHash, true
	kit.Equal(t, "one that is there", st.AddShare(ctx, share), nil)
	keys, err := st.Keys(ctx, ann.ID)
	kit.Require(t, err == nil && len(keys) == most, "%d keys, %v", len(keys), err)
	next := key(tries)
	next.Name = keys[0].Name
	kit.Err(t, "an old key still works beside its successor", server.ErrHasMany)(nil, st.RotateKey(ctx, next, start.Add(time.Hour)))
	kit.Try(st.RevokeKey(ctx, keys[1].Name, start)).Must(t)
	kit.Should(t, st.RotateKey(ctx, next, start.Add(time.Hour)))
}

// overKeys: keys that are made and revoked, or rotated, over and over leave few rows; those that made something stay.
func (s suite) overKeys(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	const most = 2
	at := start
	next := func(name string, by int64) server.Key {
		at = at.Add(time.Minute)
		return server.Key{User: ann, Name: name, Hash: sha256.Sum256([]byte(at.String())), Created: at, Most: most, By: by}
	}
	first := next("rotated", 0)
	kit.Must(t, st.AddKey(ctx, first))
	maker, err := st.FindKey(ctx, first.Hash)
	kit.Must(t, err)
	kit.Must(t, st.AddKey(ctx, next("child", maker.ID)))
	for i := range 26 {
		k := next("rotated", 0)
		k.Most++
		if i%2 == 0 {
			err = st.RotateKey(ctx, k, k.Created)
		} else {
			k.Name = "k" + strconv.Itoa(i)
			if err = st.AddKey(ctx, k); err == nil {
				_, err = st.RevokeKey(ctx, k.Name, k.Created)
			}
		}
		kit.Require(t, err == nil, "%v %v", i, err)
	}
	list, err := st.Keys(ctx, ann.ID)
	kit.Check(t, err == nil && len(list) <= 20, "%d keys are left, %v", len(list), err)
	ended, err := st.RevokeKey(ctx, "rotated", at.Add(time.Minute)) // its chain reaches what is gone
	kit.Check(t, err == nil && len(ended.Keys) == 1 && ended.Keys[0] == "child", "ended %+v, %v", ended, err)
}

// tops: sessions by name, and the longest first.
func (s suite) tops(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for _, name := range []string{"a", "b", "c", "d"} {
		put(t, st, batch(name, object(0, `{}`)))
	}
	for name, task := range lease(t, st) {
		if took, known := map[string]time.Duration{"a": time.Minute, "b": time.Hour, "c": 30 * time.Minute}[name]; known {
			save(t, st, task, server.Derivation{Summary: server.Summary{Started: start, Ended: start.Add(took)}})
		}
	}
	found, err := st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 2, Longest: true}})
	kit.Check(t, err == nil && len(found.List) == 2 && found.List[0].SessionID == "b" && found.List[1].SessionID == "c" &&
		found.Next == "", "the longest: %+v, %v", found, err)
	expectNames(t, "by name", names(t, st, all, server.SessionQuery{Names: []string{"c", "a", "none"}}), "a", "c")
}
