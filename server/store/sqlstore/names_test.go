package sqlstore

import (
	"reflect"
	"slices"
	"testing"
)

// TestCleanValues: values of a statement become fit to be stored; the caller's stay as they are, and are not copied
// when all of them are fit.
func TestCleanValues(t *testing.T) {
	fit := []any{int64(1), "path/ö", []byte("a\x00b"), []string{"a", "b"}, nil}
	if got := CleanValues(fit); &got[0] != &fit[0] {
		t.Error("values that are fit were copied")
	}
	if got := CleanValues(nil); got != nil {
		t.Errorf("of no values: %v", got)
	}
	list := []string{"a", "b\x00", "\xff"}
	args := []any{"x\x00", "y", list}
	was := slices.Clone(args)
	if got, want := CleanValues(args), []any{"x\uFFFD", "y", []string{"a", "b\uFFFD", "\uFFFD"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !reflect.DeepEqual(args, was) || list[1] != "b\x00" {
		t.Errorf("the caller's values changed: %q", args)
	}
}
