package derive

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// checkpointer is the observer that makes checkpoints, and notices about them. Its fields belong to the current step.
type checkpointer struct {
	projections *projection.DB
	checkpoints []projection.Checkpoint
	notices     []projection.Notice
	err         error
}

var _ Observer = (*checkpointer)(nil)

// NewCheckpointer returns an observer that looks up budgets and earlier checkpoints in projections.
func NewCheckpointer(projections *projection.DB) *checkpointer {
	return &checkpointer{projections: projections}
}

// Begin applies the current budget. Thresholds that are already exceeded under it do not fire.
func (c *checkpointer) Begin(s *FoldStep) {
	c.checkpoints, c.notices, c.err = nil, nil, nil
	s.Session.Budget = budgetOptions(c.projections.Checkpoints.Budgets(), s.File.File.ID)
	if hasCheckpoints(s) {
		s.Detector.BudgetChanged(s.Session)
	}
}

// hasCheckpoints reports whether a transcript can have checkpoints. An agent's cannot: it ends with its task.
func hasCheckpoints(s *FoldStep) bool { return s.File.File.Kind == tail.Main }

// Event makes a checkpoint if a threshold is exceeded or the session is compacted.
func (c *checkpointer) Event(s *FoldStep, e *session.Event, watched bool) {
	if !hasCheckpoints(s) {
		return
	}
	found, due := s.Detector.Add(e, s.Session, watched)
	if !due {
		return
	}
	p := newCheckpoint(s, found)
	p.ID = automaticID(p.Session, &found)
	_, known, err := c.projections.Checkpoints.Checkpoint(context.Background(), p.ID)
	c.err = cmp.Or(c.err, err)
	if known || err != nil {
		return // known: the line is folded again
	}
	c.checkpoints = append(c.checkpoints, p)
	if watched {
		c.notices = append(c.notices, projection.Notice{
			Session: p.Session, Kind: p.Trigger, Checkpoint: p.ID, Tokens: p.Tokens, Budget: p.Budget,
		})
	}
}

// End adds the step's checkpoints and notices to its effects.
func (c *checkpointer) End(s *FoldStep) error {
	if c.err != nil {
		return c.err
	}
	s.Effects.Notices = append(s.Effects.Notices, c.notices...)
	return addToEffects(s, c.checkpoints)
}

// newCheckpoint makes a checkpoint without an id.
func newCheckpoint(s *FoldStep, m session.Checkpoint) projection.Checkpoint {
	c := projection.Checkpoint{
		Session: s.Facts.Stream.SessionID, Trigger: string(m.Trigger), Tokens: m.Tokens, Budget: m.Limit,
		ContextHash: m.ContextHash, Summary: m.Summary, ActiveFiles: m.ActiveFiles, At: m.Time.UTC(),
		Generation: s.File.Cursor.Generation, Line: m.Line, Model: m.Model, Automatic: m.Automatic,
	}
	if y := c.At.Year(); y < 1971 || y > 9999 { // no time, or one that rows and servers cannot store
		c.At = time.Now().UTC().Truncate(time.Millisecond)
	}
	return c
}

// automaticID returns the id of an automatic checkpoint. It is the same in every reading and in every generation of the
// file. The line number matters only for a record without a uuid.
func automaticID(session string, m *session.Checkpoint) string {
	at := m.UUID
	if at == "" {
		at = strconv.FormatInt(m.Line, 10)
	}
	sum := sha256.Sum256([]byte(session + "\x00" + string(m.Trigger) + "\x00" + at))
	return "cp-" + hex.EncodeToString(sum[:6])
}

// Limits of a caller's texts about a checkpoint, in characters.
const (
	maxSummary = 1000
	maxPort    = 200
)

// Checkpoints answers queries about checkpoints and budgets. It is safe for concurrent use.
type Checkpoints struct {
	Projections *projection.DB
	Deriver     *Deriver
}

