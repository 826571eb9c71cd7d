package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
)

// full is what every store must do.
type full = store.Store

// suite is the contract. open gives an empty store; reopen closes it and opens it again.
type suite struct {
	open   func(t *testing.T) full
	with   func(t *testing.T, how store.Opening) full // is open with options
	reopen func(t *testing.T, s full) full
	again  func(t *testing.T, s full, how store.Opening) full // is reopen with options
	// query runs a statement on the database itself and returns the first number of its answer.
	query   func(t *testing.T, s full, query string) int64
	sealing bool // every line is packed at once
	cooling bool // and everything is moved to cold storage
	rows    bool // only with lines as they come, for the packed ones are tested on the same database another way
}

// packedAlike are the cases that neither write nor read lines, so that packing them tests nothing more.
var packedAlike = []string{
	"Users", "Keys", "Rotate", "SavedViews", "Shares", "Logins", "Tickets", "SameNames", "LedgerArtifacts", "Checkpoints",
	"CheckpointPages", "Documents", "DocumentOrder", "DocumentEpochs", "ManyVersions", "DocumentNames", "ArtifactsFirst",
	"ArtifactScopes", "LinkRequests", "ManyLinkRequests", "Upload", "UploadLies", "UploadsAtOnce", "UploadRoom", "Sweep",
	"QuotaFiles", "QuotaHTTP", "ForgetArtifacts", "ForgetDuringUpload", "ArtifactsStay", "AuditBlobs",
}

func (s suite) run(t *testing.T) {
	if !s.sealing && !s.rows {
		s.sealed().runAs(t, "Sealed")
		s.cooled().runAs(t, "Cooled")
	}
	s.runAs(t, "")
}

