package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const (
	// versionPage is how many versions of a document are listed at once.
	versionPage = 100
	// maxPicture is the largest file that is shown as an image.
	maxPicture = 16 << 20
	// sniffed is how much of a file is checked to determine its type.
	sniffed = 8 << 10
)

// documentPage is a version of a linked document, and the list of all of them.
type documentPage struct {
	page.Layout
	S        server.Session
	Heading  string
	Back     string
	Document server.Document
	Name     string
	Version  server.Version
	Newest   bool
	Latest   string // address of the newest version
	Lines    string // where the tool is that made it
	Content  content
	Source   string // address of the text of what is shown rendered, or the other way round
	Rendered bool
	Versions []versionRow
	Earlier  string  // more of them
	Compare  string  // address of the form
	Hidden   []field // its fields
	Download string
	MayAsk   bool
	Action   string
}

type versionRow struct {
	server.Version
	URL, Lines string
	On         bool // is shown
	A, B       bool // is chosen to be compared
}

// content is a file as a page shows it. Kind says which field is set: "md" or "code" HTML, "image" Image, "binary"
// none, "none" Words, which say why the content is missing.
type content struct {
	Kind  string
	HTML  template.HTML
	Image template.URL
	Words string
	Size  int64
	More  int64
}

// document is GET /sessions/{id}/document?path&version&source&before: a linked document as it was in a version, the
// newest without one, and its versions.
func (v *Viewer) document(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s, q := requested(r), r.URL.Query()
	p := documentPage{Rendered: q.Get("source") == ""}
	if err := v.findDocument(r.Context(), who, &p, &s, q.Get("path")); err != nil {
		return err
	}
	ref, scope := server.Ref{Stream: p.S.ID}, server.ScopeOf(who.User)
	list, err := v.store.Versions(r.Context(), scope, ref, p.Document.Path,
		server.VersionPage{Before: page.Number(q.Get("before"), 0), Limit: versionPage})
	if err != nil {
		return err
	}
	if p.Version, p.Content, err = v.content(r.Context(), scope, ref, &p, page.Number(q.Get("version"), 0)); err != nil {
		return err
	}
	p.Newest, p.Latest = p.Version.N == p.Document.Versions, v.Base+s.DocumentPath(p.Document.Path)
	v.listVersions(&p, s, list)
	at := strconv.FormatInt(p.Version.N, 10)
	p.Download = v.Base + s.Path("/document/bytes", "path", p.Document.Path, "version", at)
	switch {
	case p.Content.Kind == "image":
		p.Content.Image = template.URL(v.Base + s.Path("/document/image", "path", p.Document.Path, "version", at))
	case markdownName(p.Name) && p.Rendered:
		p.Source = v.Base + s.DocumentPath(p.Document.Path, "version", at, "source", "1")
	case markdownName(p.Name):
		p.Source = v.Base + s.DocumentPath(p.Document.Path, "version", at)
	}
	if p.Version.Line >= 0 {
		p.Lines = v.Base + s.LinePath(p.Version.Line)
	}
	p.Layout = v.Layout(r, who, p.Name, "sessions")
	v.Render(w, http.StatusOK, "document.html", p)
	return nil
}

// findDocument finds the session and the document that a request names.
func (v *Viewer) findDocument(ctx context.Context, who server.Login, p *documentPage, s *thread.Stream,
	name string) error {
	var h header
	if err := v.head(ctx, who, &h, s, 0); err != nil {
		return err
	}
	p.S, p.Heading = h.S, h.Heading
	list, err := v.store.Documents(ctx, server.ScopeOf(who.User), server.Ref{Stream: p.S.ID})
	if err != nil {
		return err
	}
	for _, d := range list {
		if d.Path == name {
			p.Document, p.Name = d, path.Base(d.Path)
			p.Back, p.Action = v.Base+s.Path("")+"#documents", v.Base+s.Path("/documents")
			p.MayAsk = mayAsk(who.User, p.S)
			return nil
		}
	}
	return server.ErrNotFound
}

// listVersions makes the rows of the list. The version shown and the one before it are chosen to be compared.
func (v *Viewer) listVersions(p *documentPage, s thread.Stream, list server.Versions) {
	p.Compare, p.Hidden = asForm(v.Base + s.Path("/document/compare", "path", p.Document.Path))
	for _, x := range list.List {
		row := versionRow{Version: x, URL: v.Base + s.DocumentPath(p.Document.Path, "version", strconv.FormatInt(x.N, 10)),
			On: x.N == p.Version.N}
		row.B, row.A = row.On, x.N == p.Version.N-1
		if x.Line >= 0 {
			row.Lines = v.Base + s.LinePath(x.Line)
		}
		p.Versions = append(p.Versions, row)
	}
	if list.Next > 0 {
		p.Earlier = v.Base + s.DocumentPath(p.Document.Path, "version", strconv.FormatInt(p.Version.N, 10),
			"before", strconv.FormatInt(list.Next, 10))
	}
}

