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

// Fix is what Mend did about a finding.
type Fix struct {
	ID      string `json:"id"`      // of the finding
	Command string `json:"command"` // what would have done the same
	Done    bool   `json:"done"`
	Error   string `json:"error,omitempty"` // why it is not
	Hint    string `json:"hint,omitempty"`
}

// remedy mends a finding. It may be used once, and does nothing where nothing is wrong any more.
type remedy struct {
	turn turn
	do   func(ctx context.Context) error
}

// turn is when a remedy has its turn: files first, for services read them, and what needs a daemon last.
type turn int

const (
	turnFile turn = iota
	turnUnit
	turnService
	turnDelivery
)

// mendTime is how long one remedy may take: a manager may need its time to stop and start a daemon.
const mendTime = time.Minute

// Mend does what the safe findings of a report ask for, one after the other, and says what it did. One that fails does
// not keep the others from their turn. What several ask for is done once, and what was tried before is not.
func Mend(ctx context.Context, r Report, tried ...Fix) []Fix {
	var safe []Finding
	for _, f := range r.Findings {
		again := slices.ContainsFunc(tried, func(o Fix) bool { return o.Command == f.command() })
		if f.mend != nil && !again && !slices.ContainsFunc(safe, func(o Finding) bool { return o.Fix == f.Fix }) {
			safe = append(safe, f)
		}
	}
	slices.SortStableFunc(safe, func(a, b Finding) int { return cmp.Compare(a.mend.turn, b.mend.turn) })
	var fixes []Fix
	for _, f := range safe {
		limited, cancel := context.WithTimeout(ctx, mendTime)
		err := f.mend.do(limited)
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

// command is the fix of a safe finding, as it is typed.
func (f Finding) command() string { return strings.Trim(f.Fix, "`") }

// safely makes a finding one that Mend mends.
func (f Finding) safely(t turn, do func(ctx context.Context) error) Finding {
	f.Safe, f.mend = true, &remedy{t, do}
	return f
}

// restart has the service started anew, and waits for its daemon.
func (x *exam) restart(ctx context.Context) error {
	if err := x.o.Service.Restart(ctx); err != nil {
		return err
	}
	return x.answered(ctx)
}

// start has the service started, and waits for its daemon.
func (x *exam) start(ctx context.Context) error {
	if err := x.o.Service.Start(ctx); err != nil {
		return err
	}
	return x.answered(ctx)
}

// reinstall puts the unit of this program in place, and starts what it names.
func (x *exam) reinstall(ctx context.Context) error {
	if _, err := x.o.Service.Install(ctx, true); err != nil {
		return err
	}
	return x.answered(ctx)
}

// syncCommand does what sync does.
const syncCommand = "`ccship sync --wait`"

// sync has the daemon look at everything and try to deliver it.
func (x *exam) sync(ctx context.Context) error {
	r := reach(ctx, x.o.Sockets)
	if r.client == nil {
		return r.err
	}
	result, err := r.client.Sync(ctx, control.SyncRequest{Wait: true, Timeout: "10s"})
	if err == nil && !result.Done {
		err = control.NewError(result.Reason, "not everything could be delivered: "+cmp.Or(result.Detail, result.Reason),
			"`ccship status` says what is in the way; it goes on by itself")
	}
	return err
}

// answered waits until a daemon answers.
func (x *exam) answered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		r := reach(ctx, x.o.Sockets)
		if r.client != nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return control.NewError(control.CodeNoAnswer, fmt.Sprintf("it was started, but does not answer: %v", r.err),
				"`ccship logs` says why")
		}
	}
}

// ended says whether an error only tells that time was up.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
