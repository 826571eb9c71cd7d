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
	"github.com/ccship/ccship/server/web/format"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/thread"
)

// documentDiff is two versions of a document, one compared with the other.
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
	b := number(q.Get("b"), p.Document.Versions)
	a := number(q.Get("a"), max(b-1, 1))
	before, why, err := v.versionText(r.Context(), scope, ref, p.Document.Path, a, &p.A)
	if err != nil {
		return err
	}
	after, whyB, err := v.versionText(r.Context(), scope, ref, p.Document.Path, b, &p.B)
	if err != nil {
		return err
	}
	if p.Reason = cmp.Or(why, whyB); p.Reason == "" {
		p.Equal = before == after
		lines, more := markup.Diff(before, after, thread.DiffContext, thread.FullDiffLines)
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
	p.Turn = v.Base + s.Path("/document/compare", "path", p.Document.Path, "a", strconv.FormatInt(b, 10), "b", strconv.FormatInt(a, 10))
	p.layout = v.layout(r, who, "Versions of "+p.Name, "sessions")
	v.render(w, http.StatusOK, "documentdiff.html", p)
	return nil
}

// versionText reads a version to be compared. A deleted one is empty; why says what can't be compared.
func (v *Viewer) versionText(ctx context.Context, scope server.Scope, ref server.Ref, path string, n int64, to *server.Version) (text, why string, err error) {
	if n == 0 {
		return "", "", server.ErrNotFound
	}
	version, from, err := v.store.Content(ctx, scope, ref, path, n)
	*to = version
	switch {
	case errors.Is(err, server.ErrNoContent) && version.Change == "deleted":
		return "", "", nil
	case errors.Is(err, server.ErrNoContent):
		return "", fmt.Sprintf("Version %d: %s", n, missing(version)), nil
	case err != nil:
		return "", "", err
	}
	if version.Size > thread.FullText {
		return "", fmt.Sprintf("Version %d has %s: too large to compare on a page.", n, format.Size(version.Size)), nil
	}
	b, err := io.ReadAll(io.LimitReader(from, thread.FullText+utf8.UTFMax))
	if err != nil {
		return "", "", fmt.Errorf("read a document: %w", err)
	}
	text, ok := textOf(b, version.Size)
	if !ok {
		return "", fmt.Sprintf("Version %d is not text.", n), nil
	}
	return text, "", nil
}
