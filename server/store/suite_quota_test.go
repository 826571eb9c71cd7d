package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
)

// patiently does something again for as long as it takes too long, as daemons do: a machine may be slow.
func patiently(ctx context.Context, do func() error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		if err = do(); err == nil || ctx.Err() != nil || !server.Unavailable(err) {
			return err
		}
	}
}

// limited is a batch of a user with a limit.
func limited(u server.User, q server.Quota, session string, lines ...server.Line) *server.Batch {
	b := batch(session, lines...)
	b.Owner, b.Quota = u.ID, q
	return b
}

// expectStored compares what is stored of a user, in transcripts of sessions and of agents.
func expectStored(t *testing.T, st full, u server.User, bytes, sessions, agents int64) {
	t.Helper()
	got, err := st.Stored(t.Context(), u.ID)
	bytes += server.RowBytes * (sessions + agents)
	want := (server.Stored{Bytes: bytes, Sessions: sessions})
	kit.Check(t, err == nil && got == want, "stored of %s: %+v, want %+v (%v)", u.Name, got, want, err)
}

// refusedBy expects a refusal by one of the limits.
func refusedBy(t *testing.T, err error, sessions bool) {
	t.Helper()
	no, ok := errors.AsType[*server.QuotaError](err)
	kit.Check(t, ok && no.Sessions == sessions, "not refused for its limit (of sessions: %v): %v", sessions, err)
}

// quotas: sums are exact after repeats, replacements, a restart and forgetting; a write that exceeds a limit leaves
// nothing behind, and earlier lines stay.
func (s suite) quotas(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	q := server.Quota{Bytes: 40 + 2*server.RowBytes, Sessions: 2}
	put(t, st, limited(ann, q, "one", object(0, "123456789")))
	put(t, st, limited(ann, q, "one", object(0, "123456789"))) // again
	expectStored(t, st, ann, 10, 1, 0)
	put(t, st, limited(ann, q, "one", object(0, "1234"))) // replaces nine bytes, which are kept
	expectStored(t, st, ann, 15, 1, 0)
	put(t, st, limited(ann, q, "two", object(0, "123456789")))
	refusedBy(t, st.Put(ctx, limited(ann, q, "three", object(0, "1"))), true)
	refusedBy(t, st.Put(ctx, limited(ann, q, "two", object(1, strings.Repeat("x", 15)))), false)
	expectStored(t, st, ann, 25, 2, 0)
	agent := limited(ann, q, "two/agent-a", object(0, "123456789")) // belongs to a session
	agent.Head.Parent = "two"
	refusedBy(t, st.Put(ctx, agent), false) // its transcript counts, however short
	q.Bytes += server.RowBytes
	agent.Quota = q
	put(t, st, agent)
	put(t, st, limited(ann, q, "one", object(1, "1234"))) // exactly what is left
	expectStored(t, st, ann, 40, 2, 1)
	refusedBy(t, st.Put(ctx, limited(ann, q, "one", object(2, ""))), false)
	snap := kit.Try(st.Open(ctx, server.Ref{SessionID: "one"})).Must(t)
	kit.Equal(t, "session one has", len(dump(t, snap, 0)), 2)
	kit.Should(t, snap.Close())
	st = s.reopen(t, st)
	expectStored(t, st, ann, 40, 2, 1)
	kit.Try(st.Forget(ctx, server.Scope{User: ann.ID}, "two", 0, time.Now())).Must(t)
	expectStored(t, st, ann, 20, 1, 0)
	put(t, st, limited(ann, q, "three", object(0, "1")))
	kit.Err(t, "a forgotten session, beyond the limit", server.ErrForgotten)(nil, st.Put(ctx, limited(ann, q, "two", object(0, strings.Repeat("x", 99)))))
	put(t, st, limited(ann, server.Quota{}, "three", object(1, strings.Repeat("x", 99)))) // the limit is lifted
	expectStored(t, st, ann, 122, 2, 0)
}

