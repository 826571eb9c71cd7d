package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
	"github.com/ccship/ccship/transcript/session"
)

// following is a transcript in memory: what its lines up to a place mean.
type following struct {
	id      tail.FileID
	place   state.Place // behind the last line that was folded
	stored  state.Place // as the state has it
	session session.Session
	log     session.MessageLog
	marks   session.Marks
	copying bool  // the last answer was a copy of another session's
	cleared int64 // lines below it are not in the log
	had     int64 // lines below it have had their effects in an earlier folding; stored, for this one may be broken off

	step   state.Derivation // what came of it since the last save
	urgent bool             // is to be saved at once
	dirty  time.Time        // since when something is not saved; zero: nothing is
	saving bool
	after  time.Time // a save that failed is not tried again before
	used   time.Time
	size   int // bytes of the encodings, when they were made last
	owing  bool
	// passing says that nobody writes it or asks for it: it leaves the memory once it is stored.
	passing bool
	// waiters are told how the next save ends.
	waiters []chan<- error
}

// foldVersion is the version of what is stored around a Session's encoding.
const foldVersion = 1

// errNoFold says that a stored fold is not there, or of another version.
var errNoFold = errors.New("no fold")

func (f *following) fold() []byte {
	b, _ := f.session.MarshalBinary() // never fails
	head := []byte{foldVersion, 0}
	if f.copying {
		head[1] = 1
	}
	return append(head, b...)
}

// restore takes up what is stored.
func (f *following) restore(u *state.Understood) error {
	if len(u.Fold) < 2 || u.Fold[0] != foldVersion {
		return errNoFold
	}
	f.copying = u.Fold[1]&1 != 0
	if err := f.session.UnmarshalBinary(u.Fold[2:]); err != nil {
		return err
	}
	if err := f.log.UnmarshalBinary(u.Log); err != nil {
		return err
	}
	return f.marks.UnmarshalBinary(u.Marks)
}

// begin empties the fold: it starts at line 0. Lines below had have had their effects.
func (f *following) begin(generation uint32, had int64) {
	f.place = state.Place{Generation: generation}
	f.session, f.log, f.marks = session.Session{}, session.MessageLog{}, session.Marks{}
	f.copying, f.had = false, had
}

// open answers a transcript in memory, from the state if it is there.
func (v *deriver) open(ctx context.Context, t *tail.Tracked, facts *state.Facts) (*following, error) {
	f := v.hot[t.File.ID]
	if f == nil {
		u, known, err := v.db.Understood(ctx, t.File.ID)
		if err != nil {
			return nil, err
		}
		f = &following{id: t.File.ID, place: u.Place, stored: u.Place, cleared: u.Cleared, had: u.Had}
		f.size = len(u.Fold) + len(u.Log) + len(u.Marks)
		if known && f.restore(&u) != nil {
			f.begin(u.Place.Generation, max(u.Place.Line, u.Had))
		}
		v.hot[t.File.ID] = f
	}
	if target := state.PlaceOf(t.Cursor); f.place.Generation != target.Generation || f.place.Offset > target.Offset {
		had := max(f.place.Line, f.had)
		if f.place.Generation != target.Generation {
			had = min(had, facts.RewoundTo)
			f.cleared = min(f.cleared, facts.RewoundTo)
		}
		f.begin(target.Generation, had)
	}
	l := v.limits()
	f.session.InputLimit, f.session.OutputLimit, f.log.Size = l.input, l.output, l.kept
	return f, nil
}