func (s suite) runAs(t *testing.T, prefix string) {
	t.Helper()
	if !s.sealing && !s.cooling {
		for name, test := range map[string]func(*testing.T){
			"Blocks": s.blocks, "Heads": s.heads, "BlockConflicts": s.blockConflicts, "BlockGaps": s.blockGaps, "BlockMask": s.blockMask,
			"BlockTails": s.blockTails,
			"Damage":     s.damage, "SealMeanwhile": s.sealMeanwhile, "SealSteps": s.sealSteps, "OneFails": s.oneFails, "ManyFail": s.manyFail, "ClockBack": s.clockBack, "ColdLarge": s.coldLarge,
			"Cold": s.cold, "ColdSteps": s.coldSteps, "ColdDown": s.coldDown, "ColdPast": s.coldPast, "ColdDamage": s.coldDamage,
			"ColdMeanwhile": s.coldMeanwhile, "ColdDoubt": s.coldDoubt, "ColdReturn": s.coldReturn, "ColdFiles": s.coldFiles, "ColdPlaces": s.coldPlaces,
			"ColdSealed": s.coldSealed, "BlockOverRows": s.blockOverRows, "Histories": s.histories,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	}
	for name, test := range map[string]func(*testing.T){
		"Lines": s.lines, "Replace": s.replace, "Generation": s.generation, "Snapshot": s.snapshot, "Crowding": s.crowding,
		"Concurrent": s.concurrent, "Reopen": s.reopens, "KeepsFacts": s.keepsFacts,
		"Mask": s.mask, "MaskRefuses": s.maskRefuses, "MaskedAgain": s.maskedAgain, "MaskStale": s.maskStale,
		"MaskFiles": s.maskFiles, "MaskCheckpoints": s.maskCheckpoints, "MaskForgotten": s.maskForgotten,
		"Ledger": s.ledger, "LedgerConflicts": s.ledgerConflicts, "LedgerArtifacts": s.ledgerArtifacts,
		"Users": s.users, "Keys": s.keys, "Rotate": s.rotate, "RevokeAll": s.revokeAll, "RevokeDeep": s.revokeDeep, "Shares": s.shares, "Logins": s.logins, "Tickets": s.tickets,
		"Scopes": s.scopes, "SameNames": s.sameNames, "Shadows": s.shadows, "ShortNames": s.shortNames, "Filters": s.filters, "Paging": s.paging, "Groups": s.groups,
		"Received": s.received, "Changes": s.changes, "Active": s.active,
		"Leases": s.leases, "Stale": s.stale, "Redo": s.redo, "Renew": s.renew, "Lags": s.lags, "Reset": s.reset, "Derivers": s.derivers,
		"Urgency": s.urgency, "Together": s.together, "KeptState": s.keptState, "Resting": s.resting,
		"RetireSession": s.retireSession, "RetireGenerations": s.retireGenerations, "RetireKeeps": s.retireKeeps,
		"RetireSizes": s.retireSizes, "RetireSizesAfter": s.retireSizesAfter, "RetireTwice": s.retireTwice, "RetireFiles": s.retireFiles, "RetireSteps": s.retireSteps, "RetireUsage": s.retireUsage,
		"RetireCopies": s.retireCopies, "RetireReplaced": s.retireReplaced, "RetireCold": s.retireCold, "RetireColdBlocks": s.retireColdBlocks, "RetireFails": s.retireFails, "RetireJump": s.retireJump, "RetireMeanwhile": s.retireMeanwhile, "RetireResumed": s.retireResumed, "RetireKept": s.retireKept, "RetireSpace": s.retireSpace,
		"RetireMasked": s.retireMasked, "RetireForks": s.retireForks,
		"Digests": s.digests,
		"Moments": s.moments, "Edits": s.edits, "EditsGone": s.editsGone, "Commits": s.commits, "Marks": s.marks, "ShareLinks": s.shareLinks, "HasMany": s.hasMany, "OverKeys": s.overKeys, "QuotaRows": s.quotaRows, "Repositories": s.repositories, "SavedViews": s.savedViews, "Tops": s.tops,
		"Search": s.search, "Rank": s.rank, "RankShows": s.rankShows, "RankScopes": s.rankScopes, "RankPast": s.rankPast, "RankStates": s.rankStates, "RankBound": s.rankBound, "Inert": s.inert, "SearchFilters": s.searchFilters, "SearchPages": s.searchPages, "Crowd": s.crowd,
		"Calls": s.calls, "Snippets": s.snippets, "Superseded": s.superseded, "Rederived": s.rederived,
		"Once": s.once, "Copies": s.copies, "AgentCopies": s.agentCopies, "PastPrompts": s.pastPrompts, "PastPages": s.pastPages, "UsageSums": s.usageSums, "ProjectSums": s.projectSums, "Uncounted": s.uncounted, "CopiedFrom": s.copiedFrom, "Usage": s.usage, "UsageContexts": s.usageContexts, "AnswerDay": s.answerDay, "Forget": s.forget, "ForgetMeanwhile": s.forgetMeanwhile,
		"Checkpoints": s.checkpoints, "CheckpointPages": s.checkpointPages, "Documents": s.documents, "DocumentOrder": s.documentOrder,
		"DocumentEpochs": s.documentEpochs, "ManyVersions": s.manyVersions, "DocumentNames": s.documentNames,
		"ArtifactsFirst": s.artifactsFirst, "ArtifactScopes": s.artifactScopes, "LinkRequests": s.linkRequests, "ManyLinkRequests": s.manyLinkRequests,
		"Upload": s.upload, "UploadLies": s.uploadLies, "UploadsAtOnce": s.uploadsAtOnce, "UploadRoom": s.uploadRoom, "Sweep": s.sweep,
		"Quotas": s.quotas, "QuotaFiles": s.quotaFiles, "QuotaOthers": s.quotaOthers, "QuotaHTTP": s.quotaHTTP, "ForgetArtifacts": s.forgetArtifacts, "ForgetDuringUpload": s.forgetDuringUpload, "ArtifactsStay": s.artifactsStay, "AuditBlobs": s.auditBlobs,
	} {
		if s.sealing && slices.Contains(packedAlike, name) || s.cooling && slices.Contains(cooledAlike, name) {
			continue
		}
		t.Run(prefix+name, func(t *testing.T) {
			t.Parallel() // each case opens a store of its own
			test(t)
		})
	}
}

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func batch(session string, lines ...server.Line) *server.Batch {
	b := &server.Batch{Head: server.Head{SessionID: session, Machine: "m", Epoch: "e", EOFNewline: true}, Lines: lines, Received: start}
	for _, l := range lines {
		b.Head.EndLine = max(b.Head.EndLine, l.Index+1)
	}
	return b
}

func object(i int64, raw string) server.Line { return server.Line{Index: i, Raw: []byte(raw)} }

// put stores a batch after change has set what is unusual of it.
func put(t *testing.T, s full, b *server.Batch, change ...func(b *server.Batch)) {
	t.Helper()
	for _, set := range change {
		set(b)
	}
	kit.Must(t, s.Put(t.Context(), b))
}

func openSession(t *testing.T, s full, session string) server.Snapshot {
	t.Helper()
	snap := kit.Try(s.Open(t.Context(), server.Ref{SessionID: session})).Must(t)
	t.Cleanup(func() { kit.Should(t, snap.Close()) })
	return snap
}

// dump is all lines of a generation as "index:kind:raw".
func dump(t *testing.T, snap server.Snapshot, generation int64) (out []string) {
	t.Helper()
	kit.Must(t, snap.Lines(t.Context(), server.Span{Generation: generation, From: 0, To: 1 << 40}, func(l server.Line) error {
		out = append(out, fmt.Sprintf("%d:%s:%s", l.Index, l.Kind, l.Raw))
		return nil
	}))
	return out
}

func (s suite) lines(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(3, "three\x00\xff\r"), server.Line{Index: 1, Kind: server.Opaque},
		server.Line{Index: 2, Kind: server.Oversize, Raw: []byte("note")}, object(1<<40-1, "far")))
	snap := openSession(t, st, "s")
	want := []string{"1:opaque:", "2:oversize:note", "3:object:three\x00\xff\r", fmt.Sprintf("%d:object:far", 1<<40-1)}
	kit.Equal(t, "lines", dump(t, snap, 0), want)
	kit.Equal(t, "another generation has", dump(t, snap, 1), nil)
	for span, want := range map[server.Span][2]int64{{From: 1, To: 4}: {2, 1}, {From: 2, To: 3}: {0, 1}, {From: 4, To: 9}: {0, 0}} {
		n, oversize, err := snap.Count(t.Context(), span)
		kit.Check(t, err == nil && [2]int64{n, oversize} == want, "count %v: %d, %d, %v", span, n, oversize, err)
	}
	stop := errors.New("stop")
	err := snap.Lines(t.Context(), server.Span{To: 9}, func(server.Line) error { return stop })
	kit.Check(t, errors.Is(err, stop), "yield's error became %v", err)
	kit.Err(t, "unknown session", server.ErrNotFound)(st.Open(t.Context(), server.Ref{SessionID: "other"}))
}

