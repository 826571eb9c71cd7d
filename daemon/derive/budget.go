package derive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// Limits of what a user may set, in tokens and bytes.
const (
	minBudget    = 1000
	maxBudget    = 100_000_000
	maxModelName = 200
)

// AllBudgets returns what is known about models, and what the user has set for sessions.
func (c *Checkpoints) AllBudgets(ctx context.Context) (control.Budgets, error) {
	known := c.Projections.Checkpoints.Budgets()
	models := learned(known.Compactions)
	maps.Copy(models, known.Models)
	var list []control.Budget
	for _, model := range slices.Sorted(maps.Keys(models)) {
		list = append(list, c.modelBudget(model))
	}
	var sessions []control.Budget
	for file, limit := range known.Files {
		f, found, err := c.Projections.State.Files.Routing(ctx, file)
		if err != nil {
			return wireBudgets(), err
		}
		if found {
			sessions = append(sessions, control.Budget{Session: f.Stream.SessionID, Limit: limit,
				Source: session.ConfiguredBudget, Pinned: true})
		}
	}
	slices.SortFunc(sessions, func(a, b control.Budget) int { return cmp.Compare(a.Session, b.Session) })
	return wireBudgets(append(list, sessions...)...), nil
}

// Budget returns how many tokens a session can hold, and how many it uses. name is the session's.
func (c *Checkpoints) Budget(ctx context.Context, file tail.FileID, name string) (control.Budgets, error) {
	known := c.Projections.Checkpoints.Budgets()
	var b control.Budget
	err := c.Deriver.Query(ctx, file, func(s *FoldStep) error {
		sum := s.Session.Summary()
		b = wireBudget(s.Session.TokenBudget())
		b.Session, b.Model, b.Used = s.Facts.Stream.SessionID, sum.Model, sum.Context.Tokens
		b.Pinned = known.Files[file] > 0 || known.Models[sum.Model] > 0
		if b.Source == session.LearnedBudget {
			b.Seen = learnedLimit(sum.Model, known.Compactions[sum.Model])
		}
		return nil
	})
	if err != nil {
		return wireBudgets(), QueryError(name, err)
	}
	return wireBudgets(b), nil
}

// SetBudget sets how many tokens a session can hold, or every session of a model if req names one. Thresholds that are
// already exceeded under the new budget do not fire. file and name are the session's.
func (c *Checkpoints) SetBudget(ctx context.Context, file tail.FileID, name string,
	req control.BudgetRequest) (control.Budgets, error) {
	if (req.Session == "") == (req.Model == "") {
		return wireBudgets(), control.Usage("a budget is set for a session or for a model", "name one of them")
	}
	if req.Limit != 0 && (req.Limit < minBudget || req.Limit > maxBudget) {
		return wireBudgets(), control.Usage(fmt.Sprintf("invalid budget: %d tokens", req.Limit),
			fmt.Sprintf("use a number from %d to %d, or 0 to remove the setting", minBudget, maxBudget))
	}
	if len(req.Model) > maxModelName {
		return wireBudgets(), control.Usage("the name of the model is too long", "use a name like claude-sonnet-5")
	}
	if err := c.Projections.Checkpoints.SetBudget(ctx, req.Model, file, req.Limit); err != nil {
		return wireBudgets(), err
	}
	if req.Model != "" {
		return wireBudgets(c.modelBudget(req.Model)), nil
	}
	return c.Budget(ctx, file, name)
}

// modelBudget returns what holds for a new session of a model.
func (c *Checkpoints) modelBudget(model string) control.Budget {
	known := c.Projections.Checkpoints.Budgets()
	b := wireBudget(session.BudgetFor(model, 0, 0, budgetOptions(known, 0)))
	b.Model, b.Seen, b.Pinned = model, learnedLimit(model, known.Compactions[model]), known.Models[model] > 0
	return b
}

// budgetOptions returns what is known about a transcript's budget besides its own lines. file 0: no transcript.
func budgetOptions(known projection.Budgets, file tail.FileID) session.BudgetOptions {
	o := session.BudgetOptions{Learned: learned(known.Compactions), Pins: known.Models}
	if limit := known.Files[file]; limit > 0 {
		o.Pins = map[string]int64{"": limit}
	}
	return o
}

// learned returns the limits of models that automatic compactions have shown.
func learned(compactions map[string][]projection.Compaction) map[string]int64 {
	limits := make(map[string]int64, len(compactions))
	for model, list := range compactions {
		if limit := learnedLimit(model, list); limit > 0 {
			limits[model] = limit
		}
	}
	return limits
}

// trusted is how many compactions show that a limit lies above the model's usual one: a single tool result that jumps
// over the limit makes one compaction late, not several.
const trusted = 3

// learnedLimit returns the smallest credible compaction of a model; 0: there is none. A single one far below the
// model's usual limit may come from a fault or from one session's settings, so it needs a second one near it.
func learnedLimit(model string, list []projection.Compaction) (limit int64) {
	usual := session.BudgetFor(model, 0, 0, session.BudgetOptions{}).Limit
	for i, x := range list {
		near := func(other projection.Compaction) bool { return nearby(x.Tokens, other.Tokens) }
		credible := x.Tokens >= usual/2 || slices.ContainsFunc(list[i+1:], near) || slices.ContainsFunc(list[:i], near)
		if credible && (limit == 0 || x.Tokens < limit) {
			limit = x.Tokens
		}
	}
	if limit > usual+usual/50 && limit <= usual+usual/4 && len(list) < trusted {
		return 0
	}
	return limit
}

// nearby reports whether b differs from a by at most a tenth of a.
func nearby(a, b int64) bool { return max(a, b)-min(a, b) <= a/10 }

func wireBudgets(list ...control.Budget) control.Budgets {
	return control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: append([]control.Budget{}, list...)}
}

func wireBudget(b session.Budget) control.Budget {
	return control.Budget{Window: b.Window, Limit: b.Limit, Source: b.Source}
}
