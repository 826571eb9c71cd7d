package projection

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// milestone is a checkpoint so many minutes into a day.
func milestone(id string, minute int) Checkpoint {
	return Checkpoint{
		ID: id, Session: "s", Trigger: "auto_80", Tokens: int64(1000 + minute), Budget: 167_000, ContextHash: "00ff", Summary: "고침",
		ActiveFiles: []string{"/a"}, At: time.Date(2026, 8, 20, 9, minute, 0, 0, time.UTC), Line: int64(minute), Generation: 2, Model: "m",
	}
}

func mustDerive(t testing.TB, db *DB, all ...Derivation) {
	t.Helper()
	errs, err := db.Commit(t.Context(), all)
	kit.Must(t, errors.Join(append(errs, err)...))
}

// listed are the ids of a file's checkpoints, of all for 0, in pages of two.
func listed(t testing.TB, db *DB, file tail.FileID) (ids []string) {
	t.Helper()
	for more := true; more; {
		var page []Checkpoint
		var err error
		page, more, err = db.Checkpoints.List(t.Context(), file, len(ids), 2)
		kit.Require(t, err == nil, "%v", err)
		kit.Require(t, !more || len(page) == 2, "a page of %d with more behind it", len(page))
		for _, c := range page {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestCheckpoints(t *testing.T) {
	db := open(t, state.Options{})
	commit(t, db, advance(1, 0, 3, 10), advance(2, 0, 3, 10))
	old, early := milestone("cp-d", 2), milestone("cp-e", 0)
	early.At = time.Time{}
	mustDerive(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{milestone("cp-a", 5), milestone("cp-b", 5), milestone("cp-c", 9)}},
		Derivation{File: 2, Checkpoints: []Checkpoint{old, early}})
	again := milestone("cp-a", 50)
	mustDerive(t, db, Derivation{File: 2, Checkpoints: []Checkpoint{again}})
	for file, want := range map[tail.FileID][]string{
		0: {"cp-c", "cp-b", "cp-a", "cp-d", "cp-e"}, 1: {"cp-c", "cp-b", "cp-a"}, 2: {"cp-d", "cp-e"}, 3: nil,
	} {
		kit.Equal(t, fmt.Sprint("file ", file), listed(t, db, file), want)
	}
	got, found, err := db.Checkpoints.Checkpoint(t.Context(), "cp-d")
	old.File = 2
	diff := cmp.Diff(old, got, cmpopts.IgnoreUnexported(Checkpoint{}))
	kit.Check(t, err == nil && found && diff == "", "found %v, err %v (-want +got):\n%s", found, err, diff)
	_, found, err = db.Checkpoints.Checkpoint(t.Context(), "cp-")
	kit.Check(t, !found && err == nil, "found %v, err %v", found, err)
	mustDerive(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{}})
	kit.Must(t, db.Drop(t.Context(), []tail.FileID{1}))
	kit.Equal(t, "after the drop", listed(t, db, 0), []string{"cp-d", "cp-e"})
}

// TestCheckpointsAreBounded fills one transcript's share and then that of all. Files whose numbers are at the edges of
// what keys can be do not meet.
func TestCheckpointsAreBounded(t *testing.T) {
	db := open(t, state.Options{})
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
		mustDerive(t, db, Derivation{File: name(f), Checkpoints: marks})
		list, more, err := db.Checkpoints.List(t.Context(), name(f), 0, 2*checkpointsPerFile)
		if err != nil || more || len(list) != checkpointsPerFile || list[len(list)-1].ID != fmt.Sprintf("cp-%d-2", f) {
			t.Fatalf("file %d keeps %d, more %v, err %v", f, len(list), more, err)
		}
	}
	list, _, err := db.Checkpoints.List(t.Context(), 0, 0, 2*checkpointsInAll)
	kit.Check(t, err == nil && len(list) == checkpointsInAll && list[len(list)-1].File == name(1),
		"%d are kept, err %v", len(list), err)
}

func TestBudgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "state.db")
	db := open(t, state.Options{Path: path})
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
	mustDerive(t, db, Derivation{File: 1, Checkpoints: marks})
	at := func(minute int, tokens int64) Compaction {
		return Compaction{At: milestone("", minute).At.UnixMilli(), Tokens: tokens}
	}
	want := map[string][]Compaction{"m": {at(2, 167_000), at(0, 90_000)}, "large": {at(4, 900_000)}}
	diff := cmp.Diff(want, db.Checkpoints.Budgets().Compactions)
	kit.Check(t, diff == "", "compactions (-want +got):\n%s", diff)
	mustDerive(t, db, Derivation{File: 2, Checkpoints: []Checkpoint{compaction("cp-0", 5, 85_000, "m")}}) // there already
	var later []Checkpoint
	newest := []Compaction{at(2, 167_000)}
	for i := range compactionsPerModel - 1 {
		later = append(later, compaction(fmt.Sprintf("cp-l%d", i), 10+i, 168_000, "m"))
		newest = slices.Insert(newest, 0, at(10+i, 168_000))
	}
	before := db.Checkpoints.Budgets()
	mustDerive(t, db, Derivation{File: 1, Checkpoints: later})
	diff = cmp.Diff(want, before.Compactions)
	kit.Check(t, diff == "", "what was answered changes (-want +got):\n%s", diff)
	want["m"] = newest
	pin := func(model string, file tail.FileID, limit int64) {
		t.Helper()
		kit.Must(t, db.Checkpoints.SetBudget(t.Context(), model, file, limit))
	}
	pin("m", 0, 100_000)
	pin("gone", 0, 7)
	pin("gone", 0, 0)
	pin("", 1, 90_000)
	pin("", 2, 80_000)
	check := func(db *DB, files map[tail.FileID]int64) {
		t.Helper()
		all := Budgets{Compactions: want, Models: map[string]int64{"m": 100_000}, Files: files}
		kit.Same(t, "differs", cmp.Diff(all, db.Checkpoints.Budgets()))
	}
	check(db, map[tail.FileID]int64{1: 90_000, 2: 80_000})
	kit.Must(t, db.Drop(t.Context(), []tail.FileID{1}))
	closeNow(t, db)
	check(open(t, state.Options{Path: path}), map[tail.FileID]int64{2: 80_000})
}

func TestNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "state.db")
	db := open(t, state.Options{Path: path})
	commit(t, db, advance(1, 0, 3, 10))
	notice := func(session, id string) Notice {
		return Notice{Session: session, Kind: "auto_80", Checkpoint: id, Tokens: 1}
	}
	mustDerive(t, db,
		Derivation{File: 1, Checkpoints: []Checkpoint{milestone("cp-a", 1)}, Notices: []Notice{notice("s", "cp-a"), notice("s2", "cp-x")}},
		Derivation{Notices: []Notice{{Session: "s", Kind: NoticeDocument, Path: "a.md"}, {Session: ""}}})
	has := func(session string) bool { return len(db.Notices.Of(session)) > 0 }
	take := func(db *DB, session string) (ids []string) {
		t.Helper()
		told := db.Notices.Of(session)
		for _, p := range told {
			ids = append(ids, p.Checkpoint+p.Path)
		}
		mustDerive(t, db, Derivation{Shown: told}, Derivation{Shown: told})
		kit.Check(t, !has(session), "there is something left")
		return ids
	}
	printed := db.Notices.Of("s")[:1]
	printed[0].Printed = 7
	kit.Must(t, db.Notices.SetPrinted(t.Context(), append(printed, Notice{Session: "s", Seq: 999})))
	closeNow(t, db)
	db = open(t, state.Options{Path: path})
	list := db.Notices.Of("s")
	kit.Check(t, len(list) == 2 && list[0].Printed == 7 && list[1].Printed == 0 && list[0].Seq < list[1].Seq, "one of two was printed: %+v", list)
	kit.Check(t, has("s") && !has("s3") && !has(""), "the memory is wrong about what is queued")
	kit.Equal(t, "taken", take(db, "s"), []string{"cp-a", "a.md"})
	got := take(db, "s")
	kit.Check(t, got == nil, "taken twice: %v", got)
	// The same checkpoint again: its session was shown.
	mustDerive(t, db, Derivation{File: 1, Checkpoints: []Checkpoint{milestone("cp-a", 1)}, Notices: []Notice{notice("s", "cp-a")}})
	got = take(db, "s")
	kit.Check(t, got == nil, "told twice: %v", got)
	for i := range noticesPerSession + 3 {
		mustDerive(t, db, Derivation{Notices: []Notice{notice("s", fmt.Sprint(i))}})
	}
	got = take(db, "s")
	kit.Check(t, len(got) == noticesPerSession && got[0] == "3" && got[19] == "22", "of too many: %v", got)
	mustDerive(t, db, Derivation{Notices: []Notice{notice("s1", "x")}}) // of the file's session
	kit.Must(t, db.Drop(t.Context(), []tail.FileID{1}))
	kit.Check(t, !has("s1") && has("s2"), "a drop took too little, or too much")
}

