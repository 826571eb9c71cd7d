package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/transcript/redact"
)

// cooling moves everything to cold storage as soon as it is stored: the contract holds for what is there too.
type cooling struct{ full }

func (c cooling) Put(ctx context.Context, b *server.Batch) error {
	if err := c.full.Put(ctx, b); err != nil {
		return err
	}
	return c.cool(context.WithoutCancel(ctx))
}

func (c cooling) EndBlob(ctx context.Context, u *server.Upload) error {
	if err := c.full.EndBlob(ctx, u); err != nil {
		return err
	}
	return c.cool(context.WithoutCancel(ctx))
}

func (c cooling) PutDocuments(ctx context.Context, b *server.DocumentBatch) error {
	if err := c.full.PutDocuments(ctx, b); err != nil {
		return err
	}
	return c.cool(context.WithoutCancel(ctx))
}

func (c cooling) cool(ctx context.Context) error {
	_, err := c.Seal(ctx, endOfTime)
	if err == nil {
		_, err = c.Cool(ctx, endOfTime)
	}
	return err
}

// cooledAlike are the cases that read neither lines nor files, or only those that they wrote a moment before: moving
// them tests nothing more.
var cooledAlike = []string{
	"Users", "Keys", "Rotate", "Shares", "Logins", "Tickets", "SameNames", "Checkpoints", "CheckpointPages",
	"DocumentOrder", "DocumentNames", "LinkRequests", "ManyLinkRequests", "Crowding", "Changes", "Leases", "Stale", "Renew",
	"Lags", "Reset", "Urgency", "Together", "Groups", "Filters", "Paging", "Once", "UsageSums", "Uncounted", "Usage",
	"UsageContexts", "QuotaOthers", "QuotaHTTP", "Ledger", "LedgerArtifacts", "Marks", "Moments", "ShareLinks", "UploadRoom",
	"UploadLies", "ManyVersions", "SavedViews", "Digests",
}

// cooled is a suite on stores that move everything at once.
func (s suite) cooled() suite {
	with := func(t *testing.T, how store.Opening) full {
		how.Blocks = folderURL(t.TempDir())
		return cooling{s.with(t, how)}
	}
	return suite{
		cooling: true,
		with:    with,
		open:    func(t *testing.T) full { return with(t, store.Opening{}) },
		reopen:  func(t *testing.T, st full) full { return cooling{s.reopen(t, st.(cooling).full)} },
		query:   func(t *testing.T, st full, query string) int64 { return s.query(t, st.(cooling).full, query) },
	}
}

func folderURL(dir string) string { return "file://" + filepath.ToSlash(filepath.Join("/", dir)) }

// onFolder opens a store with a location in a folder.
func (s suite) onFolder(t *testing.T, how store.Opening) (st full, dir string) {
	t.Helper()
	dir = t.TempDir()
	how.Blocks = folderURL(dir)
	return s.with(t, how), dir
}

// cool seals and moves everything.
func cool(t *testing.T, st full) server.Cooled {
	t.Helper()
	seal(t, st, endOfTime)
	return kit.Try(st.Cool(t.Context(), endOfTime)).Must(t)
}

