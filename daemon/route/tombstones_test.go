package route

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTombstones(t *testing.T) {
	b := newBench(t)
	now := time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)
	again := now.Add(time.Minute)
	both := []string{"one", "two"}
	put := Tombstone{Session: sessionA, At: now, Pending: both, Again: &again, Dests: both}
	if err := b.router.Tombstones.Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	if err := b.router.Tombstones.Asked(t.Context(), sessionA, []string{"one"}); err != nil {
		t.Fatal(err)
	}
	b.load()
	if diff := cmp.Diff([]string{"two"}, b.router.Tombstones.Pending(sessionA)); diff != "" {
		t.Errorf("pending after a restart: %s", diff)
	}
	if err := b.router.Tombstones.Asked(t.Context(), sessionA, []string{"two"}); err != nil {
		t.Fatal(err)
	}
	if due := b.router.Tombstones.Due(now); len(due) > 0 {
		t.Errorf("due before the time: %+v", due)
	}
	if due := b.router.Tombstones.Due(again); len(due) != 1 || !due[0].AgainDue(again) {
		t.Errorf("due at the time: %+v", due)
	}
	if err := b.router.Tombstones.AskAgain(t.Context(), sessionA); err != nil {
		t.Fatal(err)
	}
	want := []Tombstone{{Session: sessionA, At: now, Pending: both}}
	if diff := cmp.Diff(want, b.router.Tombstones.Due(again)); diff != "" {
		t.Errorf("pending once more: %s", diff)
	}
	if err := b.router.Tombstones.Remove(t.Context(), sessionA); err != nil {
		t.Fatal(err)
	}
	if b.load(); b.router.Forgotten(sessionA) {
		t.Error("a removed tombstone is back after a restart")
	}
}

// The list in the state has the form that earlier versions wrote.
func TestTombstonesOfEarlierVersion(t *testing.T) {
	b := newBench(t)
	text := `[{"session":"a","at":"2026-08-20T09:00:00Z","pending":["one"]},{"session":"b","at":"2026-08-20T09:00:00Z"}]`
	if err := b.db.PutMeta(t.Context(), "forgotten", []byte(text)); err != nil {
		t.Fatal(err)
	}
	b.load()
	if !b.router.Forgotten("a") || !b.router.Forgotten("b") || len(b.router.Tombstones.Pending("a")) != 1 {
		t.Error("tombstones of an earlier version are not read")
	}
	if err := b.router.Tombstones.Put(t.Context(), Tombstone{Session: "0", At: time.Unix(0, 0).UTC()}); err != nil {
		t.Fatal(err)
	}
	got, err := b.db.Meta(t.Context(), "forgotten")
	if want := `[{"session":"0","at":"1970-01-01T00:00:00Z"},` + text[1:]; err != nil || string(got) != want {
		t.Errorf("the state keeps %s, want %s", got, want)
	}
}
