package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// documentDiff compares two versions of a document.
type documentDiff struct {
	documentPage
	A, B   server.Version
	Parts  []thread.Part
	Equal  bool
	Reason string // why they can't be compared
	Back   string
	Turn   string // address of the comparison the other way round
}

// compareVersions is GET /sessions/{id}/document/compare?path&a&b: what changed from version a to b. Without them the
// newest and the one before it.
func (v *Viewer) compareVersions(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s, q := requested(r), r.URL.Query()
	p := documentDiff{}
	if err := v.findDocument(r.Context(), who, &p.documentPage, &s, q.Get("path")); err != nil {
		return err
	}
	ref, scope := server.Ref{Stream: p.S.ID}, server.ScopeOf(who.User)
	b := page.Number(q.Get("b"), p.Document.Versions)
	a := page.Number(q.Get("a"), max(b-1, 1))
	before, err := v.versionText(r.Context(), scope, ref, p.Document.Path, a)
	if err != nil {
		return err
	}
	after, err := v.versionText(r.Context(), scope, ref, p.Document.Path, b)
	if err != nil {
		return err
	}
	p.A, p.B = before.Version, after.Version
	if p.Reason = cmp.Or(before.reason, after.reason); p.Reason == "" {
		p.Equal = before.text == after.text
		lines, more := markup.NewBudget().Diff(before.text, after.text, thread.DiffContext, thread.FullDiffLines)
		p.Parts = []thread.Part{{Kind: "diff", Title: p.Document.Path, Diff: lines, More: int64(more)}}
	}
	list, err := v.store.Versions(r.Context(), scope, ref, p.Document.Path, server.VersionPage{Limit: versionPage})
	if err != nil {
		return err
	}
	v.listVersions(&p.documentPage, s, list)
	for i := range p.Versions {
		p.Versions[i].A, p.Versions[i].B, p.Versions[i].On = p.Versions[i].N == a, p.Versions[i].N == b, false
	}
	p.Back = v.Base + s.DocumentPath(p.Document.Path)
	p.Turn = v.Base + s.Path("/document/compare", "path", p.Document.Path,
		"a", strconv.FormatInt(b, 10), "b", strconv.FormatInt(a, 10))
	p.Layout = v.Layout(r, who, "Versions of "+p.Name, "sessions")
	v.Render(w, http.StatusOK, "documentdiff.html", p)
	return nil
}

// versionText is a version to be compared. A deleted one has no text.
type versionText struct {
	server.Version
	text   string
	reason string // why it cannot be compared; "" when it can
}

// versionText reads version n of the document at path.
func (v *Viewer) versionText(ctx context.Context, scope server.Scope, ref server.Ref, path string,
	n int64) (x versionText, err error) {
	if n == 0 {
		return x, server.ErrNotFound
	}
	var from io.Reader
	x.Version, from, err = v.store.Content(ctx, scope, ref, path, n)
	switch {
	case errors.Is(err, server.ErrNoContent):
		if x.Change != "deleted" {
			x.reason = fmt.Sprintf("Version %d: %s", n, missing(x.Version))
		}
		return x, nil
	case err != nil:
		return x, err
	case x.Size > thread.FullText:
		x.reason = fmt.Sprintf("Version %d has %s: too large to compare on a page.", n, page.Size(x.Size))
		return x, nil
	}
	b, err := io.ReadAll(io.LimitReader(from, thread.FullText+utf8.UTFMax))
	if err != nil {
		return x, fmt.Errorf("read a document: %w", err)
	}
	var ok bool
	if x.text, ok = textOf(b, x.Size); !ok {
		x.reason = fmt.Sprintf("Version %d is not text.", n)
	}
	return x, nil
}
