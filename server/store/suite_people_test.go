package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store/sqlstore"
)

// hostile are texts that mean something to SQL, to patterns, to full-text search, or to nobody.
var hostile = []string{
	`'`, `"`, `%`, `_`, `\`, `;--`, `' OR '1'='1`, `"; DROP TABLE streams; --`, "a\x00b", "\xff\xfe", "*", "NEAR(a b)",
	"a AND", "OR", "NOT x", "col:x", "(", "^x", "-x", "a*", "$1", "?1", ":name", "{\"a\":1}", "e\u0301", "\u202e",
	"x\ny", "\x02x\x03", "가", "%%", `\%`, "[a-z]",
}

func addUser(t *testing.T, st full, name string, role server.Role) server.User {
	t.Helper()
	return kit.Try(st.AddUser(t.Context(), name, role, server.By{At: start})).Must(t)
}

func addKey(t *testing.T, st full, user int64, name string) (server.Key, [32]byte) {
	t.Helper()
	_, hash := auth.NewKey()
	kit.Must(t, st.AddKey(t.Context(), server.Key{User: server.User{ID: user}, Name: name, Hash: hash, Created: start}))
	return kit.Try(st.FindKey(t.Context(), hash)).Must(t), hash
}

func (s suite) users(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	kit.Equal(t, "users of a new store", kit.Try(st.Users(ctx)).Must(t), nil)
	ann, bob := addUser(t, st, "ann", server.Owner), addUser(t, st, "bob", server.Member)
	kit.Check(t, ann.ID != 0 && ann.ID != bob.ID && ann.Created.Equal(start) && ann.Role == server.Owner, "%+v, %+v", ann, bob)
	kit.Err(t, "a second ann", server.ErrExists)(st.AddUser(ctx, "ann", server.Member, server.By{At: start}))
	kit.Should(t, st.SetRole(ctx, bob.ID, server.Viewer, server.By{}))
	kit.Should(t, st.DisableUser(ctx, bob.ID, true, server.By{At: start.Add(time.Hour)}))
	got, err := st.FindUser(ctx, "bob")
	kit.Check(t, err == nil && got.Role == server.Viewer && got.Disabled.Equal(start.Add(time.Hour)), "%+v, %v", got, err)
	kit.Should(t, st.DisableUser(ctx, bob.ID, false, server.By{At: start}))
	list, err := st.Users(ctx)
	kit.Check(t, err == nil && len(list) == 2 && list[0] == ann && list[1].Disabled.IsZero(), "%+v, %v", list, err)
	ids := []int64{bob.ID, 999, ann.ID, bob.ID, 0}
	kit.Equal(t, "names", kit.Try(st.UserNames(ctx, ids)).Must(t), map[int64]string{ann.ID: "ann", bob.ID: "bob"})
	kit.Equal(t, fmt.Sprintf("the ids asked for are now %v", ids), ids[0], bob.ID)
	kit.Equal(t, "names of nobody", kit.Try(st.UserNames(ctx, nil)).Must(t), nil)
	some, err := st.FirstUsers(ctx, 1)
	kit.Check(t, err == nil && len(some) == 1 && some[0] == ann, "the first user: %+v, %v", some, err)
	for _, err := range []error{
		st.SetRole(ctx, 999, server.Owner, server.By{}), st.DisableUser(ctx, 999, true, server.By{At: start}), second(st.FindUser(ctx, "carl")),
	} {
		kit.Check(t, errors.Is(err, server.ErrNotFound), "somebody unknown: %v", err)
	}
	for _, name := range hostile {
		kit.Err(t, "user "+name, server.ErrNotFound)(st.FindUser(ctx, name))
	}
}

func second[T any](_ T, err error) error { return err }

