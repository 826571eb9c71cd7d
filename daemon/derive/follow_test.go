package derive

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
	"github.com/ccship/ccship/transcript/session"
)

// A hook waits for its tool call only in a session whose next answer may exceed a mark, and not for long.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		waits := func(ctx context.Context, session, tool string) time.Duration {
			began := time.Now()
			f.await(ctx, session, tool)
			return time.Since(began)
		}
		f.context("near", 100_200, 167_000)
		f.context("far", 99_000, 167_000)
		f.context("unknown", 99_000, 0)
		f.read("near", []string{"t1", "t2"})
		f.read("far", []string{"t1"})
		for _, c := range []struct{ session, tool string }{{"near", "t1"}, {"near", "t2"}, {"far", "t9"}, {"unknown", "t9"}, {"never seen", "t9"}} {
			took := waits(t.Context(), c.session, c.tool)
			kit.Check(t, took == 0, "%v waits for %s", c, took)
		}
		kit.Equal(t, "it gives up after", waits(t.Context(), "near", "t9"), followTime)
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		kit.Equal(t, "a hook that is gone waits for", waits(gone, "near", "t9"), time.Millisecond)
		for _, wake := range []func(){
			func() { f.read("near", []string{"t8", "t9"}) }, func() { f.context("near", 9000, 167_000) },
		} {
			f.context("near", 160_000, 167_000)
			f.sessions["near"].tools = nil
			time.AfterFunc(100*time.Millisecond, wake)
			go f.await(t.Context(), "near", "t9")
			kit.Equal(t, "it waits for", waits(t.Context(), "near", "t9"), 100*time.Millisecond)
		}
		synctest.Wait()
		f.context("near", 160_000, 167_000)
		for range 3 * toolsFollowed {
			f.read("near", []string{"t"})
		}
		s := f.sessions["near"]
		kit.Check(t, len(s.tools) == toolsFollowed && len(s.waiting) == 0, "%d tools are remembered, %d waited for", len(s.tools), len(s.waiting))
		f.forget("near")
		kit.Check(t, len(f.sessions) == 0, "%d sessions are left", len(f.sessions))
	})
}

// TestFollowIsBounded: sessions that end nearly full do not pile up; who waits for a dropped one goes on.
func TestFollowIsBounded(t *testing.T) {
	f := newFollow()
	f.context("first", 90, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.await(t.Context(), "first", "tool")
	}()
	for i := range 4 * sessionsFollowed {
		f.context(strconv.Itoa(i), 90, 100)
	}
	<-done
	kit.Equal(t, "sessions are followed", len(f.sessions), sessionsFollowed)
}

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

// A compaction far below what the model can hold counts only if another one lies near it, whatever came between them.
func TestLearnedLimit(t *testing.T) {
	for name, x := range map[string]struct {
		model  string
		tokens []int64 // oldest first
		want   int64
	}{
		"none":                            {"claude-opus-4-5", nil, 0},
		"one":                             {"claude-opus-4-5", []int64{160_000}, 160_000},
		"a slip":                          {"claude-opus-4-5", []int64{60_000}, 0},
		"a slip among others":             {"claude-opus-4-5", []int64{166_000, 60_000, 160_000}, 160_000},
		"two slips":                       {"claude-opus-4-5", []int64{60_000, 75_000, 160_000}, 160_000},
		"seen twice":                      {"claude-opus-4-5", []int64{60_000, 160_000, 62_000}, 60_000},
		"seen twice, the smaller at last": {"claude-opus-4-5", []int64{62_000, 160_000, 60_000}, 60_000},
		"one overshoot":                   {"claude-opus-4-5", []int64{176_700}, 0},
		"an overshoot among others":       {"claude-opus-4-5", []int64{176_700, 155_066, 157_000}, 155_066},
		"late three times":                {"claude-opus-4-5", []int64{176_700, 178_000, 177_000}, 176_700},
		"a large window":                  {"claude-opus-4-8", []int64{900_000}, 900_000},
		"a large window, kept small":      {"claude-opus-4-8", []int64{160_000, 166_000}, 160_000},
		"a large window, small once":      {"claude-opus-4-8", []int64{160_000, 900_000}, 900_000},
		"an unknown model":                {"m", []int64{100_000}, 100_000},
		"an unknown model, smaller":       {"m", []int64{70_000}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var newestFirst, oldestFirst []projection.Compaction
			for i, tokens := range x.tokens {
				c := projection.Compaction{At: int64(i), Tokens: tokens}
				oldestFirst = append(oldestFirst, c)
				newestFirst = append([]projection.Compaction{c}, newestFirst...)
			}
			for _, list := range [][]projection.Compaction{newestFirst, oldestFirst} {
				limits := learned(map[string][]projection.Compaction{x.model: list})
				got, known := limits[x.model]
				kit.Check(t, got == x.want && known == (x.want > 0), "%v: %d, want %d", list, got, x.want)
			}
		})
	}
}

