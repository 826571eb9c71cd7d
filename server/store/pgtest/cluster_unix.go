//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// port only names the socket's file; nothing listens on it.
const port = 5432

// patience is how long PostgreSQL may take to start, stop or promote.
const patience = 5 * time.Minute

// Cluster is a PostgreSQL with one superuser, postgres, whom the socket's folder keeps from everybody else.
type Cluster struct {
	in     installation
	folder *kit.Scratch
	dir    string        // its path: data below it, and the socket
	pid    int           // of the postmaster; 0: not running
	ended  chan struct{} // closed when that one has ended
}

// Settings are lines of postgresql.conf.
type Settings []string

// Fast gives up durability for speed: for tests that do not pull plugs.
var Fast = Settings{"fsync = off", "synchronous_commit = off", "full_page_writes = off"}

// New makes and starts a cluster that ends with the test.
func New(t testing.TB, settings Settings) *Cluster {
	t.Helper()
	c := kit.Try(newCluster(need(t), settings)).Must(t)
	t.Cleanup(func() { kit.Should(t, c.remove()) })
	return c
}

func newCluster(in installation, settings Settings) (*Cluster, error) {
	c, err := newFolder(in)
	if err != nil {
		return nil, err
	}
	err = in.run("initdb", "--pgdata", c.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--no-sync")
	if err == nil {
		err = c.configure(append(Settings{
			"listen_addresses = ''",
			"unix_socket_directories = '" + c.dir + "'",
			"port = " + strconv.Itoa(port),
			"max_connections = 300", // tests that run at the same time keep their stores open to their end
			"shared_buffers = 64MB",
			"max_wal_size = 1GB",
			"log_min_messages = warning",
		}, settings...))
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// newFolder makes a folder with a short path: a socket's may have 103 bytes at most.
func newFolder(in installation) (*Cluster, error) {
	folder, err := kit.MakeScratch("/tmp", "ccship-pg-")
	if err != nil {
		return nil, err
	}
	if err := in.own(folder.Path); err != nil {
		return nil, errors.Join(fmt.Errorf("make a cluster's folder: %w", err), folder.Remove())
	}
	return &Cluster{in: in, dir: folder.Path, folder: folder}, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) log() string { return filepath.Join(c.dir, "log") }

// configure appends settings to postgresql.conf; the last one of a name counts.
func (c *Cluster) configure(s Settings) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	_, err = f.WriteString("\n" + strings.Join(s, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// Configure changes settings while the cluster runs. Some need a restart.
func (c *Cluster) Configure(s ...string) error {
	if err := c.configure(s); err != nil {
		return err
	}
	return c.in.run("pg_ctl", "reload", "--pgdata", c.data(), "--silent")
}

// Start starts a cluster that does not run, and returns once it takes connections.
func (c *Cluster) Start() error {
	log, err := os.OpenFile(c.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer log.Close()
	cmd := c.in.command("postgres", "-D", c.data())
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	c.pid, c.ended = cmd.Process.Pid, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait() // how it ended is in its log
	}(c.ended)
	for end := time.Now().Add(patience); !c.ready(); {
		select {
		case <-c.ended:
			c.pid = 0
		case <-time.After(10 * time.Millisecond):
		}
		if c.pid == 0 || time.Now().After(end) {
			text, _ := os.ReadFile(c.log())
			return fmt.Errorf("postgres does not start:\n%s", text)
		}
	}
	return nil
}

// ready reads from the postmaster's file whether it takes connections: its first line is the pid, its eighth the state.
func (c *Cluster) ready() bool {
	text, _ := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(c.pid) && strings.TrimSpace(lines[7]) == "ready"
}

// Restart restarts the cluster. Mode immediate ends it as a crash would, so that it recovers from its log.
func (c *Cluster) Restart(mode string) error {
	if err := c.Stop(mode); err != nil {
		return err
	}
	return c.Start()
}

// Stop ends the cluster: smart, fast or immediate.
func (c *Cluster) Stop(mode string) error {
	if c.pid == 0 {
		return nil
	}
	word := map[string]syscall.Signal{"smart": syscall.SIGTERM, "fast": syscall.SIGINT, "immediate": syscall.SIGQUIT}[mode]
	if err := syscall.Kill(c.pid, word); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	select {
	case <-c.ended:
		c.pid = 0
		return nil
	case <-time.After(patience):
		return fmt.Errorf("postgres %d does not stop", c.pid)
	}
}

// Kill ends all of the cluster's processes with SIGKILL, and waits until they are gone.
func (c *Cluster) Kill() error {
	if c.pid == 0 {
		return nil
	}
	if err := Kill(c.pid); err != nil {
		return err
	}
	<-c.ended
	c.pid = 0
	return nil
}

// Kill ends a postmaster and its processes with SIGKILL, and waits until they are gone. The postmaster is stopped
// first, so that it starts no others meanwhile. Where there is no /proc only the postmaster is killed; the others end
// when they notice.
func Kill(postmaster int) error {
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the postmaster: %w", err)
	}
	all := append(children(postmaster), postmaster)
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	if !kit.Within(patience, func() bool { return !slices.ContainsFunc(all, alive) }) {
		return fmt.Errorf("processes %v do not die", all)
	}
	return nil
}

// remove ends the cluster and removes its folder.
func (c *Cluster) remove() error {
	err := c.Stop("immediate")
	return errors.Join(err, c.folder.Remove())
}

// URL names a database of the cluster.
func (c *Cluster) URL(database string) string {
	return c.urlAs("postgres", database)
}

func (c *Cluster) urlAs(user, database string) string {
	q := url.Values{"host": {c.dir}, "port": {strconv.Itoa(port)}, "user": {user}}
	return "postgres:///" + database + "?" + q.Encode()
}

var databases atomic.Int64

// Database makes an empty database and answers its URL.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("db%d", databases.Add(1))
	c.Exec(t, "postgres", "CREATE DATABASE "+name)
	return c.URL(name)
}

// Copy makes a database that has all that another one has, to which nobody may be connected, and answers its URL.
func (c *Cluster) Copy(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("db%d", databases.Add(1))
	c.Exec(t, "postgres", "CREATE DATABASE "+name+" TEMPLATE "+template)
	return c.URL(name)
}

// Exec runs SQL in a database as the superuser and answers what psql prints, unadorned.
func (c *Cluster) Exec(t testing.TB, database, sql string) string {
	t.Helper()
	out, err := c.in.command("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align",
		"--set", "ON_ERROR_STOP=1", "--dbname", c.URL(database), "--command", sql).CombinedOutput()
	kit.Require(t, err == nil, "psql: %v\n%s", err, out)
	return strings.TrimSpace(string(out))
}

// Command returns one of PostgreSQL's programs, run as the user that the cluster belongs to.
func (c *Cluster) Command(program string, args ...string) *exec.Cmd {
	return c.in.command(program, args...)
}

// Lodger makes an empty database in which a new role, no superuser and not its owner, may make tables but no
// extensions, and answers its URL for that role.
func (c *Cluster) Lodger(t testing.TB, role string) string {
	t.Helper()
	name := fmt.Sprintf("db%d", databases.Add(1))
	c.Exec(t, "postgres", "CREATE ROLE "+role+" LOGIN")
	c.Exec(t, "postgres", "CREATE DATABASE "+name)
	c.Exec(t, name, "GRANT CREATE ON SCHEMA public TO "+role)
	return c.urlAs(role, name)
}

var (
	once   sync.Once
	shared *Cluster
	failed error
)

// Shared returns the one cluster of a test binary, made when it is first asked for, with Fast settings. The binary's
// TestMain calls Run, which ends it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	in := need(t)
	once.Do(func() { shared, failed = newCluster(in, Fast) })
	kit.Must(t, failed)
	return shared
}

// Run runs a binary's tests, then ends the shared cluster. For TestMain: os.Exit(pgtest.Run(m)).
func Run(m *testing.M) (code int) {
	defer func() {
		if shared == nil {
			return
		}
		if err := shared.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "end the test's PostgreSQL:", err)
			code = 1
		}
	}()
	return m.Run()
}

// children returns the processes that a process has started, as /proc has it; none without /proc.
func children(parent int) (pids []int) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		if f := stat(pid); len(f) > 1 && f[1] == strconv.Itoa(parent) { // nil: it has ended meanwhile
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive tells a process from one that is gone, or that only nobody has waited for.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	f := stat(pid)
	return len(f) == 0 || f[0] != "Z"
}

// stat returns what /proc says of a process, from its state on: the name before it may hold anything. nil without
// /proc.
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	s := string(text)
	return strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
}

// PID returns the postmaster's process; 0 while the cluster does not run.
func (c *Cluster) PID() int { return c.pid }