func (s suite) keys(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Owner), addUser(t, st, "bob", server.Member)
	k, hash := addKey(t, st, ann.ID, "laptop")
	kit.Check(t, k.Name == "laptop" && k.User == ann && k.Created.Equal(start) && k.Used.IsZero() && k.Revoked.IsZero() &&
		k.Hash == hash, "%+v", k)
	_, other := auth.NewKey()
	kit.Err(t, "a second laptop", server.ErrExists)(nil, st.AddKey(ctx, server.Key{User: bob, Name: "laptop", Hash: other, Created: start}))
	kit.Err(t, "a key of nobody", server.ErrNotFound)(nil, st.AddKey(ctx, server.Key{User: server.User{ID: 999}, Name: "desktop", Hash: other, Created: start}))
	kit.Err(t, "unknown key", server.ErrNotFound)(st.FindKey(ctx, other))
	for _, at := range []time.Time{start.Add(time.Hour), start.Add(time.Minute)} { // the latest use counts
		kit.Should(t, st.TouchKey(ctx, k.ID, at))
	}
	for _, at := range []time.Time{start.Add(2 * time.Hour), start.Add(3 * time.Hour)} { // the first time counts
		kit.Try(st.RevokeKey(ctx, "laptop", at)).Should(t)
	}
	kit.Err(t, "revoke unknown", server.ErrNotFound)(st.RevokeKey(ctx, "desktop", start))
	kit.Err(t, "a revoked key's name is free", server.ErrExists)(nil, st.AddKey(ctx, server.Key{User: ann, Name: "laptop", Hash: other, Created: start}))
	addKey(t, st, bob.ID, "phone")
	list, err := st.Keys(ctx, ann.ID)
	kit.Check(t, err == nil && len(list) == 1 && list[0].Used.Equal(start.Add(time.Hour)) &&
		list[0].Revoked.Equal(start.Add(2*time.Hour)), "%+v, %v", list, err)
	list, err = st.Keys(ctx, 0)
	kit.Check(t, err == nil && len(list) == 2 && list[1].User == bob, "%+v, %v", list, err)
}

// revokeAll: revoking a key ends all that it was rotated to and from, and what came from any of these, and nothing else.
func (s suite) revokeAll(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Owner), addUser(t, st, "bob", server.Member)
	hashes := map[string][32]byte{}
	idOf := func(name string) int64 {
		k, err := st.FindKey(ctx, hashes[name])
		kit.Require(t, err == nil || name == "", "%v %v", name, err)
		return k.ID
	}
	add := func(user server.User, name, by string) {
		_, hash := auth.NewKey()
		hashes[name] = hash
		err := st.AddKey(ctx, server.Key{User: user, Name: name, Hash: hash, Created: start, By: idOf(by)})
		kit.Require(t, err == nil, "%v %v", name, err)
	}
	rotate := func(name, to, by string) {
		_, hash := auth.NewKey()
		hashes[to] = hash
		next := server.Key{Name: name, Hash: hash, Created: start, By: idOf(by)}
		err := st.RotateKey(ctx, next, start.Add(time.Hour))
		kit.Require(t, err == nil, "%v %v", name, err)
	}
	add(ann, "laptop", "")
	add(ann, "other", "")
	add(bob, "bobs", "other")
	rotate("laptop", "thief", "laptop") // with a stolen key
	rotate("laptop", "thief2", "thief")
	add(ann, "made", "laptop")
	add(bob, "made for bob", "made")
	rotate("made", "made2", "made")
	rotate("bobs", "bobs by thief", "thief") // an owner's key may
	token := sha256.Sum256([]byte("login"))
	login := server.Login{User: ann, Key: idOf("made2"), Until: start.Add(time.Hour)}
	kit.Must(t, st.AddLogin(ctx, token, login))
	kit.Try(st.RevokeKey(ctx, "laptop", start)).Must(t)
	for name, ended := range map[string]bool{"laptop": true, "thief": true, "thief2": true, "made": true, "made for bob": true, "made2": true,
		"bobs by thief": true, "bobs": false, "other": false} {
		k, err := st.FindKey(ctx, hashes[name])
		kit.Check(t, err == nil && k.Revoked.Equal(start) == ended, "%s: revoked %v, %v; want ended %v", name, k.Revoked,
			err, ended)
	}
	kit.Err(t, "the login of a key that came from it", server.ErrNotFound)(st.FindLogin(ctx, token, start.Add(time.Second)))
}