func (s suite) replace(t *testing.T) {
	st := s.open(t)
	for _, raw := range []string{"aa", "aa", "b", "b"} {
		put(t, st, batch("s", object(0, raw)))
	}
	put(t, st, batch("s", object(1, "x"), object(1, "yyy"))) // twice in one request: the later one
	snap := openSession(t, st, "s")
	kit.Equal(t, "lines", dump(t, snap, 0), []string{"0:object:b", "1:object:yyy"})
	kit.Equal(t, "bytes counted, want 6", snap.Session().Bytes, 2+4)
}

func (s suite) generation(t *testing.T) {
	st := s.open(t)
	step := func(g, rewound, endLine, endOffset int64, newline bool) {
		b := batch("s")
		b.Head.Generation, b.Head.RewoundTo = g, rewound
		b.Head.EndLine, b.Head.EndOffset, b.Head.EOFNewline = endLine, endOffset, newline
		put(t, st, b)
	}
	step(2, 5, 7, 70, true)
	step(0, 0, 9, 90, false)
	step(0, 0, 4, 40, true)  // an older request again
	step(0, 0, 9, 91, true)  // the newline came
	step(0, 0, 9, 90, false) // an older request again
	snap := openSession(t, st, "s")
	var got []string
	for _, g := range snap.Generations() {
		got = append(got, fmt.Sprintf("%d from %d to %d at %d %v", g.Number, g.RewoundTo, g.EndLine, g.EndOffset, g.EOFNewline))
	}
	kit.Equal(t, "generations", got, []string{"0 from 0 to 9 at 91 true", "2 from 5 to 7 at 70 true"})
	x := snap.Session()
	kit.Check(t, x.Generation == 2 && x.Lines == 7 && x.Bytes == 70, "session %+v", x)
}

