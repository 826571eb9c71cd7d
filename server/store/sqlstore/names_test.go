package sqlstore

import (
	"reflect"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestCleanValues: values of a statement become fit to be stored; the caller's stay as they are, and are not copied
// when all of them are fit.
func TestCleanValues(t *testing.T) {
	fit := []any{int64(1), "path/ö", []byte("a\x00b"), []string{"a", "b"}, nil}
	got := CleanValues(fit)
	kit.Check(t, &got[0] == &fit[0], "values that are fit were copied")
	got = CleanValues(nil)
	kit.Check(t, got == nil, "of no values: %v", got)
	list := []string{"a", "b\x00", "\xff"}
	args := []any{"x\x00", "y", list}
	was := slices.Clone(args)
	got, want := CleanValues(args), []any{"x\uFFFD", "y", []string{"a", "b\uFFFD", "\uFFFD"}}
	kit.Check(t, reflect.DeepEqual(got, want), "got %q, want %q", got, want)
	kit.Check(t, reflect.DeepEqual(args, was) && list[1] == "b\x00", "the caller's values changed: %q", args)
}
