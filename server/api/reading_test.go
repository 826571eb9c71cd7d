package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/store/sqlite"
)

// listing is a page of sessions as a client decodes it.
type listing struct {
	Sessions []struct {
		SessionID string `json:"session_id"`
		Machine   string
		Lines     int64
		Bytes     int64
		Path, Cwd string
	}
	Next *string
}

func TestListing(t *testing.T) {
	r := newRig(t)
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("main-%02d/agent-%d", i/2, i)
		want = append(want, id)
		r.post(piece{lines: objects("a", 0, i+1)}.body(id))
	}
	collect := func(order string) (ids []string) {
		after := ""
		for range 10 {
			var l listing
			r.getJSON("/api/sessions?limit=10&order="+order+after, &l)
			for _, s := range l.Sessions {
				ids = append(ids, s.SessionID)
			}
			if l.Next == nil {
				return ids
			}
			after = "&after=" + url.QueryEscape(*l.Next)
		}
		t.Fatal("the listing does not end")
		return nil
	}
	kit.Equal(t, "in order of arrival", collect(""), want)
	slices.Reverse(want)
	kit.Equal(t, "the newest first", collect("recent"), want)
}

func TestListingFacts(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("a", 0, 1)}.body("s"))
	var l listing
	r.getJSON("/api/sessions?limit=1", &l)
	s := l.Sessions[0]
	kit.Check(t, s.Machine == "m1" && s.Lines == 1 && s.Bytes == 10 && s.Path == "p/s.jsonl" && s.Cwd == "/w", "%+v", s)
	for _, q := range []string{"?after=x", "?after=1-2", "?order=recent&after=1", "?limit=0", "?limit=x"} {
		r.send("GET", "/api/sessions"+q, "", 400)
	}
}

func TestSessionAnswer(t *testing.T) {
	r := newRig(t)
	id := "1c0e/agent-a%2F b"
	r.post(piece{lines: objects("a", 0, 3)}.body(id))
	r.post(piece{gen: 1, rewound: 2, first: 2}.body(id))
	var s struct {
		SessionID   string `json:"session_id"`
		Generation  int64
		Lines       int64
		Generations []struct {
			Generation int64
			RewoundTo  int64 `json:"rewound_to"`
			EndLine    int64 `json:"end_line"`
		}
		EpochList []struct{ Epoch string } `json:"epoch_list"`
	}
	r.getJSON("/api/sessions/"+url.PathEscape(id), &s)
	kit.Check(t, s.SessionID == id && s.Generation == 1 && s.Lines == 2 && len(s.Generations) == 2 &&
		s.Generations[1].RewoundTo == 2 && s.Generations[0].EndLine == 3 && len(s.EpochList) == 1, "%+v", s)
}

func TestEntries(t *testing.T) {
	r := newRig(t)
	r.post(encode(t, "s", "  {\"html\":\"<&>\",  \"lone\":\"\\ud800\"}\r\n\n{\"b\":2}\n"))
	a := r.get("/api/sessions/s/entries?limit=2")
	want := `{"session_id":"s","machine":"m","epoch":"e","generation":0,"next":1,"cursor":"0.1.1.e","entries":[` +
		`{"line_index":0,"generation":0,"kind":"object","record":{"html":"<&>",  "lone":"\ud800"}},` +
		`{"line_index":1,"generation":0,"kind":"opaque","data":""}]}`
	got := strings.TrimSpace(string(a.body))
	kit.Check(t, got == want && json.Valid(a.body), "got  %s\nwant %s", got, want)
	kit.Has(t, "the second page", string(r.get("/api/sessions/s/entries?after=1").body), `"next":null`, `"record":{"b":2}}]`)
	r.send("GET", "/api/sessions/s/entries?after=-1", "", 400)
}

