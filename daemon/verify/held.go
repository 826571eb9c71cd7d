package verify

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"

	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/transcript/redact"
)

// Held reads the lines of one view from a server. It sends no request before the first line is needed.
type Held struct {
	reader *remote.Client
	ref    remote.Ref
	limit  int64 // of a line, in bytes

	file  *remote.File // nil: nothing was requested yet
	lines *bufio.Reader
	long  []byte
	next  int64 // the line that is read next
}

// NewHeld returns the lines of the view that ref names; it skips lines longer than limit bytes. The caller closes it.
func NewHeld(reader *remote.Client, ref remote.Ref, limit int64) *Held {
	return &Held{reader: reader, ref: ref, limit: limit}
}

// Close ends reading.
func (h *Held) Close() {
	if h.file != nil {
		_ = h.file.Close() // nothing was written
	}
}

// Explain reports whether a line for which the server has another hash is the disk's line with secrets masked by any
// rules. held is the server's line, valid until the next call. Ask for lines in ascending order. A nil masker explains
// nothing.
func (h *Held) Explain(ctx context.Context, m *redact.Masker, index int64, disk []byte,
	hash string) (held []byte, e redact.Explanation, explained bool, err error) {
	if m == nil {
		return nil, e, false, nil
	}
	if held, err = h.line(ctx, index); err != nil || held == nil || LineHash(held) != hash {
		return nil, e, false, err
	}
	e, explained = m.Explain(disk, held)
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
		h.file, h.lines = file, bufio.NewReaderSize(file, 64<<10)
	}
	for ; ; h.next++ {
		line, _, err := readLine(h.lines, &h.long, h.limit)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if h.next == index {
			h.next++
			return line, nil
		}
	}
}
