package projection

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

const (
	crashEnv   = "CCSHIP_TEST_CRASH_STATE"
	crashFiles = 6
)

// said is what a child said of a file before it was killed, as lines up to which it had happened.
type said struct {
	committed int64 // its Commit had returned
	derived   int64 // a derivation of it had
	asked     int64 // it was about to settle up to here
}

// A child commits lines, derives a row from every one of them, settles and compacts, in several goroutines until it is
// killed, again and again over one file. What a Commit answered for must be there, what is there must be whole, and a
// position is never without its rows, nor they without it.
func TestKilledWhileCommitting(t *testing.T) {
	if at := os.Getenv(crashEnv); at != "" {
		crashChild(at) // it is killed, and would leave a folder of its own
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	kills := kit.SettingNumber("kills", 5) // as often as make crash wants there
	all := map[tail.FileID]said{}
	for round := range kills {
		runAndKill(t, path, 20+rand.IntN(400), all)
		db := open(t, state.Options{Path: path})
		if len(db.State.Advice()) > 0 {
			t.Fatalf("round %d: %+v", round, db.State.Advice())
		}
		for id := range tail.FileID(crashFiles) {
			checkCrashed(t, db, id+1, all[id+1])
		}
		closeNow(t, db)
		kit.Require(t, !t.Failed(), "after kill %d", round+1)
	}
	t.Logf("%d kills: %v", kills, all)
}

// runAndKill starts a child, kills it after it said so many lines, and notes what it said.
func runAndKill(t *testing.T, path string, lines int, all map[tail.FileID]said) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileCommitting$")
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	out := kit.Try(cmd.StdoutPipe()).Must(t)
	cmd.Stderr = os.Stderr
	kit.Must(t, cmd.Start())
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		if n == lines {
			_ = cmd.Process.Kill()
		}
		var what string
		var id tail.FileID
		var line int64
		if _, err := fmt.Sscan(in.Text(), &what, &id, &line); err != nil {
			t.Errorf("child said %q", in.Text())
		}
		s := all[id]
		of := map[string]*int64{"committed": &s.committed, "derived": &s.derived, "settles": &s.asked}[what]
		*of = max(*of, line)
		all[id] = s
	}
	_ = cmd.Wait()
	kit.Require(t, !cmd.ProcessState.Exited(), "child ended by itself: %v", cmd.ProcessState)
}

// checkCrashed checks one file: its rows follow on each other up to its cursor, and nothing committed is missing.
func checkCrashed(t *testing.T, db *DB, id tail.FileID, s said) {
	t.Helper()
	f, err := db.State.Files.Reload(t.Context(), id)
	if err != nil {
		kit.Check(t, s.committed <= 0, "file %d is gone: %v", id, err)
		return
	}
	u := kept(t, db, id)
	kit.Check(t, f.Cursor.Line >= s.committed && u.Place.Line >= s.derived && u.Place.Line <= f.Cursor.Line,
		"file %d: cursor at %d, folded to %d, it said %+v", id, f.Cursor.Line, u.Place.Line, s)
	kit.Check(t, u.Place.Line <= 0 || string(u.Fold) == crashFrame(id, u.Place.Line),
		"file %d: the fold is not that of line %d", id, u.Place.Line)
	derived, next := int64(0), int64(-1)
	for _, b := range peek(t, db, uint64(id), 0, outbox.Limits{Entries: 1 << 30}).Batches {
		if b.Kind == outbox.Checkpoints {
			if derived++; string(b.Frame) != fmt.Sprint(derived) {
				t.Errorf("file %d: row %d holds %s", id, derived, b.Frame)
			}
			continue
		}
		if next < 0 {
			next = b.From.Line
			kit.Check(t, next <= s.asked, "file %d: rows begin at %d, settled at most up to %d", id, next, s.asked)
		}
		kit.Check(t, b.From.Line == next && string(b.Frame) == crashFrame(id, b.From.Line),
			"file %d: row from %d, want %d, %d bytes", id, b.From.Line, next, len(b.Frame))
		next = b.To.Line
	}
	kit.Equal(t, fmt.Sprintf("file %d: lines of rows", id), derived, u.Place.Line)
	kit.Check(t, (next >= 0 || f.Cursor.Line <= s.asked) && (next < 0 || next == f.Cursor.Line),
		"file %d: rows end at %d, cursor at %d, settled at most up to %d", id, next, f.Cursor.Line, s.asked)
	marks, err := db.State.Files.Marks(t.Context(), id)
	kit.Check(t, err == nil && int64(len(marks)) == f.Cursor.Line, "file %d: %d marks for %d lines, %v", id,
		len(marks), f.Cursor.Line, err)
}

func crashFrame(id tail.FileID, line int64) string {
	return strings.Repeat(fmt.Sprintf("%d:%d ", id, line), 1+int(line*7919%3000))
}

// crashChild works until it is killed.
func crashChild(path string) {
	db, err := Open(context.Background(), state.Options{Path: path, FreeDisk: plenty})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	say := func(what string, id tail.FileID, line int64) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(what, id, line)
	}
	var all sync.WaitGroup
	for id := range tail.FileID(crashFiles) {
		all.Go(func() { crashWork(db, id+1, say) })
	}
	all.Go(func() {
		for {
			if err := db.State.Compact(context.Background()); err != nil {
				panic(err)
			}
		}
	})
	all.Wait()
}

// crashWork appends lines to one file for ever, derives from each, and settles the first ones now and then.
func crashWork(db *DB, id tail.FileID, say func(what string, id tail.FileID, line int64)) {
	ctx := context.Background()
	must := func(errs []error, err error) {
		if err != nil || errs[0] != nil {
			panic(fmt.Sprint(errs, err))
		}
	}
	f, _ := db.State.Files.Reload(ctx, id)
	u, _, err := db.Sessions.Projection(ctx, id)
	must([]error{nil}, err)
	for line := f.Cursor.Line; ; line++ {
		s := advance(id, line, line+1, 0)
		s.Batches[0].Frame, s.Marks = []byte(crashFrame(id, line)), []tail.Mark{{Offset: 10*line + 10, Line: line + 1, Hash: 1}}
		must(db.State.Commit(ctx, []state.Step{s}))
		say("committed", id, line+1)
		for u.Place.Line < line+1 { // a killed child may have left one
			next := placeAt(u.Place.Line + 1)
			must(db.Commit(ctx, []Derivation{{File: id, Prev: u.Place, Projection: &Projection{Place: next, Fold: []byte(crashFrame(id, next.Line))},
				Batches: []outbox.Batch{{Kind: outbox.Checkpoints, Items: 1, Frame: fmt.Append(nil, next.Line)}}}}))
			u.Place = next
			say("derived", id, next.Line)
		}
		if line%5 != 4 {
			continue
		}
		p, err := db.State.Outbox.Peek(ctx, server, uint64(id), 0, outbox.Limits{Entries: 1 << 30})
		must([]error{nil}, err)
		var rows []outbox.Batch
		most := 1 + rand.IntN(9)
		for _, b := range p.Batches {
			if b.Kind == outbox.Objects && len(rows) < most {
				rows = append(rows, b)
			}
		}
		if len(rows) == 0 {
			continue
		}
		say("settles", id, rows[len(rows)-1].To.Line)
		var seqs []uint64
		for _, b := range rows {
			seqs = append(seqs, b.Seq)
		}
		must([]error{nil}, db.State.Outbox.Settle(ctx, []outbox.Settlement{{Dest: server, Stream: uint64(id), Seqs: seqs}}))
	}
}
