package derive

import (
	"context"
	"errors"
	"time"

	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
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
