package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ccship/ccship/tail"
)

// milestone is a checkpoint so many minutes into a day.
func milestone(id string, minute int) Checkpoint {
	return Checkpoint{
		ID: id, Session: "s", Trigger: "auto_80", Tokens: int64(1000 + minute), Budget: 167_000, ContextHash: "00ff", Summary: "고침",
		ActiveFiles: []string{"/a"}, At: time.Date(2026, 8, 20, 9, minute, 0, 0, time.UTC), Line: int64(minute), Generation: 2, Model: "m",
	}
}

func derived(t testing.TB, db *DB, all ...Derivation) {
	t.Helper()
	errs, err := db.Derive(t.Context(), all)
	if err = errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
}

// listed are the ids of a file's checkpoints, of all for 0, in pages of two.
func listed(t testing.TB, db *DB, file tail.FileID) (ids []string) {
	t.Helper()
	for more := true; more; {
		var page []Checkpoint
		var err error
		if page, more, err = db.Checkpoints(t.Context(), file, len(ids), 2); err != nil {
			t.Fatal(err)
		}
		if more && len(page) != 2 {
			t.Fatalf("a page of %d with more behind it", len(page))
		}
		for _, c := range page {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestCheckpoints(t *testing.T) {
	db := open(t, Options{})
	commit(t, db, advance(1, 0, 3, 10), advance(2, 0, 3, 10))
	old, early := milestone("cp-d", 2), milestone("cp-e", 0)
	early.At = time.Time{}
	derived(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{milestone("cp-a", 5), milestone("cp-b", 5), milestone("cp-c", 9)}},
		Derivation{File: 2, Checkpoints: []Checkpoint{old, early}})
	again := milestone("cp-a", 50)
	derived(t, db, Derivation{File: 2, Checkpoints: []Checkpoint{again}})
	for file, want := range map[tail.FileID][]string{
		0: {"cp-c", "cp-b", "cp-a", "cp-d", "cp-e"}, 1: {"cp-c", "cp-b", "cp-a"}, 2: {"cp-d", "cp-e"}, 3: nil,
	} {
		if got := listed(t, db, file); !slices.Equal(got, want) {
			t.Errorf("file %d: %v, want %v", file, got, want)
		}
	}
	got, found, err := db.Checkpoint(t.Context(), "cp-d")
	old.File = 2
	if diff := cmp.Diff(old, got, cmpopts.IgnoreUnexported(Checkpoint{})); err != nil || !found || diff != "" {
		t.Errorf("found %v, err %v (-want +got):\n%s", found, err, diff)
	}
	if _, found, err := db.Checkpoint(t.Context(), "cp-"); found || err != nil {
		t.Errorf("found %v, err %v", found, err)
	}
	derived(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{}})
	if err := db.DropDerived(t.Context(), []tail.FileID{1}); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, db, 0); !slices.Equal(got, []string{"cp-d", "cp-e"}) {
		t.Errorf("after the drop: %v", got)
	}
}

// TestCheckpointsAreBounded fills one transcript's share and then that of all. Files whose numbers are at the edges of
// what keys can be do not meet.
func TestCheckpointsAreBounded(t *testing.T) {
	db := open(t, Options{})
	const files = checkpointsInAll/checkpointsPerFile + 1
	name := func(id tail.FileID) tail.FileID { return 1<<62 - id }
	for f := range tail.FileID(files) {
		commit(t, db, advance(name(f), 0, 3, 10))
		var marks []Checkpoint
		for i := range checkpointsPerFile + 2 {
			c := milestone(fmt.Sprintf("cp-%d-%d", f, i), 0)
			c.At = c.At.Add(time.Duration(int(f)*checkpointsPerFile*2+i) * time.Second)
			marks = append(marks, c)
		}
		derived(t, db, Derivation{File: name(f), Checkpoints: marks})
		list, more, err := db.Checkpoints(t.Context(), name(f), 0, 2*checkpointsPerFile)
		if err != nil || more || len(list) != checkpointsPerFile || list[len(list)-1].ID != fmt.Sprintf("cp-%d-2", f) {
			t.Fatalf("file %d keeps %d, more %v, err %v", f, len(list), more, err)
		}
	}
	list, _, err := db.Checkpoints(t.Context(), 0, 0, 2*checkpointsInAll)
	if err != nil || len(list) != checkpointsInAll || list[len(list)-1].File != name(1) {
		t.Errorf("%d are kept, err %v", len(list), err)
	}
}

func TestBudgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "state.db")
	db := open(t, Options{Path: path})
	commit(t, db, advance(1, 0, 3, 10), advance(2, 0, 3, 10))
	compaction := func(id string, minute int, tokens int64, model string) Checkpoint {
		c := milestone(id, minute)
		c.Trigger, c.Automatic, c.Tokens, c.Model = "compact", true, tokens, model
		return c
	}
	manual := compaction("cp-m", 1, 84_000, "m")
	manual.Automatic = false
	marks := []Checkpoint{
		compaction("cp-0", 0, 90_000, "m"), compaction("cp-1", 2, 167_000, "m"), manual, compaction("cp-2", 3, 49_999, "m"),
		compaction("cp-3", 3, 95_000, ""), compaction("cp-4", 4, 900_000, "large"),
	}
	derived(t, db, Derivation{File: 1, Checkpoints: marks})
	at := func(minute int, tokens int64) Compaction {
		return Compaction{At: milestone("", minute).At.UnixMilli(), Tokens: tokens}
	}
	want := map[string][]Compaction{"m": {at(2, 167_000), at(0, 90_000)}, "large": {at(4, 900_000)}}
	if diff := cmp.Diff(want, db.Budgets().Compactions); diff != "" {
		t.Errorf("compactions (-want +got):\n%s", diff)
	}
	derived(t, db, Derivation{File: 2, Checkpoints: []Checkpoint{compaction("cp-0", 5, 85_000, "m")}}) // there already
	var later []Checkpoint
	newest := []Compaction{at(2, 167_000)}
	for i := range compactionsPerModel - 1 {
		later = append(later, compaction(fmt.Sprintf("cp-l%d", i), 10+i, 168_000, "m"))
		newest = slices.Insert(newest, 0, at(10+i, 168_000))
	}
	before := db.Budgets()
	derived(t, db, Derivation{File: 1, Checkpoints: later})
	if diff := cmp.Diff(want, before.Compactions); diff != "" {
		t.Errorf("what was answered changes (-want +got):\n%s", diff)
	}
	want["m"] = newest
	pin := func(model string, file tail.FileID, limit int64) {
		t.Helper()
		if err := db.PinBudget(t.Context(), model, file, limit); err != nil {
			t.Fatal(err)
		}
	}
	pin("m", 0, 100_000)
	pin("gone", 0, 7)
	pin("gone", 0, 0)
	pin("", 1, 90_000)
	pin("", 2, 80_000)
	check := func(db *DB, files map[tail.FileID]int64) {
		t.Helper()
		all := Budgets{Compactions: want, Models: map[string]int64{"m": 100_000}, Files: files}
		if diff := cmp.Diff(all, db.Budgets()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	check(db, map[tail.FileID]int64{1: 90_000, 2: 80_000})
	if err := db.DropDerived(t.Context(), []tail.FileID{1}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, db)
	check(open(t, Options{Path: path}), map[tail.FileID]int64{2: 80_000})
}

func TestPending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "state.db")
	db := open(t, Options{Path: path})
	commit(t, db, advance(1, 0, 3, 10))
	notice := func(session, id string) Pending {
		return Pending{Session: session, Kind: "auto_80", Checkpoint: id, Tokens: 1}
	}
	derived(t, db,
		Derivation{File: 1, Checkpoints: []Checkpoint{milestone("cp-a", 1)}, Pending: []Pending{notice("s", "cp-a"), notice("s2", "cp-x")}},
		Derivation{Pending: []Pending{{Session: "s", Kind: PendingDocument, Path: "a.md"}, {Session: ""}}})
	take := func(db *DB, session string) (ids []string) {
		t.Helper()
		taken, err := db.TakePending(t.Context(), session, "nobody")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range taken[session] {
			ids = append(ids, p.Checkpoint+p.Path)
		}
		if db.HasPending(session) {
			t.Error("there is something left")
		}
		return ids
	}
	closeNow(t, db)
	db = open(t, Options{Path: path})
	if !db.HasPending("s") || db.HasPending("s3") || db.HasPending("") {
		t.Error("the memory is wrong about what is queued")
	}
	if got := take(db, "s"); !slices.Equal(got, []string{"cp-a", "a.md"}) {
		t.Errorf("taken: %v", got)
	}
	if got := take(db, "s"); got != nil {
		t.Errorf("taken twice: %v", got)
	}
	// The same checkpoint again: its session was told.
	derived(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{milestone("cp-a", 1)}, Pending: []Pending{notice("s", "cp-a")}})
	if got := take(db, "s"); got != nil {
		t.Errorf("told twice: %v", got)
	}
	for i := range pendingsPerSession + 3 {
		derived(t, db, Derivation{Pending: []Pending{notice("s", fmt.Sprint(i))}})
	}
	if got := take(db, "s"); len(got) != pendingsPerSession || got[0] != "3" || got[19] != "22" {
		t.Errorf("of too many: %v", got)
	}
	derived(t, db, Derivation{Pending: []Pending{notice("s1", "x")}}) // of the file's session
	if err := db.DropDerived(t.Context(), []tail.FileID{1}); err != nil {
		t.Fatal(err)
	}
	if db.HasPending("s1") || !db.HasPending("s2") {
		t.Error("a drop took too little, or too much")
	}
}

