package derive

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/internal/sys"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// A transcript that appears while a daemon watches may be new only as a file: a fork's copy of another transcript, a
// copy made on resume by some builds of Claude Code, or an old file that was put back. Its content is history, whatever
// the times in its records. A copy keeps the records' uuids, which are otherwise unique.

const (
	oldFile      = time.Minute // a file last written before that was not written where it appeared
	siblingCount = 32          // transcripts in the same folder that are searched, the newest first
	headSize     = 64 << 10    // bytes that are searched at the beginning of each
	tailSize     = 256 << 10   // and at its end
	newestSize   = 8 << 20     // at the end of the newest ones, because a copy may begin at a compaction
	newestCount  = 2           // the number of those
	maxIDSize    = 128         // bytes; longer uuids are ignored
	maxIDs       = 10_000      // of one file
	maxUndecided = 256         // files
	maxBurstSize = 32          // files that appear within burstTime; more are not sessions that begin
	burstTime    = 10 * time.Second
)

// CopyDetector decides for files that appear while the daemon runs whether their content is history. Its zero value is
// ready. It is safe for concurrent use with different files.
type CopyDetector struct {
	mu         sync.Mutex
	candidates map[tail.FileID]*candidate // undecided files, and copies that may not be complete; guarded by mu
	burstStart time.Time                  // guarded by mu
	burstSize  int                        // files that appeared since then; guarded by mu
}

// candidate is a file that may be a copy. It is owned by the delivery of that file.
type candidate struct {
	ids    map[string]struct{} // uuids of its records
	source string              // the transcript that it is a copy of; "": none is known
	at     int64               // where in source a record of the copy was found last
}

// isCopy reports whether everything that the file of a chunk holds now is history. A transcript that cannot be read is
// not taken for the source of a copy.
func (d *CopyDetector) isCopy(c *tail.Chunk, now time.Time) bool {
	if c.File.Kind != tail.Main {
		return false
	}
	first := c.Prev == (tail.Cursor{}) && c.From == c.Prev && c.Before == 0
	x := d.candidate(c.File.ID)
	switch {
	case first && now.Sub(time.Unix(0, c.File.Stat.ModTime)) > oldFile:
		return true
	case first:
		x = &candidate{ids: map[string]struct{}{}}
	case x == nil:
		return false
	}
	if x.source != "" {
		clear(x.ids)
	}
	if addIDs(x.ids, c.Lines) {
		d.keep(c.File.ID, nil)
		return false
	}
	switch {
	case len(x.ids) == 0 || x.source == "" && !bytes.Contains(c.Lines, []byte(`"usage"`)):
		d.keep(c.File.ID, x)
		return false // nothing in it has effects anyway
	case x.source == "" && d.burst(now):
		d.keep(c.File.ID, nil)
		return true
	case x.source == "" && x.findSource(c.File.Path), x.source != "" && x.continues():
		d.keep(c.File.ID, x)
		return true
	}
	d.keep(c.File.ID, nil)
	return false
}

// burst counts a file that appeared, and reports whether there are too many to search for the source of each.
func (d *CopyDetector) burst(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.burstStart) > burstTime {
		d.burstStart, d.burstSize = now, 0
	}
	d.burstSize++
	return d.burstSize > maxBurstSize
}

func (d *CopyDetector) candidate(id tail.FileID) *candidate {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.candidates[id]
}

// keep remembers a file; nil forgets it.
func (d *CopyDetector) keep(id tail.FileID, x *candidate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.candidates, id); x == nil {
		return
	}
	for other := range d.candidates {
		if len(d.candidates) < maxUndecided {
			break
		}
		delete(d.candidates, other)
	}
	if d.candidates == nil {
		d.candidates = map[tail.FileID]*candidate{}
	}
	d.candidates[id] = x
}

// addIDs adds the uuids of the records on whole lines. marked reports that the records themselves say which of them are
// copied.
func addIDs(ids map[string]struct{}, lines []byte) (marked bool) {
	for line := range bytes.Lines(lines) {
		if len(ids) >= maxIDs {
			break
		}
		r := transcript.Parse(line)
		if r.Lineage != nil && r.Lineage.ForkedFrom != "" {
			return true
		}
		if r.UUID != "" && len(r.UUID) < maxIDSize {
			ids[strings.Clone(r.UUID)] = struct{}{}
		}
	}
	return false
}

// findSource looks for the file's records in the other transcripts of its folder.
func (x *candidate) findSource(path string) bool {
	for i, other := range newestSiblings(path) {
		end := int64(tailSize)
		if i < newestCount {
			end = newestSize
		}
		if x.in(other, headSize, end) {
			return true
		}
	}
	return false
}

// newestSiblings returns the paths of the other sessions' transcripts in the folder, newest first.
func newestSiblings(path string) (paths []string) {
	type file struct {
		path string
		at   time.Time
	}
	var files []file
	entries, _ := os.ReadDir(filepath.Dir(path)) // a partial list is enough
	for _, e := range entries {
		name := e.Name()
		if name == filepath.Base(path) || filepath.Ext(name) != ".jsonl" || strings.HasPrefix(name, "agent-") ||
			!e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			files = append(files, file{filepath.Join(filepath.Dir(path), name), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.path, b.path)) })
	for _, f := range files[:min(len(files), siblingCount)] {
		paths = append(paths, f.path)
	}
	return paths
}

// in looks for one of the records in the first head bytes and in the last end bytes of a transcript.
func (x *candidate) in(path string, head, end int64) bool {
	f, size, err := openSized(path)
	if err != nil {
		return false
	}
	defer f.Close()
	at, found := findRecord(f, 0, min(head, size), x.ids)
	if !found {
		at, found = findRecord(f, max(0, size-end), size, x.ids)
	}
	if found {
		x.source, x.at = path, at
	}
	return found
}

// continues reports whether the added records also come from the source, after those found before.
func (x *candidate) continues() bool {
	f, size, err := openSized(x.source)
	if err != nil {
		return false
	}
	defer f.Close()
	at, found := findRecord(f, x.at, size, x.ids)
	if found {
		x.at = at
	}
	return found
}

func openSized(path string) (*os.File, int64, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// findRecord looks between two offsets for a record with one of some uuids, and returns the offset of its uuid member.
func findRecord(r io.ReaderAt, from, to int64, ids map[string]struct{}) (at int64, found bool) {
	member := []byte(`"uuid"`)
	buf := make([]byte, max(0, min(256<<10, to-from)))
	for from < to {
		n, err := r.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		for b, i := buf[:n], 0; ; i += len(member) {
			next := bytes.Index(b[i:], member)
			if next < 0 {
				break
			}
			i += next
			if _, found := ids[string(memberText(b[i+len(member):]))]; found {
				return from + int64(i), true
			}
		}
		if err != nil || n <= 2*maxIDSize || from+int64(n) >= to {
			return 0, false
		}
		from += int64(n - 2*maxIDSize) // the next round finds a member that is cut off by the end
	}
	return 0, false
}

// memberText returns the string value of a member, given what follows its name; nil if it is not short and plain.
func memberText(b []byte) []byte {
	b = b[:min(len(b), 2*maxIDSize-len(`"uuid"`))]
	b, colon := bytes.CutPrefix(bytes.TrimLeft(b, " \t"), []byte(":"))
	b, quote := bytes.CutPrefix(bytes.TrimLeft(b, " \t"), []byte(`"`))
	text, _, ended := bytes.Cut(b, []byte(`"`))
	if !colon || !quote || !ended {
		return nil
	}
	return text
}
