package derive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/redact"
	"github.com/ccship/ccship/transcript/session"
)

// liveProjection is a transcript in memory: the meaning of its lines up to place. It is owned by Run's goroutine.
type liveProjection struct {
	file     tail.FileID
	place    projection.Place // behind the last folded line
	session  session.Fold
	log      session.Log
	detector session.CheckpointDetector
	copying  bool  // the last answer was copied from another session
	cleared  int64 // lines below it are not in the log
	// effectsThrough is the number of lines that had their effects in an earlier folding. It is stored, because this
	// folding may be interrupted.
	effectsThrough int64

	effects     projection.Derivation // since the last save
	savedPlace  projection.Place      // in the state
	saveNow     bool                  // not only when it is due
	saving      bool                  // a save is in flight
	dirtySince  time.Time             // when the first unsaved change was made; zero: everything is saved or being saved
	retryAt     time.Time             // after a failed save, not before
	usedAt      time.Time
	size        int            // of the encodings at the last save, in bytes
	unsaved     bool           // counted in schedule.unsaved
	transient   bool           // dropped from memory once saved: it is neither written to nor queried
	saveWaiters []chan<- error // each gets the result of the next save
}

// foldVersion is the version of the bytes before a session's encoding.
const foldVersion = 1

// errNoFold says that there is no stored fold, or one of another version.
var errNoFold = errors.New("no fold")

// saved reports whether the state holds the projection as it is.
func (p *liveProjection) saved() bool { return p.dirtySince.IsZero() && !p.saving }

// encode returns what restore reads.
func (p *liveProjection) encode() *projection.Projection {
	session, _ := p.session.MarshalBinary() // these never fail
	log, _ := p.log.MarshalBinary()
	marks, _ := p.detector.MarshalBinary()
	head := []byte{foldVersion, 0}
	if p.copying {
		head[1] = 1
	}
	return &projection.Projection{
		Place: p.place, Cleared: p.cleared, EffectsThrough: p.effectsThrough, Fold: append(head,
			session...), Log: log, Marks: marks,
	}
}

// restore reads what is stored.
func (p *liveProjection) restore(u *projection.Projection) error {
	if len(u.Fold) < 2 || u.Fold[0] != foldVersion {
		return errNoFold
	}
	p.copying = u.Fold[1]&1 != 0
	if err := p.session.UnmarshalBinary(u.Fold[2:]); err != nil {
		return err
	}
	if err := p.log.UnmarshalBinary(u.Log); err != nil {
		return err
	}
	return p.detector.UnmarshalBinary(u.Marks)
}

// reset empties the projection: folding starts at line 0. Lines below effectsThrough had their effects.
func (p *liveProjection) reset(generation uint32, effectsThrough int64) {
	p.place = projection.Place{Generation: generation}
	p.session, p.log, p.detector = session.Fold{}, session.Log{}, session.CheckpointDetector{}
	p.copying, p.effectsThrough = false, effectsThrough
}

// open returns the projection of a transcript from the cache or the state, else an empty one. After a rewind it is
// empty too.
func (d *Deriver) open(ctx context.Context, t *tail.Tracked, facts *state.Routing) (*liveProjection, error) {
	p := d.cache.projections[t.File.ID]
	if p == nil {
		u, known, err := d.projections.Sessions.Projection(ctx, t.File.ID)
		if err != nil {
			return nil, err
		}
		p = &liveProjection{file: t.File.ID, place: u.Place, savedPlace: u.Place, cleared: u.Cleared,
			effectsThrough: u.EffectsThrough}
		p.size = len(u.Fold) + len(u.Log) + len(u.Marks)
		if known && p.restore(&u) != nil {
			p.reset(u.Place.Generation, max(u.Place.Line, u.EffectsThrough))
		}
		d.cache.add(p)
	}
	if target := projection.PlaceOf(t.Cursor); p.place.Generation != target.Generation || p.place.Offset > target.Offset {
		through := max(p.place.Line, p.effectsThrough)
		if p.place.Generation != target.Generation {
			through = min(through, facts.RewoundTo)
			p.cleared = min(p.cleared, facts.RewoundTo)
		}
		p.reset(target.Generation, through)
	}
	d.limit(p)
	return p, nil
}

