package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// client asks a server that answers with handle.
func client(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	web := httptest.NewServer(handle)
	t.Cleanup(web.Close)
	base := kit.Try(url.Parse(web.URL + "/below")).Must(t)
	never := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{Base: base, Key: func() (string, error) { return "k", nil }, HTTP: &http.Client{CheckRedirect: never}, Agent: "ccship/1"}
}

// answer is a handler with one answer.
func answer(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// TestErrors gives each answer the code that decides what a person reads, and how a command ends.
func TestErrors(t *testing.T) {
	said := func(code string) string { return `{"error":{"code":"` + code + `","message":"in words"}}` }
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"no key":            {401, said("unauthorized"), control.CodeRefusedKey},
		"a gateway's 403":   {403, "no", control.CodeRefusedKey},
		"not one's own":     {403, said("forbidden"), CodeNotAllowed},
		"not there":         {404, said("not_found"), control.CodeNoSession},
		"no such call":      {404, "404 page not found", CodeNoReading},
		"not this method":   {405, "", CodeNoReading},
		"incomplete":        {409, said("incomplete"), CodeIncomplete},
		"another conflict":  {409, said("busy"), control.CodeFailed},
		"a mistake of ours": {400, said("bad_query"), control.CodeFailed},
		"a wrong value":     {400, said("bad_request"), control.CodeUsage},
		"later":             {429, "", control.CodeUnreachable},
		"broken":            {500, "", control.CodeUnreachable},
		"gateway":           {502, "<html>", control.CodeUnreachable},
		"moved":             {307, "", control.CodeFailed},
		"another program":   {200, "<html>hello</html>", CodeNoReading},
	} {
		_, err := client(t, answer(c.code, c.body)).Session(t.Context(), Ref{Session: "a"})
		var e *control.Error
		kit.Check(t, errors.As(err, &e) && e.Code == c.want && e.Hint != "" && !strings.Contains(e.Message, "\n"),
			"%s: %v (%+v), want code %s", name, err, e, c.want)
	}
}

// TestUnreachable tells a server that is not there from a caller that gave up.
func TestUnreachable(t *testing.T) {
	c := client(t, answer(200, "{}"))
	c.Base, _ = url.Parse("http://127.0.0.1:1")
	_, err := c.Session(t.Context(), Ref{Session: "a"})
	kit.Check(t, Is(err, control.CodeUnreachable) && !strings.Contains(err.Error(), "/api/"), "nobody listens: %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Err(t, "given up", context.Canceled)(c.Session(ctx, Ref{Session: "a"}))
	c.Key = func() (string, error) { return "", errors.New("no key file") }
	_, err = c.Session(t.Context(), Ref{Session: "a"})
	kit.Check(t, err != nil && strings.Contains(err.Error(), "no key file"), "no key: %v", err)
}

// TestRequests shows the key, and writes names of every kind so that the server reads the same.
func TestRequests(t *testing.T) {
	var got *http.Request
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		_, _ = io.WriteString(w, `{"session_id":"x","parent_session_id":null,"cost_usd":null,"sessions":[],"next":null}`)
	})
	machine, generation := "", int64(3)
	for _, name := range []string{"a/agent-b~2", "a b?c&d=e#f", "..", "%2e", "ü"} {
		if _, err := c.Digest(t.Context(), Ref{Session: name, Machine: &machine, Generation: &generation, Epoch: "e&"}); err != nil {
			t.Fatal(err)
		}
		escaped := strings.TrimSuffix(strings.TrimPrefix(got.URL.EscapedPath(), "/below/api/sessions/"), "/digest")
		back, err := url.PathUnescape(escaped)
		q := got.URL.Query()
		kit.Check(t, err == nil && back == name && !strings.Contains(escaped, "/") && q.Has("machine") && q.Get("generation") == "3" && q.Get("epoch") == "e&",
			"%q became %s", name, got.URL)
		kit.Check(t, got.Header.Get("X-API-Key") == "k" && got.Header.Get("User-Agent") == "ccship/1",
			"headers %v", got.Header)
	}
	err := c.Sessions(t.Context(), Query{Project: "p", Machine: &machine, Text: "t&", Since: "s", Recent: true}, 5000, func(*Session) bool { return true })
	if q := got.URL.Query(); err != nil || q.Get("limit") != "1000" || q.Get("agents") != "0" || q.Get("order") != "recent" || q.Get("text") != "t&" || !q.Has("machine") {
		t.Errorf("%v, %s", err, got.URL)
	}
}

