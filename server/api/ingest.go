package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

type ingestAnswer struct {
	Success       bool `json:"success"`
	EntriesStored int  `json:"entries_stored"`
	Forgotten     bool `json:"forgotten,omitempty"` // the session was forgotten: nothing of it is stored any more
}

// ingest is POST /api/conversations. It answers once everything is durable.
func (s *Server) ingest(w http.ResponseWriter, r *http.Request, who server.Key) error {
	pass, err := s.intake.Enter(r, who.User.ID, s.Patience)
	if err != nil {
		return err
	}
	defer pass.Leave()
	buf, err := s.bodies.Read(w, r, s.MaxBody)
	if err != nil {
		return err
	}
	defer buf.Release()
	pass.Resize(int64(buf.Len()))
	batch, err := wire.ParseLines(buf.Bytes())
	if err != nil {
		return err
	}
	batch.Received, batch.Owner, batch.Quota = time.Now(), who.User.ID, s.Quota.For(who.User)
	if batch.Head.Writer, err = writerOf(r); err != nil {
		return err
	}
	// A bare client that sends no lines changes nothing; with the extension that is a rewind.
	if len(batch.Lines) > 0 || batch.Head.Epoch != "" {
		err := s.store.writes.Put(r.Context(), batch)
		if errors.Is(err, server.ErrForgotten) {
			s.announceLinkRequests(w, r, who, batch.Head.Machine)
			// Acknowledge, so that the client continues with other sessions.
			s.answer(w, http.StatusOK, ingestAnswer{Success: true, Forgotten: true})
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.counts.Ingested(batch)
	announceLedger(w, batch.Head.Receipt)
	s.announceLinkRequests(w, r, who, batch.Head.Machine)
	s.answer(w, http.StatusOK, ingestAnswer{Success: true, EntriesStored: len(batch.Lines)})
	return nil
}

// readItems reads a request of checkpoints or documents.
func readItems[B any](s *Server, w http.ResponseWriter, r *http.Request,
	parse func([]byte) (B, error)) (b B, err error) {
	body, err := s.bodies.Read(w, r, wire.MaxItemsBody)
	if err != nil {
		return b, err
	}
	defer body.Release()
	return parse(body.Bytes())
}

type storedAnswer struct {
	Success   bool `json:"success"`
	Stored    int  `json:"stored"`
	Forgotten bool `json:"forgotten,omitempty"` // the session was forgotten: nothing of it is stored any more
}

// answerStored acknowledges n items, also those of a forgotten session, so that the client continues with other
// sessions.
func (s *Server) answerStored(w http.ResponseWriter, r *http.Request, who server.Key, h server.Head, n int,
	err error) error {
	gone := errors.Is(err, server.ErrForgotten)
	if err != nil && !gone {
		return err
	}
	if gone {
		n = 0
	}
	announceLedger(w, h.Receipt)
	s.announceLinkRequests(w, r, who, h.Machine)
	s.answer(w, http.StatusOK, storedAnswer{true, n, gone})
	return nil
}

// offsetAnswer is where an upload continues.
type offsetAnswer struct {
	Offset    int64 `json:"offset"`
	Complete  *bool `json:"complete,omitempty"`  // of start: nothing needs to be sent
	Forgotten bool  `json:"forgotten,omitempty"` // of start and end: the session was forgotten, the file is not wanted
}

// startBlob is POST /api/blobs/{sha256}/start.
func (s *Server) startBlob(w http.ResponseWriter, r *http.Request, who server.Key) error {
	u, err := s.readUpload(w, r, who)
	if err != nil {
		return err
	}
	have, complete, err := s.store.writes.StartBlob(r.Context(), u)
	gone := errors.Is(err, server.ErrForgotten)
	if gone {
		have, complete, err = u.Size, true, nil
	}
	if err != nil {
		return s.refuseUpload(w, err)
	}
	announceLedger(w, u.Head.Receipt)
	s.announceLinkRequests(w, r, who, u.Head.Machine)
	s.answer(w, http.StatusOK, offsetAnswer{have, &complete, gone})
	return nil
}

func (s *Server) readUpload(w http.ResponseWriter, r *http.Request, who server.Key) (*server.Upload, error) {
	body, err := s.bodies.Read(w, r, wire.MaxUploadBody)
	if err != nil {
		return nil, err
	}
	defer body.Release()
	u, err := wire.ParseUpload(body.Bytes(), r.PathValue("sha256"))
	if err != nil {
		return nil, err
	}
	u.Owner, u.Quota, u.At = who.User.ID, s.Quota.For(who.User), time.Now()
	u.Head.Writer, err = writerOf(r)
	return u, err
}

// putBlob is PUT /api/blobs/{sha256}?offset=N with the bytes from there on, MaxChunk at most.
func (s *Server) putBlob(w http.ResponseWriter, r *http.Request, who server.Key) error {
	raw, err := wire.ParseSum(r.PathValue("sha256"))
	if err != nil {
		return err
	}
	offset, err := numberOf(r.URL.Query(), "offset", -1)
	if err != nil || offset < 0 {
		return wire.BadRequest("bad_query", "offset is not a number from 0")
	}
	buf, err := s.bodies.Read(w, r, server.MaxChunk)
	if err != nil {
		return err
	}
	defer buf.Release()
	have, err := s.store.writes.PutBlob(r.Context(), who.User.ID, [32]byte(raw), offset, buf.Bytes(), time.Now())
	if err != nil {
		return s.refuseUpload(w, err)
	}
	s.counts.Artifacts(0, 0, 0, int64(buf.Len()))
	s.answer(w, http.StatusOK, offsetAnswer{Offset: have})
	return nil
}

// endBlob is POST /api/blobs/{sha256}/end.
func (s *Server) endBlob(w http.ResponseWriter, r *http.Request, who server.Key) error {
	u, err := s.readUpload(w, r, who)
	if err != nil {
		return err
	}
	err = s.store.writes.EndBlob(r.Context(), u)
	gone := errors.Is(err, server.ErrForgotten)
	if err != nil && !gone {
		return s.refuseUpload(w, err)
	}
	if !gone {
		s.counts.Artifacts(0, 0, 1, 0)
	}
	announceLedger(w, u.Head.Receipt)
	s.announceLinkRequests(w, r, who, u.Head.Machine)
	s.answer(w, http.StatusOK, storedAnswer{true, 1, gone})
	return nil
}

// refuseUpload answers an *OffsetError with the offset; it returns other errors, as refusals where possible.
func (s *Server) refuseUpload(w http.ResponseWriter, err error) error {
	switch at, ok := errors.AsType[*server.OffsetError](err); {
	case ok:
		a := struct {
			Offset int64 `json:"offset"`
			errorAnswer
		}{Offset: at.Have}
		a.Error.Code, a.Error.Message = "wrong_offset", at.Error()
		if at.Wrong {
			a.Error.Code = "wrong_hash"
		}
		s.answer(w, http.StatusConflict, a)
		return nil
	case errors.Is(err, server.ErrSize):
		return wire.BadRequest("wrong_size", server.ErrSize.Error())
	case errors.Is(err, server.ErrTooManyUploads):
		return wire.Refuse(http.StatusServiceUnavailable, "busy", server.ErrTooManyUploads.Error())
	}
	return err
}

// listBlobs is GET /api/sessions/{id}/blobs?machine: its files, by name.
func (s *Server) listBlobs(r *http.Request, who server.Key) (any, error) {
	blobs, err := s.store.artifacts.Blobs(r.Context(), server.ScopeOf(who.User), refOf(r))
	if err != nil {
		return nil, err
	}
	return orEmpty(blobs), nil
}

// blob is GET /api/blobs/{sha256}: a file's bytes.
func (s *Server) blob(w http.ResponseWriter, r *http.Request, who server.Key) error {
	b, content, err := s.store.artifacts.BlobContent(r.Context(), server.ScopeOf(who.User), r.PathValue("sha256"))
	if err != nil {
		return err
	}
	return s.serveFile(w, r, b.Name, b.Size, content)
}

// sniffed is how many bytes of a file are checked to distinguish text from binary data.
const sniffed = 64 << 10

// serveFile sends a user's file so that browsers never interpret it: as text or bytes, whatever its type, to be saved
// instead of shown, and with a policy that permits nothing if it is shown nevertheless.
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
	h.Set("Cache-Control", "private, no-store")
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
		return s.cut(r, err)
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

// mask is POST /api/sessions/{id}/mask: secrets in the caller's own transcript of one machine get tokens, in the lines
// of an epoch, in checkpoints and in files. Nothing else can change, and nobody else may do it, not even an owner.
func (s *Server) mask(w http.ResponseWriter, r *http.Request, who server.Key) error {
	body, err := s.bodies.Read(w, r, s.MaxBody)
	if err != nil {
		return err
	}
	defer body.Release()
	if err := wire.CheckParts(body.Bytes()); err != nil {
		return err
	}
	var q protocol.MaskRequest
	if err := json.Unmarshal(body.Bytes(), &q); err != nil {
		return wire.BadRequest("bad_json", fmt.Sprintf("the body is not what this call takes: %v", err))
	}
	ref := server.Ref{SessionID: r.PathValue("id"), Machine: &q.Machine, Owner: who.User.ID}
	at, err := s.store.sessions.Resolve(r.Context(), server.ScopeOf(who.User), ref)
	if err == nil && at.Owner != who.User.ID {
		err = server.ErrNotFound
	}
	if err != nil {
		return err
	}
	if len(q.Lines) > 0 {
		find := server.Ref{Stream: at.Stream, Epoch: q.Epoch}
		err := s.view(r, who, find, func(_ context.Context, snap server.Snapshot) error {
			for _, e := range snap.Epochs() {
				for i := range q.Lines {
					if e.Name == snap.Session().Epoch {
						q.Lines[i].Epoch = e.ID
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	done, err := s.store.masks.Mask(r.Context(), &server.Masking{Stream: at.Stream, By: who.User.ID, At: time.Now(),
		Lines: q.Lines, Checkpoints: q.Checkpoints, Files: q.Files})
	if errors.Is(err, server.ErrNoToken) {
		return wire.Refuse(http.StatusUnprocessableEntity, "no_token", err.Error())
	}
	if err != nil {
		return err
	}
	if done.Any() {
		s.logOf(r).Info("secrets masked", "session", at.SessionID, "lines", done.Lines, "checkpoints", done.Checkpoints,
			"files", done.Files, "by", who.User.Name)
	}
	s.answer(w, http.StatusOK, done)
	return nil
}

type maskingAnswer struct {
	server.MaskedSession
	User string `json:"user"`
	By   string `json:"by"` // "": the server
	protocol.Masked
}

// maskings is GET /api/maskings: what was masked after it was stored, latest first.
func (s *Server) maskings(r *http.Request, who server.Key) (any, error) {
	list, err := s.store.masks.Maskings(r.Context(), server.ScopeOf(who.User))
	if err != nil {
		return nil, err
	}
	var users []int64
	for i := range list {
		users = append(users, list[i].Owner, list[i].By)
	}
	names, err := s.store.users.UserNames(r.Context(), users)
	if err != nil {
		return nil, err
	}
	return struct {
		Maskings []maskingAnswer `json:"maskings"`
	}{each(list, func(m server.MaskedSession) maskingAnswer {
		return maskingAnswer{m, names[m.Owner], names[m.By], m.Masked}
	})}, nil
}
