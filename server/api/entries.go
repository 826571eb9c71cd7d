package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/wire"
	"github.com/ccship/ccship/transcript"
)

// pageBytes ends a page of entries, whatever its limit; a page has at least one entry.
const pageBytes = 4 << 20

var (
	errPageFull = errors.New("page full")
	errLong     = errors.New("the first line of the page is longer than what may be read")
)

// entries is GET /api/sessions/{id}/entries?after&limit&most&generation&machine&epoch&cursor&replaced: the lines of a
// view after line after, each as {"line_index","generation","kind"} with "record" (an object as in the file), "data"
// (any other line, in base64), "note" (a line that was not stored) or, with most, "bytes" (the length of a line that
// has more bytes than that). A page's cursor stays in its view, whatever is stored later. replaced=1 lists the bytes
// that other bytes of the same line replaced.
func (s *Server) entries(w http.ResponseWriter, r *http.Request, who server.Key) error {
	q := r.URL.Query()
	ref := refOf(r)
	if err := applyCursor(q, &ref); err != nil {
		return err
	}
	from, p, err := askedEntries(q)
	if err != nil {
		return err
	}
	look := func(ctx context.Context, snap server.Snapshot) error {
		if snap.Session().SessionID != ref.SessionID {
			return wire.BadRequest("bad_query", "cursor is of another session")
		}
		v, err := pickView(q, snap)
		if err != nil {
			return err
		}
		if err := p.read(ctx, snap, v.Between(from, v.Total), q.Get("replaced") == "1"); err != nil {
			return err
		}
		x := snap.Session()
		p.head = entriesHead{x.SessionID, x.Machine, x.Epoch, v.Generation.Number, nil, nil, nil}
		if p.more {
			c := cursor{v.Generation.Number, p.last, x.ID, x.Epoch}.String()
			p.head.Next, p.head.Cursor = &p.last, &c
		}
		return nil
	}
	err = s.view(r, who, ref, look)
	for errors.Is(err, errLong) { // nothing of the store is held while this waits
		release, rerr := server.ReserveLong(r.Context(), s.store.sessions, who.User.ID, p.wants)
		if rerr != nil {
			return rerr
		}
		defer release() // of all: once, unless the line grows meanwhile
		p.whole = p.wants
		err = s.view(r, who, ref, look)
	}
	if err != nil {
		return err
	}
	return s.answerEntries(w, p.head, p.json)
}

// askedEntries are the first line and the limits of a page.
func askedEntries(q url.Values) (from int64, p entryPage, err error) {
	after, err := numberOf(q, "after", 0)
	if err != nil {
		return 0, p, err
	}
	if q.Has("after") {
		from = after + 1
	}
	limit, err := numberOf(q, "limit", pageDefault)
	if err != nil || limit < 1 {
		return 0, p, wire.BadRequest("bad_query", "limit is not a number from 1")
	}
	most, err := numberOf(q, "most", 0)
	return from, entryPage{limit: int(min(limit, pageMax)), most: most, whole: server.LongHead, last: -1}, err
}

// entriesHead is a page of entries, without them.
type entriesHead struct {
	SessionID  string          `json:"session_id"`
	Machine    string          `json:"machine"`
	Epoch      string          `json:"epoch"`
	Generation int64           `json:"generation"`
	Next       *int64          `json:"next"`   // after of the next page; null on the last
	Cursor     *string         `json:"cursor"` // of the next page; null on the last
	Entries    json.RawMessage `json:"entries"`
}

// cursor is a position in one view. On the wire: generation.line.stream.epoch.
type cursor struct {
	generation, line, stream int64
	epoch                    string
}

func (c cursor) String() string {
	return fmt.Sprintf("%d.%d.%d.%s", c.generation, c.line, c.stream, c.epoch)
}

// applyCursor makes a query continue where the page of its cursor ended.
func applyCursor(q url.Values, ref *server.Ref) error {
	if !q.Has("cursor") {
		return nil
	}
	c, err := parseCursor(q.Get("cursor"))
	if err != nil {
		return err
	}
	ref.Stream, ref.Epoch = c.stream, c.epoch
	q.Set("generation", strconv.FormatInt(c.generation, 10))
	q.Set("after", strconv.FormatInt(c.line, 10))
	return nil
}