// inFolder lists the objects in a folder but for the mark of the database.
func inFolder(t *testing.T, dir string) (out []string) {
	t.Helper()
	kit.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "store" {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// audited are the problems that everything stored has.
func audited(t *testing.T, st full) (found []string) {
	t.Helper()
	_, err := audit.Run(t.Context(), st, func(f audit.Finding) { found = append(found, f.SessionID+": "+f.Problem) },
		func(audit.Progress) {})
	if err == nil {
		err = st.AuditBlobs(t.Context(), func(p string) { found = append(found, p) }, func(int64, int64) {})
	}
	kit.Must(t, err)
	return found
}

// local is how many bytes of lines and files the database has.
func (s suite) local(t *testing.T, st full) int64 {
	t.Helper()
	return s.query(t, st, `SELECT CAST(coalesce((SELECT sum(length(data)) FROM blocks), 0) +
  coalesce((SELECT sum(length(data)) FROM blob_chunks), 0) AS bigint)`)
}

// cold: lines and files leave the database, are read as before, masked and forgotten.
func (s suite) cold(t *testing.T) {
	st, dir := s.onFolder(t, store.Opening{})
	all := prose(0, 3000, 2000)
	all[1500] = object(1500, `{"key":"`+needle+`"}`)
	put(t, st, batch("s", all...))
	put(t, st, batch("other", prose(0, 9, 500)...))
	done := cool(t, st)
	before := inFolder(t, dir)
	kit.Require(t, s.local(t, st) == 0 && done.Objects >= 2 && int(done.Objects) == len(before),
		"%+v were moved, %d files are there, and %d bytes are in the database", done, len(before), s.local(t, st))
	kit.Equal(t, "moved again", cool(t, st).Objects, 0)
	st = s.reopen(t, st) // it remembers its location, and has an empty cache
	kit.Equal(t, fmt.Sprint("lines can be read, want ", len(all)), dumpOf(t, st, "s"), listed(all))
	is, err := st.Cold(t.Context())
	kit.Check(t, err == nil && is.Objects == done.Objects && is.Pending == 0 && is.Err == nil,
		"cold storage is said to have %+v, %v", is, err)

	opened(t, st, "s", func(snap server.Snapshot) {
		mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 1500, `{"key":"`+needle+`"}`)}})
	})
	kit.Must(t, st.Sweep(t.Context()))
	cool(t, st)
	after := inFolder(t, dir)
	kit.Equal(t, fmt.Sprint("objects that masking one line gave up, of ", len(before)),
		len(slices.DeleteFunc(slices.Clone(before), func(x string) bool { return slices.Contains(after, x) })), 1)
	text := strings.Join(dumpOf(t, st, "s"), "\n")
	kit.Check(t, !strings.Contains(text, needle) && s.local(t, st) == 0, "the masked line can be read, or was not moved again")
	kit.Try(st.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)).Must(t)
	kit.Must(t, st.Sweep(t.Context()))
	kit.Equal(t, "objects are left", len(inFolder(t, dir)), 1)
	for _, table := range []string{"blocks WHERE object <> ''", "cold_objects"} {
		kit.Equal(t, table+" has rows", s.query(t, st, `SELECT count(*) FROM `+table), 1)
	}
}

// coldFiles: a file of several chunks is read, masked and removed.
func (s suite) coldFiles(t *testing.T) {
	st, dir := s.onFolder(t, store.Opening{})
	content := bytes.Repeat([]byte("0123456789abcdef"), 160<<10) // 2.5 MiB
	copy(content[1<<20-5:], needle)                              // in two chunks
	sum := upload(t, st, 0, "s", "a.txt", content)
	put(t, st, batch("s", object(0, "{}")))
	cool(t, st)
	kit.Require(t, len(inFolder(t, dir)) == 4 && s.local(t, st) == 0 && blobContent(t, st, sum) == string(content),
		"%d objects, %d bytes in the database", len(inFolder(t, dir)), s.local(t, st))
	f := protocol.FileMask{Tokens: []redact.Token{{Start: 1<<20 - 5, Text: ownToken}}}
	f.SHA256 = uploadOf(0, "s", "a.txt", content).SHA256
	mask(t, st, &server.Masking{Stream: idOf(t, st, "s"), Files: []protocol.FileMask{f}})
	copy(content[1<<20-5:], ownToken)
	cool(t, st)
	now := fmt.Sprintf("%x", uploadOf(0, "s", "a.txt", content).SHA256)
	kit.Check(t, blobContent(t, st, now) == string(content) && len(inFolder(t, dir)) == 4,
		"masked, the file is not as expected; %d objects", len(inFolder(t, dir)))
	for _, path := range inFolder(t, dir) {
		b, err := os.ReadFile(path)
		kit.Check(t, err == nil && !bytes.Contains(b, []byte(needle[:5])) && !bytes.Contains(b, []byte(needle[5:])),
			"%s has the secret, %v", path, err)
	}
	kit.Try(st.Forget(t.Context(), server.Scope{All: true}, "s", 0, start)).Must(t)
	err := st.Sweep(t.Context())
	kit.Check(t, err == nil && len(inFolder(t, dir)) == 0, "forgotten, %d objects are left: %v", len(inFolder(t, dir)), err)
}

// coldPlaces: an address of another location is refused as such, and nothing counts as lost.
func (s suite) coldPlaces(t *testing.T) {
	st, _ := s.onFolder(t, store.Opening{})
	put(t, st, batch("s", prose(0, 300, 1000)...))
	cool(t, st)
	s.query(t, st, `UPDATE cold SET place = '`+folderURL(t.TempDir())+`' RETURNING 0`)
	st = s.reopen(t, st)
	err := openSession(t, st, "s").Lines(t.Context(), server.Span{To: 9}, func(server.Line) error { return nil })
	kit.Check(t, errors.Is(err, server.ErrCold) && strings.Contains(err.Error(), "another place"),
		"reading from an empty place: %v", err)
	kit.Err(t, "moving to an empty place", server.ErrCold)(st.Cool(t.Context(), endOfTime))
}

