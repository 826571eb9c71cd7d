package derive

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
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
	projections := kit.Try(projection.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})).Must(t)
	defer projections.State.Close()
	introductions := kit.Try(LoadIntroductions(t.Context(), projections, slog.New(slog.DiscardHandler))).Must(t)
	log := slog.New(slog.DiscardHandler)
	b := NewInbox(Deps{
		Projections: projections, Introductions: introductions, Notices: NewNotices(projections, introductions, log), Sessions: nothing{}, Documents: nothing{}, Settings: nothing{},
		Log: log,
	})
	introduced := func(session, cwd string) string {
		t.Helper()
		a := kit.Try(b.Init(t.Context(), control.InitQuery{Session: session, Cwd: cwd})).Must(t)
		return a.Text
	}
	kit.Equal(t, "introduced as, then as", introduced("new", "/w"), introduced("new", "/elsewhere"))
	introduced("durable", "/w")
	introduced("forgotten", "/w")
	_, found, _ := introductions.Get(t.Context(), "forgotten")
	kit.Check(t, !found, "the introduction of a forgotten session is stored")
	b.Forget("new")
	_, found, _ = introductions.Get(t.Context(), "new")
	kit.Check(t, !found, "something is left of a session that was forgotten")
	kit.Check(t, introductions.save(t.Context()) == nil && len(introductions.unsaved) == 0, "not saved")
	i, found, err := projections.Introductions.Get(t.Context(), "durable")
	kit.Check(t, err == nil && found && i.Cwd == "/w", "%+v, %v, %v", i, found, err)
}

// A start that missed its introduction, the first or one after a compaction, gets it with the next hook that prints.
func TestMissedIntroduction(t *testing.T) {
	n, stop := noticesOf(t, nil)
	with := func(n *notices) *Inbox {
		return NewInbox(Deps{
			Projections: n.projections, Introductions: n.introductions, Notices: n, Sessions: nothing{}, Documents: nothing{},
			Settings: nothing{}, Log: n.log,
		})
	}
	b := with(n)
	next := func(b *Inbox, session, cwd string, print bool) string {
		t.Helper()
		a := kit.Try(b.Pending(t.Context(), control.PendingRequest{Session: session, Cwd: cwd, Confirm: true})).Must(t)
		if a.Receipt == "" {
			return a.Text
		}
		if !print {
			n.expire(a.Receipt)
		} else if _, err := b.Pending(t.Context(), control.PendingRequest{Session: session, Receipt: a.Receipt}); err != nil {
			t.Fatal(err)
		}
		return a.Text
	}
	started := "[Session started]\n- Session: w\n- Working directory: /w"
	n.add(t, "s", "a.md")
	both := started + "\n[Document linked]\n- a.md"
	for i, c := range []struct {
		session, cwd string
		print        bool
		want         string
	}{
		{"s", "/w", false, both}, {"s", "/elsewhere", true, both}, {"s", "/w", true, ""},
		{"forgotten", "/w", true, ""}, {"not started anywhere", "", true, ""}, {"x\ny", "/w", true, ""},
	} {
		got := next(b, c.session, c.cwd, c.print)
		kit.Check(t, got == c.want, "%d: a hook gets %q, want %q", i, got, c.want)
	}
	start := func(session string, print bool) {
		t.Helper()
		a, err := b.Init(t.Context(), control.InitQuery{Session: session, Cwd: "/w", Confirm: true})
		kit.Check(t, err == nil && a.Text == started && a.Receipt != "", "started with %+v, %v", a, err)
		kit.Equal(t, "while another hook has it, a hook gets", next(b, session, "/w", true), "")
		if print {
			n.confirm(t.Context(), a.Receipt)
		} else {
			n.expire(a.Receipt)
		}
	}
	start("s", false)
	start("printed", true)
	kit.Equal(t, "after a second start hooks get", next(b, "s", "/w", true)+next(b, "printed", "/w", true), started)
	start("lost", false)
	n.introductions.save(t.Context())
	stop()
	introductions := kit.Try(LoadIntroductions(t.Context(), n.projections, n.log)).Must(t)
	b = with(NewNotices(n.projections, introductions, n.log))
	got := next(b, "lost", "/w", false) + next(b, "printed", "/w", false) + next(b, "s", "/w", false)
	kit.Check(t, got == started, "after a restart hooks get %q", got)
}

// TestInitIsBounded tells of as many documents as Claude Code passes on.
func TestInitIsBounded(t *testing.T) {
	var names []string
	for range 100 {
		names = append(names, strings.Repeat("한", 100))
	}
	if got, n := initText("en", projection.Introduction{Name: "w", Cwd: "/w"}, names); n != 29 || len(got) > maxInitText+100 || !strings.Contains(got, "and 7") {
		t.Errorf("%d bytes, ends with %q", len(got), got[max(0, len(got)-30):])
	}
	got, n := initText("en", projection.Introduction{Name: "w", Cwd: "/w"}, names[:29])
	kit.Check(t, n == 29 && strings.Count(got, "\n") == 32, "some of 29 are left out: %d lines", strings.Count(got, "\n"))
}
