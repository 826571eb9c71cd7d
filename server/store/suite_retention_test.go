package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/transcript"
)

const day = 24 * time.Hour

// later is when rules are applied: what tests store has rested for 100 days then.
var later = start.Add(100 * day)

func addRule(t *testing.T, st full, r server.RetentionRule) int64 {
	t.Helper()
	if r.Action == "" {
		r.Action = server.ActionDrop
	}
	r.At, r.By = start, "ann"
	return kit.Try(st.AddRetentionRule(t.Context(), r)).Must(t)
}

// retire counts what the rules take, takes it, and proves that this is the same and that nothing is left to take.
func retire(t *testing.T, st full) server.RetentionReport {
	t.Helper()
	var got [3]server.RetentionReport
	for i := range got {
		got[i] = kit.Try(st.Retire(t.Context(), server.RetireOptions{Dry: i != 1, By: "ann", Now: later})).Must(t)
	}
	kit.Check(t, fmt.Sprint(got[0].Counts) == fmt.Sprint(got[1].Counts) && len(got[2].Counts) == 0,
		"a dry run counts\n%+v, then\n%+v is taken, and\n%+v is left", got[0].Counts, got[1].Counts, got[2].Counts)
	return got[1]
}

// opened is a snapshot for one use.
func opened(t *testing.T, st full, session string, use func(server.Snapshot)) {
	t.Helper()
	snap := kit.Try(st.Open(t.Context(), server.Ref{SessionID: session})).Must(t)
	use(snap)
	kit.Should(t, snap.Close())
}

// lines are those of some generations.
func linesOf(t *testing.T, st full, session string, generations ...int64) (out []string) {
	t.Helper()
	opened(t, st, session, func(snap server.Snapshot) {
		for _, g := range generations {
			out = append(out, dump(t, snap, g)...)
		}
	})
	return out
}

func idOf(t *testing.T, st full, session string) (id int64) {
	t.Helper()
	opened(t, st, session, func(snap server.Snapshot) { id = snap.Session().ID })
	return id
}

// understand derives everything, as a server does.
func understand(t *testing.T, st full) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&derive.Deriver{Store: st, Log: slog.New(slog.DiscardHandler)}).Run(ctx) }()
	for n := int64(1); n > 0; <-time.After(5 * time.Millisecond) {
		n = lag(t, st)
	}
	cancel()
	kit.Should(t, <-ended)
}

// views are the digests of an epoch, without what says that lines were retired.
func views(t *testing.T, st full, session string) (out []protocol.ViewDigest, retired int64) {
	t.Helper()
	opened(t, st, session, func(snap server.Snapshot) {
		out = kit.Try(audit.DigestViews(t.Context(), snap)).Must(t)
	})
	for i := range out {
		for _, r := range out[i].Retired {
			retired += r.Lines
		}
		out[i].Retired = nil
	}
	return out, retired
}

// proofs are views with the hashes of their lines, which stay known of those that were retired.
func proofs(t *testing.T, st full, session string) (out []string, retired int64) {
	t.Helper()
	list, retired := views(t, st, session)
	opened(t, st, session, func(snap server.Snapshot) {
		for _, v := range list {
			of := kit.Try(server.ViewOf(snap.Generations(), v.Generation)).Must(t)
			hashes := kit.Try(audit.LineHashes(t.Context(), snap, of, 0, v.EndLine)).Must(t)
			sum := sha256.New()
			for _, h := range hashes {
				fmt.Fprintln(sum, h != nil)
				if h != nil {
					fmt.Fprintln(sum, *h)
				}
			}
			v.SHA256 = fmt.Sprintf("%x", sum.Sum(nil))
			out = append(out, fmt.Sprintf("%+v", v))
		}
	})
	return out, retired
}

// generationOf is a batch of a later generation, by a writer with a ledger if it has one.
func generationOf(session string, g, rewound int64, writer server.Writer, lines ...server.Line) *server.Batch {
	b := batch(session, lines...)
	b.Head.Generation, b.Head.RewoundTo, b.Head.Writer = g, rewound, writer
	b.Received = start.Add(time.Duration(g) * time.Hour)
	return b
}

func ledgerOf(b *server.Batch) server.Writer {
	return server.Writer{Incarnation: "i", Store: b.Head.Receipt.Store, Count: b.Head.Receipt.Count}
}

