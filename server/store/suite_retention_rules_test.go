package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
)

// retireKeeps: what a user needs is kept, and the report says why.
func (s suite) retireKeeps(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann := addUser(t, st, "ann", server.Owner)
	names := strings.Fields("held starred linked checked running fork plain")
	for i, name := range names {
		b := batch(name, prose(0, 10, 300+i)...)
		b.Owner = ann.ID
		if name == "running" {
			b.Received = later.Add(-time.Hour)
		}
		put(t, st, b)
	}
	put(t, st, batch("starred/agent-a", prose(0, 5, 200)...),
		func(b *server.Batch) { b.Owner, b.Head.Parent = ann.ID, "starred" })
	id := func(name string) int64 { return idOf(t, st, name) }
	_, err := st.AddHold(ctx, server.Hold{Session: "held", By: "ann", Why: "a case", At: start})
	if err == nil {
		err = st.SetMark(ctx, ann.ID, server.Mark{Stream: id("starred"), Star: true, Updated: start})
	}
	if err == nil { // a viewer keeps nothing
		eve := addUser(t, st, "eve", server.Viewer)
		err = st.SetMark(ctx, eve.ID, server.Mark{Stream: id("plain"), Star: true, Updated: start})
	}
	if err == nil {
		_, err = st.AddShareLink(ctx, server.ShareLink{Hash: [32]byte{1}, Stream: id("linked"), By: ann, Created: start, Until: later.Add(day)})
	}
	kit.Must(t, err)
	putCheckpoints(t, st, ann.ID, "checked", "e", mark("cp-1", 1))
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: time.Hour})
	report := retire(t, st)
	slices.SortFunc(report.Kept, func(a, b server.KeptCount) int { return strings.Compare(a.Why, b.Why) })
	kept := kit.Each(report.Kept, func(k server.KeptCount) string { return fmt.Sprint(k.Why, " ", k.Sessions) })
	kit.Equal(t, "kept", strings.Join(kept, ", "), "checkpoint 1, hold 1, in use 1, share link 1, star, name, note or tag 1")
	for _, name := range names {
		n := len(linesOf(t, st, name, 0))
		kit.Equal(t, name+" has lines", n, map[bool]int{true: 0, false: 10}[name == "fork" || name == "plain"])
	}
	kit.Equal(t, "the agent of a kept session has lines", len(linesOf(t, st, "starred/agent-a", 0)), 5)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: time.Hour, Checkpoints: true})
	retire(t, st)
	kit.Equal(t, "a rule for sessions with checkpoints leaves lines", len(linesOf(t, st, "checked", 0)), 0)
}

// retireSizes: of a user, a project, what is above a size goes, oldest first.
func (s suite) retireSizes(t *testing.T) {
	st := s.open(t)
	for i := range int64(6) {
		b := batch(fmt.Sprint("s", i), prose(0, 10, 1000)...)
		b.Owner, b.Received = 1+i%2, start.Add(time.Duration(i)*time.Hour)
		b.Head.ProjectHash, b.Head.Project = fmt.Sprint("ph", i%2), fmt.Sprint("p", i%2)
		put(t, st, b)
	}
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Over: 21000, User: 1})
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Over: 11000, Age: day, Project: "p1"})
	retire(t, st)
	var got []int
	for i := range 6 {
		got = append(got, len(linesOf(t, st, fmt.Sprint("s", i), 0)))
	}
	kit.Equal(t, "lines", fmt.Sprint(got), "[0 0 10 0 10 10]")
	rules, err := st.RetentionRules(t.Context())
	kit.Check(t, err == nil && len(rules) == 2 && rules[0].Over == 21000 && rules[0].User == 1 && rules[1].Age == day &&
		rules[1].Project == "p1", "rules %+v, %v", rules, err)
	kit.Should(t, st.RemoveRetentionRule(t.Context(), 2))
	kit.Err(t, "a rule that is gone", server.ErrNotFound)(nil, st.RemoveRetentionRule(t.Context(), 2))
}

