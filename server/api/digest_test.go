package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"

	"github.com/ccship/ccship/server/store/sqlite"
)

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
		if err := json.Unmarshal(res.Body.Bytes(), &d); err != nil || res.Code != http.StatusOK {
			t.Fatalf("%q: %d %s", query, res.Code, res.Body)
		}
		if got := counting.lines.Load(); got != want || (len(d.Generations) > 0) != (query == "") {
			t.Errorf("%q: %d lines read, want %d; %d generations", query, got, want, len(d.Generations))
		}
	}
}
