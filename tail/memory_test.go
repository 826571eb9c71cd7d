package tail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// memory is a Sink and its Cursors in memory that holds the tailer to its contract: every chunk is checked against
// what was stored before, and each file's bytes are replayed.
type memory struct {
	t       *testing.T
	mu      sync.Mutex
	files   map[FileID]*kept
	calls   int
	order   []string // names of the files delivered, chunk by chunk
	forgot  []FileID
	noSpace [2]bool

	answer func(*Chunk) Result                          // nil: durable
	fail   func(n int) error                            // of the n-th call, from 1
	note   func(chunks []Chunk)                         // before anything happens, without the lock
	update func(ctx context.Context, f []Tracked) error // instead of storing
	asked  func()                                       // before marks are answered, without the lock
	keeps  func(id FileID) bool                         // what cannot be forgotten; nil: nothing
	bell   chan struct{}
}

// kept is what the memory holds of one file.
type kept struct {
	Tracked
	marks       []Mark
	content     []byte // all lines up to the cursor; those beyond the cap as dots
	provisional []byte
	oversize    []Oversize
	sent        int64 // bytes delivered in all, over all generations
	sealed      int
	provisions  int // how often a last line came without its newline
	chunks      int
	live        bool
}

func newMemory(t *testing.T) *memory {
	return &memory{t: t, files: map[FileID]*kept{}, bell: make(chan struct{}, 1)}
}

func (m *memory) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