// retireSizesAfter: what an earlier rule takes of a session does not count for a size any more.
func (s suite) retireSizesAfter(t *testing.T) {
	st := s.open(t)
	for _, name := range []string{"a", "b"} {
		for g := range int64(2) {
			put(t, st, generationOf(name, g, 0, server.Writer{}, prose(0, 10, 1000+int(g))...))
		}
	}
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: time.Hour})
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Over: 25000})
	retire(t, st)
	for _, name := range []string{"a", "b"} {
		kit.Equal(t, "lines of "+name+" that rewinds left", len(linesOf(t, st, name, 0)), 0)
		kit.Equal(t, "lines of "+name, len(linesOf(t, st, name, 1)), 10)
	}
}

// retireTwice: what two rules would take, one of them takes: a dry run counts it once, replaced bytes too.
func (s suite) retireTwice(t *testing.T) {
	st := s.open(t)
	for g := range int64(2) {
		put(t, st, generationOf("a", g, 0, server.Writer{}, prose(0, 10, 1000+int(g))...))
	}
	put(t, st, generationOf("a", 1, 0, server.Writer{}, prose(0, 3, 500)...))
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: 2 * time.Hour})
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: time.Hour})
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: time.Hour})
	kit.Equal(t, "rules that take something", len(retire(t, st).Counts), 2)
}

// retireFiles: attachments of dropped sessions go, unless another session has them too. They are not sent again.
func (s suite) retireFiles(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	own, shared := strings.Repeat("own ", 500), strings.Repeat("shared ", 500)
	for _, session := range []string{"old", "new"} {
		b := batch(session, prose(0, 5, 100)...)
		if session == "new" {
			b.Received = later
		}
		put(t, st, b)
		upload(t, st, 0, session, "shared.txt", []byte(shared))
	}
	sum := upload(t, st, 0, "old", "own.txt", []byte(own))
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 90 * day})
	report := retire(t, st)
	kit.Check(t, len(report.Counts) == 1 && report.Counts[0].Files == 1, "%+v", report)
	kit.Err(t, "a retired file", server.ErrRetired)(st.BlobContent(ctx, all, sum))
	kit.Equal(t, "the file of both sessions", blobContent(t, st, fmt.Sprintf("%x", uploadOf(0, "old", "shared.txt", []byte(shared)).SHA256)), shared)
	_, complete, err := st.StartBlob(ctx, uploadOf(0, "old", "own.txt", []byte(own)))
	kit.Check(t, err == nil && complete, "sent again: complete %v, %v", complete, err)
	kit.Equal(t, "the audit finds", audited(t, st), nil)
	upload(t, st, 0, "new", "own.txt", []byte(own)) // a session that is kept needs it
	kit.Equal(t, "uploaded for another session", blobContent(t, st, sum), own)
}

// retireSteps: ended before or after any step, the next application does the rest.
func (s suite) retireSteps(t *testing.T) {
	if s.with == nil {
		t.Skip("the steps of lines as they come, and of what is cold, are those")
	}
	stop, n := 0, 0
	st := s.with(t, store.Opening{Step: func(name string) error {
		if name != "retire" && name != "retired" {
			return nil
		}
		if n++; n >= stop { // and so does all that follows
			return errStep
		}
		return nil
	}})
	rewound(t, st, "s")
	upload(t, st, 0, "s", "a.txt", []byte("content"))
	put(t, st, batch("other", prose(0, 20, 500)...))
	understand(t, st)
	before, _ := proofs(t, st, "s")
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: day})
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	ended := false
	for stop = 1; !ended; stop++ {
		n = 0
		_, err := st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later})
		ended = err == nil
		kit.Require(t, ended || errors.Is(err, errStep), "%v", err)
		after, _ := proofs(t, st, "s")
		kit.Require(t, fmt.Sprint(before) == fmt.Sprint(after), "step %d: digests were\n%+v, are\n%+v", stop, before, after)
		kit.Equal(t, "the audit finds", audited(t, st), nil)
	}
	kit.Check(t, stop >= 8, "only %d steps", stop)
	kit.Equal(t, "pieces of files are left", s.query(t, st, `SELECT count(*) FROM blob_chunks`), 0)
	kit.Equal(t, "lines are left", len(linesOf(t, st, "s", 0)), 1)
}

