package outbox

import "time"

// maxRaw is how many uncompressed bytes a request holds at most, unless one entry is larger.
const maxRaw = 4 << 20

// work is a parcel on its way: the pieces that are still to be sent, and what became of the others. It leaves the
// queue as a whole, when the last piece is settled, so that a poisoned row is never half gone.
// It has one owner at a time: the loop, or the goroutine that sends its first piece.
type work struct {
	stream     Stream
	pieces     [][]Batch // in order; the first is being sent
	settlement Settlement
	last       uint64 // highest Seq of the parcel
	objects    bool   // peeked with OnlyObjects: batches in between were passed over
	halve      bool   // the first piece is to be halved before it is sent
	bare       bool   // without the extension, though nothing was learned yet
	progressed bool   // worth keeping over a failure
}

// newWork takes from the front of a parcel what one request may carry; the rest is left to the next Peek.
func newWork(dest string, p Parcel, limits Limits, known *knowledge) *work {
	w := &work{stream: p.Stream, objects: limits.OnlyObjects, settlement: Settlement{Dest: dest, Stream: p.Stream.ID, Blobs: limits.Blobs}}
	most := p.Stream.MaxEntries
	if most <= 0 {
		most = DefaultMaxEntries
	}
	var piece []Batch
	entries := 0
	for i := range p.Batches {
		b := &p.Batches[i]
		if first := &p.Batches[0]; i > 0 && (b.Generation != first.Generation || !b.Kind.joins(first.Kind) || b.Kind == Blob) {
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
			break // what follows says that the newline is there now
		}
	}
	if len(piece) > 0 {
		w.pieces = [][]Batch{piece}
	}
	return w
}

// withhold counts a batch that is not sent.
func (w *work) withhold(b *Batch) {
	w.settlement.Withheld += int64(b.Entries)
	w.settlement.Unwanted += int64(b.Items)
}

// withholdAll gives up what is left of the work.
func (w *work) withholdAll() {
	for _, p := range w.pieces {
		for i := range p {
			w.withhold(&p[i])
		}
	}
	w.pieces, w.halve = nil, false
}

// kind is what the first piece holds.
func (w *work) kind() Kind { return w.pieces[0][0].Kind }

// single says that the first piece cannot be made smaller.
func (w *work) single() bool {
	p := w.pieces[0]
	return len(p) == 1 && p[0].Entries+p[0].Items <= 1
}

// split halves the first piece: between rows, then inside one. Its error is a *damage.
func (w *work) split(c *codecs) error {
	w.halve = false
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

// acknowledge takes the first piece off: the server has it.
func (w *work) acknowledge(plain bool) (entries, raw int64) {
	beside := w.kind().beside()
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
	w.settlement.Plain = w.settlement.Plain || plain && !beside
	w.pieces = w.pieces[1:]
	w.progressed = true
	return entries, raw
}

// bury makes a dead letter of the first piece, which is single.
func (w *work) bury(c *codecs, r *reply, reason string) {
	b := w.pieces[0][0]
	line := b.From.Line
	const head = 64 // bytes that hold a line_index whatever follows
	if text, err := c.firstBytes(&b, head); err == nil && !b.Kind.beside() {
		if n, ok := lineIndex(text); ok {
			line = n
		}
	}
	w.settlement.Dead = append(w.settlement.Dead, DeadLetter{
		Batch: b, Line: line, Status: r.status, Reason: reason, Answer: r.answer, At: time.Now().Unix(),
	})
	w.pieces = w.pieces[1:]
	w.progressed = true
}

// buryDamaged takes the row that cannot be unpacked out of the first piece. It reports whether the row was there.
func (w *work) buryDamaged(d *damage) bool {
	p := w.pieces[0]
	for i := range p {
		if p[i].Seq != d.seq {
			continue
		}
		w.settlement.Dead = append(w.settlement.Dead, DeadLetter{
			Batch: p[i], Line: p[i].From.Line, Reason: "damaged", Answer: d.Error(), At: time.Now().Unix(),
		})
		rest := append(append([]Batch(nil), p[:i]...), p[i+1:]...)
		w.halve, w.progressed = false, true
		if w.pieces = w.pieces[1:]; len(rest) > 0 {
			w.pieces = append([][]Batch{rest}, w.pieces...)
		}
		return true
	}
	return false
}
