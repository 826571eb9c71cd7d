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
	// maxStretches bounds the memory for a session's course, whatever its length: two values are kept of each.
	maxStretches = 512
	// maxTurns is how many compactions and rewinds of a session are marked; the oldest go first.
	maxTurns = 400
	// keptCourses is how many are remembered for the next reading. Each is up to half a megabyte.
	keptCourses = 12
)

// level is how many tokens were in use after an answer.
type level struct {
	Answer int64 // from 1
	Line   int64
	Tokens int64
	Time   time.Time
}

// stretch is the lowest and the highest level of some answers in a row, in the order they came in.
type stretch struct{ a, b level }

// bend is where the course breaks: a compaction or a rewind.
type bend struct {
	Line    int64
	Answer  int64 // the last one before it
	Compact *transcript.Compact
	Rewind  *session.Rewind
}

// course is how full the model's window was over a session's life. It is folded line by line and stays small.
type course struct {
	mu      sync.Mutex
	next    int64 // line to go on with
	lines   int64 // that were folded
	fold    session.Fold
	answers int64
	width   int64 // answers of a stretch
	list    []stretch
	bends   []bend
	forgot  int64 // bends that are not kept
	last    level
}

// add folds a line.
func (c *course) add(l server.Line) {
	c.next, c.lines = l.Index+1, c.lines+1
	for _, rec := range thread.Records(l) {
		for _, e := range c.fold.Add(l.Index, rec) {
			c.event(e)
		}
	}
}

func (c *course) event(e session.Event) {
	switch e.Kind {
	case session.CompactionEvent:
		if !e.Compact.Micro {
			c.bend(bend{Line: e.Line, Answer: c.answers, Compact: e.Compact})
		}
	case session.RewindEvent:
		c.bend(bend{Line: e.Line, Answer: c.answers, Rewind: e.Rewind})
	case session.RewindUndoneEvent:
		for i := len(c.bends) - 1; i >= 0; i-- {
			if r := c.bends[i].Rewind; r != nil && r.Number == e.Rewind.Number {
				c.bends = append(c.bends[:i], c.bends[i+1:]...)
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
		c.level(level{c.answers, e.Line, e.Context.Tokens, e.Time})
	}
}

func (c *course) bend(b bend) {
	if len(c.bends) == maxTurns {
		c.bends = append(c.bends[:0], c.bends[1:]...)
		c.forgot++
	}
	c.bends = append(c.bends, b)
}

// level adds a value, and makes stretches twice as wide when there are too many.
func (c *course) level(v level) {
	c.last = v
	if c.width == 0 {
		c.width = 1
	}
	n := len(c.list)
	if n > 0 && c.list[n-1].a.Answer/c.width == v.Answer/c.width && c.width > 1 {
		c.list[n-1] = join(c.list[n-1], stretch{v, v})
		return
	}
	c.list = append(c.list, stretch{v, v})
	if len(c.list) < maxStretches {
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
func join(x, y stretch) stretch {
	low, high := x.a, x.a
	for _, v := range []level{x.b, y.a, y.b} {
		if v.Tokens < low.Tokens {
			low = v
		}
		if v.Tokens >= high.Tokens {
			high = v
		}
	}
	if low.Line <= high.Line {
		return stretch{low, high}
	}
	return stretch{high, low}
}

// levels is the course in at most n values, the extremes and the last among them.
func (c *course) levels(n int) []level {
	list := c.list
	for 2*len(list)+1 > n && len(list) > 1 {
		var half []stretch
		for i := 0; i < len(list); i += 2 {
			x := list[i]
			if i+1 < len(list) {
				x = join(x, list[i+1])
			}
			half = append(half, x)
		}
		list = half
	}
	var out []level
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
func along(list []level, line int64) float64 {
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

// courses remembers the courses that were read last, so that a session that grows is not folded from its beginning
// each time.
type courses struct {
	mu   sync.Mutex
	list []keptCourse // the one used last at the end
}

// courseKey names a view of a stream. A stream's number may be given again when it was forgotten: first tells them apart.
type courseKey struct{ stream, first, epoch, generation int64 }

type keptCourse struct {
	key    courseKey
	course *course
}

func (k *courses) get(key courseKey) *course {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, x := range k.list {
		if x.key == key {
			k.list = append(append(k.list[:i], k.list[i+1:]...), x)
			return x.course
		}
	}
	if len(k.list) == keptCourses {
		k.list = append(k.list[:0], k.list[1:]...)
	}
	c := &course{}
	k.list = append(k.list, keptCourse{key, c})
	return c
}

// read brings a course up to the end of a view and calls with with it; it is the caller's until with returns. Lines
// that came behind what was folded let it begin again.
func (k *courses) read(ctx context.Context, snap server.Snapshot, view server.View, s thread.Stream, with func(*course)) error {
	c := k.get(courseKey{snap.Session().ID, snap.Session().First.UnixNano(), epochOf(snap, s).ID, view.Generation.Number})
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

func (c *course) reset() {
	c.next, c.lines, c.answers, c.width, c.forgot = 0, 0, 0, 0, 0
	c.list, c.bends, c.last, c.fold = nil, nil, level{}, session.Fold{}
}

// whole says whether what was folded is all that is stored up to there.
func (c *course) whole(ctx context.Context, snap server.Snapshot, view server.View) bool {
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
