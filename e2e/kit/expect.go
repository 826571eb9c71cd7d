package kit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
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

// ErrInjected is the error of a Fault.
var ErrInjected = errors.New("injected")

// Fault makes one call of one step fail.
type Fault struct {
	Step   string
	Call   int // the one to fail; 0: none
	called int
}

// At is called at each step.
func (f *Fault) At(step string) error {
	if step != f.Step {
		return nil
	}
	f.called++
	return If(f.called == f.Call, ErrInjected, nil)
}

// FailEach runs do with each call of the step failing in turn, until it passes. What look sees changes only then.
func (f *Fault) FailEach(t *testing.T, step string, do func() error, look func() any) {
	t.Helper()
	before := look()
	for f.Step, f.Call = step, 1; ; f.Call++ {
		f.called = 0
		err := do()
		if err == nil {
			Require(t, f.Call != 1, "step %q was never reached", step)
			Check(t, !reflect.DeepEqual(before, look()), "nothing was written in the end")
			return
		}
		Require(t, errors.Is(err, ErrInjected), "%v", err)
		now := look()
		Require(t, reflect.DeepEqual(before, now), "call %d of %q failed, and yet:\n%v\nwas:\n%v", f.Call, step, now, before)
	}
}

// Chat is a conversation as Claude Code writes it. Each method returns the next record, as a line.
type Chat struct {
	Session string // a uuid
	Leaf    string // uuid of the last record; "": the next one begins a tree
	N       int    // records so far
}

// Record returns a record with some members set, and the usual ones.
func (c *Chat) Record(members map[string]any) string {
	c.N++
	id := fmt.Sprintf("%s-%012d", c.Session[:23], c.N)
	line := map[string]any{
		"parentUuid": nil, "isSidechain": false, "uuid": id, "cwd": "/home/kim/shop", "sessionId": c.Session,
		"version":   "2.1.235",
		"timestamp": time.Date(2026, 8, 20, 9, 0, c.N, 0, time.UTC).Format("2006-01-02T15:04:05.000Z"),
	}
	if c.Leaf != "" {
		line["parentUuid"] = c.Leaf
	}
	for name, value := range members {
		line[name] = value
	}
	c.Leaf = id
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

// Prompt is what a person typed.
func (c *Chat) Prompt(text string) string {
	return c.Record(map[string]any{
		"type": "user", "origin": map[string]any{"kind": "human"}, "message": map[string]any{"role": "user", "content": text},
	})
}

// Assistant is an answer with one content block.
func (c *Chat) Assistant(block map[string]any) string {
	return c.Record(map[string]any{"type": "assistant", "message": map[string]any{
		"id": fmt.Sprintf("msg_%d", c.N), "role": "assistant", "model": "claude-opus-4-5", "content": []any{block},
		"usage": map[string]any{"input_tokens": 1000, "output_tokens": 50},
	}})
}

// Answer is an answer with text.
func (c *Chat) Answer(text string) string {
	return c.Assistant(map[string]any{"type": "text", "text": text})
}

// Call calls the Bash tool.
func (c *Chat) Call(id, command string) string {
	return c.Assistant(map[string]any{
		"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": command, "description": "look"},
	})
}

// Result is the result of a tool call.
func (c *Chat) Result(id, output string) string {
	return c.Record(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": id, "content": output},
	}}})
}

// Done ends a turn.
func (c *Chat) Done() string {
	return c.Record(map[string]any{"type": "system", "subtype": "turn_duration", "durationMs": 12500})
}

// Compaction is an automatic compaction at 160 000 tokens.
func (c *Chat) Compaction() string {
	return c.Record(map[string]any{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
		"compactMetadata": map[string]any{"trigger": "auto", "preTokens": 160000}})
}

// Turn is a prompt, and an answer with so many tokens in use. The limit of its model is 167 000; 80 % are 133 600.
func (c *Chat) Turn(tokens int64) string {
	return c.Prompt(fmt.Sprintf("prompt %d", c.N)) + c.Record(map[string]any{"type": "assistant",
		"message": map[string]any{
			"id":   fmt.Sprintf("msg_%s%d", c.Session[:4], c.N),
			"role": "assistant", "model": "claude-opus-4-5", "stop_reason": "end_turn",
			"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf("Answer %d.", c.N)}},
			"usage":   map[string]any{"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 5},
		}})
}
