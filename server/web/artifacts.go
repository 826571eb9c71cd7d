package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/server/web/thread"
)

const (
	checkpointPage = 200
	// maxMarks is how many checkpoints the context chart shows; fewCheckpoints how many a conversation page lists.
	maxMarks       = 400
	fewCheckpoints = 8
	// maxWaiting is how many link requests a page lists.
	maxWaiting = 8
	// pathBytes is how long the names of documents on a page are in all, and those of files at checkpoints.
	pathBytes = 64 << 10
	// showAnswered is how long an answered link request stays on the page.
	showAnswered = 15 * time.Minute
)

// artifacts are what a session has besides its lines: checkpoints, linked documents and link requests.
type artifacts struct {
	Checkpoints  []checkpointRow
	More         bool // checkpoints
	Documents    []chip
	Further      int64 // documents that are not shown
	LinkRequests []linkRequestRow
	MayAsk       bool   // the reader may link and unlink
	Piece        string // address of the artifacts alone, without a page
	Action       string // of the form
	Context      string
}

// checkpointRow is a checkpoint with a link to its line.
type checkpointRow struct {
	server.Checkpoint
	Name    string // of its trigger
	Files   int64  // of which ActiveFiles has the first
	Percent int64
	URL     string // "": its line is unknown
	Past    bool   // its line is no longer in the file
}

// chip is a linked document at the session's head.
type chip struct {
	server.Document
	Name string // its last element
	URL  string
}

// linkRequestRow is a request of the reader to link or unlink a document.
type linkRequestRow struct {
	server.LinkRequest
	Where string
}

// artifactsOf reads a session's artifacts into h, with at most so many checkpoints. head has set s and h before.
func (v *Viewer) artifactsOf(ctx context.Context, who server.Login, h *header, s thread.Stream, checkpoints int) error {
	scope := server.ScopeOf(who.User)
	p := &h.Artifacts
	p.Piece, p.Context, p.Action = v.Base+s.Full().Path("/artifacts"), v.Base+s.Path("/context"),
		v.Base+s.Path("/documents")
	p.MayAsk = mayAsk(who.User, h.S)
	list, more, err := v.mostCheckpoints(ctx, scope, h.S.ID, checkpoints)
	if err != nil {
		return err
	}
	p.More = more
	left := pathBytes
	for _, c := range list {
		row := v.checkpoint(c, s, h.View)
		for i, file := range c.ActiveFiles {
			if left -= len(file); left < 0 {
				row.ActiveFiles = c.ActiveFiles[:i]
				break
			}
		}
		p.Checkpoints = append(p.Checkpoints, row)
	}
	h.Facts.Limit = budget(h.Facts.Limit, p.Checkpoints)
	ref := server.Ref{Stream: h.S.ID}
	documents, err := v.store.Documents(ctx, scope, ref)
	if err != nil && !errors.Is(err, server.ErrNotFound) {
		return err
	}
	left = pathBytes
	for _, d := range documents {
		if left -= len(d.Path); d.Linked && left < 0 {
			p.Further++
		} else if d.Linked {
			p.Documents = append(p.Documents, chip{d, path.Base(d.Path), v.Base + s.DocumentPath(d.Path)})
		}
	}
	if h.Agent, err = v.agentOf(ctx, who, s); err != nil || !p.MayAsk {
		return err
	}
	requests, err := v.store.LinkRequests(ctx, scope, ref)
	if err != nil && !errors.Is(err, server.ErrNotFound) {
		return err
	}
	p.LinkRequests = v.recent(requests, h.S)
	return nil
}

// mayAsk reports whether a reader may request links: the session's own user and owners may. Sessions of plain clients
// have no daemon to link documents, and agents have no documents of their own.
func mayAsk(u server.User, s server.Session) bool {
	return s.Machine != "" && s.Parent == "" &&
		(u.Role == server.Owner || u.Role == server.Member && u.ID != 0 && u.ID == s.Owner)
}

