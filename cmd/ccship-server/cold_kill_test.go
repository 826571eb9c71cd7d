package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// place is where cold storage is in a test: a folder, or the S3 server that CCSHIP_TEST=versitygw=PATH is.
type place struct {
	dir, program, address string
	gateway               *exec.Cmd // nil: it does not run
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dir: t.TempDir(), program: kit.Setting("versitygw", "")}
	if p.program == "" {
		return p
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "secretsecret"} {
		t.Setenv(name, value)
	}
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	p.address = ln.Addr().String()
	kit.Must(t, ln.Close())
	kit.Must(t, os.Mkdir(filepath.Join(p.dir, "bucket"), 0o700))
	p.start(t)
	t.Cleanup(func() { p.kill(t) })
	return p
}

func (p *place) url() string {
	if p.program == "" {
		return "file://" + filepath.ToSlash(filepath.Join("/", p.dir))
	}
	return "s3://bucket/ccship?lookup=path&region=us-east-1&endpoint=http://" + p.address
}

// start starts the S3 server unless it runs, and waits until it answers.
func (p *place) start(t *testing.T) {
	t.Helper()
	if p.program == "" || p.gateway != nil {
		return
	}
	p.gateway = exec.Command(p.program, "--port", p.address, "posix", p.dir)
	p.gateway.Env = append(os.Environ(), "ROOT_ACCESS_KEY=user", "ROOT_SECRET_KEY=secretsecret")
	kit.Must(t, p.gateway.Start())
	until(t, "the S3 server answers", func() bool {
		res, err := http.Get("http://" + p.address)
		if err != nil {
			return false
		}
		return res.Body.Close() == nil
	})
}

// kill kills the S3 server.
func (p *place) kill(t *testing.T) {
	t.Helper()
	if p.gateway == nil {
		return
	}
	kit.Must(t, p.gateway.Process.Kill())
	_ = p.gateway.Wait() // killed
	p.gateway = nil
}

// objects counts what is there.
func (p *place) objects() (n int) {
	_ = filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Base(filepath.Dir(path))[0] == 's' {
			n++
		}
		return nil // what is removed meanwhile does not count
	})
	return n
}

// until waits for something that comes.
func until(t *testing.T, what string, come func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !come() {
		select {
		case <-ctx.Done():
			t.Fatalf("it did not happen that %s", what)
		case <-tick.C:
		}
	}
}

// sendMany posts 40 lines of 3 KB, which are packed at once.
func (p *program) sendMany(key, session string) error {
	var entries []string
	for i := range 40 {
		entries = append(entries, fmt.Sprintf(`{"line_index":%d,"n":%d,"pad":%q}`, i, i, strings.Repeat(session, 3000/len(session))))
	}
	return p.post(key, fmt.Sprintf(`{"session_id":%q,"entries":[%s]}`, session, strings.Join(entries, ",")))
}

// told is the message of the answer to a request for what is there of a session.
func (p *program) told(t *testing.T, key, session, what string) string {
	t.Helper()
	status, body, err := p.call(key, http.MethodGet, "/api/sessions/"+session+what, nil)
	var answer struct{ Error struct{ Message string } }
	if err == nil && status != http.StatusOK {
		err = json.Unmarshal(body, &answer)
	}
	kit.Require(t, err == nil, "%d: %v", status, err)
	return fmt.Sprint(status, ", ", answer.Error.Message)
}

