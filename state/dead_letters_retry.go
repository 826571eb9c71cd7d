package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ccship/ccship/outbox"
)

const (
	judgeRest = 24 * time.Hour // before the same server has the same dead letters queued for it again
	maxJudges = 16             // servers that a destination remembers
)

// newServerVersion notes who answers, a store and the version of its server. It reports whether that is another one
// than before, that has not had the dead letters lately: behind one address two may answer in turn.
func (r *destRow) newServerVersion(name string, now time.Time) bool {
	if r.Judge == name {
		return false
	}
	r.Judge = name
	if before, known := r.Judges[name]; known && now.Sub(time.Unix(before, 0)).Abs() < judgeRest {
		return false
	}
	if r.Judges == nil {
		r.Judges = map[string]int64{}
	}
	if r.Judges[name] = now.Unix(); len(r.Judges) > maxJudges {
		older := func(a, b string) int { return cmp.Compare(r.Judges[a], r.Judges[b]) }
		delete(r.Judges, slices.MinFunc(slices.Collect(maps.Keys(r.Judges)), older))
	}
	return true
}

// retryDeadLetters queues the dead letters of a destination again. Those that cannot be read stay: no server can take
// them. So do those that were replaced: they are compared first.
func (t *Tx) retryDeadLetters(dest uint32) error {
	var keys []DeadKey // a cursor skips keys when its bucket is deleted from on the way
	err := t.dead.ForEach(func(k, v []byte) error {
		r, err := decodeDeadRow(k, v)
		why := r.letter.Reason
		if err == nil && r.dest == dest && why != outbox.ReasonDamaged && why != ReasonReplaced {
			keys = append(keys, DeadKey{Seq: r.letter.Batch.Seq, Line: r.letter.Line})
		}
		return err
	})
	if err == nil {
		_, err = t.removeDead(keys, (*Tx).queueAgain)
	}
	return err
}