// quotaFiles: files and checkpoints count, a file in full from when its upload starts, once for all its sessions.
func (s suite) quotaFiles(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Member)
	const row = server.RowBytes
	q := server.Quota{Bytes: 100 + 2*row}
	upload := func(content, session string) *server.Upload {
		return &server.Upload{Head: batch(session).Head, Owner: ann.ID, Quota: q, SHA256: sha256.Sum256([]byte(content)),
			Size: int64(len(content)), Name: "f", At: start}
	}
	file := strings.Repeat("f", 60)
	u := upload(file, "s")
	_, _, err := st.StartBlob(ctx, u)
	kit.Must(t, err)
	expectStored(t, st, ann, 60+row, 1, 0)
	_, _, err = st.StartBlob(ctx, upload(strings.Repeat("g", 60), "s"))
	refusedBy(t, err, false)
	have, _, err := st.StartBlob(ctx, u)
	kit.Check(t, err == nil && have == 0, "an upload that goes on: %d, %v", have, err)
	kit.Try(st.PutBlob(ctx, ann.ID, u.SHA256, 0, []byte(file), start)).Must(t)
	kit.Must(t, st.EndBlob(ctx, u))
	q.Bytes += 2 * row
	_, complete, err := st.StartBlob(ctx, upload(file, "other"))
	kit.Check(t, err == nil && complete, "the same file of another session: %v, %v", complete, err)
	expectStored(t, st, ann, 60+2*row, 2, 0)
	q.Bytes += 2 * row // what comes again counts until it is found to be there
	points := func(summary string) *server.CheckpointBatch {
		return &server.CheckpointBatch{Head: batch("s").Head, Owner: ann.ID, Quota: q, Received: start,
			List: []server.Checkpoint{{ID: "c", Summary: summary, Created: start}}}
	}
	kit.Must(t, st.PutCheckpoints(ctx, points("검"))) // three bytes, and [] of its files
	expectStored(t, st, ann, 65+3*row, 2, 0)
	kit.Must(t, st.PutCheckpoints(ctx, points("longer")))
	expectStored(t, st, ann, 68+3*row, 2, 0)
	refusedBy(t, st.PutCheckpoints(ctx, points(strings.Repeat("x", 40))), false)
	refusedBy(t, st.PutDocuments(ctx, &server.DocumentBatch{Head: batch("s").Head, Owner: ann.ID, Quota: q, Received: start,
		Events: []server.DocumentEvent{{Path: "d", Change: server.Linked, Content: make([]byte, 40), Version: 1}}}), false)
	for _, session := range []string{"s", "other"} {
		kit.Try(st.Forget(ctx, server.Scope{User: ann.ID}, session, 0, time.Now())).Must(t)
	}
	expectStored(t, st, ann, 0, 0, 0)
}

// quotaOthers: of many writers at once nobody passes a limit, and a user at the limit does not hold up another one.
func (s suite) quotaOthers(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, ben := addUser(t, st, "ann", server.Member), addUser(t, st, "ben", server.Member)
	q := server.Quota{Bytes: 100 + 5*server.RowBytes, Sessions: 5}
	var wg sync.WaitGroup
	for i := range 40 {
		for _, u := range []server.User{ann, ben} {
			wg.Go(func() {
				b := limited(u, q, fmt.Sprintf("%s-%d", u.Name, i), object(0, "123456789"))
				if u == ben {
					b.Quota = server.Quota{}
				}
				err := patiently(ctx, func() error { return st.Put(ctx, b) })
				kit.Check(t, err == nil || u != ben && errors.Is(err, server.ErrOverQuota), "%s: %v", u.Name, err)
			})
		}
	}
	wg.Wait()
	expectStored(t, st, ann, 50, 5, 0)
	expectStored(t, st, ben, 400, 40, 0)
	kit.Must(t, st.SetQuota(ctx, ann.ID, server.Quota{Bytes: 7, Sessions: server.NoQuota}))
	ann, err := st.FindUser(ctx, "ann")
	kit.Check(t, err == nil && (server.Quota{Bytes: 1, Sessions: 2}).For(ann) == (server.Quota{Bytes: 7}),
		"ann's limits are %+v, %v", ann.Quota, err)
	kit.Err(t, "limits of nobody", server.ErrNotFound)(nil, st.SetQuota(ctx, 999, q))
}

