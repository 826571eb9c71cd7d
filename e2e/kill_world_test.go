//go:build unix

package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"math/rand/v2"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// campaign is a home whose daemon ships to servers on one store.
type campaign struct {
	*world
	row     killRow
	task    task
	made    *killed
	rng     *rand.Rand
	cluster *pgtest.Cluster // nil: SQLite
	db      *sql.DB
	front   *balancer
	servers []*shipServer // the first is also world.exact
	struck  int           // which was killed last
	place   *bucket

	files []*killFile
	since time.Time // when the round began: what comes later is not what is done in it
}

// killFile is a transcript with what is to become of it.
type killFile struct {
	crashFile
	lines int  // sent, those that a rewind took included
	gone  bool // retired or forgotten
	seen  bool // compared when its round was over
}

func newCampaign(t *testing.T, row killRow, store string) *campaign {
	t.Helper()
	h := newHome(t)
	h.env = append(h.env, asRows)
	c := &campaign{world: &world{home: h}, row: row, task: row.task(), rng: seeded(t), front: newBalancer(t),
		made: &killed{Killed: row.killed, During: row.during, Store: store}}
	at, driver, url := "", "sqlite", filepath.Join(h.dir, "server", "server.db")+"?_pragma=busy_timeout(60000)"
	if store == "PostgreSQL" {
		c.cluster = pgtest.New(t, nil)
		at = c.cluster.Database(t)
		driver, url = "pgx", at
	}
	c.place = newBucket(t, c.task.cold(), row.killed == theStorage)
	h.env = append(h.env, c.place.env()...)
	c.exact = newShipServerAt(h, at)
	c.servers = []*shipServer{c.exact}
	if c.cluster != nil && !c.task.alone() {
		c.servers = append(c.servers, &shipServer{home: h, at: at, key: c.exact.key})
	}
	h.writeKey(c.exact.key)
	h.url = c.front.url()
	var err error
	c.db, err = sql.Open(driver, url)
	must(t, err)
	t.Cleanup(func() { c.db.Close() })
	c.front.set(c.exact)
	c.start()
	return c
}

// grow adds a transcript in a project. The server stores its lines as rows.
func (c *campaign) grow(project string, lines int) {
	cwd := filepath.Join(filepath.Dir(c.cwd()), project)
	must(c.t, os.MkdirAll(cwd, 0o700))
	talk := newConversation(c.rng.Uint64(), cwd)
	path := c.path("-work-"+project, talk.session+".jsonl")
	f := &killFile{crashFile: crashFile{talk, path}}
	c.files = append(c.files, f)
	c.extend(f, lines)
}

// extend adds lines of about 3 KB.
func (c *campaign) extend(f *killFile, lines int) {
	c.add(f.path, f.even(lines, 3000))
	f.lines += lines
}

// sent is how many lines the daemon had to send.
func (c *campaign) sent() (n int) {
	for _, f := range c.files {
		n += f.lines
	}
	return n
}

// serve starts the servers with further flags, instead of those that run.
func (c *campaign) serve(flags ...string) {
	c.t.Helper()
	c.quiet()
	for _, s := range c.servers {
		s.flags = append([]string{"--log-level", "warn"}, flags...)
		s.start()
	}
	c.front.set(c.servers...)
}

// quiet ends the servers.
func (c *campaign) quiet() {
	c.t.Helper()
	for _, s := range c.servers {
		if s.proc != nil && !s.proc.Ended() {
			s.proc.MustStop(c.t)
		}
	}
}

// number asks the store for a number; -1 while it cannot answer.
func (c *campaign) number(query string, args ...any) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n := -1
	if err := c.db.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return -1
	}
	return n
}

// change changes the store behind the servers' backs, while none runs.
func (c *campaign) change(statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		kit.Try(c.db.ExecContext(context.Background(), s)).Must(c.t)
	}
}

// compare compares what this round was about, and what came meanwhile.
func (c *campaign) compare() {
	c.t.Helper()
	for _, f := range c.files {
		if !f.seen {
			c.one(f)
			f.seen = true
		}
	}
}

