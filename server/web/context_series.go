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
	// maxBuckets bounds the memory for a session’s series, whatever its length: two values are kept of each.
	maxBuckets = 512
	// maxEvents is how many compactions and rewinds of a session are marked; the oldest go first.
	maxEvents = 400
	// maxCached is how many are remembered for the next reading. Each is up to half a megabyte.
	maxCached = 12
)

// sample is how many tokens were in use after an answer.
type sample struct {
	Answer int64 // from 1
	Line   int64
	Tokens int64
	Time   time.Time
}

// bucket is the lowest and the highest level of some answers in a row, in the order they came in.
type bucket struct{ a, b sample }

// seriesEvent is where the course breaks: a compaction or a rewind.
type seriesEvent struct {
	Line    int64
	Answer  int64 // the last one before it
	Compact *transcript.Compact
	Rewind  *session.Rewind
}

// contextSeries is how full the model's window was over a session's life. It is folded line by line and stays small.
type contextSeries struct {
	mu      sync.Mutex
	next    int64 // line to go on with
	lines   int64 // that were folded
	fold    session.Fold
	answers int64
	width   int64 // answers of a stretch
	list    []bucket
	events  []seriesEvent
	forgot  int64 // bends that are not kept
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

// addSample adds a value, and makes buckets twice as wide when there are too many.
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

// join is the extremes of two stretches, y behind x.
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

// samples is the course in at most n values, the extremes and the last among them.
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

// along is where on the way a line lies, in answers. list is levels in their order.
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

// seriesCache remembers the courses that were read last, so that a session that grows is not folded from its beginning
// each time.
type seriesCache struct {
	mu   sync.Mutex
	list []cachedSeries // the one used last at the end
}

// seriesKey names a view of a stream. A stream's number may be given again when it was forgotten: first tells them apart.
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

// read brings a course up to the end of a view and calls with with it; it is the caller's until with returns. Lines
// that came behind what was folded let it begin again.
func (k *seriesCache) read(ctx context.Context, snap server.Snapshot, view server.View, s thread.Stream, with func(*contextSeries)) error {
	c := k.get(seriesKey{snap.Session().ID, snap.Session().First.UnixNano(), epochOf(snap, s).ID, view.Generation.Number})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next > view.Total || !c.whole(ctx, snap, view) {
		c.reset()
	}
	for _, span := range view.Between(c.next, view.Total) {
		err := snap.Lines(ctx, span, func(l server.Line) error {
			c.add(l)
			return nil
		})
		if err != nil {
			return err
		}
	}
	with(c)
	return nil
}

func (c *contextSeries) reset() {
	c.next, c.lines, c.answers, c.width, c.forgot = 0, 0, 0, 0, 0
	c.list, c.events, c.last, c.fold = nil, nil, sample{}, session.Fold{}
}

// whole says whether what was folded is all that is stored up to there.
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
