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
)

func answer(key string, output int64) server.Answer {
	return server.Answer{Key: key, Model: "m", Time: start, Tokens: server.Tokens{Answers: 1, Input: 1, Output: output}}
}

// putFor stores a session of a user and derives answers of it.
func putFor(t *testing.T, st full, owner int64, session string, answers ...server.Answer) {
	t.Helper()
	b := batch(session, object(0, "{}"))
	b.Owner, b.Head.ProjectHash, b.Head.Project = owner, "ph-"+session, "p-"+session
	if parent, _, ok := strings.Cut(session, "/"); ok {
		b.Head.Parent = parent
	}
	put(t, st, b)
	save(t, st, lease(t, st)[session], server.Derivation{Answers: answers})
}

// outputs sums output tokens by session.
func outputs(t *testing.T, st full, q server.UsageQuery) string {
	t.Helper()
	q.By = []string{"session"}
	rows := kit.Try(st.Usage(t.Context(), all, q)).Must(t)
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s:%d×%d", r.Session, r.Tokens.Answers, r.Tokens.Output))
	}
	return strings.Join(out, " ")
}

// once: an answer counts once for each owner, wherever there are copies of it, in whatever order they come.
func (s suite) once(t *testing.T) {
	side := answer("main-or-side", 900)
	side.Sidechain = true
	orders := [][]func(st full){
		{
			func(st full) {
				putFor(t, st, 1, "a", answer("k1", 1), answer("k1", 640), answer("k1", 5), answer("k2", 8), answer("k2", 10), answer("k2", 9))
			},
			func(st full) { putFor(t, st, 1, "fork", answer("k1", 640), answer("k3", 7)) },
			func(st full) { putFor(t, st, 2, "other", answer("k1", 640)) },
			func(st full) { putFor(t, st, 1, "side", side, answer("less", 3)) },
			func(st full) { putFor(t, st, 1, "main", answer("main-or-side", 2), answer("less", 30)) },
		},
	}
	orders = append(orders, nil)
	for i := len(orders[0]) - 1; i >= 0; i-- {
		orders[1] = append(orders[1], orders[0][i])
	}
	for _, order := range orders {
		st := s.open(t)
		for _, step := range order {
			step(st)
		}
		rows, err := st.Usage(t.Context(), all, server.UsageQuery{By: []string{"user"}})
		kit.Require(t, err == nil && len(rows) == 2, "%+v, %v", rows, err)
		one, two := rows[0].Tokens, rows[1].Tokens
		kit.Check(t, one.Answers == 5 && one.Output == 640+10+7+2+30 && one.Input == 5 && two.Answers == 1 && two.Output == 640,
			"%+v", rows)
		kit.Equal(t, "main counts", outputs(t, st, server.UsageQuery{Session: "main"}), "main:2×32")
	}
}

// copiedFrom: of sessions that have answers in common, the one that went on first is the fork, in whatever order they
// come.
func (s suite) copiedFrom(t *testing.T) {
	at := func(key string, minute int) server.Answer {
		a := answer(key, 5)
		a.Time = start.Add(time.Duration(minute) * time.Minute)
		return a
	}
	later := func(a server.Answer) server.Answer {
		a.Time = a.Time.Add(time.Microsecond)
		return a
	}
	sessions := []struct {
		name, want string
		owner      int64
		answers    []server.Answer
	}{
		{"origin", "", 1, []server.Answer{at("k", 0), at("k2", 1)}},
		{"fork", "origin", 1, []server.Answer{at("k", 0), at("k2", 1), at("own", 2)}},
		{"both", "", 1, []server.Answer{at("b", 0), at("b2", 9)}},
		{"first", "both", 1, []server.Answer{at("b", 0), at("b3", 4)}},
		{"second", "both", 1, []server.Answer{at("b", 0), at("b4", 5), at("b5", 20)}},
		{"middle", "", 1, []server.Answer{at("m", 0), at("m2", 2)}},
		{"marked", "", 1, []server.Answer{later(at("m", 0)), at("m3", 5)}}, // from the middle; its records name the origin
		{"others", "", 2, []server.Answer{at("x", 0)}},
		{"alike", "", 1, []server.Answer{at("x", 0), at("y", 1)}},
	}
	for _, backwards := range []bool{false, true} {
		st := s.open(t)
		if backwards {
			slices.Reverse(sessions)
		}
		for _, x := range sessions {
			putFor(t, st, x.owner, x.name, x.answers...)
		}
		for _, x := range sessions {
			t.Run(x.name, func(t *testing.T) { // few may be open at once
				kit.Gives(t, fmt.Sprintf("backwards %v: it was copied from", backwards),
					x.want)(openSession(t, st, x.name).CopiedFrom(t.Context()))
			})
		}
	}
}

