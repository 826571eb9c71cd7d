package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/server/store/sqlstore"
)

const (
	// While it is set, the trigger of generations leaves counting bytes to Finish.
	counting = `SELECT set_config('ccship.counted', $1, true)`
	// Of two requests that end at the same offset the later one knows more.
	upsertGenerations = `
INSERT INTO generations AS g (owner, stream, epoch, generation, rewound_to, end_line, end_offset, eof_newline, bytes,
  stored_to, first_seen)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
  $8::boolean[], $9::bigint[], $10::bigint[], $11::bigint[])
ON CONFLICT (owner, stream, epoch, generation) DO UPDATE SET
  rewound_to = least(g.rewound_to, excluded.rewound_to),
  end_line = greatest(g.end_line, excluded.end_line),
  eof_newline = CASE WHEN excluded.end_offset >= g.end_offset THEN excluded.eof_newline ELSE g.eof_newline END,
  end_offset = greatest(g.end_offset, excluded.end_offset),
  bytes = g.bytes + excluded.bytes,
  stored_to = greatest(g.stored_to, excluded.stored_to)`
	lockLedgers = `
SELECT x.n, l.count, l.writer FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY x (owner, machine_key, n)
JOIN ledgers l ON l.owner = x.owner AND l.machine_key = x.machine_key
ORDER BY x.n FOR NO KEY UPDATE OF l`
	insertLedgers = `
INSERT INTO ledgers (owner, machine_key, count, writer)
SELECT owner, machine_key, 0, '' FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY x (owner, machine_key, n)
ORDER BY n ON CONFLICT (owner, machine_key) DO NOTHING`
	updateLedgers = `
UPDATE ledgers l SET count = x.count, writer = x.writer
FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::text[]) x (owner, machine_key, count, writer)
WHERE l.owner = x.owner AND l.machine_key = x.machine_key`
	updateStreams = `
UPDATE streams s SET
  project_hash = CASE x.project_hash WHEN '' THEN s.project_hash ELSE x.project_hash END,
  host = CASE x.host WHEN '' THEN s.host ELSE x.host END,
  project = CASE x.project WHEN '' THEN s.project ELSE x.project END,
  cwd = CASE x.cwd WHEN '' THEN s.cwd ELSE x.cwd END,
  path = CASE x.path WHEN '' THEN s.path ELSE x.path END,
  parent = CASE x.parent WHEN '' THEN s.parent ELSE x.parent END,
  last_received = greatest(s.last_received, x.received),
  version = s.version + 1, stored = s.stored + x.bytes, redo = s.redo OR x.behind,
  changed = CASE WHEN x.changed > 0 THEN x.changed ELSE s.changed END
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
  $9::bigint[], $10::bigint[], $11::boolean[], $12::bigint[])
  x (owner, id, project_hash, host, project, cwd, path, parent, received, bytes, behind, changed)
WHERE s.owner = x.owner AND s.id = x.id`
)

// queueGenerations writes the generations of batches, with what their lines add.
func queueGenerations(batch *pgx.Batch, group []*lines.Job, done []stored) {
	var numbers [10][]int64
	var newline []bool
	for i, j := range group {
		b, x := j.Batch, &done[i]
		if x.Stream == 0 {
			continue
		}
		h := sqlstore.Clean(b.Head)
		for c, v := range []int64{b.Owner, x.Stream, x.End.Epoch, h.Generation, h.RewoundTo, h.EndLine, h.EndOffset,
			x.written.Bytes, x.written.To, b.Received.UnixMicro()} {
			numbers[c] = append(numbers[c], v)
		}
		newline = append(newline, h.EOFNewline)
	}
	if len(newline) == 0 {
		return
	}
	batch.Queue(counting, "yes")
	batch.Queue(upsertGenerations, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
		newline, numbers[7], numbers[8], numbers[9])
	batch.Queue(counting, "")
}

// finish counts batches in their ledgers and writes their streams' rows. It runs last in the transaction: ledgers are
// locked only for the commit.
func (s *Store) finish(ctx context.Context, tx pgx.Tx, group []*lines.Job, done []stored) error {
	batch := &pgx.Batch{}
	if err := s.count(ctx, tx, batch, group, done); err != nil {
		return err
	}
	queueStreams(batch, group, done)
	if batch.Len() == 0 {
		return nil
	}
	return sqlstore.Wrap(tx.SendBatch(ctx, batch).Close(), "write streams")
}

