package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
)

// replacedKept is how many replaced incarnations of a machine are remembered. An older one that still writes gets an
// error that it is behind, and is then replaced again.
const replacedKept = 64

// Ledgers counts the writes of machines, the same in both databases. Set once, when a store opens.
type Ledgers struct {
	ledgerReader Dialect
	storeID      string
}

// openLedgers reads the id of this store.
func openLedgers(ctx context.Context, d Dialect) (Ledgers, error) {
	l := Ledgers{ledgerReader: d}
	err := d.Query(ctx, `SELECT id FROM store_identity`, nil, func(row Scanner) error { return row.Scan(&l.storeID) })
	if err == nil && l.storeID == "" {
		err = fmt.Errorf("no id")
	}
	return l, Wrap(err, "read the store's identity")
}

// StoreID implements server.Ledgers.
func (l *Ledgers) StoreID() string { return l.storeID }

// ledgerTx is the ledger of one machine, in the transaction of a write.
type ledgerTx struct {
	Dialect
	storeID    string
	owner      int64
	head       *server.Head // of the write
	machineKey []byte

	at     server.Receipt // before the write
	last   string         // incarnation of the last write
	tokens []string       // of the last writes, newest first
}

func (l *Ledgers) tx(d Dialect, owner int64, h *server.Head) *ledgerTx {
	return &ledgerTx{Dialect: d, storeID: l.storeID, owner: owner, head: h, machineKey: Key(h.Machine)}
}

// RecordWrite checks that a write follows what its writer knows and counts it. It runs last in the write's
// transaction: the ledger is locked only for the commit. A *server.LedgerError refuses the write; the caller rolls
// back.
func (l *Ledgers) RecordWrite(ctx context.Context, d Dialect, owner int64, h *server.Head, stream int64) error {
	if h.Machine == "" {
		return nil
	}
	tx := l.tx(d, owner, h)
	if _, err := d.Exec(ctx, `INSERT INTO ledgers (owner, machine_key, count, writer) VALUES (?, ?, 0, '')
ON CONFLICT (owner, machine_key) DO NOTHING`, owner, tx.machineKey); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := tx.load(ctx, Locked{d}); err != nil {
		return err
	}
	if err := tx.check(ctx); err != nil {
		return err
	}
	return Wrap(tx.count(ctx, stream), "write ledger")
}

// LedgerState is a ledger as a store has it.
type LedgerState struct {
	Count  int64
	Writer string // of the last write, as it is stored
}

// Advance is RecordWrite for a ledger that is locked and stands so, but writes neither the ledger nor the stream.
func (l *Ledgers) Advance(ctx context.Context, d Dialect, owner int64, h *server.Head, at *LedgerState) error {
	tx := l.tx(d, owner, h)
	tx.stands(*at)
	if err := tx.check(ctx); err != nil {
		return err
	}
	if err := tx.replace(ctx); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	*at = tx.next()
	h.Receipt = tx.at
	return nil
}

// stands takes over what is stored of the ledger.
func (tx *ledgerTx) stands(at LedgerState) {
	tx.at = server.Receipt{Store: tx.storeID, Count: at.Count}
	tx.last, tx.tokens = unpackWriter(at.Writer)
	tx.at.Token = tx.token(tx.at.Count)
}

// next counts the write, and returns what is to be stored of the ledger.
func (tx *ledgerTx) next() LedgerState {
	tx.at.Count++
	tx.at.Token = rand.Text()[:8]
	tx.tokens = append([]string{tx.at.Token}, tx.tokens[:min(len(tx.tokens), tokensKept-1)]...)
	return LedgerState{tx.at.Count, tx.head.Writer.Incarnation + " " + strings.Join(tx.tokens, " ")}
}

// CheckWrite returns the *server.LedgerError with which RecordWrite would refuse a write, or nil.
func (l *Ledgers) CheckWrite(ctx context.Context, d Dialect, owner int64, h *server.Head) error {
	tx := l.tx(d, owner, h)
	if err := tx.load(ctx, d); err != nil {
		return err
	}
	return tx.check(ctx)
}

// load reads the ledger. A machine that never wrote is at count 0.
func (tx *ledgerTx) load(ctx context.Context, d Dialect) error {
	var at LedgerState
	err := d.Query(ctx, `SELECT count, writer FROM ledgers WHERE owner = ? AND machine_key = ?`,
		[]any{tx.owner, tx.machineKey}, func(row Scanner) error { return row.Scan(&at.Count, &at.Writer) })
	if err != nil {
		return fmt.Errorf("read ledger: %w", err)
	}
	tx.stands(at)
	return nil
}

