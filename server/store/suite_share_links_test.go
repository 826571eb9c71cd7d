package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
)

// shareLinks: a link shows one session and its agents' transcripts, and works as long as everything does that it
// depends on.
func (s suite) shareLinks(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	boss, ann := addUser(t, st, "boss", server.Owner), addUser(t, st, "ann", server.Member)
	other := addUser(t, st, "other", server.Member)
	kit.Must(t, st.AddKey(ctx, server.Key{User: ann, Name: "laptop", Hash: sha256.Sum256([]byte("k")), Created: start}))
	keys := kit.Try(st.Keys(ctx, ann.ID)).Must(t)
	for _, x := range []struct{ name, parent string }{{"a", ""}, {"a/agent-1", "a"}, {"b", ""}, {"b/agent-1", "b"}} {
		b := batch(x.name, object(0, `{}`))
		b.Owner, b.Head.Parent = ann.ID, x.parent
		put(t, st, b)
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
		var by []string
		for _, l := range list {
			by = append(by, l.By.Name)
		}
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
