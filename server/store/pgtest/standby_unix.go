//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// Standby makes and starts a hot standby of the cluster, known to it as name, that ends with the test.
func (c *Cluster) Standby(t testing.TB, name string) *Cluster {
	t.Helper()
	s := kit.Try(newFolder(c.in)).Must(t)
	t.Cleanup(func() { kit.Should(t, s.remove()) })
	kit.Must(t, s.Follow(c, name))
	return s
}

// Follow makes a cluster that does not run a standby of another one, from nothing: what it had is gone.
func (c *Cluster) Follow(primary *Cluster, name string) error {
	if err := os.RemoveAll(c.data()); err != nil {
		return fmt.Errorf("remove old data: %w", err)
	}
	err := c.in.run("pg_basebackup", "--pgdata", c.data(), "--host", primary.dir, "--port", strconv.Itoa(port),
		"--username", "postgres", "--checkpoint", "fast", "--wal-method", "stream", "--no-sync")
	if err != nil {
		return err
	}
	err = c.configure(Settings{
		"unix_socket_directories = '" + c.dir + "'",
		fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=postgres application_name=%s'", primary.dir, port, name),
		"hot_standby = on",
		"synchronous_standby_names = ''",
	})
	if err != nil {
		return err
	}
	signal := filepath.Join(c.data(), "standby.signal") // an empty file that says to PostgreSQL what it is
	if err := errors.Join(os.WriteFile(signal, nil, 0o600), c.in.own(signal)); err != nil {
		return err
	}
	return c.Start()
}

// Confirm has the cluster acknowledge nothing that the standby of that name does not have, and returns once the two
// are in step.
func (c *Cluster) Confirm(t testing.TB, name string) {
	t.Helper()
	kit.Must(t, c.Configure("synchronous_standby_names = '"+name+"'"))
	kit.Eventually(t, "the standby "+name+" is in step", time.Minute, func() bool {
		return c.Exec(t, "postgres",
			"SELECT sync_state FROM pg_stat_replication WHERE application_name = '"+name+"'") == "sync"
	})
}

// Promote makes a standby a primary, and returns once it takes writes.
func (c *Cluster) Promote() error {
	return c.in.run("pg_ctl", "promote", "--pgdata", c.data(), "--wait", "--silent", "--timeout",
		strconv.Itoa(int(patience.Seconds())))
}

// Together names one database of several clusters: whichever takes writes.
func Together(database string, clusters ...*Cluster) string {
	url := "postgres:///" + database + "?user=postgres&target_session_attrs=read-write"
	hosts, ports := "&host=", "&port="
	for i, c := range clusters {
		if i > 0 {
			hosts, ports = hosts+",", ports+","
		}
		hosts, ports = hosts+c.dir, ports+strconv.Itoa(port)
	}
	return url + hosts + ports
}
