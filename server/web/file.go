package web

import (
	"context"
	"errors"
	"net/http"
	"path"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// findOverflows looks which of the files are here.
func (v *Viewer) findOverflows(ctx context.Context, who server.Login, s thread.Stream, list []*thread.Overflow) error {
	if len(list) == 0 {
		return nil
	}
	files, err := v.sessionFiles(ctx, who, s)
	if err != nil {
		return err
	}
	for _, x := range list {
		if f, ok := files[x.Name]; ok {
			x.URL, x.Size = v.Base+s.Owner().Path("/file", "name", x.Name), f.Size
		}
	}
	return nil
}

// sessionFiles returns a session's files by name.
func (v *Viewer) sessionFiles(ctx context.Context, who server.Login, s thread.Stream) (map[string]server.Blob, error) {
	list, err := v.store.Blobs(ctx, server.ScopeOf(who.User), s.Owner().Ref())
	if errors.Is(err, server.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]server.Blob{}
	for _, f := range list {
		out[f.Name] = f
	}
	return out, nil
}

// filePage shows a file of a session.
type filePage struct {
	page.Layout
	S        server.Session
	Back     string
	File     server.Blob
	Name     string
	Content  content
	Download string
}

// file is GET /sessions/{id}/file?name&bytes: a file of a session, such as the full text of a tool's result.
func (v *Viewer) file(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s, q := requested(r), r.URL.Query()
	x, err := v.session(r.Context(), who, s)
	if err != nil {
		return err
	}
	p := filePage{S: x}
	s.Pin(p.S)
	files, err := v.sessionFiles(r.Context(), who, s)
	if err != nil {
		return err
	}
	f, ok := files[q.Get("name")]
	if !ok {
		return server.ErrNotFound
	}
	_, from, err := v.store.BlobContent(r.Context(), server.ScopeOf(who.User), f.SHA256)
	if errors.Is(err, server.ErrNoContent) {
		return server.ErrNotFound
	}
	if err != nil {
		return err
	}
	p.File, p.Name = f, path.Base(f.Name)
	if q.Get("bytes") != "" {
		save(w, from, p.Name, f.Size)
		return nil
	}
	if p.Content, err = show(from, p.Name, f.Size, false); err != nil {
		return err
	}
	if p.Content.Kind == "image" {
		p.Content.Kind = "binary"
	}
	p.Back, p.Download = v.Base+s.Path(""), v.Base+s.Path("/file", "name", f.Name, "bytes", "1")
	p.Layout = v.Layout(r, who, p.Name, "sessions")
	v.Render(w, http.StatusOK, "file.html", p)
	return nil
}
