package proof

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// RetryLetters queues dead letters again whose files have rejoined since: the server may store other lines in their
// place, and would refuse them as they are. It drops letters whose lines the server has. The others are sent in a
// generation of their own, and after it the file continues as it is on disk. It returns how many letters were dropped
// or queued.
func (r *Reconciler) RetryLetters(ctx context.Context, letters []state.DeadLetter) (n int, err error) {
	type stream struct {
		dest string
		id   uint64
	}
	byStream := map[stream][]state.DeadLetter{}
	for i := range letters {
		at := stream{letters[i].Dest, letters[i].Stream.ID}
		byStream[at] = append(byStream[at], letters[i])
	}
	for at, some := range byStream {
		c, err := r.newComparison(ctx, at.dest)
		if err != nil {
			return n, err
		}
		c.sending = true
		m, err := c.retryStream(ctx, tail.FileID(at.id), some)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// replacedRounds limits how often lines are looked for that leave the queue while others are queued again.
const replacedRounds = 3

// retryReplaced is RetryLetters for the lines of ended generations that left the queue when their transcripts rejoined.
// Nobody refused them, so nobody has to ask for it.
func (c *comparison) retryReplaced(ctx context.Context, only ...tail.FileID) error {
	for range replacedRounds {
		byStream, err := c.replaced(ctx, only)
		if err != nil || len(byStream) == 0 {
			return err
		}
		for id, letters := range byStream {
			sub, err := c.newComparison(ctx, c.dest) // with what changed since
			if err != nil {
				return err
			}
			sub.reader, sub.sending = c.reader, c.sending
			n, err := sub.retryStream(ctx, id, letters)
			c.rejoined, c.copied = c.rejoined+sub.rejoined, c.copied+sub.copied
			if err != nil {
				return err
			}
			c.Log.Info("lines that were rewound while they waited are on the server or queued again", "session",
				letters[0].Stream.SessionID, "batches", n)
		}
	}
	return nil
}

// replaced lists the dead letters with that reason of the given streams, or of all; by stream.
func (c *comparison) replaced(ctx context.Context, only []tail.FileID) (map[tail.FileID][]state.DeadLetter, error) {
	letters, err := c.State.DeadLetters.List(ctx)
	if err != nil {
		return nil, err
	}
	byStream := map[tail.FileID][]state.DeadLetter{}
	for i := range letters {
		l := &letters[i]
		id := tail.FileID(l.Stream.ID)
		if l.Reason == state.ReasonReplaced && l.Batch.Items == 0 && l.Dest == c.dest &&
			(len(only) == 0 || slices.Contains(only, id)) {
			byStream[id] = append(byStream[id], *l)
		}
	}
	return byStream, nil
}

// retryStream is RetryLetters for one stream.
func (c *comparison) retryStream(ctx context.Context, id tail.FileID, letters []state.DeadLetter) (int, error) {
	t, ok := c.Files.File(id)
	if !ok || t.Gone != 0 { // nothing continues after them
		return c.queueAgain(ctx, letters)
	}
	if err := c.limitCommon(ctx, id); err != nil {
		return 0, err
	}
	has, err := c.reader.Digest(ctx, c.ref(id))
	switch {
	case remote.Is(err, remote.CodeNoReading):
		return c.queueAgain(ctx, letters)
	case err != nil && !remote.Is(err, control.CodeNoSession):
		return 0, err
	}
	stored, lacking, err := c.sortLetters(ctx, id, letters)
	if err != nil {
		return 0, err
	}
	n, err := c.State.DeadLetters.Drop(ctx, keysOf(stored))
	if err != nil || len(lacking) == 0 {
		return n, err
	}
	return n + len(lacking), c.sendLetters(ctx, id, &has, lacking)
}

// queueAgain queues letters as they were refused.
func (c *comparison) queueAgain(ctx context.Context, letters []state.DeadLetter) (int, error) {
	c.changes.Add(1)
	defer c.changes.Add(1)
	return c.State.DeadLetters.Retry(ctx, keysOf(letters))
}

func keysOf(letters []state.DeadLetter) (keys []state.DeadKey) {
	for i := range letters {
		keys = append(keys, letters[i].Key)
	}
	return keys
}

// sortLetters separates the letters whose lines the server has, in their own generation or in its view, from those
// whose lines it lacks.
func (c *comparison) sortLetters(ctx context.Context, id tail.FileID,
	letters []state.DeadLetter) (stored, lacking []state.DeadLetter, err error) {
	for i := range letters {
		l := &letters[i]
		lines, err := c.linesOf(ctx, l.Key)
		if err != nil {
			return nil, nil, err
		}
		generation := int64(l.Batch.Generation)
		own := c.ref(id)
		own.Epoch, own.Generation = c.Origin.EpochOf(&l.Stream), &generation
		held := false
		for _, ref := range []remote.Ref{c.ref(id), own} {
			same, err := c.holdsLines(ctx, ref, lines)
			if err != nil {
				return nil, nil, err
			}
			held = held || same
		}
		if held {
			stored = append(stored, *l)
		} else {
			lacking = append(lacking, *l)
		}
	}
	return stored, lacking, nil
}

// letterLine is a line of a dead letter; its hash is "" if only a digest was sent.
type letterLine struct {
	index int64
	hash  string
}

// linesOf reads the lines of a dead letter. There are none if the letter is gone or cannot be unpacked.
func (c *comparison) linesOf(ctx context.Context, key state.DeadKey) (lines []letterLine, err error) {
	l, ok, err := c.State.DeadLetters.Get(ctx, key)
	if err != nil || !ok {
		return nil, err
	}
	unpacked, err := outbox.UnpackEntries(l.Batch.Frame)
	if err != nil {
		return nil, nil //nolint:nilerr // sent as it is, and the outbox reports the damage
	}
	for _, entry := range unpacked {
		index, raw, kind, err := transcript.RestoreEntry(entry)
		if err != nil {
			return nil, nil //nolint:nilerr // as above
		}
		line := letterLine{index: index}
		if kind != transcript.OversizeEntry {
			line.hash = LineHash(withEdges(&l.Batch, index, raw))
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// withEdges restores the bytes that stood around a line's object.
func withEdges(b *outbox.Batch, index int64, raw []byte) []byte {
	for _, e := range b.Edges {
		if e.Line == index {
			return bytes.Join([][]byte{e.Before, raw, e.After}, nil)
		}
	}
	return raw
}

// holdsLines reports whether a view has all of the given lines, with the same bytes.
func (c *comparison) holdsLines(ctx context.Context, ref remote.Ref, lines []letterLine) (bool, error) {
	hashes := NewHashes(c.reader, ref)
	for _, l := range lines {
		hash, err := hashes.At(ctx, l.index, lines[len(lines)-1].index+1)
		if remote.Is(err, control.CodeNoSession) {
			return false, nil
		}
		if err != nil || hash == nil || *hash != l.hash {
			return false, err
		}
	}
	return len(lines) > 0, nil
}

// sendLetters queues letters in their own generations. The file continues after the lines before them that both sides
// have.
func (c *comparison) sendLetters(ctx context.Context, id tail.FileID, has *protocol.Digest,
	letters []state.DeadLetter) error {
	slices.SortFunc(letters, func(a, b state.DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Batch.Generation, b.Batch.Generation),
			cmp.Compare(a.Batch.From.Line, b.Batch.From.Line), cmp.Compare(a.Line, b.Line))
	})
	c.letters = letters
	for i := range letters {
		c.before = min(c.before, letters[i].Line)
	}
	t, ok := c.Files.File(id)
	if !ok {
		return errors.New("the transcript is gone")
	}
	if len(has.Generations) == 0 {
		has = nil
	}
	return c.file(ctx, t, has)
}

// retried numbers the generations of letters, beginning with from. Letters of one generation stay together.
func retried(letters []state.DeadLetter, from uint32) (list []state.RetriedLetter, next uint32) {
	for i := range letters {
		l := &letters[i]
		if i > 0 && letters[i-1].Batch.Generation == l.Batch.Generation {
			last := list[i-1]
			list = append(list, state.RetriedLetter{Key: l.Key, Generation: last.Generation, RewoundTo: last.RewoundTo})
			continue
		}
		if i > 0 {
			from++
		}
		list = append(list, state.RetriedLetter{Key: l.Key, Generation: from, RewoundTo: l.Line})
	}
	if len(letters) > 0 {
		from++
	}
	return list, from
}
