package lines

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
)

// maskTx is one masking in its transaction.
type maskTx struct {
	sqlstore.Dialect
	in     *server.Masking
	lines  *Lines
	owner  int64
	change server.Change
}

// load finds the stream.
func (t *maskTx) load(ctx context.Context) error {
	c := &t.change
	err := t.Lock(ctx, `SELECT id, owner, session_id, machine, project_hash FROM streams WHERE id = ?`,
		[]any{t.in.Stream}, func(row sqlstore.Scanner) error {
			return row.Scan(&c.Stream, &c.Owner, &c.SessionID, &c.Machine, &c.Project)
		})
	if err == nil && c.Stream == 0 {
		err = server.ErrNotFound
	}
	t.owner, c.At = c.Owner, t.in.At
	return err
}

func (t *maskTx) all(ctx context.Context) (done server.Masked, err error) {
	for i := range t.in.Lines {
		n, err := t.line(ctx, &t.in.Lines[i])
		if err != nil {
			return done, fmt.Errorf("line %d: %w", t.in.Lines[i].Line, err)
		}
		done.Lines += n
	}
	for i := range t.in.Checkpoints {
		n, err := t.checkpoint(ctx, &t.in.Checkpoints[i])
		if err != nil {
			return done, fmt.Errorf("checkpoint %q: %w", t.in.Checkpoints[i].ID, err)
		}
		done.Checkpoints += n
	}
	for i := range t.in.Files {
		n, err := t.file(ctx, &t.in.Files[i])
		if err != nil {
			return done, fmt.Errorf("file %x: %w", t.in.Files[i].SHA256, err)
		}
		done.Files += n
	}
	return done, nil
}

// record counts what was done. The stream's row says how often it was masked: a worker that derives what it had before
// is refused.
func (t *maskTx) record(ctx context.Context, done server.Masked) error {
	_, err := t.Exec(ctx, `
INSERT INTO maskings AS m (owner, stream, asked_by, at, lines, checkpoints, files) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, asked_by) DO UPDATE SET at = excluded.at, lines = m.lines + excluded.lines,
  checkpoints = m.checkpoints + excluded.checkpoints, files = m.files + excluded.files`,
		t.owner, t.in.Stream, t.in.By, sqlstore.Micros(t.in.At), done.Lines, done.Checkpoints, done.Files)
	if err == nil {
		_, err = t.Exec(ctx, `UPDATE streams SET masked = masked + 1 WHERE owner = ? AND id = ?`, t.owner, t.in.Stream)
	}
	return sqlstore.Wrap(err, "write note")
}

// lineAt is the condition that a row is of a line.
const lineAt = `owner = ? AND stream = ? AND epoch = ? AND generation = ? AND line = ?`

// stored is one row of a line.
type stored struct {
	table string
	kind  server.Kind
	raw   []byte
	under bool // of a block, where a row is in force
}

// packed is the table of lines in blocks.
const packed = "blocks"