func (m *memory) Deliver(ctx context.Context, chunks []Chunk) ([]Result, error) {
	if m.note != nil {
		m.note(chunks)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.ring()
	if m.calls++; m.fail != nil {
		if err := m.fail(m.calls); err != nil {
			return nil, err
		}
	}
	results := make([]Result, len(chunks))
	for i := range chunks {
		results[i] = m.take(&chunks[i])
	}
	return results, nil
}

func (m *memory) take(c *Chunk) Result {
	k := m.files[c.File.ID]
	if k == nil {
		k = &kept{}
	}
	if k.Cursor != c.Prev {
		return Result{Err: ErrStale}
	}
	kit.Err(m.t, c.File.Path, nil)(check(k, c))
	if m.answer != nil {
		if r := m.answer(c); r.Err != nil {
			return r
		}
	}
	m.files[c.File.ID] = k
	m.order = append(m.order, c.File.Name)
	k.apply(c)
	return Result{}
}

// check holds a chunk to what is promised of it.
func check(k *kept, c *Chunk) error {
	switch {
	case c.From != c.Prev && c.From.Generation != c.Prev.Generation+1:
		return fmt.Errorf("rewind from %+v to %+v", c.Prev, c.From)
	case c.From.Offset > c.Prev.Offset || c.To.Offset < c.From.Offset || c.To.Generation != c.From.Generation:
		return fmt.Errorf("from %+v to %+v", c.From, c.To)
	case c.Tracked.Cursor != c.To:
		return errors.New("tracked cursor is not To")
	case c.From == c.Prev && c.To == c.From && c.Provisional == nil:
		return errors.New("a chunk of nothing")
	case c.Sealed && !bytes.HasPrefix(c.Lines, append(slices.Clone(k.provisional), '\n')):
		return errors.New("sealed line is not the provisional one")
	case c.From == c.Prev && k.Provisional.Length > 0 && !c.Sealed:
		return errors.New("provisional line neither sealed nor rewound")
	case c.Provisional != nil && (c.Tracked.Provisional != Provisional{int64(len(c.Provisional)), hashOf(c.Provisional)}):
		return errors.New("provisional line not in tracked")
	case c.File.ID == 0 || c.File.Copy < 1 || c.File != c.Tracked.File:
		return fmt.Errorf("file %+v", c.File)
	case c.Oversize == nil && int64(len(c.Lines)) != c.To.Offset-c.From.Offset:
		return fmt.Errorf("%d bytes for %+v to %+v", len(c.Lines), c.From, c.To)
	case len(c.Lines) > 0 && c.Lines[len(c.Lines)-1] != '\n':
		return errors.New("half a line")
	case c.Oversize == nil && int64(bytes.Count(c.Lines, []byte{'\n'})) != c.To.Line-c.From.Line:
		return fmt.Errorf("lines %d to %d", c.From.Line, c.To.Line)
	}
	return checkHashes(k, c)
}

func checkHashes(k *kept, c *Chunk) error {
	if c.Oversize != nil {
		return nil
	}
	all := append(slices.Clone(k.content[:c.From.Offset]), c.Lines...)
	last := int64(0)
	for _, m := range k.marks {
		if m.Offset <= c.From.Offset {
			last = m.Offset
		}
	}
	for _, m := range c.Marks {
		if m.Offset <= last || m.Offset <= c.From.Offset || m.Offset > c.To.Offset || all[m.Offset-1] != '\n' {
			return fmt.Errorf("mark %+v after %d in %+v to %+v", m, last, c.From, c.To)
		}
		if m.Hash != hashOf(all[last:m.Offset]) || m.Line != int64(bytes.Count(all[:m.Offset], []byte{'\n'})) {
			return fmt.Errorf("mark %+v is wrong", m)
		}
		if m.Offset-last > 2*markGap && bytes.Count(all[last:m.Offset], []byte{'\n'}) > 2*markGap {
			return fmt.Errorf("mark %+v is too far from %d", m, last)
		}
		last = m.Offset
	}
	to := c.To
	dotted := len(k.oversize) > 0 && k.oversize[len(k.oversize)-1].Offset+k.oversize[len(k.oversize)-1].Length > to.Offset-AnchorSize
	anchored := dotted || to.Anchor == hashOf(all[max(0, len(all)-AnchorSize):])
	if to.Mark != last || to.Segment != hashOf(all[last:]) || !anchored {
		return fmt.Errorf("cursor %+v is wrong, last mark %d", to, last)
	}
	return nil
}

func (k *kept) apply(c *Chunk) {
	k.content = append(k.content[:c.From.Offset:c.From.Offset], c.Lines...)
	// Copies of k are out there, which share its slices: nothing is changed in place.
	k.marks = slices.DeleteFunc(slices.Clone(k.marks), func(m Mark) bool { return m.Offset > c.From.Offset })
	k.marks = append(k.marks, c.Marks...)
	k.oversize = slices.DeleteFunc(slices.Clone(k.oversize), func(o Oversize) bool { return o.Offset >= c.From.Offset })
	if o := c.Oversize; o != nil {
		k.content = append(k.content, bytes.Repeat([]byte{'.'}, int(o.Length))...)
		k.content = append(k.content, '\n')
		k.oversize = append(k.oversize, *o)
	}
	k.provisional = bytes.Clone(c.Provisional)
	k.sent += int64(len(c.Lines))
	if c.Sealed {
		k.sealed++
	}
	if c.Provisional != nil {
		k.provisions++
	}
	k.chunks++
	k.live = c.Live
	k.Tracked = c.Tracked
}

func (m *memory) HasSpace(live bool) bool {
	return kit.Under(&m.mu, func() bool { return !m.noSpace[0] && (live || !m.noSpace[1]) })
}

func (m *memory) Load(context.Context) ([]Tracked, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Tracked
	for _, k := range m.files {
		all = append(all, k.Tracked)
	}
	return all, nil
}

func (m *memory) Reload(_ context.Context, id FileID) (Tracked, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.files[id]; k != nil {
		return k.Tracked, nil
	}
	return Tracked{}, errors.New("unknown file")
}

func (m *memory) Marks(_ context.Context, id FileID) ([]Mark, error) {
	if m.asked != nil {
		m.asked()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.files[id]; k != nil {
		return slices.Clone(k.marks), nil
	}
	return nil, nil
}

func (m *memory) Update(ctx context.Context, files []Tracked) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.ring()
	if m.update != nil {
		if err := m.update(ctx, files); err != nil {
			return err
		}
	}
	for _, f := range files {
		k := m.files[f.File.ID]
		if k == nil {
			m.t.Errorf("update of a file that was never delivered: %+v", f)
			continue
		}
		f.Cursor, f.Provisional = k.Cursor, k.Provisional
		k.Tracked = f
	}
	return nil
}

func (m *memory) Forget(_ context.Context, ids []FileID) ([]FileID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.ring()
	ids = slices.DeleteFunc(slices.Clone(ids), func(id FileID) bool { return m.keeps != nil && m.keeps(id) })
	m.forgot = append(m.forgot, ids...)
	for _, id := range ids {
		delete(m.files, id)
	}
	return ids, nil
}

// named answers copies of what is held of all files of a name, the plain one first.
func (m *memory) named(name string) []kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []kept
	for _, k := range m.files {
		if k.File.Name == name {
			all = append(all, *k)
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return a.File.Copy - b.File.Copy })
	return all
}

// do changes how the memory behaves.
func (m *memory) do(change func()) { kit.Locked(&m.mu, change) }

// dots is a file's content as the memory replays it: lines beyond the cap as dots.
func dots(content []byte, limit int) []byte {
	var out []byte
	for line := range bytes.Lines(content) {
		if n := len(bytes.TrimSuffix(line, []byte{'\n'})); n > limit {
			line = append(bytes.Repeat([]byte{'.'}, n), '\n')
		}
		out = append(out, line...)
	}
	return out
}

func sha(b []byte) [32]byte { return sha256.Sum256(b) }