// content reads a version as far as a page shows it.
func (v *Viewer) content(ctx context.Context, scope server.Scope, ref server.Ref, p *documentPage,
	n int64) (server.Version, content, error) {
	if p.Document.Versions == 0 {
		return server.Version{Line: -1}, content{Kind: "none", Words: "Its content has not been received yet."}, nil
	}
	version, from, err := v.store.Content(ctx, scope, ref, p.Document.Path, n)
	if errors.Is(err, server.ErrNoContent) {
		return version, content{Kind: "none", Words: missing(version), Size: version.Size}, nil
	}
	if err != nil {
		return version, content{}, err
	}
	c, err := show(from, p.Name, version.Size, p.Rendered)
	return version, c, err
}

// missing says why a version's content is not here.
func missing(x server.Version) string {
	switch {
	case x.Change == "deleted":
		return "The file was deleted."
	case x.TooLarge:
		return "The file is larger than the daemon’s document_cap, so its content is not sent."
	}
	return "Its content has not been received yet."
}

// show reads a file named name and prepares it for display. Its bytes determine its type, not its name.
func show(from io.Reader, name string, length int64, rendered bool) (content, error) {
	b, err := io.ReadAll(io.LimitReader(from, thread.FullText+utf8.UTFMax))
	if err != nil {
		return content{}, fmt.Errorf("read a file: %w", err)
	}
	c := content{Kind: "binary", Size: length}
	text, ok := textOf(b, length)
	switch {
	case !ok && length <= maxPicture && thread.ImageKind(b) != "":
		c.Kind = "image"
		return c, nil
	case !ok:
		return c, nil
	}
	head, _ := page.Cut(text, thread.FullText)
	c.More = max(length-int64(len(head)), 0)
	var left int64
	budget := markup.NewBudget()
	c.Kind = "code"
	switch {
	case markdownName(name) && rendered:
		c.HTML, left = budget.Markdown(head)
		c.Kind, c.HTML = "md", template.HTML(below.Replace(string(c.HTML)))
	case strings.Contains(head, "\x1b["): // a terminal's output
		c.HTML, left = budget.ANSI(head)
	default:
		c.HTML, left = budget.Code(head, name)
	}
	c.More += left
	return c, nil
}

// below turns a document's headings into subheadings of the page's own.
var below = strings.NewReplacer("<h1>", "<h2>", "</h1>", "</h2>", "<h2>", "<h3>", "</h2>", "</h3>", "<h3>", "<h4>",
	"</h3>", "</h4>", "<h4>", "<h5>", "</h4>", "</h5>", "<h5>", "<h6>", "</h5>", "</h6>")

// textOf returns the beginning of a file as text; false when it is not text. A character that is cut at the end is left
// out.
func textOf(b []byte, length int64) (string, bool) {
	if int64(len(b)) < length {
		for i := 0; i < utf8.UTFMax && len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]); i++ {
			b = b[:len(b)-1]
		}
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", false
	}
	return string(b), true
}

func markdownName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd":
		return true
	}
	return false
}

// documentBytes is GET /sessions/{id}/document/bytes?path&version: a version's content, to be saved.
func (v *Viewer) documentBytes(w http.ResponseWriter, r *http.Request, who server.Login) error {
	version, from, name, err := v.openDocument(r, who)
	if err != nil {
		return err
	}
	save(w, from, name, version.Size)
	return nil
}

// openDocument opens the content that a request names.
func (v *Viewer) openDocument(r *http.Request,
	who server.Login) (version server.Version, from io.Reader, name string, err error) {
	s, q := requested(r), r.URL.Query()
	var p documentPage
	if err = v.findDocument(r.Context(), who, &p, &s, q.Get("path")); err != nil {
		return version, nil, "", err
	}
	version, from, err = v.store.Content(r.Context(), server.ScopeOf(who.User), server.Ref{Stream: p.S.ID},
		p.Document.Path, page.Number(q.Get("version"), 0))
	if errors.Is(err, server.ErrNoContent) {
		err = server.ErrNotFound
	}
	return version, from, p.Name, err
}

// save answers bytes that a browser saves and does not show.
func save(w http.ResponseWriter, from io.Reader, name string, length int64) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Content-Disposition", `attachment; filename="`+savedName(name)+`"`)
	h.Set("Content-Length", strconv.FormatInt(length, 10))
	if _, err := io.Copy(w, from); err != nil {
		panic(http.ErrAbortHandler) // the response has begun: only closing the connection can report the error
	}
}

// savedName returns a name that is safe in a header, with its extension.
func savedName(name string) string {
	ext := path.Ext(name)
	stem := thread.FileName(strings.TrimSuffix(name, ext))
	if ext = thread.FileName(strings.TrimPrefix(ext, ".")); ext != "" {
		return cmp.Or(stem, "document") + "." + ext
	}
	return cmp.Or(stem, "document")
}

// documentImage is GET /sessions/{id}/document/image?path&version: a version that is an image. Its own policy makes it
// harmless even when it is opened alone.
func (v *Viewer) documentImage(w http.ResponseWriter, r *http.Request, who server.Login) error {
	version, from, _, err := v.openDocument(r, who)
	if err != nil {
		return err
	}
	if version.Size > maxPicture {
		return server.ErrNotFound
	}
	b, err := io.ReadAll(io.LimitReader(from, maxPicture))
	if err != nil {
		return fmt.Errorf("read a file: %w", err)
	}
	kind := thread.ImageKind(b[:min(len(b), sniffed)])
	if kind == "" {
		return server.ErrNotFound
	}
	page.WriteImage(w, kind, b)
	return nil
}

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
