package proof

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript/redact"
)

// Held reads the lines of one view from a server. It sends no request before the first line is needed.
type Held struct {
	reader *remote.Client
	ref    remote.Ref

	file  *remote.File // nil: nothing was requested yet
	lines *tail.LineReader
}

// NewHeld returns the lines of the view that ref names. The caller closes it.
func NewHeld(reader *remote.Client, ref remote.Ref) *Held {
	return &Held{reader: reader, ref: ref}
}

// Proof is what proves that a line has its secrets masked.
type Proof struct {
	Tokens    *redact.Masker // nil: nothing does
	Asterisks bool           // secrets too short for a token are asterisks, which nothing proves
}

// ProofOf returns the proof by a key, where rules mask secrets; nil: none do, and asterisks count only where the
// built-in rules would put them. Anywhere else they are damage.
func ProofOf(key, rules *redact.Masker) Proof { return Proof{key, rules != nil} }

// masking is how a text is masked.
type masking func(text []byte) (masked []byte, ranges []redact.Range)

// explains reports whether a server's bytes are those of the disk with secrets masked. by is how the key's rules mask.
func (p Proof) explains(disk, held []byte, by masking) (e redact.Explanation, explained bool) {
	if e, explained = p.Tokens.Explain(disk, held); !explained || e.Unproven == 0 || p.Asterisks {
		return e, explained
	}
	_, ranges := by(disk)
	for i := range disk {
		within := func(r redact.Range) bool { return r.Start <= i && i < r.End }
		if held[i] == '*' && disk[i] != '*' && !slices.ContainsFunc(ranges, within) {
			return e, false
		}
	}
	return e, true
}

// Close ends reading.
func (h *Held) Close() {
	if h.file != nil {
		_ = h.file.Close() // nothing was written
	}
}

// Explain reports whether a line for which the server has another hash is the disk's line with secrets masked by any
// rules. held is the server's line, valid until the next call. Ask for lines in ascending order.
func (h *Held) Explain(ctx context.Context, proof Proof, index int64, disk []byte,
	hash string) (held []byte, e redact.Explanation, explained bool, err error) {
	if proof.Tokens == nil {
		return nil, e, false, nil
	}
	if held, err = h.line(ctx, index); err != nil || held == nil || LineHash(held) != hash {
		return nil, e, false, err
	}
	e, explained = proof.explains(disk, held, proof.Tokens.Line)
	return held, e, explained, nil
}

// SameButTokens reports whether a line for which the server has another hash differs only in tokens from the disk's
// line, in one of its forms. They need not be this machine's. Ask for lines in ascending order, each once.
func (h *Held) SameButTokens(ctx context.Context, index int64, hash string, forms ...[]byte) (bool, error) {
	held, err := h.line(ctx, index)
	if err != nil || held == nil || LineHash(held) != hash {
		return false, err
	}
	return slices.ContainsFunc(forms, func(form []byte) bool {
		_, only := redact.Changes(form, held)
		return only
	}), nil
}

// line returns a line; nil if the server does not have it.
func (h *Held) line(ctx context.Context, index int64) ([]byte, error) {
	if h.file == nil {
		file, err := h.reader.Raw(ctx, h.ref, true)
		if err != nil {
			return nil, err
		}
		h.file, h.lines = file, tail.NewLineReader(file, math.MaxInt64, 64<<10)
	}
	for {
		switch line, err := h.lines.Next(); {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		case line.Index == index:
			return line.Raw, nil
		}
	}
}