// limit gives a projection the limits of its messages, which may have changed.
func (d *Deriver) limit(p *liveProjection) {
	l := d.policy.MessageLimits()
	p.session.InputLimit, p.session.OutputLimit, p.log.Size = l.Input, l.Output, l.Kept
}

// discard removes a projection whose folding failed: the next one starts from what is stored. The callers that wait for
// its save gets err.
func (d *Deriver) discard(p *liveProjection, err error) {
	for _, w := range p.saveWaiters {
		w <- err
	}
	p.saveWaiters = nil
	d.setUnsaved(p, false)
	d.cache.remove(p)
}

// observer finds in transcripts what the model was shown by hooks, and which tools it has called. Its fields belong to
// the current step, but for unsaved.
type observer struct {
	notices *notices
	tools   []string // ids of the calls
	tokens  int64    // in use
	changed bool     // tokens are known
	unsaved map[tail.FileID]reading
}

// reading is tool calls whose notices are not in the state yet.
type reading struct {
	session string
	tools   []string
}

var (
	_ RecordObserver = &observer{}
	_ SaveObserver   = &observer{}
)

// Observer returns the observer that tells n what transcripts show.
func (n *notices) Observer() RecordObserver {
	return &observer{notices: n, unsaved: map[tail.FileID]reading{}}
}

// Begin starts a step.
func (o *observer) Begin(*FoldStep) { o.tools, o.tokens, o.changed = nil, 0, false }

// Event notes tool calls, and how full the context is.
func (o *observer) Event(s *FoldStep, e *session.Event, watched bool) {
	switch {
	case !watched || s.File.File.Kind != tail.Main:
	case e.Kind == session.ToolStartEvent:
		o.tools = append(o.tools, e.ToolID)
	case e.Kind == session.ContextEvent:
		o.tokens, o.changed = e.Context.Tokens, true
	case e.Kind == session.LinkEvent, e.Kind == session.UnlinkEvent:
		o.notices.introductions.shownOn(s.Facts.Stream.SessionID, e.Line)
	case e.Kind == session.RewindEvent:
		o.notices.introductions.rewound(s.Facts.Stream.SessionID, e.Rewind)
	}
}

// End lets hooks go on that wait for the step's tool calls: at once when nothing of it is to be shown, otherwise once
// that is saved.
func (o *observer) End(s *FoldStep) error {
	name := s.Facts.Stream.SessionID
	if o.changed {
		o.notices.follow.context(name, o.tokens, s.Session.TokenBudget().Limit)
	}
	switch {
	case len(o.tools) == 0:
	case len(s.Effects.Notices) == 0:
		o.notices.follow.read(name, o.tools)
	default:
		o.unsaved[s.File.File.ID] = reading{name, append(o.unsaved[s.File.File.ID].tools, o.tools...)}
	}
	return nil
}

// Saved lets hooks go on that wait for what is saved now.
func (o *observer) Saved(d *projection.Derivation) {
	if r, found := o.unsaved[d.File]; found && len(d.Notices) > 0 {
		delete(o.unsaved, d.File)
		o.notices.follow.read(r.session, r.tools)
	}
}

// Record looks at what a hook has shown the model, and counts the model's answers.
func (o *observer) Record(s *FoldStep, r *transcript.Record, watched bool) {
	if !watched || s.File.File.Kind != tail.Main {
		return
	}
	name := s.Facts.Stream.SessionID
	switch {
	case r.Type == "attachment":
		text := transcript.HookText(r)
		if text == "" {
			return
		}
		s.Effects.Shown = append(s.Effects.Shown, o.notices.shown(name, text)...)
		if introduces(text) || ofDocuments(text) {
			o.notices.introductions.shownOn(name, s.Line-1)
		}
		if introduces(text) {
			o.notices.introductions.markShown(context.Background(), name)
		}
	case r.Type == "assistant" && !r.Sidechain && r.Message != nil && !r.APIError:
		o.notices.answered(name, r.Message.ID, r.Version)
	}
}

