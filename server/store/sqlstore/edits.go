package sqlstore

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/transcript/provenance"
)

// editRows is how many edits one statement stores.
const editRows = 50

// saveEdits stores the edits of a derivation, in its transaction.
func saveEdits(ctx context.Context, l Dialect, d *server.Derivation) error {
	from, p := int64(0), d.Position
	if before := d.Task.Position; before.Epoch == p.Epoch && before.Generation == p.Generation {
		from = before.Line
	}
	_, err := l.Exec(ctx, `DELETE FROM edits
WHERE owner = ? AND stream = ? AND epoch = ? AND generation = ? AND line >= ? AND line < ?`,
		d.Task.Owner, d.Task.Stream, p.Epoch, p.Generation, from, p.Line)
	if err != nil || len(d.Edits) == 0 {
		return err
	}
	secret, err := secretOf(ctx, l)
	if err != nil {
		return err
	}
	part, last := int64(0), int64(-1)
	for some := range slices.Chunk(d.Edits, editRows) {
		args := make([]any, 0, 9*len(some))
		for i := range some {
			e := &some[i]
			if part++; e.Line != last {
				part, last = 0, e.Line
			}
			args = append(args, d.Task.Owner, d.Task.Stream, p.Epoch, p.Generation, e.Line, part, secret.Name(e.Path),
				Micros(e.At), packEdit(e, secret))
		}
		_, err := l.Exec(ctx, `INSERT INTO edits (owner, stream, epoch, generation, line, part, name, at, data) VALUES `+
			strings.TrimSuffix(strings.Repeat(`(?, ?, ?, ?, ?, ?, ?, ?, ?), `, len(some)), ", ")+`
ON CONFLICT (owner, stream, epoch, generation, line, part)
DO UPDATE SET name = excluded.name, at = excluded.at, data = excluded.data`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveEdits removes all edits of a stream, and what was answered by them.
func RemoveEdits(ctx context.Context, l Dialect, owner, stream int64) error {
	for _, table := range []string{"edits", "commits"} {
		if _, err := l.Exec(ctx, `DELETE FROM `+table+` WHERE owner = ? AND stream = ?`, owner, stream); err != nil {
			return fmt.Errorf("remove %s: %w", table, err)
		}
	}
	return nil
}

// secretOf returns the key that hashes of lines are made with.
func secretOf(ctx context.Context, l Dialect) (*provenance.Secret, error) {
	var text string
	err := l.Query(ctx, `SELECT secret FROM store_identity`, nil, func(row Scanner) error { return row.Scan(&text) })
	if err != nil {
		return nil, fmt.Errorf("read key of hashes: %w", err)
	}
	var secret provenance.Secret
	if n, err := hex.Decode(secret[:], []byte(text)); err != nil || n != len(secret) {
		return nil, errors.New("read key of hashes: it is damaged")
	}
	return &secret, nil
}

// packEdit returns an edit as it is stored: its prompt, whether it is copied, its path, and the sealed sums.
func packEdit(e *provenance.Edit, secret *provenance.Secret) []byte {
	out := make([]byte, 0, 16+len(e.Path)+len(e.Sums)*provenance.StoredSize)
	out = binary.AppendUvarint(out, uint64(e.Prompt+1))
	out = append(out, byte(Flag(e.Copied)))
	out = binary.AppendUvarint(out, uint64(len(e.Path)))
	out = append(out, e.Path...)
	for _, s := range e.Sums {
		sealed := secret.Seal(s)
		out = append(out, sealed[:]...)
	}
	return out
}

var errEdit = errors.New("a stored edit is damaged")

// unpackEdit reads what packEdit wrote, and of its sums those that are asked for, of others their number.
func unpackEdit(data []byte, e *provenance.Edit, asked provenance.Asked) error {
	prompt, n := binary.Uvarint(data)
	if n <= 0 || len(data) < n+1 {
		return errEdit
	}
	e.Prompt, e.Copied = int64(prompt)-1, data[n] == 1
	data = data[n+1:]
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return errEdit
	}
	e.Path = string(data[n:][:size])
	for data = data[n:][size:]; len(data) >= provenance.StoredSize; data = data[provenance.StoredSize:] {
		if s, ok := asked.Open([provenance.StoredSize]byte(data)); ok {
			e.Sums = append(e.Sums, s)
		} else {
			e.Others++
		}
	}
	return nil
}

// EditsOf implements server.Provenance.
func (c *Finder) EditsOf(ctx context.Context, scope server.Scope, q server.EditQuery) ([]server.WrittenEdit, error) {
	secret, err := secretOf(ctx, c.reader)
	if err != nil {
		return nil, err
	}
	asked := secret.Ask(q.Sums)
	var f Filter
	f.Add(`e.name = ?`, secret.Name(q.Name))
	f.Add(`e.at <= ?`, Micros(q.To))
	f.Scope(scope)
	f.Project(scope, q.Project)
	if !scope.All && scope.Only == 0 { // what others have of the same name costs no time
		parts, err := Parts(ctx, c.reader, scope)
		if err != nil {
			return nil, err
		}
		owners := []any{scope.User}
		for _, p := range parts {
			owners = append(owners, p.Owner)
		}
		f.Add(`e.owner IN (?`+strings.Repeat(`, ?`, len(owners)-1)+`)`, owners...)
	}
	out, err := List(ctx, c.reader, `
SELECT e.stream, e.owner, e.line, e.at, e.data, s.session_id, s.parent, s.machine, s.project_hash,
  coalesce(nullif(f.title, ''), f.first_prompt, ''),
  CASE s.parent WHEN '' THEN coalesce(f.copy, 0) ELSE 0 END -- an agent's records name its session
FROM edits e JOIN streams s ON s.owner = e.owner AND s.id = e.stream
LEFT JOIN facts f ON f.owner = s.owner AND f.stream = s.id
`+f.Where()+` ORDER BY e.at DESC, e.stream, e.line LIMIT ?`, append(f.Args, q.Limit),
		func(row Scanner) (x server.WrittenEdit, err error) {
			var at, named int64
			var data []byte
			err = row.Scan(&x.Stream, &x.Owner, &x.Line, &at, &data, &x.SessionID, &x.Parent, &x.Machine, &x.ProjectHash,
				&x.Title, &named)
			if err != nil {
				return x, err
			}
			x.At, x.Copy = Moment(at), named != 0
			return x, unpackEdit(data, &x.Edit, asked)
		})
	return out, Wrap(err, "list edits")
}
