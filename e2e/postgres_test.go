//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// rounds is how often trouble is made in each of these tests; `lab failover` wants 20.
func rounds() int { return kit.SettingNumber("rounds", 2) }

// cluster is a home whose daemon ships to two servers on one PostgreSQL, behind one address.
type cluster struct {
	*home
	rng     *rand.Rand
	front   *balancer
	servers []*shipServer
	files   []crashFile
}

func newClusterWorld(t *testing.T, store string) *cluster {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	h := newHome(t)
	c := &cluster{home: h, rng: rand.New(rand.NewPCG(seed, seed)), front: newBalancer(t)}
	first := newShipServerAt(h, store)
	second := &shipServer{home: h, at: store, key: first.key}
	second.start()
	c.servers = []*shipServer{first, second}
	c.front.set(c.servers...)
	h.writeKey(first.key)
	h.url = c.front.url()
	return c
}

// grow adds n transcripts of some hundred kilobytes, and lines to one that is there.
func (c *cluster) grow(n int) {
	for range n {
		conv := newConversation(c.rng.Uint64(), c.cwd())
		path := c.path(fmt.Sprintf("-work-%d", c.rng.IntN(4)), conv.session+".jsonl")
		c.add(path, conv.mixed(250))
		c.files = append(c.files, crashFile{conv, path})
	}
	f := c.files[c.rng.IntN(len(c.files))]
	c.add(f.path, f.mixed(20))
}

// during makes trouble while an import is under way, again and again, a second apart; in the end nothing is missing
// and nothing is wrong, whichever server is asked. Trouble counts only if there was still something to send before it.
func (c *cluster) during(what string, trouble func(round int)) {
	c.t.Helper()
	made := &kit.Outcome{Group: "databases", Fault: what}
	kit.Record(c.t, made)
	c.grow(12)
	c.daemon()
	for round := 0; made.Runs < rounds(); round++ {
		for c.grow(8); c.status().Outbox.Entries == 0; {
			c.grow(4)
		}
		trouble(round)
		pass(time.Second)
		made.Hear(kit.Plain(kit.Headline(c.ccship("status").stdout)))
		made.Runs++
	}
	c.look("", 0, "sync", "--wait", "--timeout", "8m")
	for _, s := range c.servers {
		for _, f := range c.files {
			got, want := s.raw(f.session, ""), c.read(f.path)
			kit.Check(c.t, bytes.Equal(got, want), "%s: %s", f.session, firstDifference(got, want))
		}
	}
	c.look("", 0, "verify", "--deep")
	st := c.status()
	kit.Check(c.t, st.Outbox.Dead == 0, "%d dead letters", st.Outbox.Dead)
	c.t.Logf("%d transcripts, %d entries, %d requests", len(c.files), st.Sent.Entries, st.Sent.Requests)
}

// TestPostgresServerKilled: one of two servers is killed mid-import, every second, and started again.
func TestPostgresServerKilled(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t, nil)
	c := newClusterWorld(t, pg.Database(t))
	c.during("PostgreSQL: one of two servers killed", func(round int) {
		s := c.servers[round%2]
		s.proc.Kill()
		s.start()
		c.front.set(c.servers...)
	})
}

// TestPostgresRestarted: the database crashes mid-import, again and again.
func TestPostgresRestarted(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t, nil)
	c := newClusterWorld(t, pg.Database(t))
	c.during("PostgreSQL: the database crashes", func(int) { must(t, pg.Restart("immediate")) })
}

// TestPostgresPrimaryKilled: mid-import the standby takes over from a killed primary, which comes back and is next.
func TestPostgresPrimaryKilled(t *testing.T) {
	t.Parallel()
	names := []string{"one", "two"}
	one := pgtest.New(t, nil)
	two := one.Standby(t, names[1])
	one.Confirm(t, names[1])
	both := []*pgtest.Cluster{one, two}
	c := newClusterWorld(t, pgtest.Together("postgres", one, two))
	c.during("PostgreSQL: the primary killed, its standby promoted", func(round int) {
		primary, standby := both[round%2], both[(round+1)%2]
		must(t, primary.Kill())
		must(t, standby.Promote())
		must(t, primary.Follow(standby, names[round%2]))
		standby.Confirm(t, names[round%2])
	})
}
