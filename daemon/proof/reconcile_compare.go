package proof

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// reconcileMostAsked is the largest number of transcripts in one request to a server.
const reconcileMostAsked = 200

// comparison is one run over the transcripts of a server.
type comparison struct {
	*Reconciler
	dest     string
	reader   *remote.Client
	routings map[tail.FileID]state.Routing
	dead     map[uint64]map[int64]bool // lines that the server refused, by stream
	only     map[string]bool           // sessions to compare; nil: all
	refused  bool                      // the server refused what is queued, even if it seems to be in step

	seen map[tail.FileID]bool // already compared

	remask bool // lines that the masking rules in force change count as different

	compared, rejoined, copied int

	otherBytes bool // the server stores other bytes than those the queue continues

	sending bool  // lines are sent meanwhile: nobody has stopped for this comparison
	limit   int64 // of the lines of a transcript that count as common: see next to

	repair    bool // what follows the newline of the last line counts too
	fromStart bool // send everything again
	result    control.ResendResult

	letters []state.DeadLetter // to be sent before what follows, by generation and line
	before  int64              // the line that the first of them begins at
}

// newComparison returns a comparison with the database that the queue continues.
func (r *Reconciler) newComparison(ctx context.Context, dest string) (*comparison, error) {
	known, _, err := r.Servers.Ledger(ctx, dest)
	if err != nil {
		return nil, err
	}
	c := &comparison{Reconciler: r, dest: dest, reader: r.Servers.Reader(dest).Of(known.Store),
		dead: map[uint64]map[int64]bool{}, seen: map[tail.FileID]bool{}, before: math.MaxInt64, limit: math.MaxInt64}
	if c.routings, err = r.State.Files.Routings(ctx); err != nil {
		return nil, err
	}
	letters, err := r.State.DeadLetters.List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range letters {
		l := &letters[i]
		if l.Batch.Items > 0 || l.Reason == outbox.ReasonDamaged || l.Reason == state.ReasonReplaced {
			continue
		}
		if c.dead[l.Stream.ID] == nil {
			c.dead[l.Stream.ID] = map[int64]bool{}
		}
		c.dead[l.Stream.ID][l.Line] = true
	}
	return c, nil
}

// chosen returns the transcripts on disk that go to the server.
func (c *comparison) chosen() (list []tail.Tracked) {
	for _, t := range c.Files.Files() {
		f, known := c.routings[t.File.ID]
		if !known || !f.Decided || f.Dest != c.dest || t.Gone != 0 || c.only != nil && !c.only[f.Stream.SessionID] ||
			c.seen[t.File.ID] {
			continue
		}
		list = append(list, t)
	}
	return list
}

func (c *comparison) size() int { return len(c.chosen()) }

// run compares all chosen transcripts, and those that are read for the first time during the comparison: a state that
// was set back in time does not know them, and would send again what the server has.
func (c *comparison) run(ctx context.Context) (err error) {
	for range newRounds {
		if err := c.round(ctx); err != nil || c.only != nil {
			return err
		}
		unread := c.Files.Stats().UnreadBytes
		if c.routings, err = c.State.Files.Routings(ctx); err != nil {
			return err
		}
		if unread == 0 && c.size() == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tryPause):
		}
	}
	return nil
}