// TestPages follows pages to the end, and stops when the caller has enough.
func TestPages(t *testing.T) {
	pages := map[string]string{"": `{"sessions":[{"session_id":"a"},{"session_id":"b"}],"next":"2"}`, "2": `{"sessions":[{"session_id":"c"}],"next":null}`}
	asked := 0
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("after")])
	})
	for enough, want := range map[string]string{"c": "abc", "b": "ab"} {
		names := ""
		err := c.Sessions(t.Context(), Query{}, 2, func(s *Session) bool { names += s.SessionID; return s.SessionID != enough })
		kit.Check(t, err == nil && names == want, "until %s: %q, %v", enough, names, err)
	}
	kit.Check(t, asked == 3, "%d requests, want 3", asked)
}

// TestDigests hands out each digest in its place, and nil for one that is not there.
// TestEndlessPages asks a server no more whose listing comes back to a page, or brings nothing.
func TestEndlessPages(t *testing.T) {
	lists := map[string]func(*Client) error{
		"sessions": func(c *Client) error {
			return c.Sessions(t.Context(), Query{}, 2, func(*Session) bool { return true })
		},
		"entries": func(c *Client) error { return c.Entries(t.Context(), Ref{Session: "a"}, -1, func(*Entry) {}) },
		"machines": func(c *Client) error {
			_, err := c.Machines(t.Context())
			return err
		},
		"moments": func(c *Client) error {
			_, _, err := Timeline(t.Context(), c, Ref{Session: "a"}, "", func(*Moment) {})
			return err
		},
		"checkpoints": func(c *Client) error {
			_, err := c.Checkpoints(t.Context(), Ref{Session: "a"})
			return err
		},
		"versions": func(c *Client) error {
			_, err := c.DocumentVersions(t.Context(), Ref{Session: "a"})
			return err
		},
	}
	for how, page := range map[string]struct {
		next  func(asked int) int
		items string
	}{
		"one page":      {func(int) int { return 1 }, "[{}]"},
		"a long circle": {func(asked int) int { return asked%77 + 1 }, "[{}]"},
		"empty pages":   {func(asked int) int { return asked }, "[]"},
	} {
		for list, follow := range lists {
			asked := 0
			c := client(t, func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked > 3*maxEmpty {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				n := fmt.Sprint(page.next(asked))
				next := `"` + n + `"`
				if list == "versions" || list == "entries" {
					next = n
				}
				items := page.items
				if strings.HasSuffix(r.URL.Path, "/documents") {
					items = "[{}]"
				}
				_, _ = fmt.Fprintf(w, `{"sessions":%[1]s,"entries":%[1]s,"groups":%[1]s,"moments":%[1]s,"checkpoints":%[1]s,`+
					`"versions":%[1]s,"documents":%[1]s,"next":%[2]s,"cursor":"%[3]s"}`, items, next, n)
			})
			err := follow(c)
			kit.Check(t, err != nil && strings.Contains(err.Error(), "has no end"), "%s of %s, asked %d times: %v", list, how, asked, err)
		}
	}
}

// TestWritesOfAnother takes no success of another program for the server's.
func TestWritesOfAnother(t *testing.T) {
	for _, body := range []string{"{}", "null", `{"ok":true,"success":false}`} {
		c := client(t, answer(200, body))
		_, err := c.Forget(t.Context(), "a")
		kit.Check(t, Is(err, CodeNoReading), "forget: %s: %v", body, err)
		err = c.Copy(t.Context(), "a", protocol.CopyRequest{})
		kit.Check(t, Is(err, CodeNoReading), "copy: %s: %v", body, err)
	}
}