func (s suite) rotate(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Owner)
	_, first := addKey(t, st, ann.ID, "laptop")
	_, next := auth.NewKey()
	at, grace := start.Add(time.Hour), start.Add(2*time.Hour)
	kit.Must(t, st.RotateKey(ctx, server.Key{Name: "laptop", Hash: next, Created: at}, grace))
	old, err := st.FindKey(ctx, first)
	kit.Check(t, err == nil && old.Revoked.Equal(grace) && old.Name != "laptop", "the old key is %+v, %v", old, err)
	k, err := st.FindKey(ctx, next)
	kit.Check(t, err == nil && k.Name == "laptop" && k.Revoked.IsZero() && k.User == ann && k.Created.Equal(at),
		"the new key is %+v, %v", k, err)
	_, third := auth.NewKey()
	kit.Should(t, st.RotateKey(ctx, server.Key{Name: "laptop", Hash: third, Created: at}, at)) // at once, without grace
	kit.Try(st.RevokeKey(ctx, "laptop", at)).Should(t)
	_, fourth := auth.NewKey()
	kit.Err(t, "a revoked key was rotated", server.ErrNotFound)(nil, st.RotateKey(ctx, server.Key{Name: "laptop", Hash: fourth, Created: at.Add(time.Second)}, grace))
	kit.Err(t, "an unknown key was rotated", server.ErrNotFound)(nil, st.RotateKey(ctx, server.Key{Name: "phone", Hash: fourth, Created: at}, grace))
	list, err := st.Keys(ctx, ann.ID)
	kit.Check(t, err == nil && len(list) == 3, "%+v, %v", list, err)
}

func (s suite) shares(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bob", server.Member)
	share := server.Share{Owner: ann.ID, With: bob.ID, ProjectHash: "ph'%", Project: "shop", Created: start}
	for range 2 {
		kit.Must(t, st.AddShare(ctx, share))
	}
	list, err := st.Shares(ctx)
	kit.Check(t, err == nil && len(list) == 1 && list[0] == share, "%+v, %v", list, err)
	kit.Err(t, "shared with nobody", server.ErrNotFound)(nil, st.AddShare(ctx, server.Share{Owner: ann.ID, With: 999, ProjectHash: "x", Created: start}))
	kit.Should(t, st.RemoveShare(ctx, share))
	kit.Err(t, "removed twice", server.ErrNotFound)(nil, st.RemoveShare(ctx, share))
	kit.Equal(t, "shares", kit.Try(st.Shares(ctx)).Must(t), nil)
}

func (s suite) logins(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	k, _ := addKey(t, st, ann.ID, "laptop")
	login := server.Login{User: ann, Key: k.ID, Until: start.Add(time.Hour)}
	byKey, byLink, over := [32]byte{1}, [32]byte{2}, [32]byte{3}
	for token, l := range map[[32]byte]server.Login{
		byKey: login, byLink: {User: ann, Until: start.Add(time.Hour)}, over: {User: ann, Until: start},
	} {
		kit.Must(t, st.AddLogin(ctx, token, l))
	}
	find := func(token [32]byte) error { return second(st.FindLogin(ctx, token, start.Add(time.Minute))) }
	kit.Equal(t, "the login", kit.Try(st.FindLogin(ctx, byKey, start.Add(time.Minute))).Must(t), login)
	expect := func(when string, token [32]byte, there bool) {
		t.Helper()
		if err := find(token); (err == nil) != there || !there && !errors.Is(err, server.ErrNotFound) {
			t.Errorf("%s: login %d: %v", when, token[0], err)
		}
	}
	expect("at first", byLink, true)
	expect("one that is over", over, false)
	expect("one that never was", [32]byte{9}, false)
	kit.Must(t, st.DisableUser(ctx, ann.ID, true, server.By{At: start}))
	expect("of a disabled user", byLink, false)
	kit.Must(t, st.DisableUser(ctx, ann.ID, false, server.By{At: start}))
	kit.Try(st.RevokeKey(ctx, "laptop", start)).Must(t)
	expect("with a revoked key", byKey, false)
	expect("with a link", byLink, true)
	kit.Should(t, st.RemoveLogin(ctx, byLink))
	expect("ended", byLink, false)
	kit.Err(t, "ended twice", server.ErrNotFound)(nil, st.RemoveLogin(ctx, byLink))
}

