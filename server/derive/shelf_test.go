package derive_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/store/sqlite"
)

// shelf is a store without a server, whose lines are derived when a test calls for it.
type shelf struct {
	*testing.T
	*sqlite.Store
	watch func(*server.Derivation) // sees what is saved
}

// watched lets a test see what is saved.
type watched struct {
	derive.Derivable
	see func(*server.Derivation)
}

func (w watched) SaveDerived(ctx context.Context, list ...*server.Derivation) error {
	for _, d := range list {
		if w.see != nil {
			w.see(d)
		}
	}
	return w.Derivable.SaveDerived(ctx, list...)
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))
	kit.Must(t, err)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return shelf{T: t, Store: st}
}

var noon = time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)

// put stores lines of a generation from line first on.
func (s shelf) put(session string, generation, first int64, lines ...string) {
	s.Helper()
	b := &server.Batch{Owner: 1, Received: noon, Head: server.Head{
		SessionID: session, Machine: "m", Epoch: "e", Generation: generation, RewoundTo: first, EndLine: first, EOFNewline: true,
	}}
	if generation == 0 {
		b.Head.RewoundTo = 0
	}
	if parent, _, ok := strings.Cut(session, "/"); ok {
		b.Head.Parent = parent
	}
	for i, l := range lines {
		kind := server.Object
		if !strings.HasPrefix(l, "{") || strings.Contains(l, "}{") {
			kind = server.Opaque
		}
		b.Lines = append(b.Lines, server.Line{Index: first + int64(i), Kind: kind, Raw: []byte(l)})
		b.Head.EndLine = first + int64(i) + 1
	}
	if err := s.Put(s.Context(), b); err != nil {
		s.Fatal(err)
	}
}

// derive runs a Deriver until nothing lags.
func (s shelf) derive() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error)
	go func() { ended <- (&derive.Deriver{Store: watched{s.Store, s.watch}}).Run(ctx) }()
	for {
		n, err := s.Lag(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		s.Fatal(err)
	}
}

func (s shelf) session(name string) server.FoundSession {
	s.Helper()
	found, err := s.Find(s.Context(), server.Scope{All: true}, server.SessionQuery{Page: server.Page{Limit: 50}, Agents: true})
	if err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(found.List, func(x server.FoundSession) bool { return x.SessionID == name })
	if i < 0 {
		s.Fatalf("session %s is not there", name)
	}
	return found.List[i]
}

// hits is what a search finds, as "session generation.line kind", in order of their times, the oldest first; with "-"
// what the newest view does not show.
func (s shelf) hits(text string) string {
	s.Helper()
	hits, err := s.Search(s.Context(), server.Scope{All: true}, server.SearchQuery{Text: text, Superseded: true, Limit: 500})
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, h := range hits.List {
		gone := ""
		if !h.Current {
			gone = "-"
		}
		out = append(out, fmt.Sprintf("%s%s %d.%d %s", gone, h.Session.SessionID, h.Generation, h.Line, h.Kind))
	}
	slices.Reverse(out)
	return strings.Join(out, ", ")
}

func (s shelf) expect(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// stamp is a record's time: minute by minute.
func stamp(minute int) string {
	return noon.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339)
}

func prompt(n int, text string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u%d","timestamp":%q,"cwd":"/w","gitBranch":"main","version":"2.1.0","message":{"role":"user","content":%q}}`,
		n, stamp(n), text)
}

func answerLine(n int, id string, output int, blocks string) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":"a%d","timestamp":%q,"requestId":"r%s","message":{"id":%q,"model":"claude-x","role":"assistant","content":[%s],"usage":{"input_tokens":10,"output_tokens":%d,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}}`,
		n, stamp(n), id, id, blocks, output)
}

func textBlock(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

func result(n int, id, text string, failed bool) string {
	return fmt.Sprintf(`{"type":"user","uuid":"t%d","timestamp":%q,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"is_error":%v,"content":%q}]}}`,
		n, stamp(n), id, failed, text)
}
