package inbox

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
)

// nothing knows no sessions and no documents, and speaks English.
type nothing struct{}

func (nothing) StreamID(string) (tail.FileID, bool) { return 0, false }
func (nothing) Forgotten(session string) bool       { return session == "forgotten" }
func (nothing) Linked(string) []string              { return nil }
func (nothing) Locale() string                      { return "en" }

// The first introduction holds before it is durable. When the session is forgotten, nothing of it is left in memory.
func TestIntroductionIsKept(t *testing.T) {
	projections, err := projection.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer projections.State.Close()
	introductions, err := LoadIntroductions(t.Context(), projections, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := New(Deps{
		Projections: projections, Introductions: introductions, Sessions: nothing{}, Documents: nothing{}, Settings: nothing{},
		Log: slog.New(slog.DiscardHandler),
	})
	introduced := func(session, cwd string) string {
		t.Helper()
		a, err := b.Init(t.Context(), control.InitQuery{Session: session, Cwd: cwd})
		if err != nil {
			t.Fatal(err)
		}
		return a.Text
	}
	if first, second := introduced("new", "/w"), introduced("new", "/elsewhere"); first != second {
		t.Errorf("introduced as %q, then as %q", first, second)
	}
	introduced("durable", "/w")
	introduced("forgotten", "/w")
	if _, found, _ := introductions.Get(t.Context(), "forgotten"); found {
		t.Error("the introduction of a forgotten session is stored")
	}
	b.Forget("new")
	if _, found, _ := introductions.Get(t.Context(), "new"); found {
		t.Error("something is left of a session that was forgotten")
	}
	if !introductions.save(t.Context()) || len(introductions.unsaved) > 0 {
		t.Error("not saved")
	}
	if i, found, err := projections.Introductions.Get(t.Context(), "durable"); err != nil || !found || i.Cwd != "/w" {
		t.Errorf("%+v, %v, %v", i, found, err)
	}
}

// TestInitIsBounded tells of as many documents as Claude Code passes on.
func TestInitIsBounded(t *testing.T) {
	var names []string
	for range 100 {
		names = append(names, strings.Repeat("한", 100))
	}
	if got := initText("en", projection.Introduction{Name: "w", Cwd: "/w"}, names); len(got) > maxInitText+100 || !strings.Contains(got, "and 7") {
		t.Errorf("%d bytes, ends with %q", len(got), got[max(0, len(got)-30):])
	}
	if got := initText("en", projection.Introduction{Name: "w", Cwd: "/w"}, names[:29]); strings.Count(got, "\n") != 32 {
		t.Errorf("some of 29 are left out: %d lines", strings.Count(got, "\n"))
	}
}