// TestCleanLines knows where a masker found nothing, and nothing more.
func TestCleanLines(t *testing.T) {
	t.Parallel()
	masker := kit.Try(redact.New(redact.Key{1})).Must(t)
	other := kit.Try(redact.New(redact.Key{1})).Must(t)
	var x cleanLines
	note := func(id tail.FileID, generation uint32, from, to int64, by *redact.Masker) {
		x.note(&tail.Chunk{File: tail.File{ID: id}, From: tail.Cursor{Generation: generation, Offset: from},
			To: tail.Cursor{Generation: generation, Offset: to}}, &route.Decision{CleanBy: by})
	}
	is := func(what string, want bool, id tail.FileID, generation uint32, offset int64, by *redact.Masker) {
		t.Helper()
		c := x.of(id)
		kit.Check(t, c.holds(by, generation, offset) == want, "%s: clean %v, want %v", what, !want, want)
	}
	is("nothing known", false, 1, 0, 0, masker)
	note(1, 0, 0, 100, masker)
	note(1, 0, 100, 200, masker)
	is("two chunks", true, 1, 0, 0, masker)
	is("the second", true, 1, 0, 199, masker)
	is("behind", false, 1, 0, 200, masker)
	is("another generation", false, 1, 1, 10, masker)
	is("other rules", false, 1, 0, 10, other)
	is("another file", false, 2, 0, 10, masker)
	note(1, 0, 300, 400, masker)
	is("before a gap", false, 1, 0, 10, masker)
	is("behind a gap", true, 1, 0, 300, masker)
	note(1, 0, 400, 500, nil)
	is("a chunk with secrets", false, 1, 0, 300, masker)
	for id := range tail.FileID(maxClean + 2) {
		note(id+10, 0, 0, 1, masker)
	}
	kit.Check(t, len(x.ranges) <= maxClean, "%d transcripts are remembered", len(x.ranges))
}