// quotaHTTP: over HTTP a user beyond a limit gets 507 with the limit, its running session goes on as far as the limit
// lets it, and another user notices nothing.
func (s suite) quotaHTTP(t *testing.T) {
	st := s.open(t)
	api := api.New(st, auth.New(st, slog.New(slog.DiscardHandler)), server.NewHub(st))
	api.Quota = server.Quota{Bytes: 300 + server.RowBytes, Sessions: 1}
	web := httptest.NewServer(api.Handler())
	t.Cleanup(web.Close)
	call := func(method, path, key, body string) (int, string) {
		t.Helper()
		q := kit.Try(http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))).Must(t)
		q.Header.Set("X-API-Key", key)
		q.Header.Set("Content-Type", "application/json")
		answer := kit.Try(web.Client().Do(q)).Must(t)
		defer answer.Body.Close()
		text := kit.Try(io.ReadAll(answer.Body)).Must(t)
		return answer.StatusCode, string(text)
	}
	keys := map[string]string{}
	for _, name := range []string{"ann", "ben"} {
		key, hash := auth.NewKey()
		kit.Must(t, st.AddKey(t.Context(), server.Key{User: addUser(t, st, name, server.Member), Name: name, Hash: hash, Created: start}))
		keys[name] = key
	}
	send := func(user, session string, line, size int) (int, string) {
		t.Helper()
		return call(http.MethodPost, "/api/conversations", keys[user], fmt.Sprintf(
			`{"session_id":%q,"project_hash":"h","entries":[{"line_index":%d,"type":"user","text":%q}]}`, session, line,
			strings.Repeat("x", size)))
	}
	for _, step := range []struct {
		user, session string
		line, size    int
		status        int
		says          string
	}{
		{"ann", "a", 0, 100, 200, ""},
		{"ann", "b", 0, 1, 507, "may have 1 sessions"},
		{"ann", "a", 1, 300, 507, "may store 1324 bytes"},
		{"ann", "a", 1, 10, 200, ""},
		{"ben", "b", 0, 100, 200, ""},
	} {
		status, text := send(step.user, step.session, step.line, step.size)
		kit.Check(t, status == step.status && strings.Contains(text, step.says) && (status != 507 ||
			strings.Contains(text, `"over_quota"`)),
			"%s sends %d bytes of %s: %d %s", step.user, step.size, step.session, status, text)
	}
	status, text := call(http.MethodGet, "/api/me", keys["ann"], "")
	kit.Check(t, status == 200 && strings.Contains(text, `"quota":{"bytes":1324,"sessions":1}`) &&
		strings.Contains(text, `"sessions":1},`), "me: %d %s", status, text)
	status, text = call(http.MethodDelete, "/api/sessions/a", keys["ann"], "")
	kit.Check(t, status == 200, "forget: %d %s", status, text)
	status, text = send("ann", "b", 0, 1)
	kit.Check(t, status == 200, "after something was forgotten: %d %s", status, text)
}

// quotaRows: what has no bytes to count is a row all the same, of which a user has as many as the limit lets it.
func (s suite) quotaRows(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	const rows = 20
	for name, write := range map[string]func(u server.User, q server.Quota, i int) error{
		"checkpoints": func(u server.User, q server.Quota, i int) error {
			return st.PutCheckpoints(ctx, &server.CheckpointBatch{Head: batch(u.Name).Head, Owner: u.ID, Quota: q, Received: start,
				List: []server.Checkpoint{{ID: fmt.Sprint("c", i), Trigger: "manual", Created: start}}})
		},
		"documents": func(u server.User, q server.Quota, i int) error {
			return st.PutDocuments(ctx, &server.DocumentBatch{Head: batch(u.Name).Head, Owner: u.ID, Quota: q, Received: start,
				Events: []server.DocumentEvent{{Path: fmt.Sprint("d", i), Change: server.Linked, At: start}}})
		},
		"versions": func(u server.User, q server.Quota, i int) error {
			return st.PutDocuments(ctx, &server.DocumentBatch{Head: batch(u.Name).Head, Owner: u.ID, Quota: q, Received: start,
				Events: []server.DocumentEvent{{Path: "d", Change: server.Modified, Version: int64(i + 1), TooLarge: true, At: start}}})
		},
		"files": func(u server.User, q server.Quota, i int) error {
			_, _, err := st.StartBlob(ctx, &server.Upload{Head: batch(u.Name).Head, Owner: u.ID, Quota: q, SHA256: sha256.Sum256(nil),
				Name: fmt.Sprint("f", i), At: start})
			return err
		},
		"generations": func(u server.User, q server.Quota, i int) error {
			b := limited(u, q, u.Name)
			b.Head.Generation, b.Head.EndLine = int64(i), 1
			return st.Put(ctx, b)
		},
		"epochs": func(u server.User, q server.Quota, i int) error {
			b := limited(u, q, u.Name)
			b.Head.Epoch = fmt.Sprint("e", i)
			return st.Put(ctx, b)
		},
		"epochs of artifacts": func(u server.User, q server.Quota, i int) error {
			h := batch(u.Name).Head
			h.Epoch = fmt.Sprint("e", i)
			return st.PutCheckpoints(ctx, &server.CheckpointBatch{Head: h, Owner: u.ID, Quota: q, Received: start})
		},
	} {
		u, q := addUser(t, st, name, server.Member), server.Quota{Bytes: rows * server.RowBytes}
		n := 0
		for ; n < 2*rows; n++ {
			if err := write(u, q, n); errors.Is(err, server.ErrOverQuota) {
				break
			} else if err != nil {
				t.Fatal(name, n, err)
			}
		}
		kit.Check(t, n <= rows+1 && n >= rows/2, "%s: %d are stored where %d may be", name, n, rows)
	}
}
