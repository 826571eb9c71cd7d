package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/transcript"
)

// Server asks a server for the sums of the caller's own sessions, from all machines, by the server's price list.
func Server(ctx context.Context, client *remote.Client, q Query) (Report, error) {
	r := Report{Source: fromServer, By: q.By, Zone: q.Zone.String(), Rows: []Row{}, Faults: []Fault{}}
	hosts := map[string]string{}
	if q.by(Machine) {
		machines, err := client.Machines(ctx)
		if err != nil {
			return r, err
		}
		for _, m := range machines {
			hosts[m.Machine] = m.Host
		}
	}
	at := map[Row]int{}
	for _, span := range spans(q, time.Now()) {
		sums, err := client.Usage(ctx, span)
		if err != nil {
			return r, err
		}
		r.Prices = sums.Prices
		for _, s := range sums.Rows {
			r.take(at, s, hosts[s.Machine])
		}
	}
	r.finish()
	return r, nil
}

// take adds a row of the server. An agent's answers are those of its session.
func (r *Report) take(at map[Row]int, s remote.UsageRow, host string) {
	names := Row{
		Day: s.Day, ProjectHash: s.ProjectHash, Project: s.Project, Model: s.Model, Machine: s.Machine, Host: host,
	}
	if s.Session != "" {
		names.Session = transcript.MainSession(s.Session, "")
	}
	u := transcript.Usage{Input: s.Input, Output: s.Output, CacheRead: s.CacheRead, CacheWrite5m: s.CacheWrite5m,
		CacheWrite1h: s.CacheWrite1h}
	cost := transcript.Cost{Unpriced: s.Unpriced}
	if s.Cost != nil {
		cost.USD, cost.Priced = *s.Cost, u.Total()-s.Unpriced
	}
	r.row(at, names).add(s.Answers, u, cost)
	r.Total.add(s.Answers, u, cost)
}

// spans are the requests that answer a query. A server knows only zones without a summer time, so days of a zone that
// has one are asked for in one request for each half-year, back to when the first transcripts were written.
func spans(q Query, now time.Time) []remote.UsageQuery {
	one := remote.UsageQuery{By: q.By, Since: q.Since, Until: q.Until, User: remote.Me}
	if !q.by(Day) {
		return []remote.UsageQuery{one}
	}
	from, end := q.Since, q.Until
	if first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC); from.Before(first) {
		from = first
	}
	if end.IsZero() || end.After(now) {
		end = now
	}
	var out []remote.UsageQuery
	for t := from.In(q.Zone); ; {
		_, offset := t.Zone()
		part := one
		part.Zone = time.Duration(offset) * time.Second
		if len(out) > 0 {
			part.Since = t
		}
		_, change := t.ZoneBounds()
		if change.IsZero() || !change.Before(end) {
			return append(out, part)
		}
		part.Until = change
		out = append(out, part)
		t = change
	}
}

// draft is a restored file without its final name. Its mode is 0600; missing folders are created with 0700.
type draft struct {
	*sys.AtomicFile
	path string
}

func newDraft(path string) (*draft, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	f, err := sys.CreateFile(path) // under a name that no transcript has
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return &draft{f, path}, nil
}

// keep gives the draft its name, durably. same means that the file existed with the same bytes; aside is where a
// different file was moved. If named, a different file is not moved aside: force replaces it, otherwise keep returns an
// error.
func (d *draft) keep(named, force bool) (same bool, aside string, err error) {
	if err := d.age(); err != nil {
		return false, "", err
	}
	if notThere(d.path) {
		return false, "", d.link()
	}
	if same, err = equalFiles(d.Name(), d.path); err != nil || same {
		return same, "", err
	}
	switch {
	case named && !force:
		return false, "", fileExists(d.path)
	case named:
		return false, "", d.replace()
	}
	// Claude Code lists *.jsonl, and so does ccship.
	aside = d.path + ".before-restore-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := os.Link(d.path, aside); err == nil {
		return false, aside, d.replace() // the path always has a file
	}
	if err := os.Rename(d.path, aside); err != nil {
		return false, "", fmt.Errorf("move %s aside: %w", d.path, err)
	}
	return false, aside, d.link()
}

// age seals the draft, and dates it back: neither a running daemon nor the next restore may take it for live.
func (d *draft) age() error {
	if err := d.Seal(); err != nil {
		return fmt.Errorf("restore %s: %w", d.path, err)
	}
	before := time.Now().Add(-quiet)
	_ = os.Chtimes(d.Name(), before, before)
	return nil
}

func fileExists(path string) error {
	return control.NewError(CodeFileExists, path+" exists",
		"choose another file, or replace it with --force")
}

// link gives the draft its name; no file may have it.
func (d *draft) link() error { return d.named(d.CommitNew()) }

// replace gives the draft its name, and replaces the file that has it.
func (d *draft) replace() error { return d.named(d.Commit()) }

// named explains why the draft did not get its name.
func (d *draft) named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrExist):
		return fileExists(d.path)
	}
	return fmt.Errorf("restore %s: %w", d.path, err)
}

// equalFiles compares two files byte for byte.
func equalFiles(a, b string) (bool, error) {
	x, err := sys.OpenRegular(a)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer x.Close()
	y, err := sys.OpenRegular(b)
	if err != nil {
		return false, fmt.Errorf("compare: %w", err)
	}
	defer y.Close()
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errX := io.ReadFull(x, p)
		m, errY := io.ReadFull(y, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errX != nil || errY != nil {
			ended := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
			if ended(errX) && ended(errY) {
				return true, nil
			}
			return false, fmt.Errorf("compare: %w", errors.Join(errX, errY))
		}
	}
}

// WriteFile creates a file of mode 0600 from what write writes; the file gets its name when it is complete. If the file
// exists, the error is a CodeFileExists, or with force the file is replaced. It returns the number of bytes.
func WriteFile(path string, force bool, write func(io.Writer) error) (int64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, fmt.Errorf("write file: %w", err)
	}
	if !force && !notThere(path) {
		return 0, fileExists(path)
	}
	d, err := newDraft(path)
	if err != nil {
		return 0, err
	}
	defer d.Discard()
	if err := write(d); err != nil {
		return 0, err
	}
	n, err := d.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	if force {
		return n, d.replace()
	}
	return n, d.link()
}