// What Claude Code writes down of a hook that it waits for, and of one that it does not wait for.
func TestHookText(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"attachment","attachment":{"type":"hook_additional_context","content":["one","two"],"hookName":"SessionStart"}}`:                                                                                            "one\ntwo\n",
		`{"type":"attachment","attachment":{"type":"async_hook_response","hookEvent":"PostToolUse","response":{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"a\nb"}},"stdout":"x","exitCode":0}}`: "a\nb",
		`{"type":"attachment","attachment":{"type":"async_hook_response","response":{"systemMessage":"x"}}}`:                                                                                                                 "",
		`{"type":"attachment","attachment":{"type":"async_hook_response","response":"none"}}`:                                                                                                                                "",
		`{"type":"attachment","attachment":{"type":"hook_success","content":"c","stdout":"s"}}`:                                                                                                                              "",
		`{"type":"attachment","attachment":"hook_additional_context"}`:                                                                                                                                                       "",
	} {
		r := transcript.Parse([]byte(line))
		kit.Equal(t, line, transcript.HookText(&r), want)
	}
}

func every(*projection.Notice) bool { return true }

// lent is what a hook gets: the paths, and the receipt.
func (n *notices) lent(session string) (paths []string, receipt string) {
	l, receipt := n.lend(session, false, every)
	for _, p := range l.list {
		paths = append(paths, p.Path)
	}
	return paths, receipt
}

// gets demands that the next hook of a session gets this and does not print it.
func (n *notices) gets(t *testing.T, session string, want ...string) {
	t.Helper()
	paths, receipt := n.lent(session)
	kit.Same(t, "-want +got", cmp.Diff(want, paths))
	n.expire(receipt)
}

// prints has the next hook of a session print this.
func (n *notices) prints(t *testing.T, session string, want ...string) {
	t.Helper()
	paths, receipt := n.lent(session)
	kit.Same(t, "-want +got", cmp.Diff(want, paths))
	k, known := n.confirm(t.Context(), receipt)
	kit.Check(t, k == len(want) && known, "%d are confirmed, %v", k, known)
}

// What a hook does not confirm goes to the next one, before newer notices. Until then no other hook gets it.
func TestLeaseExpires(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a", "b")
	n.add(t, "other", "z")
	_, receipt := n.lent("s")
	n.gets(t, "s")
	n.gets(t, "other", "z")
	n.add(t, "s", "c")
	n.gets(t, "s", "c")
	n.expire(receipt)
	n.gets(t, "s", "a", "b", "c")
	n.leaseTime = time.Nanosecond
	n.lent("s")
	n.leaseTime = time.Hour
	kit.Eventually(t, "the lease ends by itself", 10*time.Second, func() bool { paths, _ := n.lent("s"); return len(paths) == 3 })
}

// A hook that prints late has printed all the same. Then the text was shown twice, and is never shown again.
func TestLateConfirmation(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a")
	_, late := n.lent("s")
	n.expire(late)
	n.prints(t, "s", "a")
	k, known := n.confirm(t.Context(), late)
	kit.Check(t, k == 1 && known, "%d, %v", k, known)
	kit.Eventually(t, "it is gone", 10*time.Second, func() bool { return len(n.projections.Notices.Of("s")) == 0 })
	_, gone := n.lent("s")
	for _, receipt := range []string{"", "nonsense", late, gone} {
		_, known := n.confirm(t.Context(), receipt)
		kit.Check(t, !known, "%q confirms something", receipt)
	}
	n.add(t, "s", "b")
	_, late = n.lent("s")
	n.expire(late)
	n.expire(late) // a minute later
	_, known = n.confirm(t.Context(), late)
	kit.Check(t, !known, "a receipt is good for ever")
	n.gets(t, "s", "b")
}

// A daemon that is killed knows what the state knows: nothing is lost, and what was printed comes again only with time.
func TestKilledDaemonLosesNothing(t *testing.T) {
	n, stop := noticesOf(t, nil)
	n.add(t, "s", "leased", "printed")
	_, receipt := n.lent("s")
	n.expire(receipt)
	l, receipt := n.lend("s", false, func(p *projection.Notice) bool { return p.Path == "printed" })
	k, _ := n.confirm(t.Context(), receipt)
	kit.Require(t, k == 1 && len(l.list) == 1, "not confirmed")
	n.lent("s")
	stop()
	next := NewNotices(n.projections, n.introductions, n.log)
	next.gets(t, "s", "leased")
	next.answered("s", "m1", "2.1.328")
	next.answered("s", "m2", "2.1.328")
	next.gets(t, "s", "leased")
	next.againAfter = 0
	next.gets(t, "s", "leased", "printed")
}

// Nothing of a forgotten session is kept in memory, or printed.
func TestForgetEndsLeases(t *testing.T) {
	n, _ := noticesOf(t, nil)
	n.add(t, "s", "a")
	_, receipt := n.lent("s")
	n.forget("s")
	_, known := n.confirm(t.Context(), receipt)
	kit.Check(t, !known && len(n.sessions)+len(n.leases)+len(n.unsaved) == 0, "%d sessions, %d leases are left", len(n.sessions), len(n.leases))
}
