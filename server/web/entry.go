package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
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