// TestFlippedByte changes one byte behind the server's back.
func TestFlippedByte(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("a", 0, 5)}.body("s"))
	before, lines := r.digest("s", ""), r.digest("s", "?generation=0&from=0&to=5").LineHashes
	kit.Try(r.db().Exec(`UPDATE lines SET raw = CAST(replace(CAST(raw AS TEXT), '3', '4') AS BLOB) WHERE line = 3`)).Must(t)
	kit.Check(t, before.Generations[0].SHA256 != r.digest("s", "").Generations[0].SHA256, "the digest is the same")
	after := r.digest("s", "?generation=0&from=0&to=5").LineHashes
	for i := range 5 {
		kit.Equal(t, fmt.Sprintf("line %d: same hash", i), *lines[i] == *after[i], i != 3)
	}
}

func TestDigestQueries(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("a", 0, 4)}.body("s"))
	r.post(piece{gen: 1, rewound: 3, first: 3, lines: objects("b", 3, 4)}.body("s"))
	d := r.digest("s", "?generation=0")
	kit.Check(t, len(d.Generations) == 1 && d.Generations[0].Generation == 0 && d.LineHashes == nil, "%+v", d)
	d = r.digest("s", "?generation=1&from=2&to=4")
	want := []string{sha("{\"a\":2}\n"), sha("{\"b\":3}\n")}
	kit.Check(t, len(d.LineHashes) == 2 && *d.LineHashes[0] == want[0] && *d.LineHashes[1] == want[1], "%+v", d)
	d = r.digest("s", "?generation=1&from=1")
	kit.Check(t, len(d.LineHashes) == 3, "%d hashes from line 1 on", len(d.LineHashes))
	for _, q := range []string{"?from=3&to=2", "?from=0&to=10001", "?from=x", "?generation=-1"} {
		r.send("GET", "/api/sessions/s/digest"+q, "", 400)
	}
}

// TestSuperseded keeps the bytes that a bare client's rewind replaces.
func TestSuperseded(t *testing.T) {
	r := newRig(t)
	for _, v := range []string{"1", "2", "2", "3"} {
		r.post(`{"session_id":"s","entries":[{"line_index":0,"v":` + v + `}]}`)
	}
	kit.Equal(t, "raw", r.raw("s", ""), "{\"v\":3}\n")
	rows := kit.Try(r.db().Query(`SELECT CAST(raw AS TEXT) FROM superseded ORDER BY rowid`)).Must(t)
	defer rows.Close()
	var got []string
	for rows.Next() {
		var s string
		kit.Must(t, rows.Scan(&s))
		got = append(got, s)
	}
	kit.Must(t, rows.Err())
	kit.Equal(t, "superseded", got, []string{`{"v":1}`, `{"v":2}`})
}

// TestRestart opens the database again: everything is there.
func TestRestart(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("a", 0, 3)}.body("s"))
	r.stop()
	r.start()
	got, want := r.raw("s", ""), file(objects("a", 0, 3))
	kit.Check(t, got == want, "raw %q, want %q", got, want)
}

// TestMostIsBounded: how much of a line is wanted is a whole number from 0, however large; it opens no session that the
// caller may not read, and no cursor of one.
func TestMostIsBounded(t *testing.T) {
	owner := newRig(t)
	ann, bob := owner.person("ann", server.Member), owner.person("bob", server.Member)
	ann.post(piece{lines: []string{`{"a":"first"}`, `{"b":"second"}`, `{"c":"third"}`}}.body("s"))
	for _, bad := range []string{"most=-1", "most=x", "most=9223372036854775808", "most=1&after=-2", "most=1&limit=-1", "most=1&limit=0", "cursor=0.-5.1.e1"} {
		ann.send("GET", "/api/sessions/s/entries?"+bad, "", 400)
	}
	for most, want := range map[string]string{"0": "third", "1": `"bytes":13`, "9007199254740991": "third"} {
		for _, replaced := range []string{"", "&replaced=1"} {
			got := string(ann.send("GET", "/api/sessions/s/entries?limit=100000&most="+most+replaced, "", 200).body)
			kit.Equal(t, fmt.Sprintf("%s%s: %s", most, replaced, got), strings.Contains(got, want), replaced == "")
		}
	}
	var page struct{ Cursor string }
	ann.getJSON("/api/sessions/s/entries?most=1&limit=1", &page)
	for _, query := range []string{"most=1", "most=1&replaced=1", "cursor=" + page.Cursor, "most=1&cursor=" + page.Cursor} {
		bob.send("GET", "/api/sessions/s/entries?"+query, "", 404)
	}
	kit.Check(t, page.Cursor != "", "no cursor")
}