// one compares a session with its file, line by line.
func (c *campaign) one(f *killFile) {
	c.t.Helper()
	if f.gone {
		if code, body := c.exact.get("/api/sessions/" + f.session + "/raw"); code != http.StatusNotFound && code != http.StatusConflict {
			c.made.Wrong++
			c.t.Errorf("%s was to be removed: %d, %d bytes", f.session, code, len(body))
		}
		return
	}
	got, want := c.stored(f.session), c.read(f.path)
	if bytes.Equal(got, want) {
		return
	}
	c.t.Errorf("%s: %s", f.session, firstDifference(got, want))
	has, should := bytes.SplitAfter(got, []byte("\n")), bytes.SplitAfter(want, []byte("\n"))
	c.made.Lost += max(0, len(should)-len(has))
	for i := range min(len(has), len(should)) {
		if !bytes.Equal(has[i], should[i]) {
			c.made.Wrong++
		}
	}
}

// stored is a session as the server has it. Storage that did not answer is asked again after some seconds only.
func (c *campaign) stored(session string) (body []byte) {
	c.t.Helper()
	code := 0
	eventually(c.t, "the server reaches storage again", time.Minute, func() bool {
		code, body = c.exact.get("/api/sessions/" + session + "/raw")
		return code != http.StatusServiceUnavailable
	})
	if code != http.StatusOK {
		c.t.Errorf("raw of %s: %d %.300s", session, code, body)
		return nil
	}
	return body
}

// verify compares everything once more, and has everything that verifies do so.
func (c *campaign) verify() {
	c.t.Helper()
	c.sync()
	for _, f := range c.files {
		c.one(f)
	}
	if st := c.status(); st.Outbox.Dead != 0 {
		c.made.Verify++
		c.t.Errorf("%d dead letters", st.Outbox.Dead)
	}
	if noted := c.number(`SELECT count(*) FROM cold_objects`); noted != c.place.objects() {
		c.made.Verify++
		c.t.Errorf("%d objects are noted, %d are there", noted, c.place.objects())
	}
	for _, args := range [][]string{{"verify"}, {"verify", "--deep"}} {
		if out := c.ccship(args...); out.code != 0 {
			c.made.Verify++
			c.t.Errorf("ccship %v: exit %d\n%s%s", args, out.code, out.stdout, out.stderr)
		}
	}
	if out := c.runProgram(kit.Program(c.t, "ccship-server"), "verify", "--store", c.exact.store()); out.code != 0 {
		c.made.Verify++
		c.t.Errorf("ccship-server verify: exit %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// bucket is where cold storage is: on an S3 server, which CCSHIP_TEST=versitygw=PATH is, or in a folder.
type bucket struct {
	t            *testing.T
	dir, address string
	program      string       // "": a folder
	proc         *kit.Process // of the S3 server
}

// newBucket makes one; needed says that only an S3 server will do.
func newBucket(t *testing.T, used, needed bool) *bucket {
	t.Helper()
	b := &bucket{t: t, dir: t.TempDir()}
	if used {
		b.program = kit.Setting("versitygw", "")
	}
	if needed && b.program == "" {
		t.Skip("no S3 server: lab kill has one")
	}
	if b.program == "" {
		return b
	}
	b.address = kit.Address(t)
	must(t, os.Mkdir(filepath.Join(b.dir, "bucket"), 0o700))
	b.start()
	return b
}

func (b *bucket) env() []string {
	return []string{"AWS_ACCESS_KEY_ID=user", "AWS_SECRET_ACCESS_KEY=secretsecret"}
}

func (b *bucket) url() string {
	if b.program == "" {
		return "file://" + b.dir
	}
	return "s3://bucket/ccship?lookup=path&region=us-east-1&endpoint=http://" + b.address
}

func (b *bucket) start() {
	b.t.Helper()
	cmd := exec.CommandContext(context.Background(), b.program, "--port", b.address, "posix", b.dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=user", "ROOT_SECRET_KEY=secretsecret")
	b.proc = kit.Launch(b.t, cmd)
	eventually(b.t, "the S3 server answers", time.Minute, func() bool {
		res, err := http.Get("http://" + b.address)
		return err == nil && res.Body.Close() == nil
	})
}

func (b *bucket) kill() { b.proc.Kill() }

// objects counts what is there of sessions.
func (b *bucket) objects() (n int) {
	_ = filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasPrefix(filepath.Base(filepath.Dir(path)), "s") {
			n++
		}
		return nil // what is removed meanwhile does not count
	})
	return n
}