// rewound stores 200 lines, of which a rewind replaces the last 100 by 50 others, and another one the last 20 of those.
func rewound(t *testing.T, st full, session string) (all []server.Line, w server.Writer) {
	t.Helper()
	w = server.Writer{Incarnation: "i"}
	l := kit.Try(st.Ledger(t.Context(), 0, "m", 0, 1)).Must(t)
	w.Store, w.Count = l.Store, l.Count
	first, second, third := prose(0, 200, 900), prose(100, 50, 901), prose(130, 40, 902)
	first[7] = server.Line{Index: 7, Kind: server.Oversize, Raw: transcript.AppendOversize(nil, 7, 5, 9, [32]byte{1})}
	for _, b := range []*server.Batch{generationOf(session, 0, 0, w, first...), generationOf(session, 1, 100, w, second...),
		generationOf(session, 2, 130, w, third...)} {
		b.Head.Writer = w
		put(t, st, b)
		w = ledgerOf(b)
	}
	return slices.Concat(first[:100], second[:30], third), w
}

// retireSession: a dropped session keeps its digests, and takes nothing of before again, but new lines.
func (s suite) retireSession(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("other", prose(0, 20, 500)...))
	now, w := rewound(t, st, "s")
	understand(t, st)
	before, _ := proofs(t, st, "s")
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: 90 * day})
	hold := kit.Try(st.AddHold(t.Context(), server.Hold{Session: "other", By: "ann", Why: "a case", At: start})).Must(t)
	report := retire(t, st)
	kit.Check(t, len(report.Counts) == 1 && report.Counts[0].Lines == 289 && report.Counts[0].Sessions == 1 &&
		report.Counts[0].Generations == 3 &&
		fmt.Sprint(report.Kept) == fmt.Sprint([]server.KeptCount{{Rule: 1, Why: "hold", Sessions: 1}}), "%+v", report)
	after, n := proofs(t, st, "s")
	kit.Check(t, fmt.Sprint(before) == fmt.Sprint(after) && n == 199+149+169,
		"%d lines are retired; digests were\n%+v, are\n%+v", n, before, after)
	got := linesOf(t, st, "s", 0, 1, 2)
	kit.Check(t, len(got) == 1 && strings.HasPrefix(got[0], "7:oversize"), "still stored: %d lines", len(got))
	kit.Equal(t, "found", searched(t, st, all, server.SearchQuery{Text: "word1", Session: "s", Superseded: true}), nil)
	k, err := st.KeptUntil(t.Context(), idOf(t, st, "s"), later)
	kit.Check(t, err == nil && k.Retired.Equal(later) && k.Lines == 289 && strings.Contains(k.Rule, "90 days"), "%+v, %v", k, err)

	// The same lines again, one by one and together, are acknowledged and not stored.
	for _, repeated := range [][]server.Line{prose(130, 40, 902), {now[169]}} {
		b := generationOf("s", 2, 130, w, repeated...)
		put(t, st, b)
		w = ledgerOf(b)
	}
	kit.Equal(t, "lines were stored again", len(linesOf(t, st, "s", 2)), 0)
	// Others in their place are refused, as for stored lines.
	err = st.Put(t.Context(), generationOf("s", 2, 130, w, object(140, "other")))
	no, ok := errors.AsType[*server.StreamError](err)
	kit.Check(t, ok && no.Code == protocol.CodeOtherBytes && no.Line == 140, "other bytes for a retired line: %v", err)
	// The session goes on, and a rewind into what was retired keeps what is before it.
	more := generationOf("s", 2, 130, w, prose(170, 10, 600)...)
	put(t, st, more)
	back := generationOf("s", 3, 50, ledgerOf(more), prose(50, 10, 700)...)
	put(t, st, back)
	understand(t, st)
	went, _ := views(t, st, "s")
	v := went[2]
	kit.Check(t, v.Lines == 179 && v.Missing == 1 && v.SHA256 == "", "the session that went on: %+v", v)
	v = went[3]
	kit.Check(t, v.Lines == 59 && v.Missing == 1 && v.SHA256 == "", "the rewind into retired lines: %+v", v)
	kit.Equal(t, "the audit finds", audited(t, st), nil)

	kit.Must(t, st.RemoveHold(t.Context(), hold))
	list, err := st.RetentionLog(t.Context(), 10)
	kit.Check(t, err == nil && len(list) == 1 && list[0].Lines == 289 && list[0].By == "ann" && list[0].SessionID == "s",
		"the log says %+v, %v", list, err)
	kit.Try(st.Forget(t.Context(), all, "s", 0, later)).Must(t)
	kit.Equal(t, "after forgetting, runs of retired lines are left", s.query(t, st, `SELECT count(*) FROM retired`), 0)
}

