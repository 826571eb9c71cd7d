//go:build unix

package pgtest_test

import (
	"os"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// TestLife: a killed cluster recovers what it has committed; a standby follows and can be promoted.
func TestLife(t *testing.T) {
	c := pgtest.New(t, nil)
	c.Exec(t, "postgres", "CREATE TABLE x (i int)")
	s := c.Standby(t, "second")
	c.Confirm(t, "second")
	c.Exec(t, "postgres", "INSERT INTO x VALUES (1)")
	kit.Must(t, c.Kill())
	kit.Must(t, s.Promote())
	s.Exec(t, "postgres", "INSERT INTO x VALUES (2)")
	kit.Equal(t, "the promoted standby has", s.Exec(t, "postgres", "SELECT sum(i) FROM x"), "3")
	kit.Must(t, c.Start())
	kit.Equal(t, "after a crash", c.Exec(t, "postgres", "SELECT sum(i) FROM x"), "1")
	kit.Must(t, c.Restart("immediate"))
}

// TestShared: databases of one cluster know nothing of each other.
func TestShared(t *testing.T) {
	c := pgtest.Shared(t)
	a, b := c.Database(t), pgtest.Shared(t).Database(t)
	kit.Check(t, a != b, "one database twice: %s", a)
	for setting, want := range map[string]string{"listen_addresses": "", "server_encoding": "UTF8"} {
		kit.Equal(t, setting, c.Exec(t, "postgres", "SHOW "+setting), want)
	}
}