// uncounted: when the copy that counts is forgotten another one does.
func (s suite) uncounted(t *testing.T) {
	st := s.open(t)
	putFor(t, st, 1, "a", answer("k", 5))
	putFor(t, st, 1, "fork", answer("k", 5), answer("own", 2))
	kit.Equal(t, "counts", outputs(t, st, server.UsageQuery{}), "a:1×5 fork:1×2")
	kit.Try(st.Forget(t.Context(), all, "a", 0, start)).Must(t)
	kit.Equal(t, "after forgetting", outputs(t, st, server.UsageQuery{}), "fork:2×7")
}

// answerDay: of lines of an answer that say the same the earliest counts, in one step or in several, in any order.
func (s suite) answerDay(t *testing.T) {
	st := s.open(t)
	before, after := answer("k", 5), answer("k", 5)
	before.Time = start.Truncate(24 * time.Hour).Add(-time.Second)
	after.Time = before.Time.Add(2 * time.Second)
	day := before.Time.Format(time.DateOnly)
	for _, step := range [][]server.Answer{{before, after}, {after, before}, {after}, {before}} {
		putFor(t, st, 1, "a", step...)
		rows, err := st.Usage(t.Context(), all, server.UsageQuery{By: []string{"day"}})
		kit.Check(t, err == nil && len(rows) == 1 && rows[0].Day == day, "%+v, %v, want %s", rows, err, day)
	}
}

// usageContexts: answers of long contexts are summed apart from others of their model, in sums and in lists.
func (s suite) usageContexts(t *testing.T) {
	st := s.open(t)
	at := func(key string, input, read int64) server.Answer {
		return server.Answer{Key: key, Model: "m", Time: start, Tokens: server.Tokens{Answers: 1, Input: input, CacheRead: read, CacheWrite5m: 10, CacheWrite1h: 20}}
	}
	putFor(t, st, 1, "a", at("1", 199_970, 0), at("2", 199_970, 1), at("3", 5, 300_000), at("4", 1, 1))
	rows, err := st.Usage(t.Context(), all, server.UsageQuery{By: []string{"model", "long"}})
	list, errList := st.Find(t.Context(), all, server.SessionQuery{Page: server.Page{Limit: 9}})
	err = errors.Join(err, errList)
	kit.Require(t, err == nil && len(list.List) == 1, "%v %v", list.List, err)
	for what, rows := range map[string][]server.UsageRow{"sums": rows, "lists": list.List[0].Usage} {
		kit.Check(t, len(rows) == 2 && !rows[0].Long && rows[1].Long && rows[0].Tokens.Input == 199_971 &&
			rows[0].Tokens.Answers == 2 && rows[1].Tokens.Input == 199_975 && rows[1].Tokens.CacheRead == 300_001,
			"%s: %+v", what, rows)
	}
}