// snapshot: what is stored after Open does not show.
func (s suite) snapshot(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, "old")))
	snap := openSession(t, st, "s")
	put(t, st, batch("s", object(0, "new"), object(1, "more")))
	kit.Equal(t, "an open snapshot shows", dump(t, snap, 0), []string{"0:object:old"})
	kit.Equal(t, "a new snapshot shows", len(dump(t, openSession(t, st, "s"), 0)), 2)
}

// crowding: one user can't open so many snapshots that there is no space for another's and for the server's own.
func (s suite) crowding(t *testing.T) {
	st, ctx := s.open(t), t.Context()
	for user := range int64(2) {
		put(t, st, batch(fmt.Sprint("s", user+1), object(0, "{}")), func(b *server.Batch) { b.Owner = user + 1 })
	}
	view := func(user int64, patience time.Duration) (server.Snapshot, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return st.View(ctx, server.Scope{All: user == 0, User: user}, server.Ref{SessionID: fmt.Sprint("s", max(1, user))})
	}
	closing := func(snap server.Snapshot) {
		t.Helper()
		kit.Should(t, snap.Close())
	}
	var open []server.Snapshot
	for {
		snap, err := view(1, 300*time.Millisecond)
		if err != nil {
			break // as many as one user may
		}
		open = append(open, snap)
	}
	for _, user := range []int64{2, 0} {
		snap, err := view(user, 10*time.Minute)
		if err != nil {
			t.Errorf("user %d, while another has %d open: %v", user, len(open), err)
			continue
		}
		closing(snap)
	}
	for _, snap := range open {
		closing(snap)
	}
	snap, err := view(1, 10*time.Minute)
	kit.Require(t, err == nil, "after all are closed: %v", err)
	closing(snap)
}

// concurrent: many writers of many streams, all repeating; each ends whole.
func (s suite) concurrent(t *testing.T) {
	st := s.open(t)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range int64(20) {
				kit.Should(t, st.Put(t.Context(), batch(fmt.Sprint("s", w%4), object(i, fmt.Sprint("line ", i)))))
			}
		})
	}
	wg.Wait()
	for w := range 4 {
		kit.Equal(t, fmt.Sprintf("stream %d has lines", w), len(dump(t, openSession(t, st, fmt.Sprint("s", w)), 0)), 20)
	}
}

func (s suite) reopens(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, "kept")))
	st = s.reopen(t, st)
	kit.Equal(t, "after opening again", dump(t, openSession(t, st, "s"), 0), []string{"0:object:kept"})
}

// keepsFacts: what a request leaves empty stays as an earlier one said; what it names is news.
func (s suite) keepsFacts(t *testing.T) {
	st := s.open(t)
	put(t, st, batch("s", object(0, "x")),
		func(b *server.Batch) {
			b.Head.Cwd, b.Head.Path, b.Head.Parent, b.Head.ProjectHash, b.Head.Host = "/w\x00", "p/s", "up", "ph", "old"
		})
	put(t, st, batch("s", object(1, "x")), func(b *server.Batch) { b.Head.Host, b.Received = "new", start.Add(time.Minute) })
	list, err := st.Sessions(t.Context(), server.Page{Limit: 5})
	kit.Require(t, err == nil && len(list.List) == 1, "%+v, %v", list, err)
	x := list.List[0]
	got := strings.Join([]string{x.Cwd, x.Path, x.Parent, x.ProjectHash, x.Host}, " ")
	kit.Check(t, got == "/w\uFFFD p/s up ph new" && x.First.Equal(start) && x.Last.Equal(start.Add(time.Minute)), "%+v", x)
}
