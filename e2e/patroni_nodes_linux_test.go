package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// patroni is three nodes of PostgreSQL that Patroni runs, the etcd in which it keeps who is primary, and an HAProxy
// that leads to the primary: all on loopback, in one folder, as the user that runs PostgreSQL.
type patroni struct {
	t        testing.TB
	dir      string
	bin      string              // of PostgreSQL's programs
	who      *syscall.Credential // nil: who runs the test
	password string              // of every role
	etcd     int                 // ports
	front    int
	nodes    []*patroniNode
}

type patroniNode struct {
	name     string
	pg, rest int // ports
	proc     *kit.Process
}

// findProgram looks on the path and where Debian puts what serves.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	return path, err
}

// newPatroni returns once one node is primary and two follow. Without the programs the test is skipped.
func newPatroni(t testing.TB) *patroni {
	t.Helper()
	for _, name := range []string{"patroni", "patronictl", "etcd", "haproxy"} {
		if _, err := findProgram(name); err != nil {
			t.Skipf("without %s: install Debian's patroni, python3-etcd, etcd-server and haproxy", name)
		}
	}
	c := &patroni{t: t, password: newPassword()}
	c.bin, c.who = pgtest.Programs(t)
	dir := kit.Try(os.MkdirTemp(kit.Workshop(), "p")).Must(t)
	c.dir = dir
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Cleanup(c.killPostgres) // after Patroni's end
	ports := make([]int, 9)
	for i := range ports {
		_, port, _ := strings.Cut(kit.Address(t), ":")
		ports[i] = kit.Try(strconv.Atoi(port)).Must(t)
	}
	c.etcd, c.front = ports[0], ports[2]
	for i, name := range []string{"one", "two", "three"} {
		c.nodes = append(c.nodes, &patroniNode{name: name, pg: ports[3+2*i], rest: ports[4+2*i]})
	}
	c.configure()
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	c.launch("etcd", "--name", "e", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", client,
		"--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "e="+peer)
	for _, n := range c.nodes {
		c.start(n)
	}
	c.launch("haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	c.settled()
	return c
}

func newPassword() string { return rand.Text() }

// configure writes all configuration, and gives the folder to the user that runs the programs.
func (c *patroni) configure() {
	c.t.Helper()
	front := fmt.Sprintf(frontConfig, c.front)
	for _, n := range c.nodes {
		front += fmt.Sprintf("    server %s 127.0.0.1:%d check port %d\n", n.name, n.pg, n.rest)
		text := strings.NewReplacer("NAME", n.name, "RESTPORT", strconv.Itoa(n.rest), "ETCDPORT", strconv.Itoa(c.etcd),
			"PGPORT", strconv.Itoa(n.pg), "DATA", c.data(n), "BIN", c.bin, "SOCKETS", c.dir,
			"PASSWORD", c.password).Replace(nodeConfig)
		must(c.t, os.WriteFile(c.config(n), []byte(text), 0o600))
	}
	must(c.t, os.WriteFile(filepath.Join(c.dir, "haproxy.cfg"), []byte(front), 0o600))
	if c.who == nil {
		return
	}
	must(c.t, filepath.WalkDir(c.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(c.who.Uid), int(c.who.Gid))
	}))
}

func (c *patroni) config(n *patroniNode) string { return filepath.Join(c.dir, n.name+".yml") }
func (c *patroni) data(n *patroniNode) string   { return filepath.Join(c.dir, n.name) }

// nodeConfig is what docs/scale.md says, with times shorter than Patroni's own: a dead primary is replaced after 20 s.
const nodeConfig = `scope: ccship
name: NAME
restapi: {listen: "127.0.0.1:RESTPORT", connect_address: "127.0.0.1:RESTPORT"}
etcd3: {host: "127.0.0.1:ETCDPORT"}
watchdog: {mode: "off"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: true
    maximum_lag_on_failover: 0
    postgresql:
      use_pg_rewind: true
      parameters: {hot_standby: "on", wal_log_hints: "on", max_connections: 60, shared_buffers: 64MB}
  initdb: [encoding: UTF8, locale: C.UTF-8, auth-host: scram-sha-256, auth-local: trust]
postgresql:
  listen: "127.0.0.1:PGPORT"
  connect_address: "127.0.0.1:PGPORT"
  data_dir: DATA
  bin_dir: BIN
  pgpass: DATA.pgpass
  parameters: {unix_socket_directories: SOCKETS}
  pg_hba:
    - local all all trust
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication all 127.0.0.1/32 scram-sha-256
  authentication:
    superuser: {username: postgres, password: PASSWORD}
    replication: {username: replicator, password: PASSWORD}
`

// frontConfig leads to the node whose Patroni says that it is primary; the nodes follow it.
const frontConfig = `global
    maxconn 500
defaults
    mode tcp
    timeout connect 5s
    timeout client 30m
    timeout server 30m
    timeout check 5s
listen primary
    bind 127.0.0.1:%d
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 3 rise 2 on-marked-down shutdown-sessions
`