// reads requests every response that has times, and wants success.
func (r *rig) reads(why string) {
	r.t.Helper()
	for _, path := range []string{"/api/sessions", "/api/sessions?order=recent", "/api/sessions/s", "/api/sessions/s/entries",
		"/api/search?q=zebra", "/api/usage?by=day"} {
		r.send("GET", path, "", 200)
	}
}

// TestImplausibleTimes: a record whose time has no form in JSON, being of year 10000 or of a negative one, is a record
// without a time; so is one that an older version has stored.
func TestImplausibleTimes(t *testing.T) {
	r := newRig(t)
	var lines []string
	for i, at := range []string{"9999-12-31T09:00:01.000-23:59", "0000-01-01T00:00:00.000+23:59", "0001-01-01T00:00:01.000Z"} {
		lines = append(lines,
			fmt.Sprintf(`{"type":"user","uuid":"u%d","timestamp":%q,"message":{"role":"user","content":"a zebra"}}`, i, at),
			fmt.Sprintf(`{"type":"assistant","uuid":"a%d","timestamp":%q,"message":{"id":"m%[1]d","role":"assistant","model":"claude-opus-5","usage":{"input_tokens":5}}}`, i, at))
	}
	r.post(piece{lines: lines}.body("s"))
	r.waitDerived()
	r.reads("just derived")
	var s struct {
		Summary struct{ Started, Ended *string }
	}
	r.getJSON("/api/sessions/s", &s)
	kit.Check(t, s.Summary.Started == nil && s.Summary.Ended == nil, "summary %+v, want no times", s.Summary)
	for _, at := range []time.Time{time.Date(10000, 1, 1, 9, 0, 0, 0, time.UTC), time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)} {
		for _, set := range []string{"facts SET started = ?, ended = ?", "answers SET time = ?"} {
			args := []any{at.UnixMicro(), at.UnixMicro()}[:strings.Count(set, "?")]
			kit.Try(r.db().Exec("UPDATE "+set, args...)).Must(t)
		}
		r.reads("stored as " + at.String())
	}
}

// lineCounter counts the lines that are read from it.
type lineCounter struct {
	*sqlite.Store
	lines atomic.Int64
}

func (s *lineCounter) View(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
	snap, err := s.Store.View(ctx, scope, ref)
	return &countedSnapshot{snap, &s.lines}, err
}

type countedSnapshot struct {
	server.Snapshot
	lines *atomic.Int64
}

func (s *countedSnapshot) Lines(ctx context.Context, span server.Span, yield func(server.Line) error) error {
	return s.Snapshot.Lines(ctx, span, func(l server.Line) error {
		s.lines.Add(1)
		return yield(l)
	})
}

// TestPageCost: a page of line hashes reads its own lines, however long the stream is.
func TestPageCost(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("a", 0, 100)}.body("s"))
	r.post(piece{gen: 1, rewound: 50, first: 50, lines: objects("b", 50, 100)}.body("s"))
	counting := &lineCounter{Store: r.store}
	handler := api.New(counting, auth.New(r.store, slog.New(slog.DiscardHandler)), server.NewHub(r.store)).Handler()
	for query, want := range map[string]int64{
		"?generation=1&from=48&to=52": 4, "?from=99": 1, "?generation=0&from=100": 0, "": 150,
	} {
		counting.lines.Store(0)
		req := httptest.NewRequest(http.MethodGet, "/api/sessions/s/digest"+query, nil)
		req.Header.Set("X-API-Key", r.key)
		res := httptest.NewRecorder()
		handler.ServeHTTP(res, req)
		var d digest
		err := json.Unmarshal(res.Body.Bytes(), &d)
		kit.Require(t, err == nil && res.Code == http.StatusOK, "%q: %d %s", query, res.Code, res.Body)
		got := counting.lines.Load()
		kit.Check(t, got == want && (len(d.Generations) > 0) == (query == ""),
			"%q: %d lines read, want %d; %d generations", query, got, want, len(d.Generations))
	}
}
