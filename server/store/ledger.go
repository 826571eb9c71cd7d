package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ccship/ccship/server"
)

// replacedKept is how many replaced incarnations of a machine are remembered. An older one that still writes is told
// that it is behind, and is then replaced again.
const replacedKept = 64

// ledgers counts the writes of machines, the same in both databases. Set once, when a store opens.
type ledgers struct {
	ledgerReader dialect
	storeID      string
}

// openLedgers reads the id of this store.
func openLedgers(ctx context.Context, d dialect) (ledgers, error) {
	l := ledgers{ledgerReader: d}
	err := d.query(ctx, `SELECT id FROM store_identity`, nil, func(row scanner) error { return row.Scan(&l.storeID) })
	if err == nil && l.storeID == "" {
		err = fmt.Errorf("no id")
	}
	if err != nil {
		return l, fmt.Errorf("read the store's identity: %w", err)
	}
	return l, nil
}

// StoreID implements server.Ledgers.
func (l *ledgers) StoreID() string { return l.storeID }

// ledgerTx is the ledger of one machine, in the transaction of a write.
type ledgerTx struct {
	dialect
	storeID    string
	owner      int64
	head       *server.Head // of the write
	machineKey []byte

	at   server.Receipt // before the write
	last string         // incarnation of the last write
}

func (l *ledgers) tx(d dialect, owner int64, h *server.Head) *ledgerTx {
	return &ledgerTx{dialect: d, storeID: l.storeID, owner: owner, head: h, machineKey: key(h.Machine)}
}

// record checks that a write follows what its writer knows and counts it. It runs last in the write's transaction: the
// ledger is locked only for the commit. A *server.LedgerError refuses the write; the caller rolls back.
func (l *ledgers) record(ctx context.Context, d dialect, owner int64, h *server.Head, stream int64) error {
	if h.Machine == "" {
		return nil
	}
	tx := l.tx(d, owner, h)
	if _, err := d.exec(ctx, `INSERT INTO ledgers (owner, machine_key, count, writer) VALUES (?, ?, 0, '')
ON CONFLICT (owner, machine_key) DO NOTHING`, owner, tx.machineKey); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := tx.load(ctx, d.lock()); err != nil {
		return err
	}
	if err := tx.check(ctx); err != nil {
		return err
	}
	if err := tx.count(ctx, stream); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// verify returns the *server.LedgerError with which record would refuse a write, or nil.
func (l *ledgers) verify(ctx context.Context, d dialect, owner int64, h *server.Head) error {
	tx := l.tx(d, owner, h)
	if err := tx.load(ctx, ""); err != nil {
		return err
	}
	return tx.check(ctx)
}

// load reads the ledger. A machine that never wrote is at count 0.
func (tx *ledgerTx) load(ctx context.Context, lock string) error {
	tx.at = server.Receipt{Store: tx.storeID}
	err := tx.query(ctx, `SELECT count, writer FROM ledgers WHERE owner = ? AND machine_key = ?`+lock,
		[]any{tx.owner, tx.machineKey}, func(row scanner) error { return row.Scan(&tx.at.Count, &tx.last) })
	if err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	return nil
}

// check refuses a writer that does not know what this store has of its machine.
func (tx *ledgerTx) check(ctx context.Context) error {
	w := tx.head.Writer
	switch {
	case w.Incarnation == "":
		return nil
	case w.Store != "" && w.Store != tx.storeID:
		return &server.LedgerError{Code: server.LedgerOtherStore, Receipt: tx.at}
	case w.Count > tx.at.Count:
		return &server.LedgerError{Code: server.LedgerStoreBehind, Receipt: tx.at}
	case w.Incarnation == tx.last:
		return nil
	}
	replaced, err := one(ctx, tx, `
SELECT count(*) FROM replaced_writers WHERE owner = ? AND machine_key = ? AND writer = ?`,
		tx.owner, tx.machineKey, w.Incarnation)
	switch {
	case err != nil:
		return fmt.Errorf("read ledger: %w", err)
	case replaced > 0:
		return &server.LedgerError{Code: server.LedgerReplaced, Receipt: tx.at}
	case w.Count != tx.at.Count || w.Store == "" && tx.at.Count > 0:
		return &server.LedgerError{Code: server.LedgerWriterBehind, Receipt: tx.at}
	}
	return nil
}

// count adds the write, records which incarnation it replaces, and gives the write its receipt.
func (tx *ledgerTx) count(ctx context.Context, stream int64) error {
	if err := tx.replace(ctx); err != nil {
		return err
	}
	tx.at.Count++
	if _, err := tx.exec(ctx, `UPDATE ledgers SET count = ?, writer = ? WHERE owner = ? AND machine_key = ?`,
		tx.at.Count, tx.head.Writer.Incarnation, tx.owner, tx.machineKey); err != nil {
		return err
	}
	if _, err := tx.exec(ctx, `UPDATE streams SET changed = ? WHERE id = ?`, tx.at.Count, stream); err != nil {
		return err
	}
	tx.head.Receipt = tx.at
	return nil
}

// replace records that one incarnation continues where another one stopped.
func (tx *ledgerTx) replace(ctx context.Context) error {
	if tx.last == "" || tx.head.Writer.Incarnation == "" || tx.last == tx.head.Writer.Incarnation {
		return nil
	}
	_, err := tx.exec(ctx, `INSERT INTO replaced_writers (owner, machine_key, writer, count) VALUES (?, ?, ?, ?)
ON CONFLICT (owner, machine_key, writer) DO UPDATE SET count = excluded.count`,
		tx.owner, tx.machineKey, tx.last, tx.at.Count)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `DELETE FROM replaced_writers WHERE owner = ? AND machine_key = ? AND writer NOT IN (
  SELECT writer FROM replaced_writers WHERE owner = ? AND machine_key = ? ORDER BY count DESC LIMIT ?)`,
		tx.owner, tx.machineKey, tx.owner, tx.machineKey, replacedKept)
	return err
}

// replaced reads bytes of lines that later bytes replaced.
func replaced(ctx context.Context, d dialect, yield func(server.Line, time.Time) error, where string,
	args ...any) error {
	err := d.query(ctx, `SELECT line, kind, raw, replaced FROM superseded`+where+` ORDER BY line, replaced`, args,
		func(row scanner) error {
			var l server.Line
			var kind, at int64
			if err := row.Scan(&l.Index, &kind, &l.Raw, &at); err != nil {
				return err
			}
			l.Kind = server.Kind(kind)
			return yield(l, moment(at))
		})
	if err != nil {
		return fmt.Errorf("read replaced lines: %w", err)
	}
	return nil
}

// Ledger implements server.Ledgers.
func (l *ledgers) Ledger(ctx context.Context, owner int64, machine string, since int64,
	limit int) (server.Ledger, error) {
	d := l.ledgerReader
	tx := l.tx(d, owner, &server.Head{Machine: machine})
	if err := tx.load(ctx, ""); err != nil {
		return server.Ledger{}, err
	}
	out := server.Ledger{Receipt: tx.at, Writer: tx.last}
	column, value := d.machine(machine)
	err := d.query(ctx, `SELECT session_id, changed FROM streams WHERE owner = ? AND `+column+` AND changed > ?
ORDER BY changed, id LIMIT ?`, []any{owner, value, since, limit}, func(row scanner) error {
		var c server.ChangedStream
		err := row.Scan(&c.SessionID, &c.Count)
		out.Changed = append(out.Changed, c)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("read ledger: %w", err)
	}
	return out, nil
}
