//go:build unix

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// killAt in the environment makes the test binary be the server, which kills itself at a step: "3 write blocks" is the
// third time that it comes to that step.
const killAt = "CCSHIP_SERVER_TEST_KILL_AT"

// asKilled runs that server and ends the process, if the environment asks for it.
func asKilled() {
	if where := os.Getenv(killAt); where != "" {
		os.Exit(run(diesAtStep(where), os.Args[1:], os.Stdout, os.Stderr))
	}
}

func diesAtStep(where string) context.Context {
	times, name, _ := strings.Cut(where, " ")
	left := &atomic.Int64{}
	n, _ := strconv.ParseInt(times, 10, 64) // 0 never comes
	left.Store(n)
	return context.WithValue(context.Background(), stepKey{}, func(step string) error {
		if step == name && left.Add(-1) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it is dead
		}
		return nil
	})
}

// TestKilledAtSteps kills the server at each step of packing lines and, if it is run long, of moving them to cold
// storage. The next one does the rest, and every line is there. lab kill runs it long, on both databases.
func TestKilledAtSteps(t *testing.T) {
	rounds := kit.SettingNumber("rounds", 0)
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "server.db")
		newStepped(t, "sqlite:"+path, "sqlite", path).run(rounds)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		if rounds == 0 {
			t.Skip("lab kill runs it")
		}
		at := pgtest.New(t, pgtest.Fast).URL("postgres")
		newStepped(t, at, "pgx", at).run(rounds)
	})
}

// stepped is a store whose servers die at steps.
type stepped struct {
	t     *testing.T
	store string
	key   string
	db    *sql.DB
	cold  []string // flags of servers that move
	sent  []string
}

func newStepped(t *testing.T, store, driver, at string) *stepped {
	t.Helper()
	db := kit.Try(sql.Open(driver, at)).Must(t)
	t.Cleanup(func() { db.Close() })
	key, _ := tool(t, 0, "key", "create", "--name", "first", "--store", store)
	return &stepped{t: t, store: store, key: strings.TrimSpace(key), db: db,
		cold: []string{"--blocks", "file://" + filepath.ToSlash(t.TempDir()), "--cold-after", "1s"}}
}

// packed and moved count what is still to do.
const (
	packed = `SELECT count(*) FROM lines`
	moved  = `SELECT (SELECT count(*) FROM lines) + (SELECT count(*) FROM blocks WHERE length(data) > 0)`
)

// run has no servers move unless it runs long: what a killed one had leased rests for 20 s.
func (s *stepped) run(rounds int) {
	for round := range max(1, rounds) {
		for _, step := range []string{"write blocks", "remove packed lines", "commit blocks", "committed blocks"} {
			s.one(fmt.Sprintf("%d %s", 1+round%3, step), packed)
		}
	}
	for round := range rounds {
		for _, step := range []string{"note object", "write object", "read object back", "drop what is cold", "dropped what is cold"} {
			s.one(fmt.Sprintf("%d %s", 1+round%3, step), moved, s.cold...)
		}
	}
	_, words := tool(s.t, 0, "verify", "--store", s.store)
	s.t.Logf("%d rounds, %d sessions; verify: %s", rounds, len(s.sent), words)
}

// one has three sessions sent line by line, and a server die where it packs or moves them.
func (s *stepped) one(where, left string, flags ...string) {
	s.t.Helper()
	flags = append([]string{"--store", s.store, "--log-level", "error"}, flags...)
	p := launch(s.t, "", "--store", s.store, "--log-level", "error")
	from := len(s.sent)
	for range 3 {
		name := fmt.Sprint("session", len(s.sent))
		s.sent = append(s.sent, name)
		for first := 0; first < 14; first += 7 {
			kit.Must(s.t, p.post(s.key, fmt.Sprintf(`{"session_id":%q,"entries":[%s]}`, name, strings.Join(steppedLines(name, first), ","))))
		}
	}
	p.kill(s.t)
	kit.Try(s.db.Exec(`UPDATE streams SET last_received = last_received - 3600000000`)).Must(s.t)
	p = launchAs(s.t, killAt+"="+where, flags...)
	_ = p.cmd.Wait() // it kills itself
	state, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	kit.Require(s.t, ok && state.Signal() == syscall.SIGKILL, "at %q it ended with %v", where, p.cmd.ProcessState)
	p = launch(s.t, "", flags...)
	until(s.t, "nothing is left to do", func() bool {
		n := -1
		err := s.db.QueryRow(left).Scan(&n)
		return err == nil && n == 0
	})
	for _, name := range s.sent[from:] {
		want := ""
		for _, line := range slices.Concat(steppedLines(name, 0), steppedLines(name, 7)) {
			_, line, _ = strings.Cut(line, ",")
			want += "{" + line + "\n"
		}
		kit.Equal(s.t, fmt.Sprintf("at %q: the bytes of %s, of which %d were sent", where, name, len(want)),
			p.raw(s.t, s.key, name), want)
	}
	p.kill(s.t)
}

// steppedLines are seven lines, few enough to be stored as rows.
func steppedLines(name string, first int) (out []string) {
	for i := first; i < first+7; i++ {
		out = append(out, fmt.Sprintf(`{"line_index":%d,"n":%d,"pad":%q}`, i, i, strings.Repeat(name, 200)))
	}
	return out
}
