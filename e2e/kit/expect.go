package kit

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// T is a test, a benchmark, or a run of a property.
type T interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Must ends the test on an error that is the test's own.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Should reports an error, and goes on: for other goroutines than the test's, and for what is cleaned up.
func Should(t T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Tried is what a call returned.
type Tried[V any] struct {
	value V
	err   error
}

// Try takes what a call returns: x := Try(os.Open(path)).Must(t).
func Try[V any](value V, err error) Tried[V] { return Tried[V]{value, err} }

// Must returns the value. It ends the test on an error.
func (x Tried[V]) Must(t T) V {
	t.Helper()
	Must(t, x.err)
	return x.value
}

// Should reports an error, and goes on.
func (x Tried[V]) Should(t T) {
	t.Helper()
	Should(t, x.err)
}

// Equal reports what is not as wanted. No elements are equal to nil.
func Equal[V any](t T, what string, got, want V) {
	t.Helper()
	if !reflect.DeepEqual(got, want) && (!empty(got) || !empty(want)) {
		t.Errorf("%s: %s, want %s", what, Tail(show(got), 2000), Tail(show(want), 2000))
	}
}

func empty(v any) bool {
	x := reflect.ValueOf(v)
	return (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len() == 0
}

// show tells control characters and bounds of texts.
func show(v any) string {
	switch v.(type) {
	case string, []byte, []string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%+v", v)
}

// Gives reports when a call fails, or returns something else: Gives(t, "rows", 5)(st.Count(ctx)).
func Gives[V any](t T, what string, want V) func(V, error) {
	return func(got V, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		Equal(t, what, got, want)
	}
}

// Err reports when the error that a call returns last is not the wanted one:
// Err(t, "no session", ErrNotFound)(st.Open(ctx, s)).
func Err(t T, what string, want error) func(results ...any) {
	return func(results ...any) {
		t.Helper()
		last := results[len(results)-1]
		err, isError := last.(error)
		if last != nil && !isError || !errors.Is(err, want) {
			t.Errorf("%s: %+v, want the error %v", what, results, want)
		}
	}
}

// Each returns what of makes of each element.
func Each[E, V any](list []E, of func(E) V) (all []V) {
	for _, x := range list {
		all = append(all, of(x))
	}
	return all
}

// Has reports the parts that a text lacks.
func Has(t T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, Tail(text, 4000))
		}
	}
}

// Check reports what does not hold. The test goes on.
func Check(t T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Require ends the test when something does not hold.
func Require(t T, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Same reports what cmp.Diff finds between what is wanted and what there is.
func Same(t T, what, diff string) {
	t.Helper()
	if diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// If returns one of two values. Both are made before it chooses.
func If[T any](yes bool, then, otherwise T) T {
	if yes {
		return then
	}
	return otherwise
}

// Only is an environment with one variable.
func Only(variable, value string) func(name string) (string, bool) {
	return func(name string) (string, bool) { return If(name == variable, value, ""), name == variable }
}
