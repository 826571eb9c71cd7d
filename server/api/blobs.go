package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

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