// tokensKept is how many writes of a machine the store can tell from those of another history: more than a daemon has
// in flight.
const tokensKept = 16

// unpackWriter reads the column writer: the incarnation of the last write, and tokens of the last ones, newest first.
func unpackWriter(column string) (incarnation string, tokens []string) {
	parts := strings.Split(column, " ")
	return parts[0], parts[1:]
}

// token returns what was drawn for the write that was counted so; "": it is not known any more.
func (tx *ledgerTx) token(count int64) string {
	if back := tx.at.Count - count; back >= 0 && back < int64(len(tx.tokens)) {
		return tx.tokens[back]
	}
	return ""
}

// other reports whether the last write that a writer knows is another one than this store has counted so: it is of a
// history that this database went back behind.
func (tx *ledgerTx) other(w *server.Writer) bool {
	mine := tx.token(w.Count)
	return w.Token != "" && mine != "" && w.Token != mine
}

// check refuses a writer that does not know what this store has of its machine.
func (tx *ledgerTx) check(ctx context.Context) error {
	w := tx.head.Writer
	switch {
	case w.Incarnation == "":
		return nil
	case w.Store != "" && w.Store != tx.storeID:
		return &server.LedgerError{Code: protocol.CodeOtherStore, Receipt: tx.at}
	case w.Count > tx.at.Count, tx.other(&w):
		return &server.LedgerError{Code: protocol.CodeStoreBehind, Receipt: tx.at}
	case w.Incarnation == tx.last:
		return nil
	}
	replaced, err := Number(ctx, tx, `
SELECT count(*) FROM replaced_writers WHERE owner = ? AND machine_key = ? AND writer = ?`,
		tx.owner, tx.machineKey, w.Incarnation)
	switch {
	case err != nil:
		return fmt.Errorf("read ledger: %w", err)
	case replaced > 0:
		return &server.LedgerError{Code: protocol.CodeWriterReplaced, Receipt: tx.at}
	case w.Count != tx.at.Count || w.Store == "" && tx.at.Count > 0:
		return &server.LedgerError{Code: protocol.CodeWriterBehind, Receipt: tx.at}
	}
	return nil
}

// count adds the write, records which incarnation it replaces, and gives the write its receipt.
func (tx *ledgerTx) count(ctx context.Context, stream int64) error {
	if err := tx.replace(ctx); err != nil {
		return err
	}
	to := tx.next()
	if _, err := tx.Exec(ctx, `UPDATE ledgers SET count = ?, writer = ? WHERE owner = ? AND machine_key = ?`,
		to.Count, to.Writer, tx.owner, tx.machineKey); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE streams SET changed = ? WHERE owner = ? AND id = ?`,
		tx.at.Count, tx.owner, stream); err != nil {
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
	_, err := tx.Exec(ctx, `INSERT INTO replaced_writers (owner, machine_key, writer, count) VALUES (?, ?, ?, ?)
ON CONFLICT (owner, machine_key, writer) DO UPDATE SET count = excluded.count`,
		tx.owner, tx.machineKey, tx.last, tx.at.Count)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM replaced_writers WHERE owner = ? AND machine_key = ? AND writer NOT IN (
  SELECT writer FROM replaced_writers WHERE owner = ? AND machine_key = ? ORDER BY count DESC LIMIT ?)`,
		tx.owner, tx.machineKey, tx.owner, tx.machineKey, replacedKept)
	return err
}

// Ledger implements server.Ledgers.
func (l *Ledgers) Ledger(ctx context.Context, owner int64, machine string, since int64,
	limit int) (protocol.WriteLedger, error) {
	d := l.ledgerReader
	tx := l.tx(d, owner, &server.Head{Machine: machine})
	if err := tx.load(ctx, d); err != nil {
		return protocol.WriteLedger{}, err
	}
	out := protocol.WriteLedger{Store: tx.at.Store, Count: tx.at.Count, Token: tx.at.Token, Writer: tx.last,
		Since: tx.token(since)}
	err := d.Query(ctx, `SELECT session_id, changed FROM streams WHERE owner = ? AND machine_key = ? AND changed > ?
ORDER BY changed, id LIMIT ?`, []any{owner, Key(machine), since, limit}, func(row Scanner) error {
		var c protocol.ChangedStream
		err := row.Scan(&c.SessionID, &c.Count)
		out.Changed = append(out.Changed, c)
		return err
	})
	return out, Wrap(err, "read ledger")
}

