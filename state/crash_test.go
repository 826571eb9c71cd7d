package state

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/tail"
)

const (
	crashEnv   = "CCSHIP_TEST_CRASH_STATE"
	crashFiles = 6
)

// claims are what a child said before it was killed, by file.
type claims struct {
	committed map[tail.FileID]int64 // its Commit had returned
	asked     map[tail.FileID]int64 // it was about to settle up to here
}

// crashKills is how often a child is killed: a few times in make test, as often as make crash wants there.
func crashKills() int { return kit.SettingNumber("kills", 5) }

// A child commits, settles and compacts in several goroutines until it is killed, again and again over one file. What
// a Commit answered for must be there, and what is there must be whole.
func TestKilledWhileCommitting(t *testing.T) {
	if at := os.Getenv(crashEnv); at != "" {
		crashChild(at) // it is killed, and would leave a folder of its own
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	kills := crashKills()
	said := claims{map[tail.FileID]int64{}, map[tail.FileID]int64{}}
	compactions := 0
	for round := range kills {
		compactions += runAndKill(t, path, 20+rand.IntN(300), said)
		db := open(t, Options{Path: path})
		if len(db.Advice()) > 0 {
			t.Fatalf("round %d: %+v", round, db.Advice())
		}
		checkIndex(t, db)
		for id := range tail.FileID(crashFiles) {
			checkCrashed(t, db, id+1, said)
		}
		closeNow(t, db)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	t.Logf("%d kills, %d compactions, lines committed: %v", kills, compactions, said.committed)
}

// runAndKill starts a child, kills it after it said so many lines, and notes what it said.
func runAndKill(t *testing.T, path string, lines int, said claims) (compactions int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileCommitting$")
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for n := 0; in.Scan(); n++ {
		if n == lines {
			_ = cmd.Process.Kill()
		}
		f := strings.Fields(in.Text())
		switch {
		case len(f) == 1 && f[0] == "compacted":
			compactions++
		case len(f) == 3:
			id, _ := strconv.ParseInt(f[1], 10, 64)
			line, _ := strconv.ParseInt(f[2], 10, 64)
			into := said.committed
			if f[0] == "settle" {
				into = said.asked
			}
			into[tail.FileID(id)] = max(into[tail.FileID(id)], line)
		default:
			t.Errorf("child said %q", in.Text())
		}
	}
	_ = cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("child ended by itself: %v", cmd.ProcessState)
	}
	return compactions
}

// checkCrashed checks one file: its rows follow on each other up to its cursor, and nothing committed is missing.
func checkCrashed(t *testing.T, db *DB, id tail.FileID, said claims) {
	t.Helper()
	f, err := db.Files.Reload(context.Background(), id)
	if err != nil {
		if said.committed[id] > 0 {
			t.Errorf("file %d is gone: %v", id, err)
		}
		return
	}
	if f.Cursor.Line < said.committed[id] {
		t.Errorf("file %d: cursor at %d, committed up to %d", id, f.Cursor.Line, said.committed[id])
	}
	rows := peek(t, db, uint64(id), 0, outbox.Limits{Entries: 1 << 30}).Batches
	next := f.Cursor.Line
	if len(rows) > 0 {
		next = rows[0].From.Line
	}
	if next > said.asked[id] {
		t.Errorf("file %d: rows begin at %d, settled at most up to %d", id, next, said.asked[id])
	}
	for _, b := range rows {
		if b.From.Line != next || string(b.Frame) != crashFrame(id, b.From.Line) {
			t.Errorf("file %d: row from %d, want %d, %d bytes", id, b.From.Line, next, len(b.Frame))
		}
		next = b.To.Line
	}
	if next != f.Cursor.Line {
		t.Errorf("file %d: rows end at %d, cursor at %d", id, next, f.Cursor.Line)
	}
	marks, err := db.Files.Marks(context.Background(), id)
	if err != nil || int64(len(marks)) != f.Cursor.Line {
		t.Errorf("file %d: %d marks for %d lines, %v", id, len(marks), f.Cursor.Line, err)
	}
}

func crashFrame(id tail.FileID, line int64) string {
	return strings.Repeat(fmt.Sprintf("%d:%d ", id, line), 1+int(line*7919%3000))
}

// crashChild works until it is killed.
func crashChild(path string) {
	db, err := Open(context.Background(), Options{Path: path, FreeDisk: plenty})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		_, _ = io.WriteString(os.Stdout, fmt.Sprintf(format+"\n", args...))
	}
	var all sync.WaitGroup
	for id := range tail.FileID(crashFiles) {
		all.Go(func() { crashWork(db, id+1, say) })
	}
	all.Go(func() {
		for {
			if err := db.Compact(context.Background()); err != nil {
				panic(err)
			}
			say("compacted")
		}
	})
	all.Wait()
}

// crashWork appends lines to one file for ever, and settles its first rows now and then.
func crashWork(db *DB, id tail.FileID, say func(string, ...any)) {
	ctx := context.Background()
	f, _ := db.Files.Reload(ctx, id)
	for line := f.Cursor.Line; ; line++ {
		s := advance(id, line, line+1, 0)
		s.Batches[0].Frame = []byte(crashFrame(id, line))
		if errs, err := db.Commit(ctx, []Step{s}); err != nil || errs[0] != nil {
			panic(fmt.Sprint(errs, err))
		}
		say("committed %d %d", id, line+1)
		if line%5 != 4 {
			continue
		}
		p, err := db.Outbox.Peek(ctx, server, uint64(id), 0, outbox.Limits{Entries: 1 + rand.IntN(9)})
		if err != nil {
			panic(err)
		}
		var seqs []uint64
		for _, b := range p.Batches {
			seqs = append(seqs, b.Seq)
		}
		if len(seqs) == 0 {
			continue
		}
		say("settle %d %d", id, p.Batches[len(p.Batches)-1].To.Line)
		if err := db.Outbox.Settle(ctx, []outbox.Settlement{{Dest: server, Stream: uint64(id), Seqs: seqs}}); err != nil {
			panic(err)
		}
	}
}
