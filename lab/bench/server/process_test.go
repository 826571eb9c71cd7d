//go:build linux

package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/corpus"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/load"
)

// execute runs a program to its end; no environment is that of the test.
func execute(t *testing.T, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program, args...)
	var stderr strings.Builder
	cmd.Env, cmd.Stderr = env, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, args[0], err, out, kit.Tail(stderr.String(), 2000))
	}
	return string(out)
}

// bench is a server on one database, with its users.
type bench struct {
	*world
	t        *testing.T
	program  string
	db       database
	listen   string // its address, the same after each start
	proc     *kit.Process
	spent    gauge.Use // by processes of the server that have ended
	owner    *load.Client
	ownerKey string
	members  []*load.Client
	keys     []string
}

func newBench(t *testing.T, w *world, program, store string) *bench {
	t.Helper()
	b := &bench{world: w, t: t, program: program}
	if store == "SQLite" {
		b.db = &lite{t, filepath.Join(t.TempDir(), "server.db")}
	} else {
		b.db = newElephant(t)
	}
	b.listen = kit.Address(t)
	key := strings.TrimSpace(execute(t, nil, program, "key", "create", "--name", "bench", "--store", b.db.store()))
	b.ownerKey = key
	b.owner = load.NewClient("http://"+b.listen, key, 2048)
	t.Cleanup(b.owner.Close)
	b.start()
	return b
}

// start starts the server and waits until it answers.
func (b *bench) start() {
	b.t.Helper()
	b.proc = kit.Launch(b.t, exec.CommandContext(context.Background(), b.program, "serve", "--listen", b.listen,
		"--store", b.db.store(), "--log-level", "warn", "--max-connections", "4096"))
	// What the server logs differs from version to version; that it answers does not.
	if !kit.Within(20*time.Minute, func() bool {
		_, err := b.owner.Get(context.Background(), "/healthz")
		return err == nil || b.proc.Ended()
	}) || b.proc.Ended() {
		b.t.Fatalf("the server does not answer:\n%s", kit.Tail(b.proc.Log.String(), 4000))
	}
}

// stop ends the server; what it used stays counted.
func (b *bench) stop() {
	b.t.Helper()
	b.spent = b.server()
	b.spent.RSS, b.spent.Anon = 0, 0
	b.proc.MustStop(b.t)
}

// server is what all processes of the server have used so far.
func (b *bench) server() gauge.Use {
	b.t.Helper()
	u := kit.Try(gauge.Tree(b.proc.Cmd.Process.Pid)).Must(b.t)
	return b.spent.Add(u)
}

// use is what server and database have used so far.
func (b *bench) use() gauge.Use { return b.server().Add(b.db.use()) }

// users makes users until there are n.
func (b *bench) users(n int) {
	b.t.Helper()
	for i := len(b.members); i < n; i++ {
		key := kit.Try(b.owner.AddUser(context.Background(), fmt.Sprintf("user%d", i))).Must(b.t)
		b.keys = append(b.keys, key)
		b.members = append(b.members, b.owner.As(key))
	}
}

func (b *bench) user(owner int) *load.Client { return b.members[owner%len(b.members)] }

// lag is how many streams are not wholly derived.
func (b *bench) lag() float64 {
	n, err := b.owner.Metric(context.Background(), "ccship_server_derive_lag_streams")
	if err != nil {
		return -1 // a busy server; asked again
	}
	return n
}

// derived waits until everything stored is derived.
func (b *bench) derived() {
	b.t.Helper()
	said := time.Now()
	for b.lag() != 0 {
		if b.proc.Ended() {
			b.t.Fatalf("the server has ended:\n%s", kit.Tail(b.proc.Log.String(), 4000))
		}
		kit.Pass(500 * time.Millisecond)
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			say("    %g streams left to derive", b.lag())
		}
	}
}

// quiet waits until server and database have nothing to do, for some minutes at most: what goes on behind is part of
// what an import costs.
func (b *bench) quiet() {
	const look, most = 3 * time.Second, 20 * time.Minute
	for end := time.Now().Add(most); time.Now().Before(end); {
		before := b.use()
		kit.Pass(look)
		if b.use().Sub(before).CPU < look/25 {
			return
		}
	}
}

// TestSenderIsWhole: what the sender sends, a real server stores byte for byte, rewinds included, and figures are there.
func TestSenderIsWhole(t *testing.T) {
	src := kit.Try(corpus.Standard()).Must(t)
	b := newBench(t, &world{source: src}, kit.Program(t, "ccship-server"), "SQLite")
	b.users(2)
	all := corpus.Plan{Seed: 3, Bytes: 1_500_000, Owners: 2}.Sessions()
	all[0].Rewound, all[0].Bytes = true, 200_000
	b.send(all)
	for _, s := range all {
		var view []string
		for _, chunk := range s.Chunks(src) {
			view = append(view[:chunk.RewoundTo:chunk.RewoundTo], chunk.Lines...)
			at := fmt.Sprintf("/api/sessions/%s/raw?generation=%d", url.PathEscape(s.ID), chunk.Generation)
			got, err := b.user(s.Owner).Get(context.Background(), at)
			kit.Check(t, err == nil && string(got) == strings.Join(view, "\n")+"\n", "%s, generation %d: %d bytes, %v", s.ID,
				chunk.Generation, len(got), err)
		}
	}
	b.derived()
	used := b.use()
	kit.Check(t, used.CPU > 0 && used.RSS > 0, "the server used %+v", used)
	text, err := b.user(0).Get(context.Background(), "/api/search?q="+corpus.RareWord)
	kit.Check(t, err == nil && bytes.Contains(text, []byte(corpus.RareWord)), "the planted word is not found: %v", err)
	b.stop()
	if search, total := b.db.share(); search <= 0 || total < search || total > 4*b.db.size() {
		t.Errorf("%d of %d bytes are there to search, the file has %d", search, total, b.db.size())
	}
}
