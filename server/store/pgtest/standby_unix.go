//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Standby makes and starts a hot standby of the cluster, known to it as name, that ends with the test.
func (c *Cluster) Standby(t testing.TB, name string) *Cluster {
	t.Helper()
	s, err := newFolder(c.in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Follow(c, name); err != nil {
		t.Fatal(err)
	}
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
	if err := c.signal("standby.signal"); err != nil {
		return err
	}
	return c.Start()
}

// Confirm has the cluster acknowledge nothing that the standby of that name does not have, and returns once the two
// are in step.
func (c *Cluster) Confirm(t testing.TB, name string) {
	t.Helper()
	if err := c.Configure("synchronous_standby_names = '" + name + "'"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; {
		state := c.Exec(t, "postgres", "SELECT sync_state FROM pg_stat_replication WHERE application_name = '"+name+"'")
		if state == "sync" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the standby %s is %q", name, state)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// signal makes one of the empty files that say to PostgreSQL what it is.
func (c *Cluster) signal(name string) error {
	path := filepath.Join(c.data(), name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return c.in.own(path)
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
