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
	deriveCrashEnv = "CCSHIP_TEST_CRASH_DERIVE"
	crashFiles     = 6
)

// crashKills is how often a child is killed: a few times in make test, as often as make crash wants there.
func crashKills() int { return kit.SettingNumber("kills", 5) }

// A child commits lines and derives from them, a row for every line, until it is killed, again and again over one
// file. What a Commit returned for must be there, and a position never without its rows, nor they without it.
func TestKilledWhileDeriving(t *testing.T) {
	if at := os.Getenv(deriveCrashEnv); at != "" {
		deriveChild(at) // it is killed, and would leave a folder of its own
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	kills := crashKills()
	said := map[tail.FileID]int64{}
	for round := range kills {
		deriveAndKill(t, path, 20+rand.IntN(200), said)
		db := open(t, state.Options{Path: path})
		if len(db.State.Advice()) > 0 {
			t.Fatalf("round %d: %+v", round, db.State.Advice())
		}
		for id := range tail.FileID(crashFiles) {
			checkDerived(t, db, id+1, said[id+1])
		}
		closeNow(t, db)
		if t.Failed() {
			t.Fatalf("after kill %d", round+1)
		}
	}
	t.Logf("%d kills, lines folded: %v", kills, said)
}

// deriveAndKill starts a child and kills it after it said so many lines.
func deriveAndKill(t *testing.T, path string, lines int, said map[tail.FileID]int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileDeriving$")
	cmd.Env = append(os.Environ(), deriveCrashEnv+"="+path)
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
		var id tail.FileID
		var line int64
		if _, err := fmt.Sscanf(in.Text(), "derived %d %d", &id, &line); err != nil {
			t.Errorf("child said %q", in.Text())
		}
		said[id] = max(said[id], line)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("child ended by itself: %v", cmd.ProcessState)
	}
}

func checkDerived(t *testing.T, db *DB, id tail.FileID, said int64) {
	t.Helper()
	u := kept(t, db, id)
	f, err := db.State.Files.Reload(t.Context(), id)
	if u.Place.Line < said || err == nil && u.Place.Line > f.Cursor.Line {
		t.Errorf("file %d: folded to %d, it said %d, the cursor is at %d", id, u.Place.Line, said, f.Cursor.Line)
	}
	if u.Place.Line > 0 && string(u.Fold) != crashFrame(id, u.Place.Line) {
		t.Errorf("file %d: the fold is not that of line %d", id, u.Place.Line)
	}
	rows := int64(0)
	for _, b := range peek(t, db, uint64(id), 0, outbox.Limits{Entries: 1 << 30}).Batches {
		if b.Kind == outbox.Checkpoints {
			if rows++; string(b.Frame) != fmt.Sprint(rows) {
				t.Errorf("file %d: row %d holds %s", id, rows, b.Frame)
			}
		}
	}
	if rows != u.Place.Line {
		t.Errorf("file %d: %d rows of %d lines", id, rows, u.Place.Line)
	}
}

func crashFrame(id tail.FileID, line int64) string {
	return strings.Repeat(fmt.Sprintf("%d:%d ", id, line), 1+int(line*7919%3000))
}

func deriveChild(path string) {
	db, err := Open(context.Background(), state.Options{Path: path, FreeDisk: plenty})
	if err != nil {
		panic(err)
	}
	var out sync.Mutex
	var all sync.WaitGroup
	for id := range tail.FileID(crashFiles) {
		all.Go(func() {
			deriveWork(db, id+1, func(text string) {
				out.Lock()
				defer out.Unlock()
				_, _ = os.Stdout.WriteString(text)
			})
		})
	}
	all.Wait()
}

// deriveWork appends lines to one file for ever, and derives from each.
func deriveWork(db *DB, id tail.FileID, say func(string)) {
	ctx := context.Background()
	f, _ := db.State.Files.Reload(ctx, id)
	u, _, err := db.Sessions.Projection(ctx, id)
	if err != nil {
		panic(err)
	}
	for line := f.Cursor.Line; ; line++ {
		if errs, err := db.State.Commit(ctx, []state.Step{advance(id, line, line+1, 10)}); err != nil || errs[0] != nil {
			panic(fmt.Sprint(errs, err))
		}
		for u.Place.Line < line+1 { // a killed child may have left one
			next := placeAt(u.Place.Line + 1)
			d := Derivation{File: id, Prev: u.Place, Projection: &Projection{Place: next, Fold: []byte(crashFrame(id, next.Line))},
				Batches: []outbox.Batch{{Kind: outbox.Checkpoints, Items: 1, Frame: fmt.Append(nil, next.Line)}}}
			if errs, err := db.Commit(ctx, []Derivation{d}); err != nil || errs[0] != nil {
				panic(fmt.Sprint(errs, err))
			}
			u.Place = next
			say(strings.TrimSpace(fmt.Sprintf("derived %d %d", id, next.Line)) + "\n")
		}
	}
}
