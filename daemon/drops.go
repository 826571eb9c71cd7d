package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// A rewrite of a transcript that takes lines out of it is worth telling: someone may miss them. At the rewind only this
// is known, that from some line on the file is another one; most rewrites bring the same lines again. So what the
// server has of the generation before is compared with the file as it is now, once that is delivered.

// drop is a rewind that may have taken lines out of a file.
type drop struct {
	File       tail.FileID `json:"file"`
	Session    string      `json:"session"`
	Project    string      `json:"project"`
	Generation uint32      `json:"generation"` // that had them
	From       int64       `json:"from"`       // the lines that were taken back: [From, To)
	To         int64       `json:"to"`
	At         time.Time   `json:"at"`
	Lines      int64       `json:"lines"` // of them not in the file any more; 0: not counted yet
}

const (
	keptDrops  = "drops"            // their name in the state
	dropsKept  = 3 * 24 * time.Hour // how long they are told
	mostDrops  = 100                // the oldest go
	shownDrops = 5                  // in status, the newest
	settling   = 3 * time.Second    // a rewrite is not looked at while it may go on
	mostHashed = 200_000            // lines of one file that are compared; larger rewrites are told by their size
)

// drops are the rewrites of late. They are kept in the state.
type drops struct {
	db *state.DB

	mu    sync.Mutex
	list  []drop // oldest first; guarded by mu
	dirty bool   // the state has an older list; guarded by mu
}

func loadDrops(ctx context.Context, db *state.DB) (*drops, error) {
	d := &drops{db: db}
	text, err := db.Remembered(ctx, keptDrops)
	if err != nil || text == nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d.list); err != nil {
		return nil, fmt.Errorf("read rewrites: %w", err)
	}
	return d, nil
}

// rewound notes a rewind. It writes nothing: the caller is in the middle of reading.
func (d *drops) rewound(c *tail.Chunk, f *state.Facts) {
	if c.File.Kind == tail.History || c.Prev.Line <= c.From.Line {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, drop{
		File: c.File.ID, Session: f.Stream.SessionID, Project: f.Stream.Project, Generation: c.Prev.Generation,
		From: c.From.Line, To: c.Prev.Line, At: time.Now().UTC().Round(0),
	})
	d.list = d.list[max(0, len(d.list)-mostDrops):]
	d.dirty = true
}

// uncounted copies the rewrites that are due to be counted.
func (d *drops) uncounted(now time.Time) (list []drop) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.list {
		if x.Lines == 0 && now.Sub(x.At) >= settling {
			list = append(list, x)
		}
	}
	return list
}

// counted takes in how many lines a rewrite took out; one that took none is none.
func (d *drops) counted(x drop, lines int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.list, x)
	if i < 0 {
		return
	}
	d.dirty = true
	if d.list[i].Lines = lines; lines == 0 {
		d.list = slices.Delete(d.list, i, i+1)
	}
}

// forget removes those of a session and its agents.
func (d *drops) forget(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := len(d.list)
	d.list = slices.DeleteFunc(d.list, func(x drop) bool { return slices.Contains(transcript.ForgetNames(x.Session), session) })
	d.dirty = d.dirty || len(d.list) != before
}

// keep lets old ones go, and writes the list if it changed.
func (d *drops) keep(ctx context.Context, now time.Time) error {
	d.mu.Lock()
	before := len(d.list)
	d.list = slices.DeleteFunc(d.list, func(x drop) bool { return now.Sub(x.At) > dropsKept })
	if !d.dirty && len(d.list) == before {
		d.mu.Unlock()
		return nil
	}
	text, err := json.Marshal(d.list)
	d.dirty = false
	d.mu.Unlock()
	if err == nil {
		err = d.db.Remember(ctx, keptDrops, text)
	}
	if err != nil {
		d.mu.Lock()
		d.dirty = true
		d.mu.Unlock()
		return fmt.Errorf("keep rewrites: %w", err)
	}
	return nil
}