// round compares the transcripts that are known now.
func (c *comparison) round(ctx context.Context) error {
	list := c.chosen()
	for len(list) > 0 {
		n := min(reconcileMostAsked, len(list))
		if err := c.some(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// some compares transcripts that fit into one request.
func (c *comparison) some(ctx context.Context, list []tail.Tracked) error {
	refs := make([]remote.Ref, len(list))
	for i, t := range list {
		refs[i] = c.ref(t.File.ID)
	}
	digests, err := c.reader.Digests(ctx, refs, false)
	if c.fromStart && remote.Is(err, remote.CodeNoReading) {
		digests, err = make([]*protocol.Digest, len(list)), nil
	}
	if err != nil {
		return err
	}
	for i := range list {
		if err := c.file(ctx, list[i], digests[i]); err != nil {
			return err
		}
	}
	return nil
}

// one compares one transcript whose next lines the server refused.
func (c *comparison) one(ctx context.Context, id tail.FileID) error {
	t, ok := c.Files.File(id)
	switch {
	case !ok, c.routings[id].Dest != c.dest:
		return errElsewhere
	case t.Gone != 0:
		return c.gone(ctx, id)
	}
	c.refused = true
	return c.some(ctx, []tail.Tracked{t})
}

// gone makes the queued lines of a transcript that is no longer on disk follow the lines that the server has.
func (c *comparison) gone(ctx context.Context, id tail.FileID) error {
	has, err := c.reader.Digest(ctx, c.ref(id))
	if remote.Is(err, control.CodeNoSession) || err == nil && len(has.Generations) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	epoch := has.Epoch
	if epoch == c.Origin.Epoch {
		epoch = ""
	}
	newest, _ := has.Newest()
	if err := c.State.Renumber(ctx, id, epoch, uint32(newest.Generation)); err != nil {
		return err
	}
	c.Log.Info("the queued lines of a transcript that is gone follow those that the server has", "session",
		c.routings[id].Stream.SessionID, "generation", newest.Generation+1)
	c.Files.Reload(id)
	return nil
}

// ref names the server's default view of a transcript.
func (c *comparison) ref(id tail.FileID) remote.Ref {
	return remote.Ref{Session: c.routings[id].Stream.SessionID, User: remote.Me, Machine: &c.Origin.Machine}
}

const (
	// newRounds limits the rounds for transcripts that are read for the first time while others are compared.
	newRounds = 50
	// mostTries limits how often a file that is read or rewound during the comparison is compared again.
	mostTries = 50
	// tryPause is the time between two tries.
	tryPause = 100 * time.Millisecond
)

// errElsewhere keeps the queue as it is: there is nothing to compare it with.
var errElsewhere = errors.New("the transcript does not go to this server any more")

// errRewound means that a file no longer has the content that was read. Once the tailer has found the rewind and queued
// what follows from it, the file can be compared.
var errRewound = errors.New("the file was rewound and not yet read again")

// file compares a transcript with the server's digest (nil: none), and rejoins it if they differ.
func (c *comparison) file(ctx context.Context, t tail.Tracked, has *protocol.Digest) error {
	c.compared++
	c.seen[t.File.ID] = true
	for range mostTries {
		err := c.fileOnce(ctx, t, has)
		if !errors.Is(err, tail.ErrStale) && !errors.Is(err, errRewound) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tryPause):
		}
		now, ok := c.Files.File(t.File.ID)
		if !ok {
			return nil
		}
		t = now
		if has, err = c.askAgain(ctx, &t, has); err != nil {
			return err
		}
	}
	return errRewound
}

// limitCommon sets the line from which none counts as common, before a server is asked about a transcript: while lines
// are sent, a generation that is queued already may replace what the server has from there on.
func (c *comparison) limitCommon(ctx context.Context, id tail.FileID) (err error) {
	if c.sending {
		c.limit, err = c.State.Outbox.Rewinds(ctx, id)
	}
	return err
}

// askAgain renews the server's answer about a transcript that has changed, if the answer may have changed too.
func (c *comparison) askAgain(ctx context.Context, t *tail.Tracked, has *protocol.Digest) (*protocol.Digest, error) {
	if !c.sending || c.fromStart {
		return has, nil
	}
	if err := c.limitCommon(ctx, t.File.ID); err != nil {
		return nil, err
	}
	d, err := c.reader.Digest(ctx, c.ref(t.File.ID))
	if remote.Is(err, control.CodeNoSession) {
		return nil, nil
	}
	return &d, err
}

func (c *comparison) fileOnce(ctx context.Context, t tail.Tracked, has *protocol.Digest) error {
	f := c.routings[t.File.ID]
	if c.fromStart {
		return c.rejoin(ctx, &t, &f, c.fromFirst(has))
	}
	at, err := c.agreed(ctx, &t, &f, has)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // gone in the meantime: nothing can continue
	case err != nil:
		return err
	}
	inStep := false
	if len(c.letters) == 0 {
		if inStep, err = c.inStep(ctx, &t, &f, at); err != nil {
			return err
		}
	}
	if inStep {
		var stored int64
		if at.generation == t.Cursor.Generation && at.lines > 0 {
			stored, err = c.State.Outbox.Stored(ctx, t.File.ID, at.generation, at.lines) // if stored, it need not be sent again
		}
		if err != nil || stored > 0 || !c.refused {
			return err
		}
	}
	return c.rejoin(ctx, &t, &f, at)
}