func TestDigests(t *testing.T) {
	const list = `{"digests":[
{"session_id":"a","machine":"m","epoch":"e","generations":[{"generation":2,"lines":7,"oversize":[{"line":3}]}]},
{"session_id":"b","machine":null,"error":{"code":"not_found","message":"no"}},
{"session_id":"c","machine":"m","epochs":[{"epoch":"e","generations":[]}]}
]}`
	refs := []Ref{{Session: "a"}, {Session: "b"}, {Session: "c"}}
	got, err := client(t, answer(200, list)).Digests(t.Context(), refs, false)
	kit.Check(t, err == nil && len(got) == 3 && got[0].SessionID == "a" && len(got[0].Generations) == 1 &&
		got[1] == nil && got[2].SessionID == "c" && len(got[2].Epochs) == 1,
		"%+v, %v", got, err)
	for _, cut := range []string{"", "{", `{"digests":[`, `{"other":[]}`, `[]`} {
		_, err := client(t, answer(200, cut)).Digests(t.Context(), refs, false)
		kit.Check(t, Is(err, control.CodeUnreachable), "%q: %v", cut, err)
	}
}

// TestDigestsCut goes on where an answer was cut short, as long as something comes.
func TestDigestsCut(t *testing.T) {
	var asked []int
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Sessions []struct {
				SessionID string `json:"session_id"`
			}
		}
		kit.Should(t, json.NewDecoder(r.Body).Decode(&q))
		asked = append(asked, len(q.Sessions))
		text := `{"digests":[`
		if len(asked)%2 == 1 { // one digest and a half, and every second time nothing at all
			text += fmt.Sprintf(`{"session_id":%q,"generations":[]},{"session_id":"x`, q.Sessions[0].SessionID)
		}
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, text)
	})
	refs := []Ref{{Session: "a"}, {Session: "b"}, {Session: "c"}}
	got, err := c.Digests(t.Context(), refs, false)
	kit.Check(t, err == nil && len(got) == 3 && got[0].SessionID+got[1].SessionID+got[2].SessionID == "abc",
		"%+v, %v", got, err)
	kit.Equal(t, "transcripts were asked for", asked, []int{3, 2, 2, 1, 1})
}

// TestRawCut says that a file was cut short; it does not pass for a whole one.
func TestRawCut(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Header().Set("Ccship-Lines", "7")
		_, _ = io.WriteString(w, "half")
	})
	f, err := c.Raw(t.Context(), Ref{Session: "a"}, false)
	kit.Require(t, err == nil && f.Lines == 7, "%+v, %v", f, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	kit.Check(t, Is(err, control.CodeUnreachable), "%q, %v", text, err)
}

func TestIndexing(t *testing.T) {
	page := "# HELP ccship_server_derive_lag_streams x\nccship_server_derive_lag_streams 3\nccship_server_store_streams 12\n"
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	left, all, err := Indexing(t.Context(), c)
	kit.Check(t, left == 3 && all == 12 && err == nil, "%d of %d, %v", left, all, err)
	page = "<html>"
	_, _, err = Indexing(t.Context(), c)
	kit.Check(t, err != nil, "a page without the number is an answer")
}

// Answers of one database count. Those of another one, or without a name among those with one, are refused; a server
// that names none is taken as it is.
func TestOfOneStore(t *testing.T) {
	for name, c := range map[string]struct {
		of      string
		answers []string // the database of each answer
		refused int      // the first answer that is refused; -1: none
	}{
		"the known one":            {"a", []string{"a", "a"}, -1},
		"another one":              {"a", []string{"b"}, 0},
		"in turn":                  {"a", []string{"a", "b"}, 1},
		"the first that answers":   {"", []string{"b", "b", "a"}, 2},
		"one without a name":       {"a", []string{"a", ""}, 1},
		"one without a name first": {"", []string{"", "a"}, 1},
		"never named":              {"a", []string{"", ""}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if store := c.answers[asked]; store != "" {
					w.Header().Set(protocol.HeaderStore, store)
				}
				asked++
				_, _ = w.Write([]byte(`{}`))
			}))
			defer s.Close()
			base := kit.Try(url.Parse(s.URL)).Must(t)
			client := (&Client{Base: base, HTTP: s.Client(), Key: func() (string, error) { return "", nil }}).Of(c.of)
			refused := -1
			for i := range c.answers {
				if _, err := client.Ledger(t.Context(), "m", 0); err != nil {
					kit.Require(t, Is(err, CodeOtherStore), "%v", err)
					refused = i
					break
				}
			}
			kit.Check(t, refused == c.refused, "refused answer %d, want %d", refused, c.refused)
		})
	}
}