func (s suite) usage(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	at := func(key, model string, when time.Time) server.Answer {
		return server.Answer{Key: key, Model: model, Time: when, Tokens: server.Tokens{
			Answers: 1, Input: 1, Output: 10, CacheRead: 100, CacheWrite5m: 1000, CacheWrite1h: 10000, Searches: 7,
		}}
	}
	monday := time.Date(2026, 11, 16, 23, 30, 0, 0, time.UTC)
	putFor(t, st, 1, "a", at("1", "x", monday), at("2", "y", monday.Add(time.Hour)))
	putFor(t, st, 1, "a/agent-1", at("3", "x", monday))
	putFor(t, st, 2, "b", at("4", "x", monday.Add(24*time.Hour)), server.Answer{
		Key: "5", Model: "huge", Time: monday, Tokens: server.Tokens{Input: 1 << 62, Output: -5}}, server.Answer{
		Key: "6", Model: "huge", Time: monday, Tokens: server.Tokens{Input: 1 << 62, Output: -5}})
	sum := func(q server.UsageQuery) (out []string) {
		rows := kit.Try(st.Usage(ctx, all, q)).Must(t)
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%s|%d|%s|%s|%s|%s|%d|%s|%d", r.Day, r.Hour, r.Project, r.Name, r.Model, r.Machine, r.User, r.Session, r.Tokens.Answers))
		}
		return out
	}
	tests := []struct {
		q    server.UsageQuery
		want string
	}{
		{server.UsageQuery{}, "|-1||||||0||6"},
		{server.UsageQuery{By: []string{"day"}}, "2026-11-16|-1||||||0||4 2026-11-17|-1||||||0||2"},
		{server.UsageQuery{By: []string{"hour"}}, "|23||||||0||4 |24||||||0||1 |47||||||0||1"},
		{server.UsageQuery{By: []string{"day"}, Zone: 9 * time.Hour}, "2026-11-17|-1||||||0||5 2026-11-18|-1||||||0||1"},
		{server.UsageQuery{By: []string{"day"}, Zone: -(3*time.Hour + 30*time.Minute)}, "2026-11-16|-1||||||0||5 2026-11-17|-1||||||0||1"},
		{server.UsageQuery{By: []string{"hour"}, Zone: -24 * time.Hour}, "|0||||||0||1 |23||||||0||1 |167||||||0||4"},
		{server.UsageQuery{By: []string{"model"}}, "|-1|||huge||0||2 |-1|||x||0||3 |-1|||y||0||1"},
		{server.UsageQuery{By: []string{"project"}, User: 2}, "|-1|ph-b|p-b|||0||3"},
		{server.UsageQuery{By: []string{"machine"}}, "|-1||||m|0||6"},
		{server.UsageQuery{By: []string{"user", "session"}, Session: "a"}, "|-1|||||1|a|2"},
		{server.UsageQuery{By: []string{"session"}, Session: "a", Agents: true}, "|-1|||||0|a|2 |-1|||||0|a/agent-1|1"},
		{server.UsageQuery{By: []string{"user"}, Model: "x"}, "|-1|||||1||2 |-1|||||2||1"},
		{server.UsageQuery{By: []string{"user"}, Since: monday.Add(time.Hour), Until: monday.Add(24 * time.Hour)}, "|-1|||||1||1"},
		{server.UsageQuery{Project: "p-b", Model: "y"}, ""},
	}
	for _, test := range tests {
		got := strings.Join(sum(test.q), " ")
		want := strings.ReplaceAll(test.want, "||||||0", "|||||0")
		kit.Check(t, strings.ReplaceAll(got, "||||||0", "|||||0") == want, "%+v:\n got %s\nwant %s", test.q, got, want)
	}
	rows, err := st.Usage(ctx, all, server.UsageQuery{By: []string{"model"}, Model: "x"})
	want := (server.Tokens{Answers: 3, Input: 3, Output: 30, CacheRead: 300, CacheWrite5m: 3000, CacheWrite1h: 30000, Searches: 21})
	kit.Check(t, err == nil && rows[0].Tokens == want, "%+v, %v", rows, err)
	_, err = st.Usage(ctx, all, server.UsageQuery{By: []string{"day; DROP TABLE answers"}})
	kit.Check(t, err != nil, "something unknown was summed by")
	for _, text := range hostile {
		for _, q := range []server.UsageQuery{{Project: text}, {Machine: &text}, {Model: text}, {Session: text, Agents: true}} {
			kit.Equal(t, fmt.Sprintf("%+v", q), len(sum(q)), 0)
		}
	}
	found, err := st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 9}})
	kit.Check(t, err == nil && len(found.List) == 2 && found.List[0].Agents == 1 && len(found.List[0].Usage) == 2 &&
		found.List[0].Usage[0].Model == "x" && found.List[0].Usage[0].Tokens.Output == 20, "%+v, %v", found, err)
	agents := kit.Try(st.Find(ctx, all, server.SessionQuery{Page: server.Page{Limit: 9}, Parent: "a"})).Must(t)
	kit.Check(t, len(agents.List) == 1 && agents.List[0].Usage[0].Tokens.Output == 10, "an agent alone: %+v", agents)
	putFor(t, st, 3, "ends", at("first", "x", time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Second)),
		at("last", "x", time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)))
	for _, zone := range []time.Duration{-14 * time.Hour, 14 * time.Hour} { // no zone leads out of the calendar
		days := strings.Join(sum(server.UsageQuery{By: []string{"day", "hour"}, User: 3, Zone: zone}), " ")
		kit.Check(t, strings.HasPrefix(days, "0001-01-01|") && strings.Contains(days, " 9999-12-31|"), "zone %v: %s", zone, days)
	}
}