// tickets: of many who show one, one gets in.
func (s suite) tickets(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	for i, until := range []time.Time{start.Add(time.Hour), start} {
		kit.Must(t, st.AddTicket(ctx, [32]byte{byte(i)}, server.Login{User: ann, Until: until}))
	}
	var in atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l, err := st.TakeTicket(ctx, [32]byte{0}, start)
			switch {
			case err == nil && l.User == ann:
				in.Add(1)
			case !errors.Is(err, server.ErrNotFound):
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
	wg.Wait()
	kit.Equal(t, "got in", in.Load(), 1)
	for i := range 2 {
		kit.Err(t, fmt.Sprint("ticket ", i+1),
			server.ErrNotFound)(st.TakeTicket(ctx, [32]byte{byte(i + 1)}, start.Add(time.Second)))
	}
	ben := addUser(t, st, "ben", server.Member)
	for i := range sqlstore.MaxTickets + 1 { // the one that is over first ends
		until := start.Add(time.Hour + time.Duration(i)*time.Second)
		kit.Must(t, st.AddTicket(ctx, [32]byte{1, byte(i)}, server.Login{User: ben, Until: until}))
	}
	for i, want := range map[byte]error{0: server.ErrNotFound, 1: nil, sqlstore.MaxTickets: nil} {
		kit.Err(t, fmt.Sprintf("ticket %d of many", i), want)(st.TakeTicket(ctx, [32]byte{1, i}, start))
	}
	for i := range sqlstore.MaxLogins + 1 {
		l := server.Login{User: ben, Until: start.Add(time.Hour + time.Duration(i)*time.Second)}
		kit.Must(t, st.AddLogin(ctx, [32]byte{2, byte(i >> 8), byte(i)}, l))
	}
	for i, want := range map[int]error{0: server.ErrNotFound, 1: nil} {
		kit.Err(t, fmt.Sprintf("login %d of many", i), want)(st.FindLogin(ctx, [32]byte{2, 0, byte(i)}, start))
	}
	kit.Err(t, "a ticket for nobody", server.ErrNotFound)(nil, st.AddTicket(ctx, [32]byte{7}, server.Login{User: server.User{ID: 999}, Until: start}))
}

// members makes two members with a session each in the same project of the same machine, an owner, a viewer, and a
// session of nobody.
func members(t *testing.T, st full) (ann, bob server.User) {
	t.Helper()
	ann, bob = addUser(t, st, "ann", server.Member), addUser(t, st, "bob", server.Member)
	for name, owner := range map[string]int64{"anns": ann.ID, "bobs": bob.ID, "nobodys": 0} {
		b := batch(name, object(0, says("prompt", "the needle of "+name)), object(1, `{"a":1}`))
		b.Owner = owner
		b.Head.ProjectHash, b.Head.Project, b.Head.Cwd = "ph", "shop", "/w/shop"
		put(t, st, b)
		put(t, st, batch(name+"/agent-1", object(0, fmt.Sprintf(`{"of":%q}`, name))),
			func(b *server.Batch) { b.Owner, b.Head.Parent, b.Head.ProjectHash = owner, name, "ph" })
	}
	return ann, bob
}