// retireGenerations: only what no newest view shows goes; what shares its blocks stays byte for byte.
func (s suite) retireGenerations(t *testing.T) {
	st := s.open(t)
	now, _ := rewound(t, st, "s")
	understand(t, st)
	before, _ := proofs(t, st, "s")
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: 90 * day})
	report := retire(t, st)
	kit.Check(t, len(report.Counts) == 1 && report.Counts[0].Lines == 120 && report.Counts[0].Generations == 2, "%+v", report)
	got := linesOf(t, st, "s", 0, 1, 2)
	kit.Equal(t, fmt.Sprintf("lines remain, want the %d of the newest view", len(now)), got, listed(now))
	after, n := proofs(t, st, "s")
	kit.Check(t, fmt.Sprint(before) == fmt.Sprint(after) && n == 120,
		"%d lines are retired; digests were\n%+v, are\n%+v", n, before, after)
	understand(t, st)
	kit.Equal(t, "the audit finds", audited(t, st), nil)
	found := searched(t, st, all, server.SearchQuery{Text: `"line":150`, Session: "s", Superseded: true})
	kit.Check(t, len(found) <= 1, "found %q", found)
	drops, err := st.Drops(t.Context(), all, server.DropQuery{Limit: 9})
	kit.Check(t, err == nil && len(drops) == 2, "rewrites: %+v, %v", drops, err)
}

// shadows: bob sends, after ann, what has the names of ann's. No method takes bob's for ann's.
func (s suite) shadows(t *testing.T) {
	st := s.open(t)
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bobby", server.Member)
	for i, u := range []server.User{ann, bob} {
		at := start.Add(time.Duration(i) * time.Hour)
		for gen, session := range []string{"s", "s", "s/agent-1"} {
			b := batch(session, object(0, `{"of":"`+u.Name+`"}`))
			b.Owner, b.Received, b.Head.Generation = u.ID, at, int64(gen)
			if session != "s" {
				b.Head.Parent = "s"
			}
			put(t, st, b)
		}
		putDocuments(t, st, u.ID, "s", "e", version("a.md", 1, server.Linked, u.Name))
		putCheckpoints(t, st, u.ID, "s", "e", mark("cp", i))
	}
	deriveAll(t, st)
	reads := s.shadowReads(t.Context(), st)
	for name, read := range reads {
		_, err := read(all, server.Ref{SessionID: "s"})
		no, ok := errors.AsType[*server.AmbiguousError](err)
		if !ok || no.Session != "s" || len(no.Choices) != 2 {
			t.Errorf("%s of s: %v %+v, want a choice of two", name, err, no)
			continue
		}
		a, b := no.Choices[0], no.Choices[1]
		kit.Check(t, (a.Owner == bob.ID || name == "forget") && a.Owner+b.Owner == ann.ID+bob.ID && (a.SessionID == "s" ||
			name == "forget"), "%s of s: choices are %+v", name, no.Choices)
		kit.Err(t, name+" of s by a stranger", server.ErrNotFound)(read(server.Scope{User: 999}, server.Ref{SessionID: "s"}))
	}
	for name, read := range reads {
		for _, u := range []server.User{ann, bob} {
			if name == "forget" {
				continue
			}
			kit.Gives(t, fmt.Sprintf("%s of %s's s", name, u.Name), u.ID)(read(all, server.Ref{SessionID: "s", Owner: u.ID}))
			// Own comes first, for an owner too.
			kit.Gives(t, fmt.Sprintf("%s of %s's own s", name, u.Name),
				u.ID)(read(server.Scope{All: true, User: u.ID}, server.Ref{SessionID: "s"}))
		}
	}
	kit.Gives(t, "by name", ann.ID)(reads["view"](all, server.Ref{SessionID: "s", User: "ann"}))
	kit.Err(t, "of nobody", server.ErrNotFound)(reads["view"](all, server.Ref{SessionID: "s", User: "nobody"}))
	kit.Gives(t, "forget ann's", ann.ID)(reads["forget"](all, server.Ref{SessionID: "s", Owner: ann.ID}))
	expectNames(t, "what is left", names(t, st, all, server.SessionQuery{Agents: true}), "s", "s/agent-1")
	kit.Gives(t, "the only one left", bob.ID)(reads["view"](all, server.Ref{SessionID: "s"}))
}

type shadowRead func(server.Scope, server.Ref) (owner int64, err error)

