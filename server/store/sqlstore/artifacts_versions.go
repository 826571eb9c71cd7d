package sqlstore

import (
	"context"
	"fmt"
	"io"

	"github.com/ccship/ccship/server"
)

// history is a document's versions, numbered through all epochs.
type history struct {
	server.Address
	document int64
	lives    []life
}

// life is one epoch's part of it: its versions 1 to last are base+1 to base+last.
type life struct{ rank, base, last int64 }

// history finds a document.
func (p *Artifacts) history(ctx context.Context, scope server.Scope, ref server.Ref,
	path string) (h history, err error) {
	if h.Address, err = Resolve(ctx, p.db, scope, ref, (*Filter).artifacts); err != nil {
		return h, err
	}
	h.document, err = Number(ctx, p.db, `SELECT id FROM documents WHERE owner = ? AND stream = ? AND path_key = ?`,
		h.Owner, h.Stream, Key(path))
	if err != nil {
		return h, fmt.Errorf("find document: %w", err)
	}
	if h.document == 0 {
		return h, fmt.Errorf("document %.100q: %w", path, server.ErrNotFound)
	}
	var base int64
	err = p.db.Query(ctx, `SELECT rank, max(n) FROM document_versions WHERE owner = ? AND document = ?
GROUP BY rank ORDER BY rank`, []any{h.Owner, h.document}, func(row Scanner) error {
		l := life{base: base}
		err := row.Scan(&l.rank, &l.last)
		base += l.last
		h.lives = append(h.lives, l)
		return err
	})
	return h, Wrap(err, "find document")
}

// end returns the number of the newest version.
func (h *history) end() int64 {
	if len(h.lives) == 0 {
		return 0
	}
	last := h.lives[len(h.lives)-1]
	return last.base + last.last
}

// locate finds version number: the epoch's rank and the version's own number. rank 0: there is none.
func (h *history) locate(number int64) (rank, n int64) {
	for _, l := range h.lives {
		if number > l.base && number <= l.base+l.last {
			return l.rank, number - l.base
		}
	}
	return 0, 0
}

// number returns the public number of version n of an epoch.
func (h *history) number(rank, n int64) int64 {
	for _, l := range h.lives {
		if l.rank == rank {
			return l.base + n
		}
	}
	return n // the epoch began later
}

const selectVersion = `
SELECT v.rank, v.n, v.at, v.change, v.author, v.size, v.sha256, v.too_large, v.line, e.name, ` + isStored + `
FROM document_versions v JOIN documents d ON d.owner = v.owner AND d.id = v.document
JOIN streams s ON s.owner = d.owner AND s.id = d.stream
JOIN artifact_epochs e ON e.owner = d.owner AND e.stream = d.stream AND e.rank = v.rank
WHERE v.owner = ? AND v.document = ? AND NOT EXISTS (SELECT 1 FROM document_versions w
  WHERE w.owner = v.owner AND w.document = v.document AND w.rank = v.rank AND w.n = v.n AND w.id > v.id) `

// versions runs selectVersion with what follows.
func (p *Artifacts) versions(ctx context.Context, h *history, rest string,
	args ...any) (out []server.Version, err error) {
	err = p.db.Query(ctx, selectVersion+rest, append([]any{h.Owner, h.document}, args...), func(row Scanner) error {
		var v server.Version
		var rank, n, at, large, stored int64
		var sum []byte
		err := row.Scan(&rank, &n, &at, &v.Change, &v.By, &v.Size, &sum, &large, &v.Line, &v.Epoch, &stored)
		v.N, v.At, v.SHA256 = h.number(rank, n), Moment(at), fmt.Sprintf("%x", sum)
		v.TooLarge, v.Stored = large == 1, stored == 1
		out = append(out, v)
		return err
	})
	return out, Wrap(err, "list versions")
}

// Versions implements server.Artifacts.
func (p *Artifacts) Versions(ctx context.Context, scope server.Scope, ref server.Ref, path string,
	page server.VersionPage) (server.Versions, error) {
	h, err := p.history(ctx, scope, ref, path)
	if err != nil {
		return server.Versions{}, err
	}
	last := h.end()
	if page.Before > 0 {
		last = min(last, page.Before-1)
	}
	rank, n := h.locate(last)
	if rank == 0 {
		return server.Versions{List: []server.Version{}}, nil
	}
	list, err := p.versions(ctx, &h, `AND (v.rank < ? OR v.rank = ? AND v.n <= ?) ORDER BY v.rank DESC, v.n DESC LIMIT ?`,
		rank, rank, n, page.Limit+1)
	out := server.Versions{List: list}
	if len(list) > page.Limit {
		out.List = list[:page.Limit]
		if page.Limit > 0 {
			out.Next = list[page.Limit-1].N
		}
	}
	return out, err
}

// Content implements server.Artifacts.
func (p *Artifacts) Content(ctx context.Context, scope server.Scope, ref server.Ref, path string,
	number int64) (v server.Version, content io.Reader, err error) {
	h, err := p.history(ctx, scope, ref, path)
	if err != nil {
		return v, nil, err
	}
	if number == 0 {
		number = h.end()
	}
	rank, n := h.locate(number)
	list, err := p.versions(ctx, &h, `AND v.rank = ? AND v.n = ?`, rank, n)
	if err != nil {
		return v, nil, err
	}
	if len(list) == 0 {
		return v, nil, fmt.Errorf("version %d: %w", number, server.ErrNotFound)
	}
	if v = list[0]; !v.Stored {
		return v, nil, fmt.Errorf("version %d: %w", number, server.ErrNoContent)
	}
	_, content, err = p.open(ctx, h.Owner, v.SHA256)
	return v, content, err
}
