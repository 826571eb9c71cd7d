package projection

import (
	"sync"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/kv"
)

// memory is what is kept of the rows in memory: data that is needed at every prompt must not be read from disk. It
// implements state.Dependents.
type memory struct {
	db *DB

	mu      sync.Mutex          // guards all below; a leaf
	folds   int64               // bytes of the bucket folds
	notices map[string][]Notice // by session, oldest first
	budgets *Budgets            // nil: none; immutable once set
}

var _ state.Dependents = (*memory)(nil)

// Load implements kv.Memory.
func (m *memory) Load(tx *kv.Snapshot) error {
	fresh := memory{notices: map[string][]Notice{}}
	for _, read := range []func(*kv.Snapshot) error{
		fresh.readSessions, readDocuments, fresh.readNotices, fresh.readBudgets,
	} {
		if err := read(tx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.folds, m.notices, m.budgets = fresh.folds, fresh.notices, fresh.budgets
	return nil
}

// Begin implements kv.Memory.
func (m *memory) Begin(*kv.Tx) kv.Changes { return &delta{memory: m} }

// delta is what one transaction changes in memory once the disk has it.
type delta struct {
	memory *memory

	folds   int64
	notices []noticeChange
	budgets []budgetChange
	missed  []MissedDocument
}

// Finish implements kv.Changes.
func (d *delta) Finish() error { return nil }

// Apply implements kv.Changes.
func (d *delta) Apply() {
	d.memory.apply(d)
	for _, missed := range d.missed {
		if report := d.memory.db.Missed; report != nil {
			report(missed)
		}
	}
}

func (m *memory) apply(d *delta) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.folds += d.folds
	m.applyNotices(d.notices)
	m.applyBudgets(d.budgets)
}

func (m *memory) foldBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.folds
}
