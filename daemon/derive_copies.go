package daemon

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

	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

// A transcript that comes while a daemon looks on may be new as a file only: a copy that a fork or a resume of some
// builds made of another one, or an old file that was put back. What is in it is history, whatever its records say of
// their time. A copy keeps the records' uuids, which no two records share.

const (
	longAgo    = time.Minute // what was written last before that was not written where it came
	copyAmong  = 32          // transcripts beside it that are searched, the newest first: of each
	copyHead   = 64 << 10    // bytes of the beginning
	copyTail   = 256 << 10   // and of the end
	copyNear   = 8 << 20     // and more of the newest ones, for a copy may begin at a compaction
	copyNewest = 2           // those are so many
	longestID  = 128         // bytes; a longer one says nothing
	mostIDs    = 10_000      // of one file
	mostYoung  = 256         // files that are not decided on
	mostComing = 32          // files that come within burstTime: more are not begun by anybody, they are put there
	burstTime  = 10 * time.Second
)

// arrivals decides what in files that came while the daemon runs is history. It keeps those that had no answer yet,
// and copies that may not be whole.
type arrivals struct {
	mu    sync.Mutex
	young map[tail.FileID]*arrival // guarded by mu; what they point to is of the one delivery of the file
	since time.Time                // of the burst that is counted; guarded by mu
	count int                      // files that came since then; guarded by mu
}

// arrival is a file that came.
type arrival struct {
	ids    map[string]struct{} // of its records so far
	source string              // the transcript that it is a copy of; "": none is known
	at     int64               // where in source the copy was seen last
}

// history says whether all that the file of a chunk holds at this look is history. Reading others is no reason to
// fail: what cannot be read is not what was copied.
func (a *arrivals) history(c *tail.Chunk, now time.Time) bool {
	if c.File.Kind != tail.Main {
		return false
	}
	first := c.Prev == (tail.Cursor{}) && c.From == c.Prev && c.Before == 0
	x := a.known(c.File.ID)
	switch {
	case first && now.Sub(time.Unix(0, c.File.Stat.ModTime)) > longAgo:
		return true
	case first:
		x = &arrival{ids: map[string]struct{}{}}
	case x == nil:
		return false
	}
	if x.source != "" {
		clear(x.ids)
	}
	if addIDs(x.ids, c.Lines) {
		a.keep(c.File.ID, nil)
		return false
	}
	switch {
	case len(x.ids) == 0 || x.source == "" && !bytes.Contains(c.Lines, []byte(`"usage"`)):
		a.keep(c.File.ID, x)
		return false // nothing in it could be told to anybody
	case x.source == "" && a.burst(now):
		a.keep(c.File.ID, nil)
		return true
	case x.source == "" && x.search(c.File.Path), x.source != "" && x.goesOn():
		a.keep(c.File.ID, x)
		return true
	}
	a.keep(c.File.ID, nil)
	return false
}

// burst counts a file that came, and says whether so many do that looking through others for each is out of the question.
func (a *arrivals) burst(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.since) > burstTime {
		a.since, a.count = now, 0
	}
	a.count++
	return a.count > mostComing
}

func (a *arrivals) known(id tail.FileID) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.young[id]
}

// keep keeps a file in mind; nil ends that.
func (a *arrivals) keep(id tail.FileID, x *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.young, id); x == nil {
		return
	}
	for other := range a.young {
		if len(a.young) < mostYoung {
			break
		}
		delete(a.young, other)
	}
	if a.young == nil {
		a.young = map[tail.FileID]*arrival{}
	}
	a.young[id] = x
}

// addIDs adds the uuids of the records on whole lines. told says that they tell themselves which of them are copied.
func addIDs(ids map[string]struct{}, lines []byte) (told bool) {
	for line := range bytes.Lines(lines) {
		if len(ids) >= mostIDs {
			break
		}
		r := transcript.Parse(line)
		if r.Lineage != nil && r.Lineage.ForkedFrom != "" {
			return true
		}
		if r.UUID != "" && len(r.UUID) < longestID {
			ids[strings.Clone(r.UUID)] = struct{}{}
		}
	}
	return false
}

// search looks for the file's records in the transcripts beside it.
func (x *arrival) search(path string) bool {
	for i, other := range newestBeside(path) {
		end := int64(copyTail)
		if i < copyNewest {
			end = copyNear
		}
		if x.in(other, copyHead, end) {
			return true
		}
	}
	return false
}

// newestBeside are the paths of the other sessions' transcripts in the folder, those first that were written last.
func newestBeside(path string) (paths []string) {
	type file struct {
		path string
		at   time.Time
	}
	var files []file
	entries, _ := os.ReadDir(filepath.Dir(path)) // those that were read
	for _, e := range entries {
		name := e.Name()
		if name == filepath.Base(path) || filepath.Ext(name) != ".jsonl" || strings.HasPrefix(name, "agent-") || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			files = append(files, file{filepath.Join(filepath.Dir(path), name), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.path, b.path)) })
	for _, f := range files[:min(len(files), copyAmong)] {
		paths = append(paths, f.path)
	}
	return paths
}

// in looks for one of the records in the first and in the last bytes of a transcript.
func (x *arrival) in(path string, head, end int64) bool {
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

// goesOn says whether what was added is from the source too, behind what was seen of it.
func (x *arrival) goesOn() bool {
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
	f, err := os.Open(path)
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

// findRecord looks between two offsets for a record with one of some uuids, and answers where it names it.
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
		if err != nil || n <= 2*longestID || from+int64(n) >= to {
			return 0, false
		}
		from += int64(n - 2*longestID) // a member that is cut by the end is found by the next round
	}
	return 0, false
}

// memberText is a member's text, given what follows its name; nil if it is not a short plain one.
func memberText(b []byte) []byte {
	b = b[:min(len(b), 2*longestID-len(`"uuid"`))]
	b, colon := bytes.CutPrefix(bytes.TrimLeft(b, " \t"), []byte(":"))
	b, quote := bytes.CutPrefix(bytes.TrimLeft(b, " \t"), []byte(`"`))
	text, _, ended := bytes.Cut(b, []byte(`"`))
	if !colon || !quote || !ended {
		return nil
	}
	return text
}