// clearAll removes what is indexed of a stream, and runs statements whose values are its owner and id.
func clearAll(ctx context.Context, d Dialect, x OwnedStream, queries ...string) error {
	if err := DropFromIndex(ctx, d, x.Owner, x.Stream); err != nil {
		return err
	}
	if err := RemoveEdits(ctx, d, x.Owner, x.Stream); err != nil {
		return err
	}
	for _, query := range queries {
		if _, err := d.Exec(ctx, query, x.Owner, x.Stream); err != nil {
			return err
		}
	}
	return nil
}

const (
	dropFolds   = `DELETE FROM folds WHERE owner = ? AND stream = ?`
	dropMoments = `DELETE FROM moments WHERE owner = ? AND stream = ?`
)

// ClearMasked removes all that is derived from a stream's lines: some are masked, and it is derived anew.
func ClearMasked(ctx context.Context, d Dialect, x OwnedStream) error {
	return clearAll(ctx, d, x, dropFolds, dropMoments, `DELETE FROM facts WHERE owner = ? AND stream = ?`,
		`UPDATE streams SET redo = true, derived = 0, leased = 0, version = version + 1 WHERE owner = ? AND id = ?`)
}

// ClearQuotes removes everything that quotes a stream's lines, which are gone. Nothing is derived from it any more.
func ClearQuotes(ctx context.Context, d Dialect, x OwnedStream) error {
	return clearAll(ctx, d, x, dropFolds, dropMoments,
		`UPDATE facts SET title = '', first_prompt = '', folded = '' WHERE owner = ? AND stream = ?`,
		`UPDATE streams SET redo = false, derived = version, leased = 0 WHERE owner = ? AND id = ?`)
}

// ClearTexts removes what of a stream's texts can be found, and has it derived again from a time on.
func ClearTexts(ctx context.Context, d Dialect, x OwnedStream, again time.Time) error {
	if err := clearAll(ctx, d, x); err != nil {
		return err
	}
	_, err := d.Exec(ctx, `UPDATE streams SET redo = true, derived = -1, leased = ? WHERE owner = ? AND id = ?`,
		Micros(again), x.Owner, x.Stream)
	return err
}

// DropFromIndex makes all that is indexed of a stream so far disappear from the tables: it is masked, or gone. It runs
// in the transaction that does that. Searches see the lines as they are at once.
func DropFromIndex(ctx context.Context, d Dialect, owner, stream int64) error {
	_, err := d.Exec(ctx, `UPDATE streams SET round = round + 1 WHERE owner = ? AND id = ?`, owner, stream)
	if err != nil {
		return err
	}
	_, err = d.Exec(ctx, `
INSERT INTO gram_purges (owner, stream, round)
VALUES (?, ?, coalesce((SELECT round FROM streams WHERE owner = ? AND id = ?), 9223372036854775807))
ON CONFLICT (owner, stream) DO UPDATE SET round = excluded.round`, owner, stream, owner, stream)
	return err
}

// ScrubLater notes that pages and the index may still hold pieces of what was masked, or removed by a rule.
func ScrubLater(ctx context.Context, d Dialect) error {
	_, err := d.Exec(ctx, `INSERT INTO leases (name, holder, until) VALUES ('scrub', ?, 0)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder`, rand.Text())
	return err
}

const (
	// maxTokens limits the tokens of one answer, so that no sum overflows. maxKey limits its key, in bytes.
	maxTokens = 1 << 40
	maxKey    = 512
)

// CleanKey returns an answer's key as it is stored.
func CleanKey(key string) string {
	if len(key) > maxKey {
		key = key[:maxKey]
	}
	return CleanText(key)
}

// ClampTokens limits the tokens of an answer.
func ClampTokens(t server.Tokens) server.Tokens {
	for _, n := range []*int64{&t.Input, &t.Output, &t.CacheRead, &t.CacheWrite5m, &t.CacheWrite1h, &t.Searches} {
		*n = min(max(*n, 0), maxTokens)
	}
	return t
}

// NotNil returns the bytes of a line; none are not NULL.
func NotNil(raw []byte) []byte {
	if raw == nil {
		return []byte{}
	}
	return raw
}
