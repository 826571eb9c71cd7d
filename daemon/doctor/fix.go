package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/control"
)

// Fix is what ApplyFixes did about one finding.
type Fix struct {
	ID      string `json:"id"`      // of the finding
	Command string `json:"command"` // the same, as a command
	Done    bool   `json:"done"`
	Error   string `json:"error,omitempty"` // why Done is false
	Hint    string `json:"hint,omitempty"`
}

// action fixes a finding. It runs at most once, and does nothing if the problem is gone.
type action struct {
	phase phase
	do    func(ctx context.Context) error
}

// phase orders actions: files first, because services read them; what needs a running daemon last.
type phase int

const (
	phaseFile phase = iota
	phaseUnit
	phaseService
	phaseDelivery
)

// fixTimeout limits one action. A service manager may need a while to stop and start a daemon.
const fixTimeout = time.Minute

// ApplyFixes applies the fixes of a report's safe findings one after the other and returns what it did. If one fails,
// the others still run. A fix that several findings share runs once; one in tried does not run again.
func ApplyFixes(ctx context.Context, r Report, tried ...Fix) []Fix {
	var safe []Finding
	for _, f := range r.Findings {
		again := slices.ContainsFunc(tried, func(o Fix) bool { return o.Command == f.command() })
		if f.action != nil && !again && !slices.ContainsFunc(safe, func(o Finding) bool { return o.Fix == f.Fix }) {
			safe = append(safe, f)
		}
	}
	slices.SortStableFunc(safe, func(a, b Finding) int { return cmp.Compare(a.action.phase, b.action.phase) })
	var fixes []Fix
	for _, f := range safe {
		limited, cancel := context.WithTimeout(ctx, fixTimeout)
		err := f.action.do(limited)
		cancel()
		fix := Fix{ID: f.ID, Command: f.command(), Done: err == nil}
		if err != nil {
			said := explained(Fail, err)
			fix.Error, fix.Hint = said.Text, said.Fix
		}
		fixes = append(fixes, fix)
	}
	return fixes
}

// command returns the fix of a safe finding, as it is typed.
func (f Finding) command() string { return strings.Trim(f.Fix, "`") }

// safely marks a finding as one that ApplyFixes may fix.
func (f Finding) safely(p phase, do func(ctx context.Context) error) Finding {
	f.Safe, f.action = true, &action{p, do}
	return f
}

// restart restarts the service and waits until its daemon answers.
func (x *exam) restart(ctx context.Context) error { return x.answered(ctx, x.o.Service.Restart(ctx)) }

// start starts the service and waits until its daemon answers.
func (x *exam) start(ctx context.Context) error { return x.answered(ctx, x.o.Service.Start(ctx)) }

// reinstall installs this program's unit, starts it, and waits until its daemon answers.
func (x *exam) reinstall(ctx context.Context) error {
	_, err := x.o.Service.Install(ctx, true)
	return x.answered(ctx, err)
}

// syncCommand does what sync does.
const syncCommand = "`ccship sync --wait`"

// sync makes the daemon scan everything and deliver it.
func (x *exam) sync(ctx context.Context) error {
	r := reach(ctx, &x.o)
	if r.client == nil {
		return r.err
	}
	result, err := r.client.Sync(ctx, control.SyncRequest{Wait: true, Timeout: "10s"})
	if err == nil && !result.Done {
		err = control.NewError(result.Reason, "not everything could be delivered: "+cmp.Or(result.Detail, result.Reason),
			"`ccship status` shows why; the daemon keeps trying")
	}
	return err
}

// answered waits until a daemon answers, unless it could not be started.
func (x *exam) answered(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r := reach(ctx, &x.o)
		if r.client != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return control.NewError(control.CodeNoAnswer, fmt.Sprintf("the daemon was started, but does not answer: %v", r.err),
				"`ccship service logs` shows why")
		}
	}
}

// ended says whether an error only means that the time was up.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
