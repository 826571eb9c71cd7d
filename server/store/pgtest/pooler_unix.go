//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// poolerPort only names the socket's file, as port does.
const poolerPort = 6432

// Pooler runs pgbouncer in transaction mode before a cluster until the test ends. It answers a function that turns a
// URL of the cluster into one through the pooler. Without pgbouncer the test is skipped; in CI it fails.
func (c *Cluster) Pooler(t testing.TB) (through func(url string) string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil { // Debian's place is not on everybody's path
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		if os.Getenv("CCSHIP_CI") != "" {
			t.Fatalf("pgbouncer is missing, and CCSHIP_CI says that it must not: %v", err)
		}
		t.Skipf("without pgbouncer: %v", err)
	}
	dir, err := os.MkdirTemp(c.dir, "pooler")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), c.poolerConfig(dir), 0o600)
	}
	if err == nil {
		err = errors.Join(c.in.own(dir), c.in.own(filepath.Join(dir, "pgbouncer.ini")))
	}
	kit.Must(t, err)
	in := c.in
	in.bin = filepath.Dir(program)
	cmd := in.command(filepath.Base(program), filepath.Join(dir, "pgbouncer.ini"))
	dieWithParent(cmd.SysProcAttr)
	kit.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // how it ended is in its log
	log := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		return "pgbouncer:\n" + string(text)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
		<-ended //nolint:errcheck // its log says more
		if t.Failed() {
			t.Log(log())
		}
	})
	socket := filepath.Join(dir, ".s.PGSQL."+strconv.Itoa(poolerPort))
	kit.Within(patience, func() bool { return exists(socket) || len(ended) > 0 })
	kit.Require(t, exists(socket), "pgbouncer does not start; %s", log())
	return func(text string) string { return throughPooler(t, text, dir) }
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// poolerConfig lets everybody in who reaches the socket, as the superuser.
func (c *Cluster) poolerConfig(dir string) []byte {
	return fmt.Appendf(nil, `[databases]
* = host=%s port=%d user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = %s
listen_port = %d
auth_type = any
pool_mode = transaction
default_pool_size = 16
max_client_conn = 500
server_idle_timeout = 2
logfile = %s
`, c.dir, port, dir, poolerPort, filepath.Join(dir, "log"))
}

// throughPooler turns a URL of a cluster into one through the pooler whose socket is in dir.
func throughPooler(t testing.TB, text, dir string) string {
	t.Helper()
	u := kit.Try(url.Parse(text)).Must(t)
	q := u.Query()
	q.Set("pool_mode", "transaction")
	q.Set("direct_host", q.Get("host"))
	q.Set("direct_port", q.Get("port"))
	q.Set("host", dir)
	q.Set("port", strconv.Itoa(poolerPort))
	u.RawQuery = q.Encode()
	return u.String()
}