// shadowReads are the methods that take a session's name. Each answers whose session it took.
func (s suite) shadowReads(ctx context.Context, st full) map[string]shadowRead {
	return map[string]shadowRead{
		"view": func(scope server.Scope, ref server.Ref) (int64, error) {
			snap, err := st.View(ctx, scope, ref)
			if err != nil {
				return 0, err
			}
			return snap.Session().Owner, snap.Close()
		},
		"resolve": func(scope server.Scope, ref server.Ref) (int64, error) {
			x, err := st.Resolve(ctx, scope, ref)
			return x.Owner, err
		},
		"documents": func(scope server.Scope, ref server.Ref) (int64, error) {
			list, err := st.Documents(ctx, scope, ref)
			if err != nil {
				return 0, err
			}
			u, err := st.FindUser(ctx, map[bool]string{true: "ann", false: "bobby"}[list[0].Size == 3])
			return u.ID, err
		},
		"checkpoints": func(scope server.Scope, ref server.Ref) (int64, error) {
			page, err := st.Checkpoints(ctx, scope, server.CheckpointQuery{Ref: &ref, Limit: 9})
			if err != nil {
				return 0, err
			}
			return page.List[0].Owner, nil
		},
		"forget": func(scope server.Scope, ref server.Ref) (int64, error) {
			gone, err := st.Forget(ctx, scope, ref.SessionID, ref.Owner, start)
			return gone.Owner, err
		},
	}
}

// shortNames: a session is named by the beginning of its id as far as the reader's other sessions ask for it, and what
// the reader may not see neither lengthens a name nor answers to one.
func (s suite) shortNames(t *testing.T) {
	st := s.open(t)
	ann, bob := addUser(t, st, "ann", server.Member), addUser(t, st, "bobby", server.Member)
	const (
		first  = "1e0a84da-0000-4000-8000-000000000001"
		second = "1e0a84da-7000-4000-8000-000000000002"
		alone  = "77777777-0000-4000-8000-000000000003"
		hidden = "77777777-1000-4000-8000-000000000004"
	)
	send := func(u server.User, machine, id, parent string) {
		put(t, st, batch(id, object(0, `{"of":"`+u.Name+`"}`)),
			func(b *server.Batch) { b.Owner, b.Head.Parent, b.Head.Machine = u.ID, parent, machine })
	}
	send(ann, "m", first, "")
	send(ann, "m", second, "")
	send(ann, "m", alone, "")
	send(ann, "m", alone+"/agent-1", alone)
	send(bob, "m", hidden, "")
	send(ann, "m", "short", "")
	send(ann, "m", "several", "")
	send(ann, "n", "several", "")
	hers := server.Scope{User: ann.ID}
	names, err := st.ShortNames(t.Context(), hers, []string{first, second, alone, hidden, "short", "several", "absent"})
	kit.Must(t, err)
	for id, want := range map[string]string{first: "1e0a84da-0", second: "1e0a84da-7", alone: "77777777", hidden: "", "short": "short",
		"several": "", "absent": ""} {
		kit.Equal(t, id+" is called", names[id], want)
	}
	names, err = st.ShortNames(t.Context(), all, []string{alone})
	kit.Check(t, err == nil && names[alone] == "77777777-0", "among all: %q, %v", names[alone], err)
	for prefix, want := range map[string]string{"1e0a84da-7": second, "7777": alone, alone: alone, "77777777/agent-1": alone + "/agent-1",
		"shor": "short"} {
		x, err := st.Resolve(t.Context(), hers, server.Ref{SessionID: prefix, Prefix: true})
		kit.Check(t, err == nil && x.SessionID == want, "%s is %q, %v", prefix, x.SessionID, err)
	}
	for _, prefix := range []string{"777", "", "77777777-1", "7777 ", "%", "7777~", "ÿÿÿÿ", "77777777/agent-2", "/agent-1"} {
		kit.Err(t, prefix+" is",
			server.ErrNotFound)(st.Resolve(t.Context(), hers, server.Ref{SessionID: prefix, Prefix: true}))
	}
	kit.Err(t, "without Prefix", server.ErrNotFound)(st.Resolve(t.Context(), hers, server.Ref{SessionID: "1e0a84da"}))
	_, err = st.Resolve(t.Context(), hers, server.Ref{SessionID: "1e0a84da", Prefix: true})
	no, ok := errors.AsType[*server.AmbiguousError](err)
	kit.Check(t, ok && len(no.Choices) == 2 && no.Choices[0].SessionID != no.Choices[1].SessionID, "the beginning of two: %+v, %v", no, err)
}
