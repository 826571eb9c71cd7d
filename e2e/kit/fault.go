package kit

import (
	"errors"
	"reflect"
	"testing"
)

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
