package outbox

import (
	"time"
)

// maxRaw is the limit of uncompressed bytes in a request; one larger entry is sent alone.
const maxRaw = 4 << 20

// transfer is a set of batches being sent: the pieces still to send, and what became of the others. Its batches leave
// the queue together, after the last piece, so that a batch with a refused entry is never half removed.
// It has one owner at a time: the loop, or the goroutine that sends its first piece.
type transfer struct {
	stream      Stream
	pieces      [][]Batch // in order; the first is being sent
	settlement  Settlement
	last        uint64 // highest Seq of the batches
	artifact    bool   // of artifacts
	objectsOnly bool   // fetched with OnlyObjects: batches in between were skipped
	splitFirst  bool   // halve the first piece before sending it
	progressed  bool   // keep it over a failure

	suspects []suspect // entries that were refused alone; the pieces after them went on
	witness  []Batch   // an accepted piece; nil: none
	proving  bool      // the first piece is the witness, sent again
	proved   bool      // it was sent again
	retried  bool      // the suspects were sent again
	shrunk   *Learned  // what was learned before a 413; nil: there was none
}

// newTransfer takes what one request may carry from the front of p. The rest is left to the next Peek.
func newTransfer(dest string, p StreamBatches, limits Limits, known *capabilities) *transfer {
	w := &transfer{stream: p.Stream, objectsOnly: limits.OnlyObjects}
	w.settlement = Settlement{Dest: dest, Stream: p.Stream.ID, Blobs: limits.Blobs}
	most := p.Stream.MaxEntries
	if most <= 0 {
		most = DefaultMaxEntries
	}
	w.artifact = len(p.Batches) > 0 && p.Batches[0].Kind.artifact()
	var piece []Batch
	entries := 0
	for i := range p.Batches {
		b, first := &p.Batches[i], &p.Batches[0]
		if i > 0 && (b.Generation != first.Generation || !b.Kind.joins(first.Kind) || b.Kind == Blob) {
			break
		}
		if known.sends(b.Kind) && !(p.Stream.Extended && known.withholds()) {
			if len(piece) > 0 && entries+b.Entries+b.Items > most {
				break
			}
			piece = append(piece, *b)
			entries += b.Entries + b.Items
		} else {
			w.withhold(b)
		}
		w.settlement.Seqs = append(w.settlement.Seqs, b.Seq)
		w.last = b.Seq
		if b.NoNewline {
			break // the next batch says that the newline is there now
		}
	}
	if len(piece) > 0 {
		w.pieces = [][]Batch{piece}
	}
	return w
}

// withhold counts a batch that is not sent.
func (w *transfer) withhold(b *Batch) {
	w.settlement.Withheld += int64(b.Entries)
	w.settlement.Unwanted += int64(b.Items)
}

// withholdRest withholds the remaining pieces.
func (w *transfer) withholdRest() {
	for _, p := range w.pieces {
		for i := range p {
			w.withhold(&p[i])
		}
	}
	w.pieces, w.splitFirst = nil, false
}

// firstKind returns the kind of the first piece.
func (w *transfer) firstKind() Kind { return w.pieces[0][0].Kind }

// single reports whether the first piece cannot be split.
func (w *transfer) single() bool {
	p := w.pieces[0]
	return len(p) == 1 && p[0].Entries+p[0].Items <= 1
}

// split halves the first piece: between batches, then inside one. Its error is a *damageError.
func (w *transfer) split(c *codecs) error {
	w.splitFirst = false
	p := w.pieces[0]
	first, second := p[:len(p)/2], p[len(p)/2:]
	if len(p) == 1 {
		a, b, err := c.halve(&p[0])
		if err != nil {
			return err
		}
		first, second = []Batch{a}, []Batch{b}
	}
	w.pieces = append([][]Batch{first, second}, w.pieces[1:]...)
	w.progressed = true
	return nil
}

// acknowledge removes the first piece: the server has stored it.
func (w *transfer) acknowledge(plain bool) (entries, raw int64) {
	artifact := w.firstKind().artifact()
	for i := range w.pieces[0] {
		b := &w.pieces[0][i]
		entries += int64(b.Entries)
		w.settlement.Items += int64(b.Items)
		if raw += b.Raw; b.Kind == Blob && len(b.Frame) == 0 {
			raw += b.Blob.Size
		}
	}
	w.settlement.Entries += entries
	w.settlement.Raw += raw
	w.settlement.Plain = w.settlement.Plain || plain && !artifact
	if w.firstKind() != Blob && (entries > 0 || artifact) && (w.witness == nil || raw < rawOf(w.witness)) {
		w.witness = w.pieces[0]
	}
	w.pieces = w.pieces[1:]
	w.progressed = true
	return entries, raw
}

// deadLetterFirst turns the first piece, which is single, into a dead letter.
func (w *transfer) deadLetterFirst(c *codecs, r *reply, reason string) {
	b := w.pieces[0][0]
	w.settlement.Dead = append(w.settlement.Dead, DeadLetter{
		Batch: b, Line: firstLine(&b, c), Status: r.status, Reason: reason, Answer: r.answer, At: time.Now().Unix(),
	})
	w.pieces = w.pieces[1:]
	w.progressed = true
}

// firstLine returns the number of a batch's first line.
func firstLine(b *Batch, c *codecs) int64 {
	const head = 64 // bytes: enough for any line_index
	if text, err := c.First(b, head); err == nil && !b.Kind.artifact() {
		if n, ok := lineIndex(text); ok {
			return n
		}
	}
	return b.From.Line
}

// deadLetterDamaged moves a damaged batch from the first piece to the dead letters. It reports whether it was there.
func (w *transfer) deadLetterDamaged(d *damageError) bool {
	p := w.pieces[0]
	for i := range p {
		if p[i].Seq != d.Seq {
			continue
		}
		w.settlement.Dead = append(w.settlement.Dead, DeadLetter{
			Batch: p[i], Line: p[i].From.Line, Reason: ReasonDamaged, Answer: d.Error(), At: time.Now().Unix(),
		})
		rest := append(append([]Batch(nil), p[:i]...), p[i+1:]...)
		w.splitFirst, w.progressed = false, true
		if w.pieces = w.pieces[1:]; len(rest) > 0 {
			w.pieces = append([][]Batch{rest}, w.pieces...)
		}
		return true
	}
	return false
}
