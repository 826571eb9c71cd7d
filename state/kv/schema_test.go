package kv

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Migrations run once each, all or none, and a file of a newer schema is not touched.
func TestMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, Options{Path: path})
	put(t, s, 10, "a")
	closeNow(t, s)
	var ran []int
	step := func(n int, err error) Migration {
		return func(tx *RawTx) error {
			ran = append(ran, n)
			_, e := tx.CreateBucketIfNotExists([]byte{byte('0' + n)})
			return errors.Join(e, err)
		}
	}
	broken := errors.New("broken")
	schema := func(steps ...Migration) Schema { return Schema{Buckets: []string{rows}, Migrations: steps} }
	_, err := tryOpen(t.Context(), Options{Path: path, Schema: schema(step(1, nil), step(2, broken))})
	if !errors.Is(err, broken) {
		t.Fatalf("a migration that fails: %v", err)
	}
	if aside, _ := filepath.Glob(path + ".corrupt-*"); len(aside) != 0 {
		t.Error("it was set aside for that")
	}
	s = open(t, Options{Path: path})
	if _, ok := dump(t, s)["1"]; ok || s.held()["a"] != 10 {
		t.Error("half of the migrations lasted")
	}
	closeNow(t, s)
	ran = nil
	for range 2 {
		s = open(t, Options{Path: path, Schema: schema(step(1, nil), step(2, nil))})
		d := dump(t, s)
		if d["meta/schema"] != "\x00\x00\x00\x03" || d["1"] == "" || d["2"] == "" || s.held()["a"] != 10 {
			t.Errorf("schema %q", d["meta/schema"])
		}
		closeNow(t, s)
	}
	if !cmp.Equal(ran, []int{1, 2}) {
		t.Errorf("ran %v", ran)
	}
	before, _ := os.ReadFile(path)
	_, err = tryOpen(t.Context(), Options{Path: path})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "schema 3") || strings.Contains(err.Error(), "\n") {
		t.Errorf("newer: %v", err)
	}
	if after, _ := os.ReadFile(path); string(before) != string(after) {
		t.Error("a newer state was touched")
	}
}