// List returns a session's checkpoints, or those of all sessions if file is 0, newest first. It first folds the session
// to its end.
func (c *Checkpoints) List(ctx context.Context, file tail.FileID, page control.Page) (control.Checkpoints, error) {
	a := control.Checkpoints{SchemaVersion: control.SchemaVersion, Checkpoints: []control.Checkpoint{}}
	if file != 0 {
		err := c.Deriver.Query(ctx, file, func(*FoldStep) error { return nil })
		// If the file is gone its checkpoints stay. If it was never read it has none.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, state.ErrUnknownFile) {
			return a, fmt.Errorf("list checkpoints: %w", err)
		}
	}
	list, more, err := c.Projections.Checkpoints.List(ctx, file, page.Offset, page.Limit)
	if err != nil {
		return a, err
	}
	for i := range list {
		a.Checkpoints = append(a.Checkpoints, wireCheckpoint(&list[i]))
	}
	if more {
		a.Next = page.Offset + len(list)
	}
	return a, nil
}

// Get returns the checkpoint with an id.
func (c *Checkpoints) Get(ctx context.Context, id string) (control.CheckpointAnswer, error) {
	p, found, err := c.Projections.Checkpoints.Checkpoint(ctx, id)
	if err == nil && !found {
		err = control.NewError(control.CodeNoCheckpoint, fmt.Sprintf("there is no checkpoint %.40q", id),
			"`ccship checkpoint list` names them")
	}
	return control.CheckpointAnswer{SchemaVersion: control.SchemaVersion, Checkpoint: wireCheckpoint(&p)}, err
}

// Create makes a checkpoint of a session as it is now. It is durable when Create returns. name is the session's.
func (c *Checkpoints) Create(ctx context.Context, file tail.FileID, name string,
	req control.CheckpointRequest) (a control.CheckpointAnswer, err error) {
	trigger, err := requestTrigger(req.Trigger)
	if err != nil {
		return a, err
	}
	if utf8.RuneCountInString(req.PortID) > maxPort {
		return a, control.Usage(fmt.Sprintf("the port has more than %d characters", maxPort), "use a short name")
	}
	id, err := newID()
	if err != nil {
		return a, err
	}
	err = c.Deriver.Query(ctx, file, func(s *FoldStep) error {
		if !hasCheckpoints(s) {
			return control.Usage("an agent's transcript has no checkpoints",
				"name the session that started it: "+s.Facts.Stream.Parent)
		}
		p := newCheckpoint(s, s.Detector.Current(s.Session, trigger, max(0, s.Line-1)))
		p.ID, p.Port, p.At = id, s.Mask(req.PortID), time.Now().UTC().Truncate(time.Millisecond)
		if text := strings.TrimSpace(req.Summary); text != "" {
			p.Summary = transcript.Cut(s.Mask(strings.ToValidUTF8(text, "\uFFFD")), maxSummary)
		}
		a.Checkpoint = wireCheckpoint(&p)
		return addToEffects(s, []projection.Checkpoint{p})
	})
	a.SchemaVersion = control.SchemaVersion
	return a, QueryError(name, err)
}

func requestTrigger(name string) (session.Trigger, error) {
	switch name {
	case "", control.TriggerManual:
		return session.TriggerManual, nil
	case control.TriggerPreHeavy:
		return session.TriggerPreHeavy, nil
	}
	return "", control.Usage(fmt.Sprintf("invalid trigger %.40q", name),
		"use manual or pre_heavy; checkpoints with another trigger are made automatically")
}

func newID() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name checkpoint: %w", err)
	}
	return "cp-" + hex.EncodeToString(b[:]), nil
}

// wireCheckpoint converts a checkpoint to the wire type.
func wireCheckpoint(c *projection.Checkpoint) control.Checkpoint {
	return control.Checkpoint{
		ID: c.ID, SessionID: c.Session, PortID: c.Port, TokensUsed: c.Tokens, TokenBudget: c.Budget, TriggerType: c.Trigger,
		ContextHash: c.ContextHash, Summary: c.Summary, ActiveFiles: append([]string{}, c.ActiveFiles...), CreatedAt: c.At,
	}
}

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
