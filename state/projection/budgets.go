package projection

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/tail"
)

// Rows of the bucket checkpoints that are about token budgets.
const (
	compactionRows = 'l'
	modelLimitRows = 'm'
	fileLimitRows  = 'p'
	budgetVersion  = 1
)

// Limits of the automatic compactions that are kept for each model.
const (
	compactionsPerModel = 8 // the newest: settings and versions of Claude Code move the limit
	compactionModels    = 256
	leastCompaction     = 50_000 // tokens; a smaller one says nothing about the model
)

// Compaction is an automatic compaction of a session.
type Compaction struct {
	At     int64 `json:"at"`     // Unix milliseconds
	Tokens int64 `json:"tokens"` // in use before it
}

// Budgets is what is known about token budgets apart from the transcripts. The caller must not change it.
type Budgets struct {
	Compactions map[string][]Compaction // by model: the newest automatic ones, newest first
	Models      map[string]int64        // set by the user for a model
	Files       map[tail.FileID]int64   // set by the user for a session
}

// budgetChange is what a transaction changes in Budgets: for a file if it is set, else for a model.
type budgetChange struct {
	model       string
	file        tail.FileID
	limit       int64        // 0: none
	compactions []Compaction // nil: the limit is changed
}

// Budgets comes from memory.
func (s *Checkpoints) Budgets() Budgets {
	m := s.db.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budgets == nil {
		return Budgets{}
	}
	return *m.budgets
}

// SetBudget stores the limit that the user sets for the sessions of a model, or for one session if file is not 0. A
// limit of 0 removes it.
func (s *Checkpoints) SetBudget(ctx context.Context, model string, file tail.FileID, limit int64) error {
	err := s.db.update(ctx, 0, func(t *tx) error { return t.putLimit(limitKey(model, file), limit) })
	if err != nil {
		return fmt.Errorf("store budget: %w", err)
	}
	return nil
}

func limitKey(model string, file tail.FileID) []byte {
	if file != 0 {
		return append([]byte{fileLimitRows}, fileKey(file)...)
	}
	return append([]byte{modelLimitRows}, model...)
}

// putLimit stores a limit; 0 removes it.
func (t *tx) putLimit(key []byte, limit int64) error {
	b := t.Bucket(state.BucketCheckpoints)
	if limit <= 0 && b.Get(key) == nil {
		return nil
	}
	change, err := limitOf(key)
	if err != nil {
		return err
	}
	if change.limit = max(limit, 0); change.limit == 0 {
		err = t.Delete("put budget", b, key)
	} else {
		v := binary.BigEndian.AppendUint64(kv.NewSealed(budgetVersion, 8), uint64(limit))
		err = t.Put("put budget", b, key, kv.Seal(key, v))
	}
	if err != nil {
		return err
	}
	t.delta.budgets = append(t.delta.budgets, change)
	return nil
}

// limitOf returns the inverse of limitKey.
func limitOf(key []byte) (budgetChange, error) {
	if key[0] == modelLimitRows {
		return budgetChange{model: string(key[1:])}, nil
	}
	if len(key) != 1+8 {
		return budgetChange{}, fmt.Errorf("%w: budget key of %d bytes", state.ErrCorrupt, len(key))
	}
	return budgetChange{file: tail.FileID(binary.BigEndian.Uint64(key[1:]))}, nil
}

// putCompaction stores an automatic compaction for its model's budget.
func (t *tx) putCompaction(b *kv.Bucket, c *Checkpoint) error {
	if !c.Automatic || c.Model == "" || c.Tokens < leastCompaction {
		return nil
	}
	key := append([]byte{compactionRows}, c.Model...)
	var list []Compaction
	if v := b.Get(key); v != nil {
		var err error
		if list, err = decodeCompactions(key, v); err != nil {
			return err
		}
	} else if len(kv.Keys(b, []byte{compactionRows})) >= compactionModels {
		return nil
	}
	list = append(list, Compaction{c.At.UnixMilli(), c.Tokens})
	slices.SortStableFunc(list, func(a, b Compaction) int { return cmp.Compare(b.At, a.At) })
	list = list[:min(len(list), compactionsPerModel)]
	v, err := kv.SealJSON(budgetVersion, key, list)
	if err != nil {
		return err
	}
	t.delta.budgets = append(t.delta.budgets, budgetChange{model: c.Model, compactions: list})
	return t.Put("put compactions", b, key, v)
}

func decodeCompactions(key, v []byte) (list []Compaction, err error) {
	if err := kv.UnsealJSON(budgetVersion, key, v, &list); err != nil {
		return nil, fmt.Errorf("read compactions: %w", err)
	}
	return list, nil
}

// readBudgets reads the budgets into memory.
func (m *memory) readBudgets(tx *kv.Snapshot) error {
	b := tx.Bucket(state.BucketCheckpoints)
	var changes []budgetChange
	for _, key := range kv.Keys(b, []byte{compactionRows}) {
		list, err := decodeCompactions(key, b.Get(key))
		if err != nil {
			return err
		}
		changes = append(changes, budgetChange{model: string(key[1:]), compactions: list})
	}
	for _, key := range append(kv.Keys(b, []byte{modelLimitRows}), kv.Keys(b, []byte{fileLimitRows})...) {
		v, err := kv.Unseal(key, b.Get(key), budgetVersion)
		if err == nil && len(v) != 8 {
			err = fmt.Errorf("%w: budget of %d bytes", state.ErrCorrupt, len(v))
		}
		if err != nil {
			return fmt.Errorf("read budget: %w", err)
		}
		change, err := limitOf(key)
		if err != nil {
			return err
		}
		change.limit = int64(binary.BigEndian.Uint64(v))
		changes = append(changes, change)
	}
	m.applyBudgets(changes)
	return nil
}

// applyBudgets makes changes visible, in a copy: a caller of Budgets may still read the old one. The caller holds mu.
func (m *memory) applyBudgets(changes []budgetChange) {
	if len(changes) == 0 {
		return
	}
	b := Budgets{Compactions: map[string][]Compaction{}, Models: map[string]int64{}, Files: map[tail.FileID]int64{}}
	if old := m.budgets; old != nil {
		b = Budgets{Compactions: maps.Clone(old.Compactions), Models: maps.Clone(old.Models), Files: maps.Clone(old.Files)}
	}
	for _, c := range changes {
		switch {
		case c.file != 0 && c.limit == 0:
			delete(b.Files, c.file)
		case c.file != 0:
			b.Files[c.file] = c.limit
		case c.compactions != nil:
			b.Compactions[c.model] = c.compactions
		case c.limit == 0:
			delete(b.Models, c.model)
		default:
			b.Models[c.model] = c.limit
		}
	}
	m.budgets = &b
}
