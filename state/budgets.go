package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/ccship/ccship/state/kv"

	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/session"
)

// Rows of the bucket checkpoints that are about token budgets.
const (
	boundaryRows  = 'l'
	modelPinRows  = 'm'
	filePinRows   = 'p'
	budgetVersion = 1
)

// What is remembered of automatic compactions at most.
const (
	boundariesPerModel = 8 // the newest: settings and versions of the program move the limit, and then go
	boundaryModels     = 256
	leastBoundary      = 50_000 // tokens; less says nothing
)

// boundary is an automatic compaction.
type boundary struct {
	At     int64 `json:"at"` // Unix milliseconds
	Tokens int64 `json:"tokens"`
}

// Budgets is what is known of token budgets beside the transcripts. It is not to be changed.
type Budgets struct {
	Learned map[string]int64      // by model: the least tokens of the newest automatic compactions that are believed
	Models  map[string]int64      // set by the user for a model
	Files   map[tail.FileID]int64 // set by the user for a session
}

// budgetChange is what a transaction changes of Budgets: of a file if there is one, else of a model.
type budgetChange struct {
	learned bool
	model   string
	file    tail.FileID
	limit   int64 // 0: none
}

// Budgets answers from the memory.
func (db *DB) Budgets() Budgets {
	x := &db.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.budgets == nil {
		return Budgets{}
	}
	return *x.budgets
}

// PinBudget keeps the limit that the user sets for the sessions of a model, or for one session if file is not 0. A limit
// of 0 forgets it.
func (db *DB) PinBudget(ctx context.Context, model string, file tail.FileID, limit int64) error {
	err := db.update(ctx, 0, func(t *txn) error { return t.putPin(pinKey(model, file), limit) })
	if err != nil {
		return fmt.Errorf("keep budget: %w", err)
	}
	return nil
}

func pinKey(model string, file tail.FileID) []byte {
	if file != 0 {
		return append([]byte{filePinRows}, fileKey(file)...)
	}
	return append([]byte{modelPinRows}, model...)
}

// putPin stores a limit; 0 removes it.
func (t *txn) putPin(key []byte, limit int64) error {
	b := t.Bucket(bucketCheckpoints)
	if limit <= 0 && b.Get(key) == nil {
		return nil
	}
	change, err := pinOf(key)
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

// pinOf takes the key of a limit apart.
func pinOf(key []byte) (budgetChange, error) {
	if key[0] == modelPinRows {
		return budgetChange{model: string(key[1:])}, nil
	}
	id, err := splitFileKey(key[1:])
	return budgetChange{file: tail.FileID(id)}, err
}

// learnBoundary takes in what an automatic compaction says of its model's budget.
func (t *txn) learnBoundary(b *kv.Bucket, c *Checkpoint) error {
	if !c.Automatic || c.Model == "" || c.Tokens < leastBoundary {
		return nil
	}
	key := append([]byte{boundaryRows}, c.Model...)
	var list []boundary
	if v := b.Get(key); v != nil {
		var err error
		if list, err = decodeBoundaries(key, v); err != nil {
			return err
		}
	} else if len(kv.Keys(b, []byte{boundaryRows})) >= boundaryModels {
		return nil
	}
	list = append(list, boundary{c.At.UnixMilli(), c.Tokens})
	slices.SortStableFunc(list, func(a, b boundary) int { return cmp.Compare(b.At, a.At) })
	list = list[:min(len(list), boundariesPerModel)]
	v, err := kv.SealJSON(budgetVersion, key, list)
	if err != nil {
		return err
	}
	t.delta.budgets = append(t.delta.budgets, budgetChange{learned: true, model: c.Model, limit: leastOf(c.Model, list)})
	return t.Put("put boundaries", b, key, v)
}

func decodeBoundaries(key, v []byte) (list []boundary, err error) {
	if err := kv.UnsealJSON(budgetVersion, key, v, &list); err != nil {
		return nil, fmt.Errorf("read learned budget: %w", err)
	}
	return list, nil
}

// leastOf is the least of a model's boundaries that are believed, 0 if none is. One alone that is far below what the
// model can hold may be a slip of the program, or of one session's settings: it takes a second one near it.
func leastOf(model string, list []boundary) (least int64) {
	usual := session.BudgetFor(model, 0, 0, session.BudgetOptions{}).Limit
	for i, b := range list {
		believed := b.Tokens >= usual/2 || slices.ContainsFunc(list[i+1:], b.near) || slices.ContainsFunc(list[:i], b.near)
		if believed && (least == 0 || b.Tokens < least) {
			least = b.Tokens
		}
	}
	return least
}

// near says whether two boundaries are at most a tenth apart.
func (b boundary) near(other boundary) bool {
	return max(b.Tokens, other.Tokens)-min(b.Tokens, other.Tokens) <= b.Tokens/10
}

// readBudgets reads what is known of budgets into the memory.
func readBudgets(x *index, tx *kv.Snapshot) error {
	b := tx.Bucket(bucketCheckpoints)
	var changes []budgetChange
	for _, key := range kv.Keys(b, []byte{boundaryRows}) {
		list, err := decodeBoundaries(key, b.Get(key))
		if err != nil {
			return err
		}
		model := string(key[1:])
		changes = append(changes, budgetChange{learned: true, model: model, limit: leastOf(model, list)})
	}
	for _, key := range append(kv.Keys(b, []byte{modelPinRows}), kv.Keys(b, []byte{filePinRows})...) {
		v, err := kv.Unseal(key, b.Get(key), budgetVersion)
		if err == nil && len(v) != 8 {
			err = fmt.Errorf("%w: budget of %d bytes", ErrCorrupt, len(v))
		}
		if err != nil {
			return fmt.Errorf("read budget: %w", err)
		}
		change, err := pinOf(key)
		if err != nil {
			return err
		}
		change.limit = int64(binary.BigEndian.Uint64(v))
		changes = append(changes, change)
	}
	x.applyBudgets(changes)
	return nil
}

// applyBudgets follows a transaction. The caller holds mu.
func (x *index) applyBudgets(changes []budgetChange) {
	if len(changes) == 0 {
		return
	}
	b := Budgets{Learned: map[string]int64{}, Models: map[string]int64{}, Files: map[tail.FileID]int64{}}
	if x.budgets != nil {
		b = Budgets{Learned: maps.Clone(x.budgets.Learned), Models: maps.Clone(x.budgets.Models), Files: maps.Clone(x.budgets.Files)}
	}
	for _, c := range changes {
		switch {
		case c.file != 0 && c.limit == 0:
			delete(b.Files, c.file)
		case c.file != 0:
			b.Files[c.file] = c.limit
		case c.learned && c.limit == 0:
			delete(b.Learned, c.model)
		case c.learned:
			b.Learned[c.model] = c.limit
		case c.limit == 0:
			delete(b.Models, c.model)
		default:
			b.Models[c.model] = c.limit
		}
	}
	x.budgets = &b
}