// advance folds the next lines of a transcript, and says whether that was all. The error wraps fs.ErrNotExist when the
// file is gone, and state.ErrUnknownFile when it is forgotten or left out.
func (v *deriver) advance(ctx context.Context, id tail.FileID) (f *following, more bool, err error) {
	t, facts, known, err := v.db.File(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if !known || v.barred(&t, &facts) {
		if f := v.hot[id]; f != nil {
			v.forsake(f, state.ErrUnknownFile)
		}
		return nil, false, fmt.Errorf("follow transcript: %w", state.ErrUnknownFile)
	}
	if now, ok := v.where(id); ok {
		t.File.Path = now.File.Path
	}
	if f, err = v.open(ctx, &t, &facts); err != nil {
		return nil, false, err
	}
	target := state.PlaceOf(t.Cursor)
	if f.place == target {
		return f, false, nil
	}
	p := v.pass(f, t, facts)
	p.first = f.place.Offset == 0
	err = v.read(p, t.Cursor)
	if err != nil {
		v.forsake(f, err)
		return nil, false, err
	}
	return f, f.place != target, nil
}

func (v *deriver) pass(f *following, t tail.Tracked, facts state.Facts) *pass {
	if v.packer == nil {
		v.packer = outbox.NewPacker()
	}
	return &pass{
		file: t, facts: facts, session: &f.session, marks: &f.marks, log: &f.log, line: f.place.Line, step: &f.step,
		packer: v.packer, follow: f,
	}
}

// forsake ends the memory of a transcript whose folding went wrong: it begins again with what is stored.
func (v *deriver) forsake(f *following, why error) {
	for _, w := range f.waiters {
		w <- why
	}
	f.waiters = nil
	v.owing(f, false)
	delete(v.hot, f.id)
}

// read folds one slice, up to a cursor.
func (v *deriver) read(p *pass, to tail.Cursor) error {
	file, err := os.Open(p.file.File.Path)
	if err != nil {
		return fmt.Errorf("follow transcript: %w", err)
	}
	defer file.Close()
	f := p.follow
	lines, skip, err := v.slice(file, f.place.Offset, to)
	defer v.trim()
	if err == nil {
		err = proves(file, to)
	}
	if err != nil {
		return fmt.Errorf("follow transcript %s: %w", p.file.File.Path, err)
	}
	for _, o := range v.observers {
		o.begin(p)
	}
	v.lines(p, lines)
	if skip > 0 { // one line that is too long to be held
		f.place.Offset += skip
		f.place.Line++
	}
	p.line = f.place.Line
	for _, o := range v.observers {
		if err := o.end(p); err != nil {
			return fmt.Errorf("follow transcript %s: %w", p.file.File.Path, err)
		}
	}
	f.used = time.Now()
	v.changed(f)
	return nil
}

// errRewritten says that a file does not hold what was delivered of it: it was rewritten since, and that will be noticed.
var errRewritten = errors.New("the file has changed since it was read")

// readAll fills b from an offset on.
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

// proves says that a file still holds what lies before a cursor, going by the bytes right before it.
func proves(file io.ReaderAt, c tail.Cursor) error {
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

// slice reads whole lines from an offset on, some of those before a cursor. A line of more than the cap is not read:
// skip is its length then. What is answered is valid until the next slice.
func (v *deriver) slice(file io.ReaderAt, from int64, to tail.Cursor) (lines []byte, skip int64, err error) {
	for size := int64(sliceBytes); ; size *= 2 {
		n := min(size, to.Offset-from)
		if int64(cap(v.buf)) < n {
			v.buf = make([]byte, n)
		}
		b := v.buf[:n]
		if err := readAll(file, b, from); err != nil {
			return nil, 0, err
		}
		if end := bytes.LastIndexByte(b, '\n'); end >= 0 {
			return b[:end+1], 0, nil
		}
		if n == to.Offset-from { // what was delivered ended with a line
			return nil, 0, errRewritten
		}
		if n > v.lineCap {
			skip, err := lineLength(file, from, to.Offset, b[:min(n, sliceBytes)])
			return nil, skip, err
		}
	}
}

// trim gives up a buffer that one long line made large.
func (v *deriver) trim() {
	if cap(v.buf) > sliceBytes {
		v.buf = nil
	}
}

// lineLength finds the end of the line that begins at an offset.
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

// lines folds whole lines.
func (v *deriver) lines(p *pass, lines []byte) {
	f := p.follow
	for len(lines) > 0 {
		n := bytes.IndexByte(lines, '\n')
		watched := p.facts.Watched && f.place.Offset >= p.facts.WatchedFrom && f.place.Line >= f.had
		p.line = f.place.Line + 1
		v.line(p, lines[:n], f.place.Line, watched)
		f.place.Offset += int64(n) + 1
		f.place.Line++
		v.folded.Add(1)
		lines = lines[n+1:]
	}
}

// line folds one line, which may hold several records when a crash glued them together.
func (v *deriver) line(p *pass, line []byte, number int64, watched bool) {
	switch l := transcript.Scan(line); l.Shape {
	case transcript.Object:
		v.record(p, transcript.ParseScanned(line, l), number, watched)
	case transcript.Malformed:
		for _, object := range transcript.Recover(line) {
			v.record(p, transcript.Parse(object), number, watched)
		}
	}
}

// foreign says whether a record is not of the session that a transcript is named after: it was copied as it is.
func foreign(f *tail.File, r *transcript.Record) bool {
	return f.Kind == tail.Main && r.SessionID != "" && r.SessionID != f.Name && sessionNamed.MatchString(f.Name)
}

// sessionNamed matches the name of a transcript that Claude Code gave it. Others are called whatever somebody likes.
var sessionNamed = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (v *deriver) record(p *pass, r transcript.Record, number int64, watched bool) {
	f := p.follow
	copied := r.Lineage != nil && r.Lineage.ForkedFrom != ""
	if copied || r.Type == "assistant" {
		f.copying = copied
	}
	watched = watched && !f.copying && !foreign(&p.file.File, &r)
	events := f.session.Add(number, r)
	for i := range events {
		if events[i].Line >= f.cleared {
			f.log.Add(events[i])
		}
		for _, o := range v.observers {
			o.event(p, &events[i], watched)
		}
	}
}