// forget: nothing is left, and nothing of it comes back.
func (s suite) forget(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	ann, bob := members(t, st)
	for _, name := range []string{"anns~2", "anns-other", "annsX", "ann%", "anns~x"} {
		put(t, st, batch(name, object(0, says("prompt", "the needle of "+name))), func(b *server.Batch) { b.Owner = ann.ID })
	}
	put(t, st, batch("elsewhere", object(0, "{}")), func(b *server.Batch) { b.Owner, b.Head.Parent = ann.ID, "anns" })
	deriveAll(t, st)
	kit.Err(t, "bob forgets what is ann's", server.ErrNotFound)(st.Forget(ctx, server.ScopeOf(bob), "anns", 0, start))
	for _, text := range append(hostile, "", "unknown") {
		kit.Err(t, "forget "+text, server.ErrNotFound)(st.Forget(ctx, all, text, 0, start))
	}
	f, err := st.Forget(ctx, server.ScopeOf(ann), "anns", 0, start.Add(time.Hour))
	kit.Check(t, err == nil && f.Owner == ann.ID && f.SessionID == "anns" && f.Lines == 5 && f.At.Equal(start.Add(time.Hour)),
		"%+v, %v", f, err)
	expectNames(t, "what is left", names(t, st, server.ScopeOf(ann), server.SessionQuery{Agents: true}), "ann%", "anns-other", "annsX", "anns~x")
	expectNames(t, "search", searched(t, st, all, server.SearchQuery{Text: `"needle of anns"`, Superseded: true}), "anns-other", "annsX", "anns~x")
	for _, again := range []struct {
		session, parent string
		owner           int64
		stored          bool
	}{
		{"anns", "", ann.ID, false}, {"anns/agent-1", "anns", ann.ID, false}, {"anns/agent-new", "", ann.ID, false},
		{"anns~2", "", ann.ID, false}, {"anns~17", "", ann.ID, false}, {"anns~2/agent-1", "", ann.ID, false}, {"anywhere", "anns", ann.ID, false},
		{"anns", "", bob.ID, true}, {"annsX", "", ann.ID, true}, {"anns-other/agent-anns", "", ann.ID, true},
	} {
		b := batch(again.session, object(0, "back"))
		b.Owner, b.Head.Parent = again.owner, again.parent
		if !again.stored {
			b.Head.ProjectHash, b.Head.Repository, b.Masked = "h", "r", []int64{0}
			b.Retired = []*server.RetiredRun{{Lines: []server.RetiredLine{{Index: 7, SHA256: make([]byte, 32)}}}}
		}
		err := st.Put(ctx, b)
		kit.Check(t, again.stored == (err == nil) && (err == nil || errors.Is(err, server.ErrForgotten)), "%+v: %v", again, err)
		snap, err := st.View(ctx, server.Scope{User: again.owner}, server.Ref{SessionID: again.session})
		kit.Equal(t, fmt.Sprintf("%+v is there: %v", again, err), again.stored, err == nil)
		if err == nil {
			snap.Close()
		}
	}
	for _, table := range []string{"retired", "masked_lines", "repositories"} {
		kit.Equal(t, "rows that came for what was forgotten, of "+table, s.query(t, st, `SELECT count(*) FROM `+table), 0)
	}
	for who, scope := range map[string]server.Scope{"ann": server.ScopeOf(ann), "an owner": all} {
		list, err := st.ListForgotten(ctx, scope)
		kit.Check(t, err == nil && len(list) == 1 && list[0] == f, "%s sees %+v, %v", who, list, err)
	}
	for _, scope := range []server.Scope{server.ScopeOf(bob), {}} {
		kit.Equal(t, fmt.Sprintf("%+v sees", scope), kit.Try(st.ListForgotten(ctx, scope)).Must(t), nil)
	}
}

// forgetMeanwhile: a batch that comes with others is refused alone.
func (s suite) forgetMeanwhile(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("gone", object(0, "x")))
	kit.Try(st.Forget(t.Context(), all, "gone", 0, start)).Must(t)
	errs := make(chan error)
	for i := range int64(40) {
		go func() {
			session := "kept"
			if i%2 == 0 {
				session = "gone"
			}
			err := st.Put(t.Context(), batch(session, object(i, "x")))
			if (session == "gone") == errors.Is(err, server.ErrForgotten) {
				err = nil
			} else {
				err = fmt.Errorf("%s: %w", session, err)
			}
			errs <- err
		}()
	}
	for range 40 {
		kit.Should(t, <-errs)
	}
	kit.Equal(t, "lines of 20", len(dump(t, openSession(t, st, "kept"), 0)), 20)
}