func (c *patroni) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c.t.Helper()
	path := kit.Try(findProgram(program)).Must(c.t)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+c.dir, "PGPASSWORD="+c.password)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.who, Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.WaitDelay = time.Second // PostgreSQL keeps Patroni's output open when Patroni is killed
	return cmd
}

func (c *patroni) launch(program string, args ...string) *kit.Process {
	c.t.Helper()
	return kit.Launch(c.t, c.command(context.Background(), program, args...))
}

// run runs a program to its end.
func (c *patroni) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if out, err := c.command(ctx, program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(program), args, err, out)
	}
	return nil
}

func (c *patroni) start(n *patroniNode) { n.proc = c.launch("patroni", c.config(n)) }

// postmaster is the process of a node's PostgreSQL; 0: it does not run.
func (c *patroni) postmaster(n *patroniNode) int {
	text, _ := os.ReadFile(filepath.Join(c.data(n), "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	// The file outlives the process, whose number may have become another's.
	if cwd, err := os.Readlink("/proc/" + first + "/cwd"); err != nil || cwd != c.data(n) {
		return 0
	}
	return pid
}

// kill ends a node's Patroni and PostgreSQL as a power switch would.
func (c *patroni) kill(n *patroniNode) {
	c.t.Helper()
	n.proc.Signal(syscall.SIGKILL)
	pid := c.postmaster(n)
	kit.Require(c.t, pid != 0, "%s has no PostgreSQL that runs", n.name)
	must(c.t, pgtest.Kill(pid))
	n.proc.Kill()
}

// killPostgres ends what Patroni left running.
func (c *patroni) killPostgres() {
	for _, n := range c.nodes {
		if pid := c.postmaster(n); pid != 0 {
			kit.Must(c.t, pgtest.Kill(pid))
		}
	}
}

// ask reads an answer of a node's Patroni, and says whether it was 200.
func (n *patroniNode) ask(path string, into any) bool {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", n.rest, path))
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) == nil
}

// primary is the node that is primary; nil: none, for now.
func (c *patroni) primary() *patroniNode {
	for _, n := range c.nodes {
		if n.ask("/primary", &nothing{}) {
			return n
		}
	}
	return nil
}

// nothing takes an answer of which only the status counts.
type nothing struct{}

// settled waits until a primary has two standbys that stream, and one of them is synchronous; it returns both.
func (c *patroni) settled() (primary, standby *patroniNode) {
	c.t.Helper()
	eventually(c.t, "a primary, a synchronous standby, another standby", 3*time.Minute, func() bool {
		if primary, standby = c.primary(), nil; primary == nil {
			return false
		}
		var own struct {
			Replication []struct{ State string }
		}
		if !primary.ask("/patroni", &own) || len(own.Replication) != 2 {
			return false
		}
		for _, r := range own.Replication {
			if r.State != "streaming" {
				return false
			}
		}
		for _, n := range c.nodes {
			if n.ask("/synchronous", &nothing{}) {
				standby = n
			}
		}
		return standby != nil
	})
	return primary, standby
}

// switchover hands the primary's part to the synchronous standby.
func (c *patroni) switchover(from, to *patroniNode) {
	c.t.Helper()
	must(c.t, c.run("patronictl", "-c", c.config(from), "switchover", "ccship", "--leader", from.name,
		"--candidate", to.name, "--force"))
}

// database makes a role and its database, both of that name, and returns once every node has them: a standby that does
// not know the role yet refuses it, and then no other node is tried.
func (c *patroni) database(name string) {
	c.t.Helper()
	must(c.t, c.psql(c.front, "postgres", "CREATE ROLE "+name+" LOGIN PASSWORD '"+c.password+"'"))
	must(c.t, c.psql(c.front, "postgres", "CREATE DATABASE "+name+" OWNER "+name))
	for _, n := range c.nodes {
		eventually(c.t, n.name+" has the database", time.Minute, func() bool {
			return c.psql(n.pg, name, "SELECT 1") == nil
		})
	}
}

// psql runs SQL at a port, in the database of a role's name.
func (c *patroni) psql(port int, role, sql string) error {
	return c.run(filepath.Join(c.bin, "psql"), "--no-psqlrc", "--quiet", "--host", "127.0.0.1",
		"--port", strconv.Itoa(port), "--username", role, "--dbname", role, "--command", sql)
}

// throughProxy is a database's address at HAProxy.
func (c *patroni) throughProxy(name string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s", name, c.password, c.front, name)
}

// throughNodes names all nodes; the one that takes writes is the primary.
func (c *patroni) throughNodes(name string) string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", n.pg))
	}
	all := strings.Join(hosts, ",")
	return fmt.Sprintf("postgres://%s:%s@%s/%s?target_session_attrs=read-write", name, c.password, all, name)
}
