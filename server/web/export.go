package web

import (
	"bufio"
	"context"
	"fmt"
	"html/template"
	"io"
	"maps"
	"mime"
	"net/http"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/derive"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// formats is what a session can be exported as, with the media type of each.
var formats = map[string]string{"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8",
	"json": "application/json", "jsonl": "application/x-ndjson"}

// Export writes the newest view of a session: md and html to read, self-contained and without script; json and jsonl
// with every record as it is. It holds no more than a window of lines in memory. An error before the first byte is
// the store's, or says that there is no such format; a later one leaves the output cut short. It is an api.Exporter.
func (v *Viewer) Export(ctx context.Context, w io.Writer, snap server.Snapshot, format string) error {
	view, err := server.NewestView(snap)
	if err != nil {
		return err
	}
	return v.write(ctx, w, snap, view, format)
}

func (v *Viewer) write(ctx context.Context, w io.Writer, snap server.Snapshot, view server.View, format string) error {
	if format == "jsonl" {
		return thread.WriteLines(ctx, w, snap, view)
	}
	about, err := v.about(ctx, snap.Session())
	if err != nil {
		return err
	}
	switch format {
	case "md":
		return thread.WriteMarkdown(ctx, w, snap, view, about)
	case "html":
		return v.exportHTML(ctx, w, snap, view, about)
	case "json":
		return thread.WriteJSON(ctx, w, snap, view, about)
	}
	return fmt.Errorf("export as %q: no such format; there are md, html, json and jsonl", format)
}

// about reads what an export says of its session. The cost is with its agents.
func (v *Viewer) about(ctx context.Context, x server.Session) (thread.About, error) {
	// Who may read the session may read what it used.
	known, err := derive.Known(ctx, v.store, server.Scope{All: true}, x)
	facts := known.Summary
	models := facts.Models
	if len(models) == 0 && facts.Model != "" {
		models = []string{facts.Model}
	}
	return thread.About{Title: facts.Title, Models: models, Started: facts.Started,
		Ended: facts.Ended, Cost: derive.CostOfAll(v.Prices, known.Usage)}, err
}

// export is GET /sessions/{id}/export?format&generation&epoch&machine.
func (v *Viewer) export(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	format := r.URL.Query().Get("format")
	if formats[format] == "" {
		return page.BadRequestError("A session can be exported as md, html, json or jsonl.")
	}
	return v.download(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		h := w.Header()
		before := h.Clone()
		h.Set("Content-Type", formats[format])
		h.Set("Content-Disposition", mime.FormatMediaType("attachment",
			map[string]string{"filename": thread.FileName(snap.Session().SessionID) + "." + format}))
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		p := &begun{w: w}
		out := bufio.NewWriterSize(p, exportBuffer)
		err := v.write(r.Context(), out, snap, view, format)
		if err == nil {
			err = out.Flush()
		}
		if err != nil && !p.done { // cold storage, for one, cannot be reached
			clear(h)
			maps.Copy(h, before)
			return err
		}
		if err != nil {
			// The status has been sent: only closing the connection can report the error now.
			v.Log.Error("export cut short", "path", r.URL.Path, "error", err)
			panic(http.ErrAbortHandler)
		}
		return nil
	})
}

// download is open for an answer whose reader may be slow: nothing is pinned while lines are written.
func (v *Viewer) download(ctx context.Context, who server.Login, s thread.Stream,
	fn func(server.Snapshot, server.View) error) error {
	open := func(ctx context.Context, scope server.Scope, ref server.Ref) (server.Snapshot, error) {
		return server.OpenDownload(ctx, v.store, scope, ref)
	}
	return openView(ctx, open, server.ScopeOf(who.User), s, fn)
}

// exportBuffer is how much of an export is written at once. As long as nothing is, an error can still be reported.
const exportBuffer = 256 << 10

// begun notes that an answer has begun.
type begun struct {
	w    io.Writer
	done bool
}

func (p *begun) Write(b []byte) (int, error) {
	p.done = true
	return p.w.Write(b)
}

// exportHTML writes one page that needs nothing else. Pictures stand in it.
func (v *Viewer) exportHTML(ctx context.Context, w io.Writer, snap server.Snapshot, view server.View,
	about thread.About) error {
	data := struct {
		S     server.Session
		About thread.About
		Style template.CSS
	}{snap.Session(), about, template.CSS(v.Style())} //nolint:gosec // our own file
	if err := v.Execute(w, "export-head", data); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	err := thread.EachWindow(ctx, snap, view, func(items []thread.Item) error {
		return v.Execute(w, "items", items)
	})
	if err != nil {
		return err
	}
	return v.Execute(w, "export-foot", data)
}
