package derive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/state/projection"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// advance folds the next slice of a transcript. more says that lines are left. The error wraps fs.ErrNotExist if the
// file is gone, and state.ErrUnknownFile if it was forgotten or is excluded.
func (d *Deriver) advance(ctx context.Context, id tail.FileID) (p *liveProjection, more bool, err error) {
	t, facts, known, err := d.projections.State.Files.File(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if !known || d.policy.Excluded(&t, &facts) {
		if p := d.cache.projections[id]; p != nil {
			d.discard(p, state.ErrUnknownFile)
		}
		return nil, false, fmt.Errorf("fold transcript: %w", state.ErrUnknownFile)
	}
	if now, ok := d.files.File(id); ok {
		t.File.Path = now.File.Path
	}
	if p, err = d.open(ctx, &t, &facts); err != nil {
		return nil, false, err
	}
	if p.log.Truncated(d.policy.MessageLimits().Kept) && exists(t.File.Path) {
		// More messages are to be kept than when they were dropped.
		p.reset(p.place.Generation, max(p.place.Line, p.effectsThrough))
		d.limit(p)
	}
	target := projection.PlaceOf(t.Cursor)
	if p.place == target {
		return p, false, nil
	}
	if err := d.foldSlice(d.newStep(p, t, facts), t.Cursor); err != nil {
		d.discard(p, err)
		return nil, false, fmt.Errorf("fold transcript %s: %w", t.File.Path, err)
	}
	return p, p.place != target, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (d *Deriver) newStep(p *liveProjection, t tail.Tracked, facts state.Routing) *FoldStep {
	if d.packer == nil {
		d.packer = outbox.NewPacker()
	}
	return &FoldStep{
		File: t, Facts: facts, Session: &p.session, Detector: &p.detector, Line: p.place.Line, Effects: &p.effects,
		Packer: d.packer, projection: p, masker: d.policy.Masker(&facts),
		clean: d.clean.of(t.File.ID),
	}
}

// foldSlice folds one slice of whole lines that lie before a cursor.
func (d *Deriver) foldSlice(s *FoldStep, to tail.Cursor) error {
	file, err := sys.OpenRegular(s.File.File.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	p := s.projection
	lines, skip, err := d.readSlice(file, p.place.Offset, to)
	defer func() {
		if cap(d.buf) > sliceSize {
			d.buf = nil // one long line made it large
		}
	}()
	if err == nil {
		err = verifyAnchor(file, to)
	}
	if err != nil {
		return err
	}
	for _, o := range d.observers {
		o.Begin(s)
	}
	d.foldLines(s, lines)
	if skip > 0 { // one line that is longer than the cap
		p.place.Offset += skip
		p.place.Line++
	}
	s.Line = p.place.Line
	for _, o := range d.observers {
		if err := o.End(s); err != nil {
			return err
		}
	}
	p.usedAt = time.Now()
	d.changed(p)
	return nil
}

// errRewritten says that a file does not hold the delivered lines any more: it was rewritten, and the tailer will
// notice.
var errRewritten = errors.New("the file has changed since it was read")

// readAll fills b with what lies behind an offset.
func readAll(file io.ReaderAt, b []byte, from int64) error {
	k, err := file.ReadAt(b, from)
	switch {
	case k == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return errRewritten
	}
	return err
}

// verifyAnchor checks that a file still holds what lies before a cursor, judged by the bytes right before it.
func verifyAnchor(file io.ReaderAt, c tail.Cursor) error {
	var b [tail.AnchorSize]byte
	n := min(c.Offset, tail.AnchorSize)
	if err := readAll(file, b[:n], c.Offset-n); err != nil {
		return err
	}
	if !c.Ends(b[:n]) {
		return errRewritten
	}
	return nil
}

// readSlice reads whole lines behind an offset, as far as they lie before a cursor. If the first line is longer than
// the cap it is not read, and skip is its length. lines is valid until the next call.
func (d *Deriver) readSlice(file io.ReaderAt, from int64, to tail.Cursor) (lines []byte, skip int64, err error) {
	for size := int64(sliceSize); ; size *= 2 {
		n := min(size, to.Offset-from)
		if int64(cap(d.buf)) < n {
			d.buf = make([]byte, n)
		}
		b := d.buf[:n]
		if err := readAll(file, b, from); err != nil {
			return nil, 0, err
		}
		if end := bytes.LastIndexByte(b, '\n'); end >= 0 {
			return b[:end+1], 0, nil
		}
		if n == to.Offset-from { // what was delivered ends with a newline
			return nil, 0, errRewritten
		}
		if n > d.cfg.LineCap {
			skip, err := lineLength(file, from, to.Offset, b[:min(n, sliceSize)])
			return nil, skip, err
		}
	}
}

// lineLength returns the length of the line that begins at an offset, with its newline.
func lineLength(file io.ReaderAt, from, to int64, buf []byte) (int64, error) {
	for at := from; at < to; {
		n := min(int64(len(buf)), to-at)
		if err := readAll(file, buf[:n], at); err != nil {
			return 0, err
		}
		if end := bytes.IndexByte(buf[:n], '\n'); end >= 0 {
			return at + int64(end) + 1 - from, nil
		}
		at += n
	}
	return 0, errRewritten
}

// foldLines folds whole lines.
func (d *Deriver) foldLines(s *FoldStep, lines []byte) {
	p := s.projection
	for len(lines) > 0 {
		n := bytes.IndexByte(lines, '\n')
		watched := s.Facts.Watched && p.place.Offset >= s.Facts.WatchedFrom && p.place.Line >= p.effectsThrough
		s.Line = p.place.Line + 1
		d.foldLine(s, lines[:n], p.place.Line, watched)
		p.place.Offset += int64(n) + 1
		p.place.Line++
		d.foldedLines.Add(1)
		lines = lines[n+1:]
	}
}

// foldLine folds one line. It holds several records if a crash glued them together.
func (d *Deriver) foldLine(s *FoldStep, line []byte, number int64, watched bool) {
	if p := &s.projection.place; !s.clean.holds(s.masker, p.Generation, p.Offset) {
		line, _ = s.masker.Line(line)
	}
	switch l := transcript.Scan(line); l.Shape {
	case transcript.Object:
		d.foldRecord(s, transcript.ParseScanned(line, l), number, watched)
	case transcript.Malformed:
		for _, object := range transcript.Recover(line) {
			d.foldRecord(s, transcript.Parse(object), number, watched)
		}
	}
}

func (d *Deriver) foldRecord(s *FoldStep, r transcript.Record, number int64, watched bool) {
	p := s.projection
	copied := r.Lineage != nil && r.Lineage.ForkedFrom != ""
	if copied || r.Type == "assistant" {
		p.copying = copied
	}
	watched = watched && !p.copying && !ofOtherSession(&s.File.File, &r)
	for _, o := range d.observers {
		if seer, ok := o.(RecordObserver); ok {
			seer.Record(s, &r, watched)
		}
	}
	events := p.session.Add(number, r)
	for i := range events {
		if events[i].Line >= p.cleared {
			p.log.Add(events[i])
		}
		for _, o := range d.observers {
			o.Event(s, &events[i], watched)
		}
	}
}

// ofOtherSession reports whether a record belongs to another session than the one that its transcript is named after:
// then it was copied unchanged.
func ofOtherSession(f *tail.File, r *transcript.Record) bool {
	return f.Kind == tail.Main && r.SessionID != "" && r.SessionID != f.Name && sessionNamed.MatchString(f.Name)
}

// sessionNamed matches file names that Claude Code gives to transcripts. Other names mean nothing.
var sessionNamed = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Claude Code starts the hook before a tool some 50 ms before it writes down the answer that calls the tool. A hook
// that nobody waits for lets the daemon read that answer first when it may exceed a mark: the model is notified a
// request earlier.

const (
	// nearPercent is the part of the token budget from which on the next answer may exceed a mark.
	nearPercent = 60
	// followTime is how long a hook lets the daemon read; it takes a second in all.
	followTime = 900 * time.Millisecond
	// toolsFollowed is how many tool calls of a session are remembered as read.
	toolsFollowed = 64
	// sessionsFollowed is how many sessions are: most that end nearly full are never written again.
	sessionsFollowed = 256
)

// follow knows which tool calls were read of the sessions whose context is nearly full. It is safe for concurrent use.
type follow struct {
	mu       sync.Mutex
	sessions map[string]*nearlyFull // guarded by mu
}

// nearlyFull is such a session.
type nearlyFull struct {
	tools   []string                   // ids that were read, oldest first
	waiting map[string][]chan struct{} // by id; closed once it was read
}

func newFollow() *follow { return &follow{sessions: map[string]*nearlyFull{}} }

// context notes how full a session is.
func (f *follow) context(session string, tokens, limit int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[session]
	switch near := limit > 0 && tokens >= limit/100*nearPercent; {
	case near && s == nil:
		for other, x := range f.sessions { // any: its Claude is notified a request later
			if len(f.sessions) < sessionsFollowed {
				break
			}
			x.release()
			delete(f.sessions, other)
		}
		f.sessions[session] = &nearlyFull{waiting: map[string][]chan struct{}{}}
	case !near && s != nil:
		s.release()
		delete(f.sessions, session)
	}
}

func (s *nearlyFull) release() {
	for _, waiting := range s.waiting {
		for _, c := range waiting {
			close(c)
		}
	}
	clear(s.waiting)
}

// read notes that tool calls were read, and that what follows from them is in the state.
func (f *follow) read(session string, tools []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[session]
	if s == nil {
		return
	}
	s.tools = append(s.tools, tools...)
	s.tools = slices.Delete(s.tools, 0, max(0, len(s.tools)-toolsFollowed))
	for _, tool := range tools {
		for _, c := range s.waiting[tool] {
			close(c)
		}
		delete(s.waiting, tool)
	}
}

// await returns when a tool call of a session was read, or cannot matter, or takes too long.
func (f *follow) await(ctx context.Context, session, tool string) {
	f.mu.Lock()
	s := f.sessions[session]
	if s == nil || slices.Contains(s.tools, tool) {
		f.mu.Unlock()
		return
	}
	read := make(chan struct{})
	s.waiting[tool] = append(s.waiting[tool], read)
	f.mu.Unlock()
	late := time.NewTimer(followTime)
	defer late.Stop()
	select {
	case <-read:
		return
	case <-late.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left := slices.DeleteFunc(s.waiting[tool], func(c chan struct{}) bool { return c == read })
	if s.waiting[tool] = left; len(left) == 0 {
		delete(s.waiting, tool)
	}
}

// forget drops what is known of a session.
func (f *follow) forget(session string) { f.context(session, 0, 0) }
