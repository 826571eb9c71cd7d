package state

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ccship/ccship/e2e/kit"
)

func loadCounts(t *testing.T, db *DB) *Persisted[map[string]int] {
	t.Helper()
	return kit.Try(LoadPersisted[map[string]int](t.Context(), db, "counts")).Must(t)
}

// with returns a successor that has one more entry.
func with(name string, n int) func(map[string]int) (map[string]int, bool) {
	return func(old map[string]int) (map[string]int, bool) {
		next := map[string]int{name: n}
		for k, v := range old {
			if k != name {
				next[k] = v
			}
		}
		return next, old[name] != n
	}
}

func TestPersistedOutlivesClose(t *testing.T) {
	db, path := openAt(t)
	p := loadCounts(t, db)
	if p.Get() != nil {
		t.Errorf("a new value is %v", p.Get())
	}
	for name, n := range map[string]int{"a": 1, "b": 2} {
		kit.Must(t, p.Change(t.Context(), with(name, n)))
	}
	want := map[string]int{"a": 1, "b": 2}
	diff := cmp.Diff(want, p.Get())
	kit.Check(t, diff == "", "%v", diff)
	db = reopen(t, db, path)
	diff = cmp.Diff(want, loadCounts(t, db).Get())
	kit.Check(t, diff == "", "after the state was opened again: %s", diff)
}

func TestPersistedNilIsRemoved(t *testing.T) {
	db := open(t, Options{})
	p := loadCounts(t, db)
	kit.Must(t, p.Change(t.Context(), with("a", 1)))
	kit.Must(t, p.Change(t.Context(), func(map[string]int) (map[string]int, bool) { return nil, true }))
	text, err := db.Meta(t.Context(), "counts")
	kit.Check(t, err == nil && text == nil, "the state keeps %q %v of a nil value", text, err)
}

func TestPersistedWritesChangesOnly(t *testing.T) {
	writes := 0
	db := open(t, Options{Fault: func(step string) error {
		if step == "put meta" {
			writes++
		}
		return nil
	}})
	p := loadCounts(t, db)
	for range 3 {
		kit.Must(t, p.Change(t.Context(), with("a", 1)))
	}
	kit.Equal(t, "writes for one change", writes, 1)
}

func TestPersistedKeepsOldValueAfterFailure(t *testing.T) {
	full := errors.New("disk full")
	failing := false
	db := open(t, Options{Fault: func(step string) error { return kit.If[error](failing && step == "put meta", full, nil) }})
	p := loadCounts(t, db)
	kit.Must(t, p.Change(t.Context(), with("a", 1)))
	failing = true
	kit.Err(t, "a change that cannot be written", full)(p.Change(t.Context(), with("a", 2)))
	if p.Get()["a"] != 1 {
		t.Errorf("value after a failed change: %v", p.Get())
	}
}

func TestPersistedUnreadable(t *testing.T) {
	db := open(t, Options{})
	kit.Must(t, db.PutMeta(t.Context(), "counts", []byte("user assistant")))
	p, err := LoadPersisted[map[string]int](t.Context(), db, "counts")
	kit.Require(t, errors.Is(err, ErrUnreadable) && p != nil && p.Get() == nil, "an unreadable value: %v %v", p, err)
	kit.Must(t, p.Change(t.Context(), with("a", 1)))
	kit.Equal(t, "what replaced the unreadable value", loadCounts(t, db).Get()["a"], 1)
}

func TestPersistedChangesOneAfterAnother(t *testing.T) {
	db := open(t, Options{})
	p := loadCounts(t, db)
	var wg sync.WaitGroup
	for n := range 10 {
		wg.Go(func() { kit.Should(t, p.Change(t.Context(), with(strconv.Itoa(n), 1))) })
	}
	wg.Wait()
	kit.Equal(t, "entries after 10 changes at once", len(p.Get()), 10)
}
