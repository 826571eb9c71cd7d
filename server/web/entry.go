package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/markup"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

// maxRaw is how much of a line's JSON a page shows; the bytes can be had whole.
const maxRaw = 1 << 20

// entryPage is one line: its meaning, its origin and its bytes.
type entryPage struct {
	page.Layout
	S          server.Session
	Epoch      server.Epoch
	Back       string
	Bytes      string
	Prev, Next string
	Items      []thread.Item
	Line       int64
	Kind       string
	Generation int64
	Shown      int64 // generation that is looked at
	Length     int64
	Offset     int64 // in the file; -1: not known
	Received   time.Time
	Sum        string
	Raw        template.HTML
	RawMore    int64
}

// entry is GET /sessions/{id}/entry/{line}: everything known about a line.
func (v *Viewer) entry(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	p, err := v.readEntry(r, who)
	if err != nil {
		return err
	}
	s.Pin(p.S)
	p.Layout = v.Layout(r, who, fmt.Sprintf("Line %d", p.Line+1), "sessions")
	if p.Received, err = v.store.Received(r.Context(), p.S.ID, p.Epoch.ID, p.Generation, p.Line); err != nil {
		return err
	}
	p.Back, p.Bytes = v.Base+s.LinePath(p.Line), v.Base+s.Path("/bytes/"+strconv.FormatInt(p.Line, 10))
	p.Next = v.Base + s.Path("/entry/"+strconv.FormatInt(p.Line+1, 10))
	if p.Line > 0 {
		p.Prev = v.Base + s.Path("/entry/"+strconv.FormatInt(p.Line-1, 10))
	}
	v.Render(w, http.StatusOK, "entry.html", p)
	return nil
}

// number returns the line that a request names.
func number(r *http.Request) (int64, error) {
	line, err := strconv.ParseInt(r.PathValue("line"), 10, 64)
	if err != nil || line < 0 {
		return 0, server.ErrNotFound
	}
	return line, nil
}

// readEntry reads everything about the line that a request names.
func (v *Viewer) readEntry(r *http.Request, who server.Login) (p entryPage, err error) {
	line, err := number(r)
	if err != nil {
		return p, err
	}
	s := requested(r)
	var b *thread.Builder
	err = v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) (err error) {
		p.S, p.Shown, p.Epoch = snap.Session(), view.Generation.Number, epochOf(snap, s)
		s.Pin(p.S)
		b = thread.NewBuilder(v.Base, s, thread.Everything)
		b.Full, b.Seen = true, func(l server.Line) { p.stored(l, b.Budget().Half()) }
		if b.Story, err = thread.ReadStory(r.Context(), snap, view); err != nil {
			return err
		}
		w, err := b.Fill(r.Context(), snap, view, line, line+1)
		if err != nil {
			return err
		}
		if len(w.Lines) == 0 {
			return server.ErrNotFound
		}
		p.Items, p.Generation = b.Done(), w.Lines[0].Generation
		p.Offset, err = thread.Offset(r.Context(), snap, view, line)
		return err
	})
	if err == nil {
		err = v.findOverflows(r.Context(), who, s, b.Overflows)
	}
	return p, err
}

// stored shows the bytes of the line.
func (p *entryPage) stored(l server.Line, budget *markup.Budget) {
	p.Length, p.Kind, p.Line = l.Size(), l.Kind.String(), l.Index
	if l.Cut == 0 {
		sum := sha256.Sum256(l.Raw)
		p.Sum = hex.EncodeToString(sum[:])
	}
	p.Raw, p.RawMore = budget.JSON(l.Raw, maxRaw)
	p.RawMore += l.Cut
}

// bytes is GET /sessions/{id}/bytes/{line}: the line exactly as it is in the file, without its newline.
func (v *Viewer) bytes(w http.ResponseWriter, r *http.Request, who server.Login) error {
	line, err := number(r)
	if err != nil {
		return err
	}
	return v.download(r.Context(), who, requested(r), func(snap server.Snapshot, view server.View) error {
		begun := false
		write := func(l server.Line) error {
			if h := w.Header(); !begun {
				h.Set("Content-Type", "application/octet-stream")
				h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-line-%d.json"`,
					thread.FileName(snap.Session().SessionID), line+1))
				h.Set("Content-Length", strconv.FormatInt(l.Size(), 10))
			}
			begun = true
			_, err := w.Write(l.Raw)
			return err
		}
		err := server.ErrNotFound
		for _, span := range view.Between(line, min(line+1, view.Total)) {
			err = server.Pieces(r.Context(), snap, span.Generation, line, write)
		}
		if begun && err != nil {
			panic(http.ErrAbortHandler) // the browser is gone, or the line is: the answer is shorter than it says
		}
		return err
	})
}

// epochOf returns the epoch that is looked at.
func epochOf(snap server.Snapshot, s thread.Stream) server.Epoch {
	name := cmp.Or(s.Epoch, snap.Session().Epoch)
	for _, e := range snap.Epochs() {
		if e.Name == name {
			return e
		}
	}
	return server.Epoch{Name: name}
}

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

// maxMeta is the longest file about an agent that is read, in bytes.
const maxMeta = 64 << 10

// agentMeta is the content of the metadata file next to an agent's transcript.
type agentMeta struct {
	Type        string `json:"agentType"`
	Description string `json:"description"`
	Worktree    string `json:"worktreePath"`
}

// agentOf reads an agent's metadata file. It returns nothing for other sessions, or when the file is not stored.
func (v *Viewer) agentOf(ctx context.Context, who server.Login, s thread.Stream) (m agentMeta, err error) {
	_, name, found := strings.Cut(s.ID, "/")
	if !found {
		return m, nil
	}
	files, err := v.sessionFiles(ctx, who, s)
	if err != nil {
		return m, err
	}
	for path, f := range files {
		if !strings.HasPrefix(path, "subagents/") || !strings.HasSuffix(path, "/"+name+".meta.json") || f.Size > maxMeta {
			continue
		}
		_, from, err := v.store.BlobContent(ctx, server.ScopeOf(who.User), f.SHA256)
		if errors.Is(err, server.ErrNotFound) || errors.Is(err, server.ErrNoContent) {
			return m, nil
		}
		if err != nil {
			return m, err
		}
		b, err := io.ReadAll(from)
		if err != nil {
			return m, fmt.Errorf("read about agent: %w", err)
		}
		_ = json.Unmarshal(b, &m) // a member of another kind leaves its field empty
		return m, nil
	}
	return m, nil
}
