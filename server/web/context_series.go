package web

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/thread"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

const (
	// maxBuckets bounds the memory for a session’s series, whatever its length: each bucket keeps two samples.
	maxBuckets = 512
	// maxEvents is how many compactions and rewinds of a session are kept; the oldest are dropped first.
	maxEvents = 400
	// maxCached is how many series are cached. Each takes up to half a megabyte.
	maxCached = 12
)

// sample is the number of tokens in use after an answer.
type sample struct {
	Answer int64 // from 1
	Line   int64
	Tokens int64
	Time   time.Time
}

// bucket has the lowest and the highest sample of consecutive answers, in their order.
type bucket struct{ a, b sample }

// seriesEvent is a compaction or a rewind.
type seriesEvent struct {
	Line    int64
	Answer  int64 // the last one before it
	Compact *transcript.Compact
	Rewind  *session.Rewind
}

// contextSeries is the use of the context window over a session's life. It is folded line by line in bounded memory.
type contextSeries struct {
	mu      sync.Mutex
	next    int64 // first line not folded yet
	lines   int64 // number of folded lines
	fold    session.Fold
	answers int64
	width   int64 // answers in a bucket
	list    []bucket
	events  []seriesEvent
	forgot  int64 // events dropped from events
	last    sample
}

// add folds a line.
func (c *contextSeries) add(l server.Line) {
	c.next, c.lines = l.Index+1, c.lines+1
	for _, rec := range thread.Records(l) {
		for _, e := range c.fold.Add(l.Index, rec) {
			c.event(e)
		}
	}
}

func (c *contextSeries) event(e session.Event) {
	switch e.Kind {
	case session.CompactionEvent:
		if !e.Compact.Micro {
			c.addEvent(seriesEvent{Line: e.Line, Answer: c.answers, Compact: e.Compact})
		}
	case session.RewindEvent:
		c.addEvent(seriesEvent{Line: e.Line, Answer: c.answers, Rewind: e.Rewind})
	case session.RewindUndoneEvent:
		for i := len(c.events) - 1; i >= 0; i-- {
			if r := c.events[i].Rewind; r != nil && r.Number == e.Rewind.Number {
				c.events = append(c.events[:i], c.events[i+1:]...)
				return
			}
		}
	case session.ContextEvent:
		if !e.Context.Known {
			return
		}
		if e.Context.Cause == session.AnswerCause || e.Context.Cause == session.DropCause {
			c.answers++
		}
		c.addSample(sample{c.answers, e.Line, e.Context.Tokens, e.Time})
	}
}

func (c *contextSeries) addEvent(b seriesEvent) {
	if len(c.events) == maxEvents {
		c.events = append(c.events[:0], c.events[1:]...)
		c.forgot++
	}
	c.events = append(c.events, b)
}

// addSample adds a sample, and doubles the width of the buckets when there are too many.
func (c *contextSeries) addSample(v sample) {
	c.last = v
	if c.width == 0 {
		c.width = 1
	}
	n := len(c.list)
	if n > 0 && c.list[n-1].a.Answer/c.width == v.Answer/c.width && c.width > 1 {
		c.list[n-1] = join(c.list[n-1], bucket{v, v})
		return
	}
	c.list = append(c.list, bucket{v, v})
	if len(c.list) < maxBuckets {
		return
	}
	c.width *= 2
	half := c.list[:0]
	for i := 0; i < len(c.list); i += 2 {
		x := c.list[i]
		if i+1 < len(c.list) {
			x = join(x, c.list[i+1])
		}
		half = append(half, x)
	}
	c.list = half
}

// join returns the extremes of two buckets, y after x.
func join(x, y bucket) bucket {
	low, high := x.a, x.a
	for _, v := range []sample{x.b, y.a, y.b} {
		if v.Tokens < low.Tokens {
			low = v
		}
		if v.Tokens >= high.Tokens {
			high = v
		}
	}
	if low.Line <= high.Line {
		return bucket{low, high}
	}
	return bucket{high, low}
}

// samples returns the series in at most n samples, among them the extremes and the last one.
func (c *contextSeries) samples(n int) []sample {
	list := c.list
	for 2*len(list)+1 > n && len(list) > 1 {
		var half []bucket
		for i := 0; i < len(list); i += 2 {
			x := list[i]
			if i+1 < len(list) {
				x = join(x, list[i+1])
			}
			half = append(half, x)
		}
		list = half
	}
	var out []sample
	for _, s := range list {
		out = append(out, s.a)
		if s.b != s.a {
			out = append(out, s.b)
		}
	}
	if len(out) > 0 && out[len(out)-1] != c.last {
		out = append(out, c.last)
	}
	return out
}

// along returns the position of a line in the series, in answers. list is ordered.
func along(list []sample, line int64) float64 {
	i := sort.Search(len(list), func(i int) bool { return list[i].Line > line })
	switch {
	case i == 0:
		return 0
	case i == len(list) || list[i].Line == list[i-1].Line:
		return float64(list[i-1].Answer)
	}
	a, b := list[i-1], list[i]
	if line == a.Line {
		return float64(a.Answer)
	}
	return float64(a.Answer) + float64(b.Answer-a.Answer)*float64(line-a.Line)/float64(b.Line-a.Line)
}

// seriesCache keeps the series read last, so that a growing session is not folded from its beginning each time.
type seriesCache struct {
	mu   sync.Mutex
	list []cachedSeries // most recently used last
}

// seriesKey identifies a view of a stream. The number of a forgotten stream may be reused: first distinguishes them.
type seriesKey struct{ stream, first, epoch, generation int64 }

type cachedSeries struct {
	key    seriesKey
	series *contextSeries
}

func (k *seriesCache) get(key seriesKey) *contextSeries {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, x := range k.list {
		if x.key == key {
			k.list = append(append(k.list[:i], k.list[i+1:]...), x)
			return x.series
		}
	}
	if len(k.list) == maxCached {
		k.list = append(k.list[:0], k.list[1:]...)
	}
	c := &contextSeries{}
	k.list = append(k.list, cachedSeries{key, c})
	return c
}

// read folds a series to the end of a view and calls use with it, which must not keep it. When lines arrived before the
// end of what is folded, it folds from the beginning.
func (k *seriesCache) read(ctx context.Context, snap server.Snapshot, view server.View, s thread.Stream,
	use func(*contextSeries)) error {
	c := k.get(seriesKey{snap.Session().ID, snap.Session().First.UnixNano(), epochOf(snap, s).ID, view.Generation.Number})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next > view.Total || !c.whole(ctx, snap, view) {
		c.reset()
	}
	for _, span := range view.Between(c.next, view.Total) {
		err := snap.Lines(ctx, thread.Heads(span), func(l server.Line) error {
			c.add(l)
			return nil
		})
		if err != nil {
			return err
		}
	}
	use(c)
	return nil
}

func (c *contextSeries) reset() {
	c.next, c.lines, c.answers, c.width, c.forgot = 0, 0, 0, 0, 0
	c.list, c.events, c.last, c.fold = nil, nil, sample{}, session.Fold{}
}

// whole reports whether all lines stored up to next were folded.
func (c *contextSeries) whole(ctx context.Context, snap server.Snapshot, view server.View) bool {
	total := int64(0)
	for _, span := range view.Between(0, c.next) {
		lines, oversize, err := snap.Count(ctx, span)
		if err != nil {
			return false
		}
		total += lines + oversize
	}
	return total == c.lines
}
