package server

import (
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"
	"unicode/utf8"
)

// checkpointAnswer is a checkpoint on the wire.
type checkpointAnswer struct {
	ID          string    `json:"id"`
	SessionID   string    `json:"session_id"`
	Machine     string    `json:"machine"`
	User        string    `json:"user"`
	PortID      string    `json:"port_id"`
	TokensUsed  int64     `json:"tokens_used"`
	TokenBudget int64     `json:"token_budget"`
	Trigger     string    `json:"trigger_type"`
	ContextHash string    `json:"context_hash"`
	Summary     string    `json:"summary"`
	ActiveFiles []string  `json:"active_files"`
	Created     time.Time `json:"created_at"`
	Generation  int64     `json:"generation"`
	Line        *int64    `json:"line"`
}

func answerCheckpoint(c Checkpoint, names names) checkpointAnswer {
	return checkpointAnswer{c.ID, c.SessionID, c.Machine, names[c.Owner], c.PortID, c.TokensUsed, c.TokenBudget, c.Trigger,
		c.ContextHash, c.Summary, c.ActiveFiles, c.Created, c.Generation, lineOrNull(c.Line)}
}

func lineOrNull(line int64) *int64 {
	if line < 0 {
		return nil
	}
	return &line
}

// listCheckpoints is GET /api/checkpoints?session&after&limit: the latest first.
func (s *Server) listCheckpoints(w http.ResponseWriter, r *http.Request, who Key) error {
	return s.answerCheckpoints(w, r, who, CheckpointQuery{Session: r.URL.Query().Get("session")})
}

// sessionCheckpoints is GET /api/sessions/{id}/checkpoints?machine&after&limit.
func (s *Server) sessionCheckpoints(w http.ResponseWriter, r *http.Request, who Key) error {
	ref := refOf(r)
	return s.answerCheckpoints(w, r, who, CheckpointQuery{Ref: &ref})
}

