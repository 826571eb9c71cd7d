package thread

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/web/page"
	"github.com/ccship/ccship/transcript"
)

// About is what an export says of its session besides the lines.
type About struct {
	Title          string // or the first prompt
	Models         []string
	Started, Ended time.Time
	Cost           transcript.Cost
}

// Date is when the session was; "" when no line says.
func (a About) Date() string {
	if a.Started.IsZero() {
		return ""
	}
	if took := page.Span(a.Started, a.Ended); took != "" {
		return page.Stamp(a.Started) + ", for " + took
	}
	return page.Stamp(a.Started)
}

// WriteLines writes each stored line and a newline: the file, if all of it is stored.
func WriteLines(ctx context.Context, w io.Writer, snap server.Snapshot, view server.View) error {
	return EachLine(ctx, snap, view, func(l server.Line) error {
		if l.Kind == server.Oversize {
			return nil
		}
		if _, err := w.Write(l.Raw); err != nil {
			return err
		}
		_, err := w.Write([]byte{'\n'})
		return err
	})
}

// WriteJSON writes one document with all records.
func WriteJSON(ctx context.Context, w io.Writer, snap server.Snapshot, view server.View, about About) error {
	x := snap.Session()
	var cost *float64
	if about.Cost.Known() {
		cost = &about.Cost.USD
	}
	head, err := json.Marshal(struct {
		Schema     int       `json:"schema_version"`
		SessionID  string    `json:"session_id"`
		Title      string    `json:"title"`
		Models     []string  `json:"models"`
		Started    time.Time `json:"started"`
		Ended      time.Time `json:"ended"`
		Cost       *float64  `json:"cost_usd"` // at list prices; null when no price is known
		Machine    string    `json:"machine"`
		Host       string    `json:"host"`
		Project    string    `json:"project"`
		Cwd        string    `json:"cwd"`
		Epoch      string    `json:"epoch"`
		Generation int64     `json:"generation"`
		Lines      int64     `json:"lines"`
		First      time.Time `json:"first_received"`
		Last       time.Time `json:"last_received"`
	}{1, x.SessionID, about.Title, append([]string{}, about.Models...), about.Started, about.Ended, cost,
		x.Machine, x.Host, x.Project, x.Cwd, x.Epoch, view.Generation.Number, view.Total, x.First, x.Last})
	if err != nil {
		return err
	}
	if _, err := w.Write(append(head[:len(head)-1], `,"entries":[`...)); err != nil {
		return err
	}
	first := true
	err = EachLine(ctx, snap, view, func(l server.Line) error {
		b := appendJSON(nil, l, first)
		first = false
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write([]byte("\n]}\n"))
	return err
}

// appendJSON is a line as a member of the list: a record as it is, anything else as a string of its bytes.
func appendJSON(b []byte, l server.Line, first bool) []byte {
	if !first {
		b = append(b, ',')
	}
	b = append(b, "\n{\"line\":"+strconv.FormatInt(l.Index, 10)...)
	raw := bytes.TrimSpace(l.Raw)
	if len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		name := `,"record":`
		if l.Kind == server.Oversize {
			name = `,"note":`
		}
		return append(append(append(b, name...), raw...), '}')
	}
	data, err := json.Marshal(l.Raw) // base64
	if err != nil {
		return append(b, '}')
	}
	return append(append(append(b, `,"data":`...), data...), '}')
}
