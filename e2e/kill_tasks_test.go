//go:build unix

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// task is what the server does while something is killed.
type task interface {
	alone() bool                // by one server; false: by two, where the store allows it
	cold() bool                 // it uses cold storage
	begin(c *campaign)          // once, before the first round
	prepare(c *campaign)        // has lines stored, and makes them something to do; no server runs after it
	flags(c *campaign) []string // with which servers do it
	start(c *campaign)          // what a person does while they run
	left(c *campaign) int       // what is still to do; -1: not known now
	end(c *campaign)            // once, after the last round
}

// simple is what most tasks have in common.
type simple struct{}

func (simple) alone() bool              { return true }
func (simple) cold() bool               { return false }
func (simple) begin(*campaign)          {}
func (simple) flags(*campaign) []string { return nil }
func (simple) start(*campaign)          {}
func (simple) end(*campaign)            {}

const perRound = 6 // sessions

const ageUnit = "3600000000" // an hour

// age makes everything that is stored so many hours older, unless it is older than that.
func (c *campaign) ageAll(hours int) {
	c.t.Helper()
	by := fmt.Sprintf("%d * %s", hours, ageUnit)
	limit := fmt.Sprint(time.Now().UnixMicro() - int64(hours)*int64(time.Hour/time.Microsecond))
	c.change(`UPDATE streams SET last_received = last_received - `+by+` WHERE last_received > `+limit,
		`UPDATE generations SET first_seen = first_seen - `+by+` WHERE first_seen > `+limit)
}

// hot is how many rows are not packed that came before this round.
func (c *campaign) hot() int {
	return c.number(fmt.Sprintf(`SELECT count(*) FROM lines WHERE received < %d`, c.since.UnixMicro()))
}

// sealing packs sessions that were idle for an hour.
type sealing struct{ simple }

func (*sealing) prepare(c *campaign) {
	for range perRound {
		c.grow("shop", 30)
	}
	c.serve()
	c.sync()
	c.quiet()
	c.ageAll(1)
}

func (*sealing) left(c *campaign) int { return c.hot() }

// tiering packs such sessions and moves them to cold storage.
type tiering struct{ sealing }

func (*tiering) cold() bool { return true }

func (*tiering) flags(c *campaign) []string {
	return []string{"--blocks", c.place.url(), "--cold-after", "1s", "--retention-every", "0"}
}

func (*tiering) left(c *campaign) int {
	here := c.number(`SELECT count(*) FROM blocks WHERE length(data) > 0 AND raw_bytes > 0`)
	hot := c.hot()
	if here < 0 || hot < 0 {
		return -1
	}
	return here + hot
}

func (*tiering) end(c *campaign) { c.sweep() }

// sweep has removed what a kill left behind in storage, which servers do after an hour.
func (c *campaign) sweep() {
	c.t.Helper()
	c.quiet()
	c.change(`UPDATE cold_objects SET at = 0 WHERE state = 0`)
	c.serve((&tiering{}).flags(c)...)
	c.await("nothing is left behind in storage", func() bool {
		return c.number(`SELECT count(*) FROM cold_objects WHERE state <> 1`) == 0
	})
}

// freeze moves everything to cold storage. No server runs after it.
func (c *campaign) freeze() {
	c.t.Helper()
	t := &tiering{}
	c.ageAll(1)
	c.since = time.Now()
	c.serve(t.flags(c)...)
	c.await("everything is in cold storage", func() bool { return t.left(c) == 0 })
	c.quiet()
}

// retiring applies rules that drop sessions of one project, and what rewinds left of all.
type retiring struct {
	simple
	far  bool // what they drop is in cold storage
	kept int  // lines that are to stay
}

func (r *retiring) cold() bool { return r.far }

func (*retiring) begin(c *campaign) {
	c.serverTool(0, "retention", "add", "generations", "--older-than", "30d")
	c.serverTool(0, "retention", "add", "sessions", "--older-than", "60d", "--project", "old")
}

func (r *retiring) prepare(c *campaign) {
	from := len(c.files)
	for i := range perRound {
		c.grow([]string{"shop", "old"}[i%2], 30)
	}
	c.serve("--retention-every", "0")
	c.sync()
	for _, f := range c.files[from:] {
		c.keepLines(f.path, 20)
		c.extend(f, 10)
	}
	c.sync()
	c.quiet()
	if r.far {
		c.freeze()
	}
	c.ageAll(90 * 24)
	r.kept = 0
	for _, f := range c.files {
		if f.gone = filepath.Base(f.cwd) == "old"; !f.gone {
			r.kept += bytes.Count(c.read(f.path), []byte("\n"))
		}
	}
}