// contains reports whether a text that the model was shown has a notice in it.
func contains(text string, p *projection.Notice) bool {
	if p.Checkpoint != "" {
		return strings.Contains(text, p.Checkpoint)
	}
	line := documentLine(p)
	return slices.ContainsFunc(strings.Split(text, "\n"), func(s string) bool { return strings.TrimLeft(s, " ") == line })
}

// ofDocuments reports whether a text that the model was shown has notices of documents in it.
func ofDocuments(text string) bool {
	for _, locale := range []string{"en", korean} {
		w := noticeWordsIn(locale)
		if strings.Contains(text, w.document) || strings.Contains(text, w.refused) {
			return true
		}
	}
	return false
}

// introduces reports whether a text that the model was shown has an introduction in it.
func introduces(text string) bool {
	return strings.Contains(text, initWordsIn("en").started) || strings.Contains(text, initWordsIn(korean).started)
}

// maxClean is the largest number of transcripts in cleanLines.
const maxClean = 4096

// cleanLines remembers where the relay's masker found no secret in a transcript, so that folding does not search these
// lines again. It may forget anything: lines that it does not know are searched. It is safe for concurrent use.
type cleanLines struct {
	mu     sync.Mutex
	ranges map[tail.FileID]cleanRange // guarded by mu
}

// cleanRange is a byte range of a generation in which a masker found nothing.
type cleanRange struct {
	generation uint32
	from, to   int64
	by         *redact.Masker
}

// note records what is known about a committed chunk.
func (x *cleanLines) note(c *tail.Chunk, by *route.Decision) {
	x.mu.Lock()
	defer x.mu.Unlock()
	last, known := x.ranges[c.File.ID]
	if by.CleanBy == nil {
		if known {
			delete(x.ranges, c.File.ID)
		}
		return
	}
	next := cleanRange{c.To.Generation, c.From.Offset, c.To.Offset, by.CleanBy}
	if known && last.by == next.by && last.generation == next.generation && last.to == next.from {
		next.from = last.from
	}
	if x.ranges == nil || !known && len(x.ranges) >= maxClean {
		x.ranges = map[tail.FileID]cleanRange{}
	}
	x.ranges[c.File.ID] = next
}

// of returns what is known of a transcript.
func (x *cleanLines) of(id tail.FileID) cleanRange {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ranges[id]
}

// holds reports whether a masker would find nothing in a line at an offset.
func (r *cleanRange) holds(m *redact.Masker, generation uint32, offset int64) bool {
	return r.by == m && r.generation == generation && offset >= r.from && offset < r.to
}

// cache holds the projections in memory. It is owned by Run's goroutine, except for count.
type cache struct {
	projections map[tail.FileID]*liveProjection
	full        bool         // a projection must be evicted, but none is saved yet
	count       atomic.Int64 // len(projections)
}

func (c *cache) add(p *liveProjection) {
	c.projections[p.file] = p
	c.count.Store(int64(len(c.projections)))
}

func (c *cache) remove(p *liveProjection) {
	delete(c.projections, p.file)
	c.count.Store(int64(len(c.projections)))
}

// holds reports whether p is in the cache, and not another projection of its file.
func (c *cache) holds(p *liveProjection) bool { return c.projections[p.file] == p }

// evict removes the least recently used saved projections while there are too many. It keeps latest unless that is
// transient; latest may be nil.
func (c *cache) evict(latest *liveProjection) {
	c.full = false
	if latest != nil && latest.transient && latest.saved() {
		c.remove(latest)
	}
	for {
		size := 0
		var oldest *liveProjection
		for _, p := range c.projections {
			size += p.size
			if p != latest && p.saved() && (oldest == nil || p.usedAt.Before(oldest.usedAt)) {
				oldest = p
			}
		}
		if len(c.projections) <= maxCached && size <= maxCacheSize {
			return
		}
		if oldest == nil {
			c.full = len(c.projections) > 1 // they leave once they are saved
			return
		}
		c.remove(oldest)
	}
}

// newest returns the most recently used projection; nil: the cache is empty.
func (c *cache) newest() (last *liveProjection) {
	for _, p := range c.projections {
		if last == nil || p.usedAt.After(last.usedAt) {
			last = p
		}
	}
	return last
}