func parseCursor(s string) (cursor, error) {
	var c cursor
	var errs [3]error
	parts := strings.SplitN(s, ".", 4)
	if len(parts) == 4 {
		c.generation, errs[0] = strconv.ParseInt(parts[0], 10, 64)
		c.line, errs[1] = strconv.ParseInt(parts[1], 10, 64)
		c.stream, errs[2] = strconv.ParseInt(parts[2], 10, 64)
		c.epoch = parts[3]
	}
	if len(parts) != 4 || c.stream < 1 || errors.Join(errs[:]...) != nil {
		return c, wire.BadRequest("bad_query", "cursor is not one of an earlier page")
	}
	return c, nil
}

// answerEntries writes the answer, entries last, without the encoder, which would compact them and escape their HTML.
// Nothing of the store is held meanwhile.
func (s *Server) answerEntries(w http.ResponseWriter, head entriesHead, entries []byte) error {
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	for _, part := range [][]byte{append(b[:len(b)-len("null}")], '['), entries, []byte("]}\n")} {
		if err := s.write(w, part); err != nil {
			return err
		}
	}
	return nil
}

// entryPage collects entries as JSON, joined by commas.
type entryPage struct {
	head       entriesHead
	limit      int
	most       int64 // bytes of a line; 0: any
	whole      int64 // bytes of a line that there is space for, if most allows more
	wants      int64 // after errLong: bytes of the first line
	generation int64
	json       []byte
	count      int
	last       int64
	more       bool
}

// read fills the page with lines of spans, or with bytes that others replaced.
func (p *entryPage) read(ctx context.Context, snap server.Snapshot, spans []server.Span, replaced bool) (err error) {
	for _, span := range spans {
		p.generation, span.Most = span.Generation, p.whole
		if p.most > 0 {
			span.Most = min(p.most, p.whole)
		}
		if replaced {
			err = snap.Replaced(ctx, span, p.addReplaced)
		} else {
			err = snap.Lines(ctx, span, p.add)
		}
		if p.more {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addReplaced adds bytes that others replaced. A page ends between two lines, because the next one begins after a line:
// of a line with more than a page of them, the lengths of those that follow, up to pageMax.
func (p *entryPage) addReplaced(l server.Line, _ time.Time) error {
	if l.Index != p.last {
		return p.add(l)
	}
	if p.count < pageMax {
		p.append(l, p.long(l) || len(p.json)+len(l.Raw) > pageBytes)
	}
	return nil
}

func (p *entryPage) full(l server.Line) bool {
	return p.count >= p.limit || p.count > 0 && !p.long(l) && (l.Size() > p.whole || len(p.json)+len(l.Raw) > pageBytes)
}

// long reports whether only the length of a line is shown.
func (p *entryPage) long(l server.Line) bool { return p.most > 0 && l.Size() > p.most }

func (p *entryPage) add(l server.Line) error {
	if p.full(l) {
		p.more = true
		return errPageFull
	}
	if l.Size() > p.whole && !p.long(l) {
		p.wants = l.Size()
		return errLong
	}
	p.append(l, p.long(l))
	return nil
}

// append adds a line, or only its length.
func (p *entryPage) append(l server.Line, length bool) {
	if p.count > 0 {
		p.json = append(p.json, ',')
	}
	p.count++
	p.last = l.Index
	p.json = append(p.json, `{"line_index":`...)
	p.json = strconv.AppendInt(p.json, l.Index, 10)
	p.json = append(p.json, `,"generation":`...)
	p.json = strconv.AppendInt(p.json, p.generation, 10)
	p.json = append(p.json, `,"kind":"`...)
	p.json = append(p.json, l.Kind.String()...)
	p.json = append(p.json, `",`...)
	if length {
		p.json = strconv.AppendInt(append(p.json, `"bytes":`...), l.Size(), 10)
	} else {
		p.appendContent(l)
	}
	p.json = append(p.json, '}')
}

// appendContent checks again that an object is valid: damaged bytes in the store must not break the answer.
func (p *entryPage) appendContent(l server.Line) {
	p.json = slices.Grow(p.json, len(l.Raw)+64) // of a huge line once, not by doubling
	scanned := transcript.Scan(l.Raw)
	object := l.Kind != server.Opaque && (scanned.Shape == transcript.Object || scanned.Shape == transcript.Reserved)
	switch {
	case !object:
		p.json = append(p.json, `"data":"`...)
		p.json = base64.StdEncoding.AppendEncode(p.json, l.Raw)
		p.json = append(p.json, '"')
	case l.Kind == server.Oversize:
		p.json = append(append(p.json, `"note":`...), l.Raw...)
	default:
		p.json = append(append(p.json, `"record":`...), l.Raw[scanned.Start:scanned.End]...)
	}
}
