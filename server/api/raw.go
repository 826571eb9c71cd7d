package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/wire"
)

const (
	// rawChunk is how much of a file is written at once; a client has writePatience for each.
	rawChunk = 256 << 10
	// maxGap bounds the blank lines written for lines that are not stored.
	maxGap = 1 << 20
)

// raw is GET /api/sessions/{id}/raw?generation&machine&epoch&partial: the file as it is, byte for byte.
//
// A file with lines that are not stored is refused (409) unless partial=1: then those lines are blank, so that the
// others keep their numbers. A bare client numbers blank and malformed lines but does not send them, so its files with
// such lines are always refused.
func (s *Server) raw(w http.ResponseWriter, r *http.Request, who server.Key) error {
	q := r.URL.Query()
	return s.download(r, who, func(ctx context.Context, snap server.Snapshot) error {
		v, err := pickView(q, snap)
		if err != nil {
			return err
		}
		missing, err := countMissing(ctx, snap, v)
		if err != nil {
			return err
		}
		partial := q.Get("partial") == "1" || snap.Session().Machine == ""
		if missing > 0 && !partial || missing > maxGap {
			if err := refuseRetired(ctx, snap, v); err != nil {
				return err
			}
			return wire.Refuse(http.StatusConflict, "incomplete", fmt.Sprintf(
				"%d of %d lines are not stored; /digest says which, ?partial=1 leaves them blank", missing, v.Total))
		}
		b := wire.Begin(w)
		h := w.Header()
		h.Set("Content-Type", "application/x-ndjson")
		h.Set("Cache-Control", "no-store")
		h.Set(protocol.HeaderGeneration, strconv.FormatInt(v.Generation.Number, 10))
		h.Set(protocol.HeaderLines, strconv.FormatInt(v.Total, 10))
		h.Set(protocol.HeaderMissing, strconv.FormatInt(missing, 10))
		f := &fileWriter{s: s, w: b}
		if err := f.view(ctx, snap, v); err != nil {
			if b.Undo() {
				return err
			}
			return s.cut(r, err)
		}
		return nil
	})
}

// refuseRetired refuses a view of which retention removed lines.
func refuseRetired(ctx context.Context, snap server.Snapshot, v server.View) error {
	n, last, err := server.RetiredOf(ctx, snap, v)
	if err != nil || n == 0 {
		return err
	}
	return wire.Refuse(http.StatusConflict, "retired", fmt.Sprintf("%d of %d lines were retired by policy on %s: "+
		"their bytes are not stored any more; ?partial=1 leaves them blank", n, v.Total, last.UTC().Format(time.DateOnly)))
}

func countMissing(ctx context.Context, snap server.Snapshot, v server.View) (int64, error) {
	missing := v.Total
	for _, span := range v.Spans {
		lines, _, err := snap.Count(ctx, span)
		if err != nil {
			return 0, err
		}
		missing -= lines
	}
	return missing, nil
}

// fileWriter puts lines back together.
type fileWriter struct {
	s    *Server
	w    http.ResponseWriter
	buf  []byte
	next int64 // the line to come
}

func (f *fileWriter) view(ctx context.Context, snap server.Snapshot, v server.View) error {
	for _, span := range v.Spans {
		if err := snap.Lines(ctx, span, f.line); err != nil {
			return err
		}
	}
	if err := f.blank(v.Total); err != nil {
		return err
	}
	if v.Total > 0 && v.Generation.EOFNewline {
		f.buf = append(f.buf, '\n')
	}
	return f.flush()
}

// line writes one line behind the newline of the one before it.
func (f *fileWriter) line(l server.Line) error {
	if l.Kind == server.Oversize {
		return nil // blank
	}
	if err := f.blank(l.Index); err != nil {
		return err
	}
	if err := f.separate(); err != nil {
		return err
	}
	if len(l.Raw) < rawChunk {
		f.buf = append(f.buf, l.Raw...)
		return nil
	}
	if err := f.flush(); err != nil {
		return err
	}
	return f.s.write(f.w, l.Raw) // a huge line is not copied
}

// blank writes empty lines up to before line to.
func (f *fileWriter) blank(to int64) error {
	for f.next < to {
		if err := f.separate(); err != nil {
			return err
		}
	}
	return nil
}

func (f *fileWriter) separate() error {
	if f.next > 0 {
		f.buf = append(f.buf, '\n')
	}
	f.next++
	if len(f.buf) < rawChunk {
		return nil
	}
	return f.flush()
}