// retireUsage: what was spent stays in the sums, also when all is derived again, unless a rule says otherwise.
func (s suite) retireUsage(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for _, session := range []string{"a", "b"} {
		line := `{"type":"assistant","uuid":"u` + session + `","timestamp":"2026-11-20T10:00:00Z","requestId":"r` + session +
			`","message":{"id":"m` + session + `","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hello ` + session + `"}],"usage":{"input_tokens":10,"output_tokens":5}}}`
		put(t, st, batch(session, object(0, line)), func(b *server.Batch) { b.Head.Project = session })
	}
	understand(t, st)
	spent := func() (n int64) {
		rows := kit.Try(st.Usage(ctx, all, server.UsageQuery{})).Must(t)
		for _, r := range rows {
			n += r.Tokens.Output
		}
		return n
	}
	kit.Require(t, spent() == 10, "%d tokens before", spent())
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day, Project: "a"})
	retire(t, st)
	kit.Equal(t, "tokens after", spent(), 10)
	kit.Must(t, st.ResetDerived(ctx))
	understand(t, st)
	kit.Equal(t, "tokens after deriving again", spent(), 10)
	f, err := st.SummaryOf(ctx, idOf(t, st, "a"))
	kit.Check(t, err == nil && f.Messages == 1 && f.FirstPrompt == "" && !f.Ended.IsZero(),
		"what is known of it: %+v, %v", f, err)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day, Project: "b", Usage: true})
	retire(t, st)
	kit.Equal(t, "tokens after a rule that removes usage", spent(), 5)
}

// retireCopies: a copy for a clone of a machine has what is known of retired lines.
func (s suite) retireCopies(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", prose(0, 60, 900)...))
	put(t, st, batch("s", prose(0, 60, 900)[:20]...), func(b *server.Batch) { b.Head.Machine = "m2" }) // a copy's beginning
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	retire(t, st)
	var runs []*server.RetiredRun
	one, two := "m", "m2"
	snap := kit.Try(st.Open(t.Context(), server.Ref{SessionID: "s", Machine: &one})).Must(t)
	defer snap.Close()
	kit.Must(t, snap.Retired(t.Context(), server.Span{To: 60}, true, func(r *server.RetiredRun) error { runs = append(runs, r); return nil }))
	put(t, st, batch("s"), func(b *server.Batch) { b.Head.Machine, b.Head.EndLine, b.Retired = two, 60, runs })
	put(t, st, batch("s", prose(0, 60, 900)...), func(b *server.Batch) { b.Head.Machine = two })
	copied := kit.Try(st.Open(t.Context(), server.Ref{SessionID: "s", Machine: &two})).Must(t)
	defer copied.Close()
	of := kit.Try(audit.DigestViews(t.Context(), snap)).Must(t)
	got := kit.Try(audit.DigestViews(t.Context(), copied)).Must(t)
	of[0].Retired, got[0].Retired = nil, nil // in runs that begin elsewhere
	kit.Equal(t, "lines of the copy", dump(t, copied, 0), nil)
	kit.Equal(t, "the copy", fmt.Sprint(got), fmt.Sprint(of))
}

// retireReplaced: a client without a ledger may still replace a retired line; bytes that were replaced go by age.
func (s suite) retireReplaced(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", prose(0, 20, 300)...))
	put(t, st, batch("s", object(3, `{"new":3}`)))
	kit.Equal(t, "replaced lines", s.query(t, st, `SELECT count(*) FROM superseded`), 1)
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: day})
	retire(t, st)
	kit.Equal(t, "replaced lines are left", s.query(t, st, `SELECT count(*) FROM superseded`), 0)
	kit.Equal(t, "lines", len(linesOf(t, st, "s", 0)), 20)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	retire(t, st)
	put(t, st, batch("s", object(2, `{"again":2}`), object(4, `{"more":4}`), prose(5, 1, 300)[0]))
	kit.Equal(t, "lines", linesOf(t, st, "s", 0)[:2], []string{`2:object:{"again":2}`, `4:object:{"more":4}`})
	v, n := views(t, st, "s")
	kit.Check(t, v[0].Lines == 20 && v[0].SHA256 == "" && (n == 17 || n == 18), "%+v, %d retired", v, n)
	kit.Equal(t, "the audit finds", audited(t, st), nil)
}

