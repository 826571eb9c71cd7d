package search

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/store/sqlstore"
)

// Prepared is the texts of derivations of one owner as they are stored: one segment.
type Prepared struct {
	owner int64
	tasks []*server.Task
	docs  []doc
	grams []page
	turns []doc
	words []page
}

// Prepare does what needs no transaction. Derivations of one owner become one segment: fewer of them need to be merged.
func Prepare(list []*server.Derivation) ([]Prepared, error) {
	byOwner := map[int64][]*server.Derivation{}
	var owners []int64
	for _, d := range list {
		owner := d.Task.Owner
		if byOwner[owner] == nil {
			owners = append(owners, owner)
		}
		byOwner[owner] = append(byOwner[owner], d)
	}
	out := make([]Prepared, len(owners))
	for i, owner := range owners {
		var err error
		if out[i], err = prepare(owner, byOwner[owner]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// builders are reused: what they grow to is more than what they make.
var builders = sync.Pool{New: func() any { return new(builderPair) }}

type builderPair struct {
	texts builder
	turns turns
}

func prepare(owner int64, list []*server.Derivation) (p Prepared, err error) {
	p.owner = owner
	b := builders.Get().(*builderPair) //nolint:forcetypeassert // it has nothing else
	defer builders.Put(b)
	for _, d := range list {
		p.tasks = append(p.tasks, &d.Task)
		collect(b, d)
	}
	p.docs, err = b.texts.Grams(newWriter(func(page page) error {
		p.grams = append(p.grams, page)
		return nil
	}))
	if err == nil {
		p.turns, err = b.turns.b.Grams(newWriter(partOf(turnParts, func(page page) error {
			p.words = append(p.words, page)
			return nil
		})))
	}
	if err != nil {
		return p, fmt.Errorf("index texts: %w", err)
	}
	return p, nil
}

// partOf hands on pages as those of another part.
func partOf(part int, emit func(page) error) func(page) error {
	return func(p page) error {
		p.Part += part
		return emit(p)
	}
}

// collect adds a derivation's texts, in docs of their own.
func collect(b *builderPair, d *server.Derivation) {
	var last *doc
	var generation int64
	var folded []byte
	for i := range d.Texts {
		t := &d.Texts[i]
		folded = sqlstore.AppendFolded(folded[:0], t.Text)
		if len(folded) == 0 {
			continue
		}
		at := line{Index: t.Line, Time: sqlstore.Micros(t.Time)}
		size := int64(len(folded))
		switch {
		case last == nil || t.Generation != generation || last.Last() != t.Line && !last.fits(t.Line, size):
			generation = t.Generation
			b.texts.Begin(doc{Stream: d.Task.Stream, Epoch: d.Position.Epoch, Generation: t.Generation,
				Lines: []line{at}})
			last = b.texts.Last()
		case last.Last() != t.Line:
			last.Lines = append(last.Lines, at)
		}
		last.Size += size
		last.Kinds |= bitsOf([]string{t.Kind})
		if t.Carried {
			last.Carried = append(last.Carried, carried{Line: t.Line, Kind: bitsOf([]string{t.Kind}), Text: t.Text})
		}
		b.texts.Text(folded)
		b.turns.add(d, t, at)
	}
}

// Save stores the texts of derivations, in their transaction. Those of derivations of the same lines before count no
// more. ScheduleMerge is to be called once the transaction is committed.
func (x *Index) Save(ctx context.Context, d sqlstore.Dialect, list []Prepared) error {
	for i := range list {
		if err := x.save(ctx, d, &list[i]); err != nil {
			return fmt.Errorf("texts: %w", err)
		}
	}
	return nil
}

func (x *Index) save(ctx context.Context, d sqlstore.Dialect, p *Prepared) error {
	rounds, err := beginRounds(ctx, d, p)
	if err != nil || len(p.docs) == 0 {
		return err
	}
	var pages []page
	keep := func(page page) error { pages = append(pages, page); return nil }
	s := segment{owner: p.owner, id: newID()}
	for _, some := range []struct {
		docs []doc
		to   *writer
	}{{p.docs, newWriter(keep)}, {p.turns, newWriter(partOf(turnParts, keep))}} {
		for i := range some.docs {
			doc := some.docs[i]
			if doc.Round = rounds[doc.Stream]; doc.Kinds&turnKind == 0 {
				s.count(&doc)
			}
			if err := some.to.Doc(&doc); err != nil {
				return err
			}
		}
		if err := some.to.Flush(); err != nil {
			return err
		}
	}
	pages = slices.Concat(pages, p.grams, p.words)
	for _, page := range pages {
		s.bytes += int64(len(page.Data))
	}
	s.level = levelOf(s.bytes)
	if s.bytes <= smallBytes {
		s.data, pages = packed(pages), nil
	}
	if err := s.insert(ctx, d); err != nil {
		return err
	}
	return insertPages(ctx, d, &s, pages)
}

// beginRounds begins a new round of streams that are derived from their first line on, and gives the rounds of those
// that have docs.
func beginRounds(ctx context.Context, d sqlstore.Dialect, p *Prepared) (map[int64]int64, error) {
	for _, task := range p.tasks {
		if task.Position.Epoch != 0 {
			continue
		}
		_, err := d.Exec(ctx, `UPDATE streams SET round = round + 1 WHERE owner = ? AND id = ?`, p.owner, task.Stream)
		if err != nil {
			return nil, err
		}
	}
	return readRounds(ctx, d, p)
}

// roundsAtOnce is how many streams one statement reads; fewer are asked for again to fill it, so that there is one
// statement to prepare.
const roundsAtOnce = 16

// readRounds gives the rounds of the streams that have docs.
func readRounds(ctx context.Context, d sqlstore.Dialect, p *Prepared) (map[int64]int64, error) {
	rounds := map[int64]int64{}
	var streams []any
	for i := range p.docs {
		if stream := p.docs[i].Stream; i == 0 || stream != p.docs[i-1].Stream {
			streams = append(streams, stream)
		}
	}
	for some := range slices.Chunk(streams, roundsAtOnce) {
		args := append([]any{p.owner}, some...)
		for len(args) <= roundsAtOnce {
			args = append(args, some[0])
		}
		err := d.Query(ctx, selectRounds, args, func(row sqlstore.Scanner) error {
			var stream, round int64
			err := row.Scan(&stream, &round)
			rounds[stream] = round
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rounds, nil
}

var selectRounds = `SELECT id, round FROM streams WHERE owner = ? AND id IN (` +
	strings.TrimSuffix(strings.Repeat("?, ", roundsAtOnce), ", ") + `)`

// newID returns the id of a new segment: newer ones have higher ids, and no two processes make the same.
func newID() int64 { return time.Now().UnixMilli()<<20 | rand.Int64N(1<<20) }

// segment is a row of gram_segments.
type segment struct {
	owner, id, level     int64
	docs, newest, oldest int64
	bytes                int64
	until                int64
	data                 []byte
}

// count adds a doc.
func (s *segment) count(d *doc) {
	if s.docs == 0 {
		s.newest, s.oldest = d.Newest(), d.Oldest()
	}
	s.docs, s.newest, s.oldest = s.docs+1, max(s.newest, d.Newest()), min(s.oldest, d.Oldest())
}

func (s *segment) insert(ctx context.Context, d sqlstore.Dialect) error {
	_, err := d.Exec(ctx, `
INSERT INTO gram_segments (owner, id, level, docs, newest, oldest, bytes, until, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.owner, s.id, s.level, s.docs, s.newest, s.oldest, s.bytes, s.until, sqlstore.NotNil(s.data))
	return err
}

func insertPages(ctx context.Context, d sqlstore.Dialect, s *segment, pages []page) error {
	for _, p := range pages {
		_, err := d.Exec(ctx, `INSERT INTO gram_pages (owner, segment, part, first, data) VALUES (?, ?, ?, ?, ?)`,
			s.owner, s.id, p.Part, p.First, p.Data)
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// smallBytes is up to how large a segment is kept in its row.
	smallBytes = 4 << 10
	// topLevel is of segments that are not merged any more.
	topLevel = 4
	// levelZero is the size below which a segment is of level 0; each level above has levelSteps bits more.
	levelZero  = 15
	levelSteps = 3
)

// levelOf is by size, so that segments that are merged have about the same.
func levelOf(bytes int64) (level int64) {
	for bytes >>= levelZero; bytes > 0 && level < topLevel; bytes >>= levelSteps {
		level++
	}
	return level
}

// packed returns pages as one value.
func packed(pages []page) (out []byte) {
	for _, p := range pages {
		out = append(out, byte(p.Part))
		out = binary.AppendUvarint(out, uint64(p.First))
		out = binary.AppendUvarint(out, uint64(len(p.Data)))
		out = append(out, p.Data...)
	}
	return out
}

func unpacked(data []byte) (out []page, err error) {
	bad := fmt.Errorf("pages: %w", errCorrupt)
	for len(data) > 0 {
		p := page{Part: int(data[0])}
		first, n := binary.Uvarint(data[1:])
		if n <= 0 {
			return nil, bad
		}
		size, k := binary.Uvarint(data[1+n:])
		if data = data[1+n+max(k, 0):]; k <= 0 || size > uint64(len(data)) {
			return nil, bad
		}
		p.First, p.Data = int64(first), data[:size]
		data = data[size:]
		out = append(out, p)
	}
	return out, nil
}
