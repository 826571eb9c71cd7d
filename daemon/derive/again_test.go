package derive

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/transcript/session"
)

// linked is one document of every session.
type linked struct{ nothing }

func (linked) Linked(string) []string { return []string{"/w/a.md"} }

// A rewind that takes away what Claude was shown has it shown again, once, with the next hook; another does not.
func TestToldAgainAfterRewind(t *testing.T) {
	n, stop := noticesOf(t, nil)
	defer stop()
	b := NewInbox(Deps{Projections: n.projections, Introductions: n.introductions, Notices: n, Sessions: nothing{},
		Documents: linked{}, Settings: nothing{}, Log: n.log})
	kit.Try(b.Init(t.Context(), control.InitQuery{Session: "s", Cwd: "/w"})).Must(t)
	n.introductions.markShown(t.Context(), "s") // the transcript shows it
	n.introductions.shownOn("s", 3)
	told := func() string {
		t.Helper()
		a := kit.Try(b.Pending(t.Context(), control.PendingRequest{Session: "s", Cwd: "/w", Confirm: true})).Must(t)
		if a.Receipt != "" {
			kit.Try(b.Pending(t.Context(), control.PendingRequest{Session: "s", Receipt: a.Receipt})).Must(t)
		}
		return a.Text
	}
	back := func(first, last int64) {
		n.introductions.rewound("s", &session.Rewind{Left: []session.Span{{First: first, Last: last}}})
	}
	kit.Equal(t, "told before any rewind", told(), "")
	back(5, 9)
	kit.Equal(t, "told after a rewind behind it", told(), "")
	n.introductions.shownOn("s", 12) // a link that Claude asked for
	back(11, 14)
	kit.Has(t, "told after a rewind before the link", told(), "/w/a.md")
	kit.Equal(t, "told once more", told(), "")
}

// A session's name is what the user calls it. One that begins with another's history says that it has no documents.
func TestIntroductionsNameAndCopy(t *testing.T) {
	n, stop := noticesOf(t, nil)
	defer stop()
	b := NewInbox(Deps{Projections: n.projections, Introductions: n.introductions, Notices: n, Sessions: nothing{},
		Documents: nothing{}, Settings: nothing{}, Log: n.log})
	for _, x := range []struct {
		q    control.InitQuery
		want string
	}{
		{control.InitQuery{Session: "a", Cwd: "/w", Source: "startup"}, "- Session: w\n- Working directory: /w"},
		{control.InitQuery{Session: "b", Cwd: "/w", Title: "cart\nrounding"}, "- Session: cart rounding\n- Working directory: /w"},
		{control.InitQuery{Session: "b", Cwd: "/w", Source: "resume"}, "- Session: cart rounding\n- Working directory: /w"},
		{control.InitQuery{Session: "a", Cwd: "/w", Title: "renamed", Source: "resume"}, "- Session: renamed\n- Working directory: /w"},
		{control.InitQuery{Session: "c", Cwd: "/w", Source: "fork"}, "- Session: w\n- Working directory: /w\n- Linked documents: none"},
		{control.InitQuery{Session: "c", Cwd: "/w", Source: "resume"}, "- Session: w\n- Working directory: /w\n- Linked documents: none"},
	} {
		a := kit.Try(b.Init(t.Context(), x.q)).Must(t)
		got := strings.TrimPrefix(a.Text, "[Session started]\n")
		kit.Check(t, got == x.want, "%+v\ngot  %q\nwant %q", x.q, got, x.want)
	}
}