func (r *retiring) flags(c *campaign) []string {
	if !r.far {
		return []string{"--retention-every", "400ms"}
	}
	return []string{"--blocks", c.place.url(), "--cold-after", "1s", "--retention-every", "400ms"}
}

func (r *retiring) left(c *campaign) int {
	packed := c.number(`SELECT CAST(coalesce(sum(lines), 0) AS bigint) FROM blocks`)
	hot, doomed := c.hot(), c.number(doomedObjects)
	if packed < 0 || hot < 0 || doomed < 0 {
		return -1
	}
	return packed + hot - r.kept + doomed
}

func (r *retiring) end(c *campaign) {
	if r.far {
		c.sweep()
	}
}

// doomedObjects counts what is still to be removed from cold storage.
const doomedObjects = `SELECT count(*) FROM cold_objects WHERE state = 2`

// forgetting removes sessions that are in cold storage, as their user asks for.
type forgetting struct {
	simple
	names  []string
	asking sync.WaitGroup
}

func (*forgetting) cold() bool { return true }

func (f *forgetting) prepare(c *campaign) {
	f.names = nil
	for i := range 10 {
		c.grow("shop", 30)
		if i%5 > 0 {
			f.names = append(f.names, c.files[len(c.files)-1].session)
		}
	}
	c.serve("--retention-every", "0")
	c.sync()
	c.quiet()
	c.freeze()
}

func (*forgetting) flags(c *campaign) []string { return (&tiering{}).flags(c) }

// start asks for one session after the other, each again until that succeeds.
func (f *forgetting) start(c *campaign) {
	for _, file := range c.files {
		file.gone = file.gone || slices.Contains(f.names, file.session)
	}
	names := f.names
	f.asking.Go(func() {
		for _, name := range names {
			for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); pass(50 * time.Millisecond) {
				if out := c.ccship("forget", name, "--yes"); out.code == 0 {
					break
				}
			}
		}
	})
}

func (f *forgetting) left(c *campaign) int {
	there := c.number(`SELECT count(*) FROM streams WHERE session_id IN ('` + strings.Join(f.names, "', '") + `')`)
	doomed := c.number(doomedObjects)
	if there < 0 || doomed < 0 {
		return -1
	}
	return there + doomed
}

func (f *forgetting) end(c *campaign) {
	f.asking.Wait()
	c.sweep()
}

// deriving derives everything again, and lines that come meanwhile.
type deriving struct{ simple }

func (*deriving) alone() bool { return false }

func (*deriving) begin(c *campaign) {
	for range 30 {
		c.grow("shop", 40)
	}
	c.serve()
	c.sync()
}

func (*deriving) prepare(c *campaign) {
	c.quiet()
	for range 5 {
		c.extend(c.files[c.rng.IntN(len(c.files))], 10)
	}
	c.grow("shop", 40)
	c.change(`UPDATE streams SET derived = -1, leased = 0, redo = true`)
}

func (*deriving) left(c *campaign) int { return c.number(sqlLagging) }

const sqlLagging = `SELECT count(*) FROM streams WHERE version > derived`

// end compares what is derived with what another server derives, which nobody kills, of the same transcripts.
func (*deriving) end(c *campaign) {
	c.serve()
	c.sync()
	c.await("everything is derived", func() bool { return c.number(sqlLagging) == 0 })
	other := exactWorld(c.t)
	must(c.t, os.CopyFS(other.projects(), os.DirFS(c.projects())))
	other.start()
	other.sync()
	want := map[string]string{}
	eventually(c.t, "everything is derived without trouble", 5*time.Minute, func() bool {
		code, body := other.exact.get("/metrics")
		return code == http.StatusOK && strings.Contains(string(body), "ccship_server_derive_lag_streams 0\n")
	})
	for _, at := range c.questions() {
		want[at] = other.answer(at)
	}
	for at, was := range want {
		if got := c.answer(at); got != was {
			c.made.Wrong++
			c.t.Errorf("%s: answered\n%s\nwithout trouble\n%s", at, kit.Tail(got, 3000), kit.Tail(was, 3000))
		}
	}
}
