package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/format"
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
	l, p, err := v.readLine(r, who, true)
	if err != nil {
		return err
	}
	s.Pin(p.S)
	p.Layout = v.Layout(r, who, fmt.Sprintf("Line %d", l.Index+1), "sessions")
	sum := sha256.Sum256(l.Raw)
	p.Sum, p.Length, p.Kind, p.Line = hex.EncodeToString(sum[:]), int64(len(l.Raw)), l.Kind.String(), l.Index
	if p.Received, err = v.store.Received(r.Context(), p.S.ID, p.Epoch.ID, l.Generation, l.Index); err != nil {
		return err
	}
	p.Generation = l.Generation
	p.Back, p.Bytes = v.Base+s.LinePath(l.Index), v.Base+s.Path("/bytes/"+strconv.FormatInt(l.Index, 10))
	p.Next = v.Base + s.Path("/entry/"+strconv.FormatInt(l.Index+1, 10))
	if l.Index > 0 {
		p.Prev = v.Base + s.Path("/entry/"+strconv.FormatInt(l.Index-1, 10))
	}
	p.Raw, p.RawMore = pretty(l.Raw)
	v.Render(w, http.StatusOK, "entry.html", p)
	return nil
}

// pretty is a line's JSON, indented; other text as it is.
func pretty(raw []byte) (template.HTML, int64) {
	var b bytes.Buffer
	if len(raw) > maxRaw || json.Indent(&b, raw, "", "  ") != nil {
		b.Reset()
		b.Write(raw)
	}
	head, more := format.Cut(b.String(), maxRaw)
	return markup.NewHighlighter(thread.HighlightBytes, thread.HighlightTime).Code(head, "json"), more
}

// readLine reads the line that a request names, and when it is asked for, its meaning and its place in the file.
func (v *Viewer) readLine(r *http.Request, who server.Login,
	meaning bool) (l thread.StoredLine, p entryPage, err error) {
	line, err := strconv.ParseInt(r.PathValue("line"), 10, 64)
	if err != nil || line < 0 {
		return l, p, server.ErrNotFound
	}
	s := requested(r)
	var spills []*thread.Overflow
	err = v.open(r.Context(), who, s, func(snap server.Snapshot, view server.View) error {
		if l, err = thread.ReadLine(r.Context(), snap, view, line); err != nil {
			return err
		}
		p.S, p.Shown = snap.Session(), view.Generation.Number
		p.Epoch = epochOf(snap, s)
		if !meaning {
			return nil
		}
		s.Pin(p.S)
		b := thread.NewBuilder(v.Base, s, thread.Everything)
		b.Full = true
		if b.Story, err = thread.ReadStory(r.Context(), snap, view); err != nil {
			return err
		}
		if _, err := b.Fill(r.Context(), snap, view, line, line+1); err != nil {
			return err
		}
		p.Items, spills = b.Done(), b.Overflows
		p.Offset, err = thread.Offset(r.Context(), snap, view, line)
		return err
	})
	if err == nil {
		s.Pin(p.S)
		err = v.findOverflows(r.Context(), who, s, spills)
	}
	return l, p, err
}

// bytes is GET /sessions/{id}/bytes/{line}: the line exactly as it is in the file, without its newline.
func (v *Viewer) bytes(w http.ResponseWriter, r *http.Request, who server.Login) error {
	l, p, err := v.readLine(r, who, false)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-line-%d.json"`,
		thread.FileName(p.S.SessionID), l.Index+1))
	h.Set("Content-Length", strconv.Itoa(len(l.Raw)))
	_, _ = w.Write(l.Raw) // the browser may be gone
	return nil
}

// epochOf is the epoch that is looked at.
func epochOf(snap server.Snapshot, s thread.Stream) server.Epoch {
	name := cmp.Or(s.Epoch, snap.Session().Epoch)
	for _, e := range snap.Epochs() {
		if e.Name == name {
			return e
		}
	}
	return server.Epoch{Name: name}
}
