package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/ccship/ccship/server"
)

const (
	// textIDBits are the low bits of a text's id, which distinguish texts of one millisecond.
	textIDBits = 21
	// maxTextTime is the latest time, in milliseconds since 1970, that fits above them.
	maxTextTime = 1<<(63-textIDBits) - 1
)

// preparedText is a text ready to be stored.
type preparedText struct {
	of      server.Text
	id      int64 // or one not far above it
	indexed string
}

// textID is the lowest id of a text of that time.
func textID(at time.Time) int64 { return min(max(at.UnixMilli(), 0), maxTextTime) << textIDBits }

// timeOfText is the time in an id.
func timeOfText(id int64) time.Time { return time.UnixMilli(id >> textIDBits).UTC() }

// prepareTexts does what needs no transaction. Ids ascend: the index likes that.
func prepareTexts(d *server.Derivation) []preparedText {
	out := make([]preparedText, 0, len(d.Texts))
	for _, t := range d.Texts {
		if t.Text = cleanText(t.Text); t.Text == "" {
			continue
		}
		h := fnv.New32a()
		fmt.Fprint(h, d.Task.Stream, d.Position.Epoch, t.Generation, t.Line, t.Kind)
		id := textID(t.Time) | int64(h.Sum32()&(1<<textIDBits-1))
		out = append(out, preparedText{t, id, indexText(foldText(t.Text))})
	}
	slices.SortStableFunc(out, func(a, b preparedText) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return 0
	})
	return out
}

// textPlace is what two texts of one generation can't have both.
type textPlace struct {
	line int64
	kind string
}

// storedText is what is there already.
type storedText struct {
	id   int64
	text string
}

// replaceTexts makes the texts of a derivation's stretch those that it has. What is there already and the same stays.
func replaceTexts(ctx context.Context, c *sql.Conn, d *server.Derivation, texts []preparedText) error {
	old, err := textsBetween(ctx, c, d)
	if err != nil {
		return err
	}
	w, err := newTextWriter(ctx, c)
	if err != nil {
		return err
	}
	defer w.close()
	var added []preparedText
	for _, t := range texts {
		at := textPlace{t.of.Line, t.of.Kind}
		if o, ok := old[at]; ok && o.text == t.of.Text && o.id>>textIDBits == t.id>>textIDBits {
			delete(old, at)
			continue
		}
		added = append(added, t)
	}
	for _, o := range old {
		if err := w.remove(ctx, o.id); err != nil {
			return err
		}
	}
	for _, t := range added {
		if err := w.add(ctx, d, t); err != nil {
			return err
		}
	}
	return nil
}

// textsBetween are those stored of a derivation's stretch.
func textsBetween(ctx context.Context, c *sql.Conn, d *server.Derivation) (map[textPlace]storedText, error) {
	from := d.Task.Position.Line
	if d.Task.Position.Epoch != d.Position.Epoch || d.Task.Position.Generation != d.Position.Generation {
		from = 0
	}
	old := map[textPlace]storedText{}
	_, err := list(ctx, sqliteDialect{c}, `
SELECT line, kind, id, text FROM texts WHERE epoch = ? AND generation = ? AND line >= ? AND line < ?`,
		[]any{d.Position.Epoch, d.Position.Generation, from, d.Position.Line}, func(row scanner) (_ struct{}, err error) {
			var at textPlace
			var o storedText
			err = row.Scan(&at.line, &at.kind, &o.id, &o.text)
			old[at] = o
			return struct{}{}, err
		})
	return old, err
}

// textWriter keeps texts and their index alike.
type textWriter struct{ insert, index, delete, unindex *sql.Stmt }

func newTextWriter(ctx context.Context, c *sql.Conn) (w textWriter, err error) {
	for _, p := range []struct {
		at    **sql.Stmt
		query string
	}{
		{&w.insert, `INSERT INTO texts (id, stream, epoch, generation, line, kind, text) VALUES (?, ?, ?, ?, ?, ?, ?)`},
		{&w.index, `INSERT INTO texts_index (rowid, text) VALUES (?, ?)`},
		{&w.delete, `DELETE FROM texts WHERE id = ?`},
		{&w.unindex, `DELETE FROM texts_index WHERE rowid = ?`},
	} {
		if *p.at, err = c.PrepareContext(ctx, p.query); err != nil { //nolint:sqlclosecheck // close closes all
			w.close()
			return w, err
		}
	}
	return w, nil
}

func (w textWriter) close() {
	for _, stmt := range []*sql.Stmt{w.insert, w.index, w.delete, w.unindex} {
		if stmt != nil {
			stmt.Close()
		}
	}
}

func (w textWriter) remove(ctx context.Context, id int64) error {
	if _, err := w.unindex.ExecContext(ctx, id); err != nil {
		return err
	}
	_, err := w.delete.ExecContext(ctx, id)
	return err
}

// errCrowded is for more texts of one millisecond than ids can distinguish.
var errCrowded = errors.New("too many texts of one time")

// add stores a text under the first free id.
func (w textWriter) add(ctx context.Context, d *server.Derivation, t preparedText) error {
	for id := t.id; id < t.id+1000; id++ {
		_, err := w.insert.ExecContext(ctx, id, d.Task.Stream, d.Position.Epoch,
			t.of.Generation, t.of.Line, t.of.Kind, t.of.Text)
		if isPrimaryKey(err) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = w.index.ExecContext(ctx, id, t.indexed)
		return err
	}
	return errCrowded
}