// Notices of yesterday are not shown.
func TestNoticesExpire(t *testing.T) {
	db := open(t, state.Options{})
	write := func(at int64, sessions ...string) {
		t.Helper()
		kit.Must(t, db.update(t.Context(), 0, func(tx *tx) error {
			tx.Now = at
			for _, session := range sessions {
				if err := tx.putNotices(&Derivation{Notices: []Notice{{Session: session, Kind: "auto_80"}}}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	now := time.Now().Unix()
	write(now-noticeLife-60, "old", "older")
	has := func(session string) bool { return len(db.Notices.Of(session)) > 0 }
	kit.Check(t, !has("old"), "an old notice is offered")
	var many []string
	for i := range noticesInAll {
		many = append(many, fmt.Sprint("many", i))
	}
	write(now, append(many, "last")...)
	kit.Check(t, !has("many0") && has("many1") && has("last"), "not the oldest went")
	db.memory.mu.Lock()
	defer db.memory.mu.Unlock()
	kit.Equal(t, "sessions are in memory", len(db.memory.notices), noticesInAll)
}

// Every step of a derivation after the position is made to fail.
func TestCommitStepsFailWhole(t *testing.T) {
	learned := milestone("cp-new", 30)
	learned.Automatic = true
	tests := []struct {
		name  string
		steps []string
		do    func(db *DB) error
	}{
		{"derive", []string{"put checkpoint", "put notice", "delete notice", "delete checkpoint", "commit"}, func(db *DB) error {
			_, err := db.Commit(t.Context(), []Derivation{{
				File: 1, Checkpoints: []Checkpoint{learned, milestone("cp-newer", 31)}, Notices: []Notice{{Session: "s", Checkpoint: "cp-new"}},
			}})
			return err
		}},
		{"told", []string{"delete notice", "commit"}, func(db *DB) error {
			_, err := db.Commit(t.Context(), []Derivation{{Shown: db.Notices.Of("s")}})
			return err
		}},
		{"printed", []string{"put notice", "commit"}, func(db *DB) error {
			list := db.Notices.Of("s")
			list[0].Printed = 7
			return db.Notices.SetPrinted(t.Context(), list)
		}},
		{"pin", []string{"put budget", "commit"}, func(db *DB) error { return db.Checkpoints.SetBudget(t.Context(), "m", 0, 5000) }},
		{"drop", []string{"put budget", "commit"}, func(db *DB) error { return db.Drop(t.Context(), []tail.FileID{1}) }},
	}
	for _, tt := range tests {
		for _, step := range tt.steps {
			t.Run(tt.name+"/"+step, func(t *testing.T) {
				f := &kit.Fault{}
				db := open(t, state.Options{Fault: f.At})
				commit(t, db, advance(1, 0, 3, 10))
				full := Derivation{File: 1}
				for i := range checkpointsPerFile {
					full.Checkpoints = append(full.Checkpoints, milestone(fmt.Sprint("cp-", i), 1))
				}
				for range noticesPerSession {
					full.Notices = append(full.Notices, Notice{Session: "s"})
				}
				mustDerive(t, db, full)
				kit.Must(t, db.Checkpoints.SetBudget(t.Context(), "", 1, 9000))
				f.FailEach(t, step, func() error { return tt.do(db) }, func() any { return []any{dump(t, db), describe(db), db.State.Outbox.Usage()} })
			})
		}
	}
}
