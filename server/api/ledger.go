package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/auth"
	"github.com/ccship/ccship/server/wire"
)

const maxToken = 64 // bytes of an incarnation, or of a store's id

// writerOf reads who sends a write request. Clients that keep no ledger send no header.
func writerOf(r *http.Request) (server.Writer, error) {
	text := r.Header.Get(protocol.HeaderWriter)
	if text == "" {
		return server.Writer{}, nil
	}
	var w server.Writer
	parts := strings.Split(text, " ")
	if len(parts) < 2 || len(parts) > 4 || slices.ContainsFunc(parts, func(s string) bool { return !isToken(s) }) {
		return w, wire.BadRequest("bad_header", protocol.HeaderWriter+" is not INCARNATION COUNT [STORE [TOKEN]]")
	}
	count, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || count < 0 || count > wire.MaxNumber {
		return w, wire.BadRequest("bad_header", protocol.HeaderWriter+" has a count that is no number")
	}
	w.Incarnation, w.Count = parts[0], count
	if len(parts) > 2 {
		w.Store = parts[2]
	}
	if len(parts) > 3 {
		w.Token = parts[3]
	}
	return w, nil
}

// isToken reports whether s is fit for a header and a database: 1 to maxToken letters, digits, '-' or '_'.
func isToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// announceLedger puts a receipt into the answer.
func announceLedger(w http.ResponseWriter, at server.Receipt) {
	if at.Store != "" {
		w.Header().Set(protocol.HeaderLedger, strings.TrimSpace(at.Store+" "+strconv.FormatInt(at.Count, 10)+" "+at.Token))
	}
}

// conflictOf fills in what a client needs to continue after a refusal by the ledger, or because of stored lines.
func conflictOf(w http.ResponseWriter, err error, a *errorAnswer) bool {
	if no, ok := errors.AsType[*server.LedgerError](err); ok {
		announceLedger(w, no.Receipt)
		a.Error.Code, a.Error.Message = no.Code, ledgerMessages[no.Code]
		return true
	}
	no, ok := errors.AsType[*server.StreamError](err)
	if ok {
		a.Error.Code, a.Error.Message = no.Code, "another generation of this transcript is stored already"
		a.Error.Stream = &streamConflict{no.Epoch, no.Generation, no.Line}
	}
	return ok
}

var ledgerMessages = map[string]string{
	protocol.CodeOtherStore:     "this is another database than the one that answered before",
	protocol.CodeStoreBehind:    "this database lacks writes that it acknowledged: it was restored from an older copy",
	protocol.CodeWriterBehind:   "this database has writes of this machine that the daemon does not know",
	protocol.CodeWriterReplaced: "another daemon writes in the name of this machine",
}

// streamConflict says where a client continues.
type streamConflict struct {
	Epoch      string `json:"epoch"`
	Generation int64  `json:"generation"`
	Line       int64  `json:"line"`
}

// ledger is GET /api/ledger?machine&since&limit: how many writes a machine of the caller made, and which transcripts
// changed after count since, in the order of their changes.
func (s *Server) ledger(r *http.Request, who server.Key) (any, error) {
	q := r.URL.Query()
	since, err := numberOf(q, "since", 0)
	if err != nil {
		return nil, err
	}
	limit, err := numberOf(q, "limit", protocol.MaxChanged)
	if err != nil || limit < 1 {
		return nil, wire.BadRequest("bad_query", "limit is not a number from 1")
	}
	l, err := s.store.writes.Ledger(r.Context(), who.User.ID, q.Get("machine"), since,
		int(min(limit, protocol.MaxChanged)))
	if err != nil {
		return nil, err
	}
	l.Changed = orEmpty(l.Changed)
	return l, nil
}

// copyLines is POST /api/sessions/{id}/copy: it copies the first lines of the caller's own transcript of one machine to
// generation 0 of the same transcript of another machine. So a clone of a machine continues under its own name without
// sending them again.
func (s *Server) copyLines(w http.ResponseWriter, r *http.Request, who server.Key) error {
	var q protocol.CopyRequest
	if err := s.readBody(w, r, maxDocument, &q); err != nil {
		return err
	}
	if q.To == "" || q.From == q.To || q.Epoch == "" || q.Lines < 1 {
		return wire.BadRequest("bad_request", "to_machine, epoch and lines must be set, and the machines differ")
	}
	for _, name := range []string{q.From, q.To, q.Host, q.Epoch} {
		if err := wire.CheckName(name, "a name"); err != nil {
			return err
		}
	}
	writer, err := writerOf(r)
	if err != nil {
		return err
	}
	c := copyStream{Store: s.store.writes, Owner: who.User.ID, Quota: s.Quota.For(who.User), Machine: q.To, Host: q.Host,
		Epoch: q.Epoch, First: q.Lines, Writer: writer}
	ref := server.Ref{SessionID: r.PathValue("id"), Machine: &q.From, Owner: who.User.ID}
	if err := s.view(r, who, ref, c.Write); err != nil {
		return err
	}
	announceLedger(w, c.Receipt)
	s.answer(w, http.StatusOK, struct {
		Success bool  `json:"success"`
		Lines   int64 `json:"lines"`
	}{true, c.Lines})
	return nil
}

