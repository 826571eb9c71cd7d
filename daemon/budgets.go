package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/derive"
	"github.com/ccship/ccship/transcript/session"
)

// Limits of what a user may set as a budget, in tokens.
const (
	leastBudget = 1000
	mostBudget  = 100_000_000
)

// Budgets says how many tokens a session can hold; for "" what is known of models, and what was set for sessions.
func (d *Daemon) Budgets(ctx context.Context, session string) (control.Budgets, error) {
	a := control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: []control.Budget{}}
	if session != "" {
		s, err := d.sessionNamed(ctx, session)
		if err != nil {
			return a, err
		}
		b, err := d.sessionBudget(ctx, s)
		if err == nil {
			a.Budgets = append(a.Budgets, b)
		}
		return a, err
	}
	known := d.db.Budgets()
	models := maps.Clone(known.Learned)
	if models == nil {
		models = map[string]int64{}
	}
	maps.Copy(models, known.Models)
	for _, model := range slices.Sorted(maps.Keys(models)) {
		a.Budgets = append(a.Budgets, d.modelBudget(model))
	}
	var sessions []control.Budget
	for file, limit := range known.Files {
		f, found, err := d.db.Facts(ctx, file)
		if err != nil {
			return a, err
		}
		if found {
			sessions = append(sessions, control.Budget{Session: f.Stream.SessionID, Limit: limit, Source: sourceConfigured, Pinned: true})
		}
	}
	slices.SortFunc(sessions, func(a, b control.Budget) int { return cmp.Compare(a.Session, b.Session) })
	a.Budgets = append(a.Budgets, sessions...)
	return a, nil
}

// SetBudget sets how many tokens a session, or every session with a model, can hold. What is in use already fires
// nothing.
func (d *Daemon) SetBudget(ctx context.Context, req control.BudgetRequest) (control.Budgets, error) {
	a := control.Budgets{SchemaVersion: control.SchemaVersion, Budgets: []control.Budget{}}
	if (req.Session == "") == (req.Model == "") {
		return a, control.Usage("a budget is set for a session or for a model", "name one of them")
	}
	if req.Limit != 0 && (req.Limit < leastBudget || req.Limit > mostBudget) {
		return a, control.Usage(fmt.Sprintf("a budget of %d tokens", req.Limit),
			fmt.Sprintf("it is a number from %d to %d, or 0 to forget it", leastBudget, mostBudget))
	}
	if req.Model != "" {
		if len(req.Model) > 200 {
			return a, control.Usage("the model's name is too long", "it is one like claude-sonnet-5")
		}
		if err := d.db.PinBudget(ctx, req.Model, 0, req.Limit); err != nil {
			return a, err
		}
		a.Budgets = append(a.Budgets, d.modelBudget(req.Model))
		return a, nil
	}
	s, err := d.sessionNamed(ctx, req.Session)
	if err != nil {
		return a, err
	}
	if err := d.db.PinBudget(ctx, "", s.id, req.Limit); err != nil {
		return a, err
	}
	b, err := d.sessionBudget(ctx, s)
	if err == nil {
		a.Budgets = append(a.Budgets, b)
	}
	return a, err
}

// sessionBudget asks a session as it stands.
func (d *Daemon) sessionBudget(ctx context.Context, s namedSession) (b control.Budget, err error) {
	known := d.db.Budgets()
	err = d.derive.Query(ctx, s.id, func(p *derive.FoldStep) error {
		sum := p.Session.Summary()
		b = shownBudget(p.Session.TokenBudget())
		b.Session, b.Model, b.Used = p.Facts.Stream.SessionID, sum.Model, sum.Context.Tokens
		b.Pinned = known.Files[s.id] > 0 || known.Models[sum.Model] > 0
		if b.Source == sourceLearned {
			b.Seen = known.Learned[sum.Model]
		}
		return nil
	})
	return b, derive.QueryError(s.name, err)
}

// modelBudget is what holds for a session with a model that has only begun.
func (d *Daemon) modelBudget(model string) control.Budget {
	known := d.db.Budgets()
	b := shownBudget(session.BudgetFor(model, 0, 0, session.BudgetOptions{Learned: known.Learned, Pins: known.Models}))
	b.Model, b.Seen, b.Pinned = model, known.Learned[model], known.Models[model] > 0
	return b
}

const (
	sourceConfigured = "configured"
	sourceLearned    = "learned"
)

// shownBudget says how a limit is known. One that follows from the window is known as well as that is.
func shownBudget(b session.Budget) control.Budget {
	out := control.Budget{Window: b.Window, Limit: b.Limit}
	switch b.LimitBy {
	case session.ConfiguredBudget:
		out.Source = sourceConfigured
	case session.LearnedBudget:
		out.Source = sourceLearned
	case session.BoundaryBudget:
		out.Source = "boundary"
	default:
		out.Source = windowSource(b.WindowFrom)
	}
	return out
}

func windowSource(s session.BudgetSource) string {
	switch s {
	case session.ModelBudget:
		return "model"
	case session.SeenBudget:
		return "seen"
	case session.DefaultBudget:
		return "default"
	}
	return "derived"
}