// notices tells the newest rewrites that took lines out.
func (d *drops) notices() (out []control.Notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	more := 0
	for _, x := range slices.Backward(d.list) {
		switch {
		case x.Lines == 0:
			continue
		case len(out) == shownDrops:
			more++
			continue
		}
		lines := "1 line"
		if x.Lines > 1 {
			lines = fmt.Sprintf("%d lines", x.Lines)
		}
		out = append(out, control.Notice{
			Kind: "dropped_lines",
			Text: fmt.Sprintf("a rewrite took %s out of session %s (%s) at %s", lines, x.Session, x.Project, x.At.Local().Format("2006-01-02 15:04")),
			Hint: fmt.Sprintf("ccship sessions restore %s --generation %d --to FILE gets the transcript of before", x.Session, x.Generation),
		})
	}
	if more > 0 {
		out = append(out, control.Notice{Kind: "dropped_lines", Text: fmt.Sprintf("%d more rewrites took lines out", more), Hint: "the server's viewer shows all of them"})
	}
	return out
}

// errands does what has to be done later and may take long, until ctx is done.
func (d *Daemon) errands(ctx context.Context) error {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	const patience = time.Minute
	var notBefore time.Time // after a server could not be asked
	for {
		select {
		case <-ctx.Done():
			return d.drops.keep(context.WithoutCancel(ctx), time.Now())
		case <-tick.C:
		}
		now := time.Now()
		if err := d.drops.keep(ctx, now); err != nil {
			d.log.Warn("cannot note rewrites yet", "err", err)
		}
		if now.Before(notBefore) {
			continue
		}
		if d.settleGraves(ctx, now.Round(0)) != nil || d.countDrops(ctx, now) != nil {
			notBefore = now.Add(patience)
		}
	}
}

// countDrops counts what rewrites took out, as far as servers can be asked now.
func (d *Daemon) countDrops(ctx context.Context, now time.Time) error {
	for _, x := range d.drops.uncounted(now) {
		lines, known, err := d.linesDropped(ctx, x)
		if err != nil {
			return err
		}
		if known {
			d.drops.counted(x, lines)
		}
	}
	return nil
}

// linesDropped counts the lines of a rewrite that are nowhere in the rest of the file as it is now; known is false
// while that cannot be said.
func (d *Daemon) linesDropped(ctx context.Context, x drop) (n int64, known bool, err error) {
	t, ok := d.tailer.File(x.File)
	if !ok || t.Gone != 0 || d.desk.graves.has(x.Session) {
		return 0, true, nil // it is gone as a whole
	}
	f, ok, err := d.db.Facts(ctx, x.File)
	if err != nil || !ok {
		return 0, !ok, err
	}
	dr := d.dests.get(f.Dest)
	if dr == nil || d.db.Pending(x.File) > 0 {
		return 0, false, nil
	}
	switch dr.Health().Protocol {
	case "plain": // has no generations to compare with
		return max(0, x.To-t.Cursor.Line), true, nil
	case "ccship":
	default:
		return 0, false, nil
	}
	if x.To-x.From > mostHashed {
		return max(0, x.To-t.Cursor.Line), true, nil
	}
	left, err := linesFrom(t.File.Path, x.From, d.cfg.LineCap)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, nil // the tailer says what is wrong with it
	}
	generation := int64(x.Generation)
	has := pages{reader: d.dests.reader(f.Dest), ref: remote.Ref{Session: x.Session, Machine: &d.origin.Machine, Epoch: d.origin.Epoch, Generation: &generation}}
	for line := x.From; line < x.To; line++ {
		hash, err := has.at(ctx, line, x.To)
		switch {
		case remote.Is(err, control.CodeUnreachable), remote.Is(err, control.CodeRefusedKey):
			return 0, false, err
		case err != nil: // it does not have that generation
			return 0, true, nil
		case hash == nil: // left out
		case left[*hash] > 0:
			left[*hash]--
		default:
			n++
		}
	}
	return n, true, nil
}

// linesFrom counts the lines of a file from one on, by their hashes.
func linesFrom(path string, from, limit int64) (map[string]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, r := map[string]int{}, bufio.NewReaderSize(f, 256<<10)
	var long []byte
	for n := int64(0); len(lines) <= 2*mostHashed; n++ {
		line, oversize, err := readLine(r, &long, limit)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n >= from && !oversize {
			lines[lineHash(line)]++
		}
	}
	return lines, nil
}
