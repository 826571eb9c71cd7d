package outbox

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

// memQueue is a Queue and a Memory that hold their callers to the contract: rows leave once, and only rows that are
// there.
type memQueue struct {
	t testing.TB

	mu      sync.Mutex // guards what follows
	streams map[uint64]Stream
	rows    map[laneKey][]Batch // by stream, ascending
	written []laneKey           // streams, the one written last at the end
	seq     uint64
	settled []Settlement
	commits int
	learned Learned
	saves   []Learned
	settle  func() error              // asked before each settlement
	later   func(now <-chan struct{}) // called by SettleLater when it may wait for now
}

func newMemQueue(t testing.TB) *memQueue {
	return &memQueue{t: t, streams: map[uint64]Stream{}, rows: map[laneKey][]Batch{}}
}

// add queues batches of a stream, and gives them their Seq.
func (q *memQueue) add(s Stream, batches ...Batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.streams[s.ID] = s
	for _, b := range batches {
		q.seq++
		b.Seq = q.seq
		key := laneKey{s.ID, b.Kind == Blob}
		q.rows[key] = append(q.rows[key], b)
		q.written = append(slices.DeleteFunc(q.written, func(k laneKey) bool { return k == key }), key)
	}
}

func (q *memQueue) Pick(_ string, oldest bool, skip func(stream, last uint64) bool) (uint64, bool) {
	return q.pick(oldest, false, skip)
}

func (q *memQueue) PickBlobs(_ string, skip func(stream, last uint64) bool) (uint64, bool) {
	return q.pick(true, true, skip)
}

func (q *memQueue) pick(oldest, blobs bool, skip func(stream, last uint64) bool) (uint64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	order := slices.Clone(q.written)
	if oldest {
		slices.SortStableFunc(order, func(a, b laneKey) int { return int(q.first(a)) - int(q.first(b)) })
	} else {
		slices.Reverse(order)
	}
	for _, key := range order {
		if rows := q.rows[key]; key.blobs == blobs && len(rows) > 0 && !skip(key.id, rows[len(rows)-1].Seq) {
			return key.id, true
		}
	}
	return 0, false
}

func (q *memQueue) first(stream laneKey) uint64 {
	if rows := q.rows[stream]; len(rows) > 0 {
		return rows[0].Seq
	}
	return 0
}

func (q *memQueue) Peek(ctx context.Context, _ string, stream, after uint64, limits Limits) (StreamBatches, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := StreamBatches{Stream: q.streams[stream]}
	entries, raw := 0, int64(0)
	for _, b := range q.rows[laneKey{stream, limits.Blobs}] {
		if b.Seq <= after || limits.OnlyObjects && b.Kind != Objects {
			continue
		}
		if len(p.Batches) > 0 && (entries+b.Entries > limits.Entries || raw+b.Raw > limits.Raw ||
			b.Generation != p.Batches[0].Generation) {
			break
		}
		b.Frame = bytes.Clone(b.Frame)
		p.Batches = append(p.Batches, b)
		entries, raw = entries+b.Entries, raw+b.Raw
	}
	return p, ctx.Err()
}

func (q *memQueue) SettleLater(_ context.Context, settlements []Settlement, now <-chan struct{}) error {
	if q.later != nil && now != nil {
		q.later(now)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.settle != nil {
		if err := q.settle(); err != nil {
			return err
		}
	}
	q.commits++
	for _, s := range settlements {
		if s.Ledger.Store != "" {
			q.learned.Ledger = s.Ledger
		}
		key := laneKey{s.Stream, s.Blobs}
		for _, seq := range s.Seqs {
			i := slices.IndexFunc(q.rows[key], func(b Batch) bool { return b.Seq == seq })
			if i < 0 {
				q.t.Errorf("row %d of stream %d settled, but it is not in the queue", seq, s.Stream)
				continue
			}
			q.rows[key] = slices.Delete(q.rows[key], i, i+1)
		}
		q.settled = append(q.settled, s)
	}
	return nil
}

// queued counts the batches of a stream, without blobs.
func (q *memQueue) queued(stream uint64) int {
	return kit.Under(&q.mu, func() int { return len(q.rows[laneKey{id: stream}]) })
}

func (q *memQueue) Learned(context.Context, string) (Learned, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.learned, nil
}

func (q *memQueue) Learn(_ context.Context, _ string, l Learned) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.learned = l
	q.saves = append(q.saves, l)
	return nil
}

// waiting counts rows.
func (q *memQueue) waiting() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, rows := range q.rows {
		n += len(rows)
	}
	return n
}

// total adds up what was settled.
func (q *memQueue) total() (sum Settlement) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.settled {
		sum.Entries += s.Entries
		sum.Raw += s.Raw
		sum.Withheld += s.Withheld
		sum.Dead = append(sum.Dead, s.Dead...)
		sum.Plain = sum.Plain || s.Plain
	}
	return sum
}

func (q *memQueue) remembered() Learned {
	l, _ := q.Learned(context.Background(), "")
	return l
}

// conversation is a stream for tests.
func conversation(id uint64) Stream {
	return Stream{
		ID: id, SessionID: fmt.Sprintf("session-%d", id), ProjectHash: "0123abcd",
		Path: fmt.Sprintf("-work-shop/session-%d.jsonl", id), Cwd: "/work/shop", Project: "-work-shop",
	}
}

// entry is one entry of a conversation. Its line has 20 bytes in the file, whatever the entry has.
func entry(line int, text string) string {
	return fmt.Sprintf(`{"line_index":%d,"type":"user","text":%q}`, line, text)
}

// batchOf makes a row of entries.
func batchOf(kind Kind, from int, entries ...string) Batch {
	raw := []byte(strings.Join(entries, ","))
	to := from + len(entries)
	return Batch{
		Kind: kind, Entries: len(entries), Raw: int64(len(raw)), Frame: NewPacker().Pack(nil, raw),
		From: protocol.Position{Offset: int64(from) * 20, Line: int64(from)}, To: protocol.Position{Offset: int64(to) * 20, Line: int64(to)},
	}
}

// rowsOf makes rows of a conversation from line from up to to, each of so many lines.
func rowsOf(from, to, each int) (rows []Batch) {
	for ; from < to; from += each {
		var entries []string
		for i := from; i < min(from+each, to); i++ {
			entries = append(entries, entry(i, fmt.Sprintf("words of line %d", i)))
		}
		rows = append(rows, batchOf(Objects, from, entries...))
	}
	return rows
}

// committed counts transactions.
func (q *memQueue) committed() int { return kit.Under(&q.mu, func() int { return q.commits }) }