// TestPendingExpires: nobody is told of yesterday.
func TestPendingExpires(t *testing.T) {
	db := open(t, Options{})
	write := func(at int64, sessions ...string) {
		t.Helper()
		err := db.update(t.Context(), 0, func(tx *txn) error {
			tx.Now = at
			for _, session := range sessions {
				if err := tx.putPending(&Derivation{Pending: []Pending{{Session: session, Kind: "auto_80"}}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().Unix()
	write(now-pendingLife-60, "old", "older")
	if db.HasPending("old") {
		t.Error("an old notice is offered")
	}
	if taken, err := db.TakePending(t.Context(), "old"); err != nil || len(taken) > 0 {
		t.Errorf("an old notice is handed over: %v, err %v", taken, err)
	}
	var many []string
	for i := range pendingsInAll {
		many = append(many, fmt.Sprint("many", i))
	}
	write(now, append(many, "last")...)
	if db.HasPending("many0") || !db.HasPending("many1") || !db.HasPending("last") {
		t.Error("not the oldest went")
	}
	db.index.mu.Lock()
	defer db.index.mu.Unlock()
	if n := len(db.index.pending); n != pendingsInAll {
		t.Errorf("%d sessions are in memory", n)
	}
}

// TestDerivedStepsFailWhole makes every step of what is written beside the place fail.
func TestDerivedStepsFailWhole(t *testing.T) {
	learned := milestone("cp-new", 30)
	learned.Automatic = true
	tests := []struct {
		name  string
		steps []string
		do    func(db *DB) error
	}{
		{"derive", []string{"put checkpoint", "put notice", "delete notice", "delete checkpoint", "commit"}, func(db *DB) error {
			_, err := db.Derive(t.Context(), []Derivation{{
				File: 1, Checkpoints: []Checkpoint{learned, milestone("cp-newer", 31)}, Pending: []Pending{{Session: "s", Checkpoint: "cp-new"}},
			}})
			return err
		}},
		{"take", []string{"delete notice", "commit"}, func(db *DB) error { _, err := db.TakePending(t.Context(), "s"); return err }},
		{"pin", []string{"put budget", "commit"}, func(db *DB) error { return db.PinBudget(t.Context(), "m", 0, 5000) }},
		{"drop", []string{"put budget", "commit"}, func(db *DB) error { return db.DropDerived(t.Context(), []tail.FileID{1}) }},
	}
	for _, tt := range tests {
		for _, step := range tt.steps {
			t.Run(tt.name+"/"+step, func(t *testing.T) {
				f := &fault{}
				db := open(t, Options{Fault: f.at})
				commit(t, db, advance(1, 0, 3, 10))
				full := Derivation{File: 1}
				for i := range checkpointsPerFile {
					full.Checkpoints = append(full.Checkpoints, milestone(fmt.Sprint("cp-", i), 1))
				}
				for range pendingsPerSession {
					full.Pending = append(full.Pending, Pending{Session: "s"})
				}
				derived(t, db, full)
				if err := db.PinBudget(t.Context(), "", 1, 9000); err != nil {
					t.Fatal(err)
				}
				f.failEach(t, step, func() error { return tt.do(db) }, func() any { return []any{dump(t, db), describe(&db.index)} })
			})
		}
	}
}