// retireCold: a rule may move to cold storage what is not old enough for it otherwise.
func (s suite) retireCold(t *testing.T) {
	if s.with == nil || s.cooling {
		t.Skip("one way is enough")
	}
	st, dir := s.onFolder(t, store.Opening{})
	now, _ := rewound(t, st, "s")
	put(t, st, batch("new", prose(0, 99, 900)...))
	upload(t, st, 0, "s", "a.txt", []byte("content"))
	seal(t, st, endOfTime)
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Action: server.ActionCold, Age: day})
	retire(t, st)
	first := len(inFolder(t, dir))
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Action: server.ActionCold, Age: day})
	kit.Try(st.AddHold(t.Context(), server.Hold{Session: "new", By: "ann", Why: "a case", At: start})).Must(t)
	retire(t, st)
	got := slices.Concat(linesOf(t, st, "s", 0)[:100], linesOf(t, st, "s", 1)[:30], linesOf(t, st, "s", 2))
	kit.Check(t, first == 2 && len(inFolder(t, dir)) == 4 && slices.Equal(got, listed(now)) && s.local(t, st) != 0,
		"%d objects, then %d; %d lines", first, len(inFolder(t, dir)), len(got))
}

// retireForks: sessions that share history go together. While one of them is needed, or too young, all of them stay.
func (s suite) retireForks(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	answer := func(i int64, id string, at time.Time) server.Line {
		return object(i, fmt.Sprintf(`{"type":"assistant","uuid":"u%[1]s","timestamp":%[2]q,"requestId":"r%[1]s","message":{"id":"m%[1]s",`+
			`"role":"assistant","model":"claude-x","content":[{"type":"text","text":"hello"}],"usage":{"output_tokens":5}}}`,
			id, at.UTC().Format(time.RFC3339)))
	}
	old, young := later.Add(-100*day), later.Add(-50*day)
	for _, x := range []struct {
		session, first, second string
		last                   time.Time
	}{
		{"origin", "shared", "own", old}, {"fork", "shared", "new", young}, {"forked again", "new", "newest", old},
		{"alone", "lonely", "lonelier", old},
	} {
		put(t, st, batch(x.session, answer(0, x.first, old), answer(1, x.second, x.last)),
			func(b *server.Batch) { b.Received = x.last })
	}
	understand(t, st)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 90 * day})
	left := func() (out string) {
		for _, session := range []string{"origin", "fork", "forked again", "alone"} {
			out += fmt.Sprint(len(linesOf(t, st, session, 0)))
		}
		return out
	}
	keeping := func(session string) server.RetentionOutlook {
		return kit.Try(st.KeptUntil(ctx, idOf(t, st, session), later)).Must(t)
	}
	k := keeping("alone")
	kit.Check(t, k.Until.Equal(old.Add(90*day)) && k.Kept == "", "what stands alone: %+v", k)
	k = keeping("forked again")
	kit.Check(t, k.Until.Equal(young.Add(90*day)) && k.Kept == "", "what shares history with a younger session: %+v", k)
	report := retire(t, st)
	kit.Check(t, fmt.Sprint(report.Kept) == fmt.Sprint([]server.KeptCount{{Rule: 1, Why: server.KeptFork, Sessions: 2}}) &&
		left() == "2220", "%+v, lines %s", report, left())
	hold := kit.Try(st.AddHold(ctx, server.Hold{Session: "origin", By: "ann", Why: "a case", At: start})).Must(t)
	k = keeping("forked again")
	kit.Check(t, k.Until.IsZero() && k.Kept == server.KeptFork, "what shares history with a session on hold: %+v", k)
	k = keeping("origin")
	kit.Check(t, k.Until.IsZero() && k.Kept == server.KeptHold, "what is on hold: %+v", k)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 30 * day})
	retire(t, st)
	kit.Check(t, left() == "2220", "lines %s with a hold on the first of them", left())
	kit.Must(t, st.RemoveHold(ctx, hold))
	retire(t, st)
	kit.Check(t, left() == "0000", "lines %s when all of them are old enough", left())
	k = keeping("origin")
	kit.Check(t, k.Due == "" && k.Kept == "" && k.Lines == 2 && k.Retired.Equal(later), "after all are dropped: %+v", k)
}