// recent lists the newest request of each path, until some time after its answer.
func (v *Viewer) recent(list []server.LinkRequest, s server.Session) []linkRequestRow {
	var out []linkRequestRow
	seen := map[string]bool{}
	for _, w := range list {
		if seen[w.Path] || len(out) == maxWaiting {
			continue
		}
		seen[w.Path] = true
		if w.State == server.LinkRequestWaiting || v.Now().Sub(w.Answered) < showAnswered {
			out = append(out, linkRequestRow{w, cmp.Or(w.Host, s.Host, w.Machine)})
		}
	}
	return out
}

// checkpoint finds the line of a checkpoint: in this view, or in the older generation it was made in.
func (v *Viewer) checkpoint(c server.Checkpoint, s thread.Stream, view server.View) checkpointRow {
	row := checkpointRow{Checkpoint: c, Name: triggerOf(c.Trigger).name, Files: int64(len(c.ActiveFiles)),
		Percent: page.Percent(c.TokensUsed, c.TokenBudget)}
	if c.Line < 0 {
		return row
	}
	row.Past = true
	for _, span := range view.Between(c.Line, c.Line+1) {
		row.Past = span.Generation > c.Generation
	}
	if row.Past {
		if c.Generation > view.Generation.Number {
			return row
		}
		s.Generation = c.Generation
	}
	row.URL = v.Base + s.LinePath(c.Line)
	return row
}

// trigger is what made a checkpoint: in words, and as the class and the glyph of its pin in the context chart.
type trigger struct{ name, class, glyph string }

func triggerOf(name string) trigger {
	known := map[string]trigger{"auto_80": {"80 % reached", "m0", "80"}, "auto_90": {"90 % reached", "m1", "90"},
		"compact": {"compaction", "m2", "C"}, "manual": {"by hand", "m3", "M"},
		"pre_heavy": {"before heavy work", "m4", "H"}}
	if t, ok := known[name]; ok {
		return t
	}
	return trigger{strings.ReplaceAll(name, "_", " "), "m3", "·"}
}

// artifactsPiece is GET /sessions/{id}/artifacts: what an open page fetches when artifacts change.
func (v *Viewer) artifactsPiece(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	p := contextPage{}
	if err := v.head(r.Context(), who, &p.header, &s, fewCheckpoints); err != nil {
		return err
	}
	v.Render(w, http.StatusOK, "artifacts.html", p)
	return nil
}

// maxPath is the longest path that can be asked for, in bytes.
const maxPath = 4096

// requestLink is POST /sessions/{id}/documents with path and do: asks the daemon to link or unlink a document.
func (v *Viewer) requestLink(w http.ResponseWriter, r *http.Request, who server.Login) error {
	s := requested(r)
	x, err := v.session(r.Context(), who, s)
	if err != nil {
		return err
	}
	if !mayAsk(who.User, x) {
		return server.ErrNotFound
	}
	ask := server.LinkRequestInput{Path: r.PostForm.Get("path"), Link: r.PostForm.Get("do") != "unlink",
		By: who.User.ID, At: v.Now()}
	if ask.Link { // it was typed
		ask.Path = strings.TrimSpace(ask.Path)
	}
	if ask.Path == "" || len(ask.Path) > maxPath {
		return page.BadRequestError("Enter the path of a file in the session’s working directory, such as docs/plan.md.")
	}
	_, err = v.store.RequestLink(r.Context(), server.ScopeOf(who.User), server.Ref{Stream: x.ID}, ask)
	switch {
	case errors.Is(err, server.ErrBadPath):
		return page.BadRequestError(
			"The path must be relative to the session’s working directory and stay inside it, such as docs/plan.md.")
	case errors.Is(err, server.ErrNoDaemon):
		return page.BadRequestError("No ccship daemon sends this session, so it has no documents to link.")
	case errors.Is(err, server.ErrTooManyLinkRequests):
		return page.BadRequestError("Too many link requests are waiting for " + cmp.Or(x.Host, x.Machine) +
			". They are carried out when ccship runs there.")
	case err != nil:
		return err
	}
	s.Pin(x)
	http.Redirect(w, r, v.Base+s.Path("")+"#documents", http.StatusSeeOther)
	return nil
}