// rows returns a line's bytes: those in force, and those that others replaced. Where a row is in force, a block may
// hold what it replaced, besides superseded.
func (t *maskTx) rows(ctx context.Context, place Place, at []any) (rows []stored, err error) {
	hot := false
	for _, table := range []string{"lines", "superseded"} {
		err := t.Query(ctx, `SELECT kind, raw FROM `+table+` WHERE `+lineAt, at, func(row sqlstore.Scanner) error {
			x := stored{table: table}
			var kind int16
			err := row.Scan(&kind, &x.raw)
			x.kind = server.Kind(kind)
			rows, hot = append(rows, x), hot || table == "lines"
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	l, ok, err := t.lines.Packed(ctx, t, place, at[4].(int64))
	if ok {
		rows = append(rows, stored{packed, server.Kind(l.Kind), l.Raw, hot})
	}
	return rows, err
}

// write replaces a row's bytes by masked ones. It returns how many rows that changed: what a block holds under a
// row in force was counted with superseded.
func (t *maskTx) write(ctx context.Context, place Place, at []any, x stored, now []byte) (int64, error) {
	if x.table != packed {
		return t.Exec(ctx, `UPDATE `+x.table+` SET raw = ? WHERE `+lineAt+` AND raw = ?`,
			append(append([]any{now}, at...), x.raw)...)
	}
	err := t.lines.Replace(ctx, t, place, at[4].(int64), now)
	if err != nil || x.under {
		return 0, err
	}
	return 1, nil
}

// line masks a line's rows that hold the expected bytes: the one in force, and those that others replaced.
func (t *maskTx) line(ctx context.Context, l *server.LineMask) (masked int64, err error) {
	at := []any{t.owner, t.in.Stream, l.Epoch, l.Generation, l.Line}
	place := Place{Owner: t.owner, Stream: t.in.Stream, Epoch: l.Epoch, Generation: l.Generation}
	rows, err := t.rows(ctx, place, at)
	if err != nil {
		return 0, err
	}
	for _, x := range rows {
		if sha256.Sum256(x.raw) != l.SHA256 || x.kind == server.Oversize {
			continue
		}
		now, err := x.masked(l.Tokens)
		if err != nil {
			return 0, err
		}
		n, err := t.write(ctx, place, at, x, now)
		if err != nil {
			return 0, err
		}
		masked += n
		if n == 0 || t.in.By != 0 || x.table == "superseded" {
			continue
		}
		if err := note(ctx, t, at); err != nil {
			return 0, err
		}
	}
	return masked, nil
}

// note lists a line as masked by the server.
func note(ctx context.Context, d sqlstore.Dialect, at []any) error {
	_, err := d.Exec(ctx, `INSERT INTO masked_lines (owner, stream, epoch, generation, line) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, line, epoch, generation) DO NOTHING`, at...)
	return err
}

// masked returns a row's bytes with tokens. A line that is an object stays one, with the same strings.
func (x *stored) masked(list []server.Token) ([]byte, error) {
	now, err := redact.Overlay(x.raw, tokens(list))
	if err != nil {
		return nil, err
	}
	if x.kind == server.Object && !(redact.SameStrings(x.raw, now) && transcript.Scan(now).IsObject()) {
		return nil, fmt.Errorf("%w: it must stay the same object", redact.ErrNoToken)
	}
	return now, nil
}

// text masks a text that is the expected one; false: it is another one.
func text(s *string, sum [32]byte, list []server.Token) (bool, error) {
	if sha256.Sum256([]byte(*s)) != sum {
		return false, nil
	}
	now, err := redact.Overlay([]byte(*s), tokens(list))
	*s = string(now)
	return err == nil && len(list) > 0, err
}

// checkpoint masks those texts of a checkpoint that are the expected one.
func (t *maskTx) checkpoint(ctx context.Context, c *server.CheckpointMask) (int64, error) {
	var num int64
	var summary, port, list string
	err := t.Query(ctx, `SELECT num, summary, port_id, active_files FROM checkpoints
WHERE owner = ? AND stream = ? AND id = ?`,
		[]any{t.owner, t.in.Stream, c.ID},
		func(row sqlstore.Scanner) error { return row.Scan(&num, &summary, &port, &list) })
	if err != nil || num == 0 {
		return 0, err
	}
	var files []string
	if err := json.Unmarshal([]byte(list), &files); err != nil {
		return 0, fmt.Errorf("read active files: %w", err)
	}
	texts := []*string{&summary, &port}
	for i := range files {
		texts = append(texts, &files[i])
	}
	any := false
	for _, s := range texts {
		changed, err := text(s, c.SHA256, c.Tokens)
		if err != nil {
			return 0, err
		}
		any = any || changed
	}
	if !any {
		return 0, nil
	}
	now, err := json.Marshal(files)
	if err != nil {
		return 0, err
	}
	if len(files) == 0 {
		now = []byte(list)
	}
	return t.Exec(ctx, `UPDATE checkpoints SET summary = ?, port_id = ?, active_files = ? WHERE owner = ? AND num = ?`,
		summary, port, string(now), t.owner, num)
}
