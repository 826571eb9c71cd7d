package outbox

import (
	"errors"
)

// halve splits a batch of at least two entries or items into its first and second half. Both keep the whole's span.
// Its error is a *damageError.
func (c *codecs) halve(b *Batch) (first, second Batch, err error) {
	raw, err := c.Unpack(nil, b)
	if err != nil {
		return first, second, err
	}
	parts, err := splitEntries(raw)
	if err == nil && len(parts) < 2 {
		err = errors.New("fewer entries than the header says")
	}
	if err != nil {
		return first, second, &damageError{Seq: b.Seq, Err: err}
	}
	middle := len(parts) / 2
	var line int64
	if !b.Kind.artifact() {
		var ok bool
		if line, ok = lineIndex(parts[middle]); !ok {
			return first, second, &damageError{Seq: b.Seq, Err: errors.New("entry without line_index")}
		}
	}
	// Entries lie side by side in raw, a comma between them.
	cut := 0
	for _, e := range parts[:middle] {
		cut += len(e) + 1
	}
	first, second = *b, *b
	if first.Entries, second.Entries = middle, len(parts)-middle; b.Kind.artifact() {
		first.Items, second.Items = first.Entries, second.Entries
		first.Entries, second.Entries = 0, 0
		second.From.Line += int64(middle) // distinguishes the dead letters of one batch
	}
	first.Raw, second.Raw = int64(cut-1), int64(len(raw)-cut)
	first.Frame, second.Frame = c.Pack(nil, raw[:cut-1]), c.Pack(nil, raw[cut:])
	first.Edges, second.Edges = nil, nil
	for _, e := range b.Edges {
		if e.Line < line {
			first.Edges = append(first.Edges, e)
		} else {
			second.Edges = append(second.Edges, e)
		}
	}
	return first, second, nil
}
