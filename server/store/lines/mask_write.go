package lines

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/ccship/ccship/protocol"
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

func (t *maskTx) all(ctx context.Context) (done protocol.Masked, err error) {
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
func (t *maskTx) record(ctx context.Context, done protocol.Masked) error {
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

// line masks what is stored of a line and has the expected bytes: what is in force, and what others replaced. Where a
// row is in force, a block may hold what it replaced, besides superseded.
func (t *maskTx) line(ctx context.Context, l *protocol.LineMask) (masked int64, err error) {
	at := Place{Owner: t.owner, Stream: t.in.Stream, Epoch: l.Epoch, Generation: l.Generation}
	rows, inForce, err := t.rows(ctx, at, "lines", l)
	if err != nil {
		return 0, err
	}
	_, replaced, err := t.rows(ctx, at, "superseded", l)
	if err != nil {
		return 0, err
	}
	packed, err := t.lines.replace(ctx, t, at, l.Line, func(x Line) ([]byte, error) { return maskedLine(x, l) })
	if err != nil {
		return 0, err
	}
	if packed && rows == 0 {
		inForce++
	}
	if inForce > 0 && t.in.By == 0 {
		err = note(ctx, t, at, l.Line)
	}
	return inForce + replaced, err
}

// rows masks the rows of a line in a table. It returns how many there are, and how many it masked.
func (t *maskTx) rows(ctx context.Context, at Place, table string,
	l *protocol.LineMask) (all, masked int64, err error) {
	const ofLine = ofPlace + ` AND line = ?`
	list, err := sqlstore.List(ctx, t, `SELECT kind, raw FROM `+table+ofLine, at.args(l.Line),
		func(row sqlstore.Scanner) (x Line, err error) {
			var kind int64
			err = row.Scan(&kind, &x.Raw)
			x.Kind = uint8(kind)
			return x, err
		})
	for _, x := range list {
		now, wrong := maskedLine(x, l)
		if wrong != nil {
			return 0, 0, wrong
		}
		if now == nil {
			continue
		}
		n, wrong := t.Exec(ctx, `UPDATE `+table+` SET raw = ?`+ofLine+` AND raw = ?`,
			append(append([]any{now}, at.args(l.Line)...), x.Raw)...)
		if wrong != nil {
			return 0, 0, wrong
		}
		masked += n
	}
	return int64(len(list)), masked, err
}

// note lists a line as masked by the server.
func note(ctx context.Context, d sqlstore.Dialect, at Place, line int64) error {
	_, err := d.Exec(ctx, `INSERT INTO masked_lines (owner, stream, epoch, generation, line) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (owner, stream, line, epoch, generation) DO NOTHING`, at.args(line)...)
	return err
}

// maskedLine returns a line's bytes with tokens; nil if it does not have the expected ones. A line that is an object
// stays one, with the same strings.
func maskedLine(x Line, l *protocol.LineMask) ([]byte, error) {
	kind := server.Kind(x.Kind)
	if sha256.Sum256(x.Raw) != l.SHA256 || kind == server.Oversize {
		return nil, nil
	}
	now, err := redact.Overlay(x.Raw, l.Tokens)
	if err != nil {
		return nil, err
	}
	if kind == server.Object && !(redact.SameStrings(x.Raw, now) && transcript.Scan(now).IsObject()) {
		return nil, fmt.Errorf("%w: it must stay the same object", redact.ErrNoToken)
	}
	return now, nil
}

// text masks a text that is the expected one; false: it is another one.
func text(s *string, sum [32]byte, list []redact.Token) (bool, error) {
	if sha256.Sum256([]byte(*s)) != sum {
		return false, nil
	}
	now, err := redact.Overlay([]byte(*s), list)
	*s = string(now)
	return err == nil && len(list) > 0, err
}

// checkpoint masks those texts of a checkpoint that are the expected one.
func (t *maskTx) checkpoint(ctx context.Context, c *protocol.CheckpointMask) (int64, error) {
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
