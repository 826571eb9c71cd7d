package route

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

func TestTombstones(t *testing.T) {
	b := newBench(t)
	now := time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)
	again := now.Add(time.Minute)
	both := []string{"one", "two"}
	put := Tombstone{Session: sessionA, At: now, Pending: both, Again: &again, Dests: both}
	kit.Must(t, b.router.Tombstones.Put(t.Context(), put))
	kit.Must(t, b.router.Tombstones.Asked(t.Context(), sessionA, []string{"one"}))
	b.load()
	kit.Same(t, "pending after a restart", cmp.Diff([]string{"two"}, b.router.Tombstones.Pending(sessionA)))
	kit.Must(t, b.router.Tombstones.Asked(t.Context(), sessionA, []string{"two"}))
	due := b.router.Tombstones.Due(now)
	kit.Check(t, len(due) == 0, "due before the time: %+v", due)
	due = b.router.Tombstones.Due(again)
	kit.Check(t, len(due) == 1 && due[0].AgainDue(again), "due at the time: %+v", due)
	kit.Must(t, b.router.Tombstones.AskAgain(t.Context(), sessionA))
	want := []Tombstone{{Session: sessionA, At: now, Pending: both}}
	kit.Same(t, "pending once more", cmp.Diff(want, b.router.Tombstones.Due(again)))
	kit.Must(t, b.router.Tombstones.Remove(t.Context(), sessionA))
	if b.load(); b.router.Forgotten(sessionA) {
		t.Error("a removed tombstone is back after a restart")
	}
}

// The list in the state has the form that earlier versions wrote.
func TestTombstonesOfEarlierVersion(t *testing.T) {
	b := newBench(t)
	text := `[{"session":"a","at":"2026-08-20T09:00:00Z","pending":["one"]},{"session":"b","at":"2026-08-20T09:00:00Z"}]`
	kit.Must(t, b.db.PutMeta(t.Context(), "forgotten", []byte(text)))
	b.load()
	kit.Check(t, b.router.Forgotten("a") && b.router.Forgotten("b") && len(b.router.Tombstones.Pending("a")) == 1,
		"tombstones of an earlier version are not read")
	kit.Must(t, b.router.Tombstones.Put(t.Context(), Tombstone{Session: "0", At: time.Unix(0, 0).UTC()}))
	got, err := b.db.Meta(t.Context(), "forgotten")
	want := `[{"session":"0","at":"1970-01-01T00:00:00Z"},` + text[1:]
	kit.Check(t, err == nil && string(got) == want, "the state keeps %s, want %s", got, want)
}
