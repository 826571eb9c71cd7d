package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// someFile is the only transcript on disk.
type someFile struct{ tail.Tracked }

func (f someFile) File(tail.FileID) (tail.Tracked, bool) { return f.Tracked, true }

// oneServer speaks the extension at an address.
type oneServer struct{ base *url.URL }

func (oneServer) Protocol(string) string { return "ccship" }

func (s oneServer) Reader(string) *remote.Client {
	return &remote.Client{Base: s.base, HTTP: http.DefaultClient, Key: func() (string, error) { return "", nil }}
}

// TestCountOfRejoinedStream: a transcript that rejoined goes on in the epoch in front, and its rewrites are counted there.
func TestCountOfRejoinedStream(t *testing.T) {
	const dest, session, generation, lost = "http://server", "s1", 4, 12
	ctx := t.Context()
	db := kit.Try(state.Open(ctx, state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	file := tail.Tracked{File: tail.File{ID: 1, Path: "/r/p/s1.jsonl", Root: "/r", Name: session, Copy: 1}}
	file.Cursor = tail.Cursor{Offset: 30, Line: 3}
	step := state.Step{Tracked: file, Routing: state.Routing{Dest: dest, Decided: true,
		Stream: outbox.Stream{ID: 1, SessionID: session}}}
	errs, err := db.Commit(ctx, []state.Step{step})
	kit.Require(t, err == nil && errs[0] == nil, "%v %v", errs, err)
	there := tail.Cursor{Offset: 20, Line: 2, Generation: generation}
	kit.Must(t, db.Rejoin(ctx, 1, state.Rejoin{Expect: file.Cursor, Epoch: "front", Cursor: there}))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"drops":[{"session":{"session_id":"s1","machine":"m"},"epoch":"front","generation":`+
			strconv.Itoa(generation)+`,"lines":`+strconv.Itoa(lost)+`}]}`)
	}))
	t.Cleanup(web.Close)
	base := kit.Try(url.Parse(web.URL)).Must(t)
	list := kit.Try(loadRewrites(ctx, db)).Must(t)
	now := time.Now()
	list.list = []rewrite{{File: 1, Session: session, Generation: generation - 1, Next: generation, From: 2, To: 20,
		At: now.Add(-time.Hour)}}
	c := rewriteCounter{Rewrites: list, Files: someFile{file}, Servers: oneServer{base},
		Origin: outbox.Origin{Machine: "m", Epoch: "own"}}
	kit.Must(t, c.Count(ctx, now))
	kit.Check(t, len(list.list) == 1 && list.list[0].Lines == lost,
		"rewrites %+v, want one that took %d lines", list.list, lost)
}

// TestCountGoesOn: a server that cannot be asked holds up no other server's rewrites, and is asked once.
func TestCountGoesOn(t *testing.T) {
	ctx := t.Context()
	db := kit.Try(state.Open(ctx, state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})).Must(t)
	t.Cleanup(func() { kit.Should(t, db.Close()) })
	asked := map[string]int{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		if strings.HasPrefix(r.URL.Path, "/down/") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"drops":[]}`)
	}))
	t.Cleanup(web.Close)
	list := kit.Try(loadRewrites(ctx, db)).Must(t)
	now := time.Now()
	for id, dest := range []string{"down", "down", "well"} {
		file := tail.File{ID: tail.FileID(id + 1), Path: fmt.Sprintf("/r/p/s%d.jsonl", id), Root: "/r", Name: fmt.Sprint("s", id), Copy: 1}
		errs, err := db.Commit(ctx, []state.Step{{Tracked: tail.Tracked{File: file}, Routing: state.Routing{Dest: dest,
			Decided: true, Stream: outbox.Stream{ID: uint64(file.ID), SessionID: file.Name}}}})
		kit.Require(t, err == nil && errs[0] == nil, "%v %v", errs, err)
		list.list = append(list.list, rewrite{File: file.ID, Session: file.Name, Next: 1, At: now.Add(-time.Hour)})
	}
	c := rewriteCounter{Rewrites: list, Files: someFile{}, Servers: serversBelow{kit.Try(url.Parse(web.URL)).Must(t)}}
	kit.Check(t, c.Count(ctx, now) != nil, "a server is down, and there is no error")
	kit.Equal(t, "requests", asked, map[string]int{"/down/api/drops": 1, "/well/api/drops": 1})
}

// serversBelow speak the extension, each at a path below an address.
type serversBelow struct{ base *url.URL }

func (serversBelow) Protocol(string) string { return "ccship" }

func (s serversBelow) Reader(dest string) *remote.Client {
	return oneServer{s.base.JoinPath(dest)}.Reader(dest)
}
