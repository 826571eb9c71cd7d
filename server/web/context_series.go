package web

import (
	"context"
	"slices"
	"sort"
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
	fold    session.Fold
	answers int64
	width   int64 // answers in a bucket
	list    []bucket
	events  []seriesEvent
	forgot  int64 // events dropped from events
	last    sample
}

// readSeries folds a view.
func readSeries(ctx context.Context, snap server.Snapshot, view server.View) (*contextSeries, error) {
	c := &contextSeries{width: 1}
	return c, thread.EachHead(ctx, snap, view.Between(0, view.Total), func(l server.Line, _ int64) error {
		for _, rec := range thread.Records(l) {
			for _, e := range c.fold.Add(l.Index, rec) {
				c.event(e)
			}
		}
		return nil
	})
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
	n := len(c.list)
	if n > 0 && c.list[n-1].a.Answer/c.width == v.Answer/c.width && c.width > 1 {
		c.list[n-1] = join(c.list[n-1], bucket{v, v})
		return
	}
	c.list = append(c.list, bucket{v, v})
	if len(c.list) == maxBuckets {
		c.width, c.list = 2*c.width, halved(c.list)
	}
}

// halved joins buckets two and two.
func halved(list []bucket) (half []bucket) {
	for pair := range slices.Chunk(list, 2) {
		half = append(half, join(pair[0], pair[len(pair)-1]))
	}
	return half
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
		list = halved(list)
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