// coldReturn: what is in cold storage comes back, wholly or of some time, goes on after an interruption, and can be moved
// again. What is lost stays where it is and is counted.
func (s suite) coldReturn(t *testing.T) {
	var left atomic.Int64 // objects until an interruption; below 0: none comes
	left.Store(-1)
	st, dir := s.onFolder(t, store.Opening{Step: func(name string) error {
		if name == "return object" && left.Add(-1) == 0 {
			return errStep
		}
		return nil
	}})
	all := prose(0, 6000, 2000)
	put(t, st, batch("s", all...))
	put(t, st, batch("late", prose(0, 300, 1000)...), func(b *server.Batch) { b.Received = start.Add(time.Hour) })
	moved := cool(t, st)
	had := inFolder(t, dir)
	back := func(since, until time.Time) (server.Returned, error) {
		return st.Return(t.Context(), since, until, func(server.Returned) {})
	}
	none, err := back(start.Add(2*time.Hour), endOfTime)
	kit.Check(t, err == nil && none == (server.Returned{}) && s.local(t, st) == 0,
		"of a time without lines %+v came back: %v", none, err)
	some, err := back(start.Add(time.Minute), endOfTime)
	kit.Check(t, err == nil && some.Objects == 1 && s.local(t, st) == some.Bytes && len(inFolder(t, dir)) == len(had)-1,
		"of the later session %+v came back, %d bytes are in the database: %v", some, s.local(t, st), err)
	left.Store(2)
	kit.Err(t, "interrupted", errStep)(back(start, endOfTime))
	left.Store(-1)
	kit.Must(t, st.Sweep(t.Context())) // which a return that is not interrupted does at its end
	kit.Equal(t, fmt.Sprint("lines that can be read after an interruption, of ", len(all)), dumpOf(t, st, "s"), listed(all))
	there := inFolder(t, dir)
	kit.Require(t, len(there) == int(moved.Objects)-2 && len(there) >= 1,
		"after one session and one object %d of %d objects are there", len(there), moved.Objects)
	lost := kit.Try(os.ReadFile(there[0])).Must(t)
	kit.Must(t, os.Remove(there[0]))
	st = s.reopen(t, st)
	if done, err := back(start, endOfTime); err != nil || done.Damaged != 1 || int(done.Objects) != len(there)-1 {
		t.Errorf("with an object lost %+v came back: %v", done, err)
	}
	kit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(there[0]), 0o700), os.WriteFile(there[0], lost, 0o600)))
	st = s.reopen(t, st) // who found it lost remembers that for a while
	done, err := back(start, endOfTime)
	kit.Check(t, err == nil && done.Damaged == 0 && done.Objects == 1 && len(inFolder(t, dir)) == 0 &&
		s.local(t, st) == moved.Bytes, "at last %+v came back, %d objects are there: %v", done, len(inFolder(t, dir)), err)
	kit.Equal(t, fmt.Sprint("lines can be read, want ", len(all)), dumpOf(t, st, "s"), listed(all))
	again := cool(t, st)
	kit.Check(t, again == moved && s.local(t, st) == 0, "moved again: %+v, before %+v", again, moved)
}

// coldSealed: lines that are packed while blocks of their stream move are moved by the next pass.
func (s suite) coldSealed(t *testing.T) {
	var st full
	var packed int64
	st, _ = s.onFolder(t, store.Opening{Step: func(name string) (err error) {
		if name == "dropped what is cold" && packed == 0 {
			packed, err = st.Seal(t.Context(), endOfTime)
		}
		return err
	}})
	put(t, st, batch("s", prose(0, 300, 1000)...))
	put(t, st, batch("s", object(299, "{}")), func(b *server.Batch) { b.Head.Generation, b.Head.RewoundTo = 1, 299 })
	for range 2 {
		kit.Try(st.Cool(t.Context(), endOfTime)).Must(t)
	}
	left := s.local(t, st)
	kit.Check(t, left == 0 && packed == 1, "%d blocks were packed meanwhile; %d bytes stay in the database", packed, left)
}