func (f *fileWriter) flush() error {
	err := f.s.write(f.w, f.buf)
	f.buf = f.buf[:0]
	return err
}

// write sends bytes in pieces that each have to be taken in time.
func (s *Server) write(w http.ResponseWriter, b []byte) error {
	c := http.NewResponseController(w)
	for len(b) > 0 {
		n := min(len(b), rawChunk)
		_ = c.SetWriteDeadline(time.Now().Add(writePatience)) // not every writer has deadlines (tests)
		if _, err := w.Write(b[:n]); err != nil {
			return fmt.Errorf("send answer: %w", err)
		}
		b = b[n:]
	}
	return nil
}

// Exporter writes a session's newest view for people, as "md" or "html".
type Exporter func(ctx context.Context, w io.Writer, snap server.Snapshot, format string) error

// exportTypes are the formats and what they are sent as.
var exportTypes = map[string]string{
	"json": "application/json", "jsonl": "application/x-ndjson", "md": "text/markdown; charset=utf-8",
	"html": "text/html; charset=utf-8",
}

// export is GET or POST /api/sessions/{id}/export?format&machine&epoch: the newest view as a file to keep.
func (s *Server) export(w http.ResponseWriter, r *http.Request, who server.Key) error {
	f := newQuery(r.URL.Query(), nil)
	format := f.OneOf("format", "jsonl", "json", "md", "html")
	if f.Err != nil {
		return f.Err
	}
	if s.Export == nil && (format == "md" || format == "html") {
		return wire.Refuse(http.StatusNotFound, "not_found", "this server does not export "+format)
	}
	return s.download(r, who, func(ctx context.Context, snap server.Snapshot) error {
		names, err := s.store.users.UserNames(ctx, []int64{snap.Session().Owner})
		if err != nil {
			return err
		}
		b := wire.Begin(w)
		h := w.Header()
		h.Set("Content-Type", exportTypes[format])
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
		h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.%s"`, fileName(snap.Session().SessionID), format))
		out := bufio.NewWriterSize(patientWriter{s, b}, rawChunk)
		switch format {
		case "jsonl":
			err = exportLines(ctx, out, snap)
		case "json":
			err = exportDocument(ctx, out, snap, sessionAnswerOf(snap.Session(), names))
		default:
			err = s.Export(ctx, out, snap, format)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			if b.Undo() {
				return err
			}
			return s.cut(r, err)
		}
		return nil
	})
}

// patientWriter writes to a client, with a time limit for each piece.
type patientWriter struct {
	s *Server
	w http.ResponseWriter
}

func (p patientWriter) Write(b []byte) (int, error) {
	if err := p.s.write(p.w, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// fileName is a session's ID in characters that are safe in a header and on any disk.
func fileName(id string) string {
	id = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '~':
			return r
		}
		return '_'
	}, id)
	return id[:min(len(id), 100)]
}

// exportLines writes every stored line and a newline. It skips lines that are not stored; /raw keeps the line numbers.
func exportLines(ctx context.Context, w io.Writer, snap server.Snapshot) error {
	return eachLine(ctx, snap, func(_ int64, l server.Line) error {
		if l.Kind == server.Oversize {
			return nil
		}
		if _, err := w.Write(l.Raw); err != nil {
			return err
		}
		_, err := w.Write(newline)
		return err
	})
}

// exportDocument writes one JSON document: the session and its entries.
func exportDocument(ctx context.Context, w io.Writer, snap server.Snapshot, session sessionAnswer) error {
	head, err := json.Marshal(session)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, `{"schema_version":1,"session":%s,"entries":[`, head); err != nil {
		return err
	}
	p := entryPage{limit: 1, whole: math.MaxInt64}
	first := true
	err = eachLine(ctx, snap, func(generation int64, l server.Line) error {
		p = entryPage{limit: 1, whole: math.MaxInt64, generation: generation, json: p.json[:0]}
		if !first {
			p.json = append(p.json, ',')
		}
		first = false
		p.json = append(p.json, '\n')
		if err := p.add(l); err != nil {
			return err
		}
		_, err := w.Write(p.json)
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

// eachLine walks the newest view.
func eachLine(ctx context.Context, snap server.Snapshot, yield func(generation int64, l server.Line) error) error {
	v, err := server.NewestView(snap)
	if err != nil {
		return err
	}
	for _, span := range v.Spans {
		err := snap.Lines(ctx, span, func(l server.Line) error { return yield(span.Generation, l) })
		if err != nil {
			return err
		}
	}
	return nil
}
