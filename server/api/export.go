package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/ccship/ccship/server"

	"github.com/ccship/ccship/server/wire"
)

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
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the time for reading is not that for answering
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