func (s *Server) answerCheckpoints(w http.ResponseWriter, r *http.Request, who Key, q CheckpointQuery) error {
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	f := newFilter(r.URL.Query(), names)
	q.After, q.Limit = f.text("after"), f.limit()
	if f.err != nil {
		return f.err
	}
	list, err := s.store.Checkpoints(r.Context(), ScopeOf(who.User), q)
	if err != nil {
		return err
	}
	a := struct {
		Checkpoints []checkpointAnswer `json:"checkpoints"`
		Next        *string            `json:"next"` // null on the last page
	}{Checkpoints: make([]checkpointAnswer, 0, len(list.List))}
	for _, c := range list.List {
		a.Checkpoints = append(a.Checkpoints, answerCheckpoint(c, names))
	}
	if list.Next != "" {
		a.Next = &list.Next
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// checkpoint is GET /api/checkpoints/{id}.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request, who Key) error {
	c, err := s.store.Checkpoint(r.Context(), ScopeOf(who.User), r.PathValue("id"))
	if err != nil {
		return err
	}
	names, err := s.names(r.Context())
	if err != nil {
		return err
	}
	s.answer(w, http.StatusOK, answerCheckpoint(c, names))
	return nil
}

// documentAnswer is a document on the wire.
type documentAnswer struct {
	Path       string     `json:"path"`
	Linked     bool       `json:"linked"`
	AddedAt    *time.Time `json:"added_at"`
	AddedBy    string     `json:"added_by"`
	UnlinkedAt *time.Time `json:"unlinked_at"`
	ChangedAt  *time.Time `json:"changed_at"`
	ChangedBy  string     `json:"changed_by"`
	Versions   int64      `json:"versions"`
	Size       int64      `json:"size"`
	SHA256     string     `json:"sha256"`
	Deleted    bool       `json:"deleted"`
	TooLarge   bool       `json:"too_large"`
	Stored     bool       `json:"stored"`
}

// documents is GET /api/sessions/{id}/documents?machine.
func (s *Server) documents(w http.ResponseWriter, r *http.Request, who Key) error {
	list, err := s.store.Documents(r.Context(), ScopeOf(who.User), refOf(r))
	if err != nil {
		return err
	}
	a := struct {
		Documents []documentAnswer `json:"documents"`
	}{make([]documentAnswer, 0, len(list))}
	for _, d := range list {
		a.Documents = append(a.Documents, documentAnswer{d.Path, d.Linked, momentOrNull(d.AddedAt), d.AddedBy,
			momentOrNull(d.UnlinkedAt), momentOrNull(d.ChangedAt), d.ChangedBy, d.Versions, d.Size, d.SHA256, d.Deleted,
			d.TooLarge, d.Stored})
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// versionAnswer is a version on the wire.
type versionAnswer struct {
	Version  int64     `json:"version"`
	At       time.Time `json:"at"`
	Change   string    `json:"change"`
	By       string    `json:"by"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	TooLarge bool      `json:"too_large"`
	Stored   bool      `json:"stored"`
	Line     *int64    `json:"line"`
	Epoch    string    `json:"epoch"`
}

// versions is GET /api/sessions/{id}/documents/{path}/versions?machine&before&limit: the newest first.
func (s *Server) versions(w http.ResponseWriter, r *http.Request, who Key) error {
	f := newFilter(r.URL.Query(), nil)
	page := VersionPage{Limit: f.limit()}
	if f.err != nil {
		return f.err
	}
	var err error
	if page.Before, err = number(r.URL.Query(), "before", 0); err != nil || page.Before < 0 {
		return badRequest("bad_query", "before is not a number from 0")
	}
	list, err := s.store.Versions(r.Context(), ScopeOf(who.User), refOf(r), r.PathValue("path"), page)
	if err != nil {
		return err
	}
	a := struct {
		Versions []versionAnswer `json:"versions"`
		Next     *int64          `json:"next"` // before of the next page; null on the last
	}{Versions: make([]versionAnswer, 0, len(list.List))}
	for _, v := range list.List {
		a.Versions = append(a.Versions, versionAnswer{v.N, v.At, v.Change, v.By, v.Size, v.SHA256, v.TooLarge, v.Stored,
			lineOrNull(v.Line), v.Epoch})
	}
	if list.Next != 0 {
		a.Next = &list.Next
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// document is GET /api/sessions/{id}/documents/{path}?machine&version: its content as it was.
func (s *Server) document(w http.ResponseWriter, r *http.Request, who Key) error {
	n, err := number(r.URL.Query(), "version", 0)
	if err != nil || n < 0 {
		return badRequest("bad_query", "version is not a number from 0")
	}
	name := r.PathValue("path")
	v, content, err := s.store.Content(r.Context(), ScopeOf(who.User), refOf(r), name, n)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Ccship-Version", strconv.FormatInt(v.N, 10))
	return s.serveFile(w, r, name, v.Size, content)
}

// listBlobs is GET /api/sessions/{id}/blobs?machine: its files, by name.
func (s *Server) listBlobs(w http.ResponseWriter, r *http.Request, who Key) error {
	list, err := s.store.Blobs(r.Context(), ScopeOf(who.User), refOf(r))
	if err != nil {
		return err
	}
	type listed struct {
		SHA256 string    `json:"sha256"`
		Name   string    `json:"name"`
		Media  string    `json:"media_type"`
		Size   int64     `json:"size"`
		Stored time.Time `json:"stored_at"`
	}
	a := make([]listed, 0, len(list))
	for _, b := range list {
		a = append(a, listed{b.SHA256, b.Name, b.Media, b.Size, b.Stored})
	}
	s.answer(w, http.StatusOK, a)
	return nil
}

// blob is GET /api/blobs/{sha256}: a file's bytes.
func (s *Server) blob(w http.ResponseWriter, r *http.Request, who Key) error {
	b, content, err := s.store.BlobContent(r.Context(), ScopeOf(who.User), r.PathValue("sha256"))
	if err != nil {
		return err
	}
	return s.serveFile(w, r, b.Name, b.Size, content)
}

// sniffed is how much of a file is looked at to tell text from other bytes.
const sniffed = 64 << 10

// serveFile sends somebody's file so that no browser does anything with it: as text or as bytes, whatever it is or says
// it is, to be saved and not shown, and with nothing allowed if it is shown all the same.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string, size int64, content io.Reader) error {
	first := make([]byte, min(size, sniffed))
	if _, err := io.ReadFull(content, first); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if isText(first, size) {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	err := s.write(w, first)
	buf := make([]byte, rawChunk)
	for rest := size - int64(len(first)); err == nil && rest > 0; {
		n := min(rest, rawChunk)
		if _, err = io.ReadFull(content, buf[:n]); err == nil {
			err = s.write(w, buf[:n])
		}
		rest -= n
	}
	if err != nil {
		// The status has been sent; only a cut connection can tell the client now.
		s.logOf(r).Error("answer cut short", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// isText says whether bytes, the first of size, are UTF-8 without NUL. The last character may be cut.
func isText(b []byte, size int64) bool {
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		if c == 0 || c == utf8.RuneError && n == 1 {
			return int64(len(b)) < utf8.UTFMax && size > sniffed && !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}