// proof is GET /api/proof?key&nonce&proof: before a client shows a key unencrypted, both prove that they know it.
func (s *Server) proof(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	nonce := q.Get("nonce")
	key, err := s.access.Proven(r.Context(), s.access.Remote(r), q.Get("key"), nonce, q.Get("proof"))
	switch id := s.store.writes.StoreID(); {
	case errors.Is(err, auth.ErrUnauthorized):
		s.refuse(w, r, wire.Refuse(http.StatusUnauthorized, protocol.CodeUnknownKey, "no key fits this proof"))
	case err != nil:
		s.refuse(w, r, err)
	default:
		s.answer(w, http.StatusOK, protocol.KeyProof{Store: id, Proof: protocol.ServerProof(key.Hash, nonce, id)})
	}
}

// copyBytes ends a batch of copied lines.
const copyBytes = 4 << 20

// copyStream writes one stream's view to generation 0 of another stream of the same user, batch by batch.
type copyStream struct {
	Store  server.Ingester
	Owner  int64        // whose both streams are
	Quota  server.Quota // of the owner
	Writer server.Writer

	Machine, Host, Epoch string // of the copy
	First                int64  // how many lines of the file are copied

	Lines   int64          // written
	Receipt server.Receipt // of the last batch

	masked map[server.MaskedLine]bool // of the copied epoch
	batch  server.Batch
	bytes  int
}

// Write copies the first lines of the newest view of a stream. server.ErrNotFound when it is not the Owner's.
func (c *copyStream) Write(ctx context.Context, snap server.Snapshot) error {
	x := snap.Session()
	if x.Owner != c.Owner {
		return server.ErrNotFound // shared with the caller: not the caller's to copy
	}
	v, err := server.NewestView(snap)
	if err != nil {
		return err
	}
	c.batch.Head = server.Head{
		SessionID: x.SessionID, ProjectHash: x.ProjectHash, Machine: c.Machine, Host: c.Host,
		Epoch: c.Epoch, Path: x.Path, Cwd: x.Cwd, Project: x.Project, Parent: x.Parent,
		EndLine: min(c.First, v.Total), EOFNewline: true, Writer: c.Writer,
	}
	c.batch.Owner, c.batch.Quota = c.Owner, c.Quota
	if err := c.loadMasked(ctx, snap); err != nil {
		return err
	}
	for _, span := range v.Between(0, c.First) {
		err := snap.Retired(ctx, span, true, func(r *server.RetiredRun) error {
			c.batch.Retired = append(c.batch.Retired, within(r, span))
			return nil
		})
		if err != nil {
			return err
		}
		err = snap.Lines(ctx, span, func(l server.Line) error {
			l.Raw = append([]byte(nil), l.Raw...)
			c.batch.Lines = append(c.batch.Lines, l)
			if c.masked[server.MaskedLine{Generation: span.Generation, Line: l.Index}] {
				c.batch.Masked = append(c.batch.Masked, l.Index)
			}
			if c.bytes += len(l.Raw); c.bytes < copyBytes {
				return nil
			}
			return c.flush(ctx)
		})
		if err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

// within returns what of a run is in a span.
func within(r *server.RetiredRun, s server.Span) *server.RetiredRun {
	cut := &server.RetiredRun{At: r.At}
	for _, l := range r.Lines {
		if s.From <= l.Index && l.Index < s.To {
			cut.Lines = append(cut.Lines, l)
		}
	}
	return cut
}

// loadMasked finds the lines that the server masked by itself: their copies are masked by it too.
func (c *copyStream) loadMasked(ctx context.Context, snap server.Snapshot) error {
	list, err := snap.Masked(ctx)
	c.masked = map[server.MaskedLine]bool{}
	for _, l := range list {
		c.masked[l] = true
	}
	return err
}

// flush stores the lines collected so far. The ledger's count continues from batch to batch.
func (c *copyStream) flush(ctx context.Context) error {
	c.batch.Received = time.Now()
	if err := c.Store.Put(ctx, &c.batch); err != nil {
		return err
	}
	c.Receipt = c.batch.Head.Receipt
	if c.batch.Head.Writer.Incarnation != "" {
		c.batch.Head.Writer.Store, c.batch.Head.Writer.Count = c.Receipt.Store, c.Receipt.Count
	}
	c.Lines += int64(len(c.batch.Lines))
	c.batch.Lines, c.batch.Masked, c.batch.Retired, c.bytes = nil, nil, nil, 0
	return nil
}