// TestColdUnreachable: while cold storage cannot be reached, every request for what is there says so.
func TestColdUnreachable(t *testing.T) {
	at, path := newPlace(t), filepath.Join(t.TempDir(), "server.db")
	key := newKeyIn(t, path)
	p := launch(t, path, "--blocks", at.url(), "--cold-after", "1s", "--log-level", "error")
	names := []string{"session0", "session1", "session2", "session3"}
	for _, name := range names {
		kit.Must(t, p.sendMany(key, name))
	}
	until(t, "the lines move to cold storage", func() bool { return at.objects() >= len(names) }) // all but the last are through
	if at.kill(t); at.program == "" {
		for _, err := range []error{os.Rename(at.dir, at.dir+".away"), os.WriteFile(at.dir, nil, 0o600)} {
			kit.Must(t, err)
		}
	}
	moved := func(name string) bool { return !strings.HasPrefix(p.told(t, key, name, "/raw"), "200") }
	there := slices.IndexFunc(names, moved)
	kit.Require(t, there >= 0, "every session is answered without cold storage")
	for _, what := range []string{"/raw", "/export?format=md", "/export?format=json", "/export?format=jsonl", "/entries"} {
		said := p.told(t, key, names[there], what)
		kit.Check(t, strings.HasPrefix(said, "503") && strings.Contains(said, "cold storage"), "%s: %s", what, said)
	}
	p.kill(t)
}

// TestColdKilled kills the server, and in every other round the storage, in the middle of moving lines there: none is
// lost, none is wrong, and in the end all are in cold storage. lab cold runs it long, on S3.
func TestColdKilled(t *testing.T) {
	rounds := kit.SettingNumber("rounds", 1)
	at, path := newPlace(t), filepath.Join(t.TempDir(), "server.db")
	made := &kit.Outcome{Group: "databases", Fault: "the server killed while lines move to S3, every other time after the S3 server"}
	if at.program != "" {
		kit.Record(t, made)
	}
	key := newKeyIn(t, path)
	var sent []string
	serve := func() *program {
		return launch(t, path, "--blocks", at.url(), "--cold-after", "1s", "--log-level", "error")
	}
	for round := 0; made.Runs < rounds; round++ {
		at.start(t)
		p, had := serve(), at.objects()
		send := func(n int) {
			for range n {
				name := fmt.Sprint("session", len(sent))
				err := p.sendMany(key, name)
				kit.Require(t, err == nil, "round %d: %v", round, err)
				sent = append(sent, name)
			}
		}
		send(6)
		until(t, "lines move to cold storage", func() bool { return at.objects() > had+round%5 })
		if round%2 == 1 {
			at.kill(t)
			send(2) // without it, lines are stored
			made.Hear(kit.Plain("to who asks for a moved session: " + p.told(t, key, sent[0], "/raw")))
		}
		p.kill(t)
		made.Runs++
	}
	at.start(t)
	p := serve()
	until(t, "all lines are in cold storage", func() bool { return at.objects() >= len(sent) })
	for _, name := range sent {
		lines := strings.Split(strings.TrimSuffix(p.raw(t, key, name), "\n"), "\n")
		want := slices.Repeat([]string{strings.Repeat(name, 3000/len(name))}, 40)
		for i := range min(len(lines), len(want)) {
			want[i] = fmt.Sprintf(`{"n":%d,"pad":%q}`, i, want[i])
		}
		if !slices.Equal(lines, want) {
			made.Lost += max(0, len(want)-len(lines))
			made.Wrong++
			t.Errorf("%s has %d lines, or others than were sent", name, len(lines))
		}
	}
	p.kill(t)
	status, _ := tool(t, 1, "status", "--json", "--store", "sqlite:"+path)
	var says struct{ Cold coldReport }
	kit.Must(t, json.Unmarshal([]byte(status), &says))
	if c := says.Cold; c.Place != at.url() || c.Problem != "" || c.Objects < int64(len(sent)) || c.Bytes == 0 || c.Unpacked != 0 {
		t.Errorf("%d sessions were moved to %s, and status says %+v", len(sent), at.url(), c)
	}
	if words, _ := tool(t, 1, "status", "--store", "sqlite:"+path); !strings.Contains(words, "cold     "+at.url()) {
		t.Errorf("status says %q", words)
	}
	_, words := tool(t, 0, "verify", "--store", "sqlite:"+path)
	t.Logf("%d rounds, %d sessions, %d objects; verify: %s", rounds, len(sent), at.objects(), words)
}