// rejoin makes a transcript continue after the lines that both sides have, in a new generation.
func (c *comparison) rejoin(ctx context.Context, t *tail.Tracked, f *state.Routing, at *agreement) error {
	if unchanged, err := c.unchanged(ctx, t); err != nil || !unchanged {
		return cmp.Or(err, errRewound)
	}
	c.changes.Add(1)
	defer c.changes.Add(1)
	letters, next := retried(c.letters, max(at.generation, t.Cursor.Generation)+1)
	r := state.Rejoin{
		Expect: t.Cursor, Epoch: at.epoch, Marks: at.prefix.Marks(), Cursor: at.prefix.Cursor(next), Letters: letters,
	}
	if err := c.State.Rejoin(ctx, t.File.ID, r); err != nil {
		return err
	}
	c.rejoined++
	c.note(t, f, r.Cursor)
	c.Log.Info("a transcript continues after the lines that the server has", "path", t.File.Path, "line", at.lines,
		"the server's lines", at.total, "generation", r.Cursor.Generation)
	c.Files.Reload(t.File.ID)
	return nil
}

// unchanged reports whether a file still begins with what was read from it.
func (c *comparison) unchanged(ctx context.Context, t *tail.Tracked) (bool, error) {
	marks, err := c.State.Files.Marks(ctx, t.File.ID)
	if err != nil {
		return false, err
	}
	return tail.Holds(t.File.Path, marks, t.Cursor)
}

// place is how far a transcript has got: lines of a generation. Later generations are after earlier ones.
type place struct {
	generation uint32
	line       int64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.generation, q.generation), cmp.Compare(p.line, q.line))
}

// inStep reports whether nothing has to change: the server shows an earlier position of the file, and everything since
// is queued or not yet read. A queued rewind may lie in between.
func (c *comparison) inStep(ctx context.Context, t *tail.Tracked, f *state.Routing, at *agreement) (bool, error) {
	here := place{t.Cursor.Generation, t.Cursor.Line}
	there := place{at.generation, at.total}
	unfinished := at.unfinished && t.Provisional.Length > 0
	if unfinished {
		there.line-- // the last line had no newline yet; it is sent again with one
	}
	switch {
	case at.total == 0 && here.line == 0:
		return true, nil
	case at.total == 0:
		there = place{}
	case at.epochInFront != c.Origin.EpochOf(&f.Stream), there.compare(here) > 0:
		return false, nil
	case there.generation == here.generation && at.lines < there.line:
		// Either the server shows other lines, or the file was rewound since: then the queue is still right.
		if unchanged, err := c.unchanged(ctx, t); err != nil || unchanged {
			return false, err
		}
	}
	if there == here {
		return true, nil
	}
	first, ok, err := c.State.Outbox.FirstQueued(ctx, t.File.ID)
	switch {
	case err != nil || !ok:
		return false, err
	case at.total == 0:
		return first.From.Line == 0, nil
	case c.otherBytes && there != place{first.Generation, first.From.Line}:
		return false, nil // the server would refuse the queue again
	case first.Generation == there.generation:
		return first.From.Line <= there.line, nil
	case first.Generation < there.generation:
		return true, nil
	}
	if first.From.Line > first.RewoundTo {
		return false, nil // the server lacks the beginning of the generation
	}
	return c.endedThere(ctx, t, there, first.Generation)
}

// endedThere reports whether a generation ended where the server shows its end, and next replaced it.
func (c *comparison) endedThere(ctx context.Context, t *tail.Tracked, there place, next uint32) (bool, error) {
	known, err := c.State.Files.History(ctx, t.File.ID)
	if err != nil {
		return false, err
	}
	for _, p := range known.Past {
		if p.Generation == there.generation && p.Next == next {
			return there.line >= p.Cursor.Line, nil
		}
	}
	return false, nil
}