func queueStreams(batch *pgx.Batch, group []*lines.Job, done []stored) {
	var texts [6][]string
	var numbers [5][]int64
	var behind []bool
	for i, j := range group {
		x := &done[i]
		if x.Stream == 0 {
			continue
		}
		h := sqlstore.Clean(j.Batch.Head)
		for c, v := range []string{h.ProjectHash, h.Host, h.Project, h.Cwd, h.Path, h.Parent} {
			texts[c] = append(texts[c], v)
		}
		for c, v := range []int64{j.Batch.Owner, x.Stream, j.Batch.Received.UnixMicro(), x.written.Bytes, x.changed} {
			numbers[c] = append(numbers[c], v)
		}
		behind = append(behind, x.Behind)
	}
	if len(behind) == 0 {
		return
	}
	batch.Queue(updateStreams, numbers[0], numbers[1], texts[0], texts[1], texts[2], texts[3], texts[4], texts[5],
		numbers[2], numbers[3], behind, numbers[4])
}

// count counts batches in one order for all servers, so that two groups never wait for each other, and queues what
// changes.
func (s *Store) count(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, group []*lines.Job, done []stored) error {
	var order []int
	for i, j := range group {
		if done[i].Stream != 0 && j.Batch.Head.Machine != "" {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return nil
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareLedgers(group[a], group[b]) })
	var books []*book
	for n, i := range order {
		if n == 0 || compareLedgers(group[order[n-1]], group[i]) != 0 {
			b := group[i].Batch
			books = append(books, &book{owner: b.Owner, machine: sqlstore.Key(b.Head.Machine)})
		}
		last := books[len(books)-1]
		last.writes = append(last.writes, i)
	}
	if err := lock(ctx, tx, books); err != nil {
		return err
	}
	for _, b := range books {
		for _, i := range b.writes {
			if err := s.Advance(ctx, dialect{tx}, b.owner, &group[i].Batch.Head, &b.at); err != nil {
				return err
			}
			done[i].changed = b.at.Count
		}
	}
	queueLedgers(batch, books)
	return nil
}

func compareLedgers(a, b *lines.Job) int {
	return cmp.Or(cmp.Compare(a.Batch.Owner, b.Batch.Owner), strings.Compare(a.Batch.Head.Machine, b.Batch.Head.Machine))
}

// book is one ledger and the writes to count in it.
type book struct {
	owner   int64
	machine []byte
	at      sqlstore.LedgerState
	writes  []int // of the group
	known   bool
}

// lock locks and reads ledgers, in their order, and makes those that are missing.
func lock(ctx context.Context, tx pgx.Tx, books []*book) error {
	missing, err := read(ctx, tx, books)
	if err != nil || len(missing) == 0 {
		return err
	}
	owners, machines := keys(missing)
	if _, err := tx.Exec(ctx, insertLedgers, owners, machines); err != nil {
		return fmt.Errorf("write ledgers: %w", err)
	}
	missing, err = read(ctx, tx, missing)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("read ledgers: %d are not there", len(missing))
	}
	return err
}

func keys(books []*book) (owners []int64, machines [][]byte) {
	for _, b := range books {
		owners, machines = append(owners, b.owner), append(machines, b.machine)
	}
	return owners, machines
}

func read(ctx context.Context, tx pgx.Tx, books []*book) (missing []*book, err error) {
	owners, machines := keys(books)
	rows, err := tx.Query(ctx, lockLedgers, owners, machines)
	if err != nil {
		return nil, fmt.Errorf("read ledgers: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var at sqlstore.LedgerState
		if err := rows.Scan(&n, &at.Count, &at.Writer); err != nil {
			return nil, fmt.Errorf("read ledgers: %w", err)
		}
		books[n-1].at, books[n-1].known = at, true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read ledgers: %w", err)
	}
	for _, b := range books {
		if !b.known {
			missing = append(missing, b)
		}
	}
	return missing, nil
}

func queueLedgers(batch *pgx.Batch, books []*book) {
	owners, machines := keys(books)
	counts, writers := make([]int64, len(books)), make([]string, len(books))
	for i, b := range books {
		counts[i], writers[i] = b.at.Count, b.at.Writer
	}
	batch.Queue(updateLedgers, owners, machines, counts, writers)
}
