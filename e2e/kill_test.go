//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// What kills end.
const (
	theServer   = "server"
	theDatabase = "database"
	theStorage  = "S3 server"
)

// killRow is who is killed while the server does something.
type killRow struct {
	killed string
	during string
	task   func() task
	stores string // "SQLite PostgreSQL", or one of them
	short  string // those of `make test`
}

func killRows() []killRow {
	const both, one = "SQLite PostgreSQL", "PostgreSQL"
	tiers := func() task { return &tiering{} }
	retires := func() task { return &retiring{} }
	retiresCold := func() task { return &retiring{far: true} }
	forgets := func() task { return &forgetting{} }
	return []killRow{
		{theServer, "deriving", func() task { return &deriving{} }, both, ""},
		{theServer, "sealing", func() task { return &sealing{} }, both, "SQLite"},
		{theServer, "moving to S3", tiers, both, ""},
		{theServer, "retention", retires, both, both},
		{theServer, "retention of what is in S3", retiresCold, both, ""},
		{theServer, "forgetting what is in S3", forgets, both, ""},
		{theDatabase, "deriving", func() task { return &deriving{} }, one, ""},
		{theDatabase, "sealing", func() task { return &sealing{} }, one, ""},
		{theDatabase, "moving to S3", tiers, one, ""},
		{theDatabase, "retention", retires, one, ""},
		{theDatabase, "retention of what is in S3", retiresCold, one, ""},
		{theDatabase, "forgetting what is in S3", forgets, one, ""},
		{theStorage, "moving to S3", tiers, both, ""},
		{theStorage, "retention of what is in S3", retiresCold, both, ""},
		{theStorage, "forgetting what is in S3", forgets, both, ""},
	}
}

// TestKill kills the server, its database or its storage while the server derives, seals, moves, retires or forgets
// lines that a daemon sent. After each round what was being done is done, what came meanwhile is there, and every line
// that is to be kept is as it is on disk; in the end everything that verifies finds nothing.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := kit.SettingNumber("rounds", 0) // 0: some of them, once
	for _, row := range killRows() {
		for store := range strings.FieldsSeq(row.stores) {
			if rounds == 0 && !strings.Contains(row.short, store) {
				continue
			}
			t.Run(strings.ReplaceAll(row.killed+"/"+row.during+"/"+store, " ", "_"), func(t *testing.T) {
				newCampaign(t, row, store).run(max(1, rounds))
			})
		}
	}
}

// killed is what kills of one kind came to.
type killed struct {
	Killed   string    `json:"killed"`
	During   string    `json:"during"`
	Store    string    `json:"store"`
	Rounds   int       `json:"rounds"`
	Late     int       `json:"late,omitempty"` // further rounds, in which the kill came when all was done
	Sessions int       `json:"sessions"`
	Lines    int       `json:"lines"`  // sent
	Lost     int       `json:"lost"`   // lines that are on disk, and not in the server
	Wrong    int       `json:"wrong"`  // those that are there with other bytes
	Verify   int       `json:"verify"` // checks that found something
	Recovery []float64 `json:"recovery"`
}

// run makes rounds until so many kills came in time.
func (c *campaign) run(rounds int) {
	c.task.begin(c)
	for c.made.Rounds < rounds {
		kit.Require(c.t, c.made.Late <= 100+rounds, "%d of %d kills came too late", c.made.Late, c.made.Late+c.made.Rounds)
		recovery, hit := c.round()
		if !hit {
			c.made.Late++
			continue
		}
		c.made.Rounds++
		c.made.Recovery = append(c.made.Recovery, recovery)
	}
	c.task.end(c)
	c.verify()
	c.made.Sessions, c.made.Lines = len(c.files), c.sent()
	c.t.Logf("%+v", c.made)
	kit.Check(c.t, c.made.Lost+c.made.Wrong+c.made.Verify <= 0,
		"%d lines lost, %d wrong, %d checks found something", c.made.Lost, c.made.Wrong, c.made.Verify)
}

// round has something done and kills in its middle. hit: something was left to do after the kill.
func (c *campaign) round() (recovery float64, hit bool) {
	c.task.prepare(c)
	c.since = time.Now()
	total := c.task.left(c) // before a server runs, which may be quick
	kit.Require(c.t, total > 0, "there is nothing to do: %d", total)
	c.serve(c.task.flags(c)...)
	c.task.start(c)
	mark := 1 + c.rng.IntN(total)
	c.await("a part of it is done", func() bool { n := c.task.left(c); return n >= 0 && n <= mark })
	pass(time.Duration(c.rng.IntN(10)) * time.Millisecond)
	c.kill()
	if c.row.killed != theDatabase {
		hit = c.task.left(c) > 0
	}
	c.grow("shop", 3) // what comes while nobody is there
	if c.row.killed == theStorage {
		c.hear()
	}
	began := time.Now()
	c.raise()
	if c.row.killed == theDatabase {
		hit = c.task.left(c) > 0
	}
	c.await("all of it is done", func() bool { return c.task.left(c) == 0 })
	recovery = time.Since(began).Seconds()
	c.sync()
	c.compare()
	return recovery, hit
}

// kill ends what is to be killed.
func (c *campaign) kill() {
	switch c.row.killed {
	case theServer:
		c.struck = c.made.Rounds % len(c.servers)
		c.servers[c.struck].proc.Kill()
	case theDatabase:
		must(c.t, c.cluster.Kill())
	case theStorage:
		c.place.kill()
	}
}

// raise starts again what was killed.
func (c *campaign) raise() {
	switch c.row.killed {
	case theServer:
		if len(c.servers) > 1 { // another server goes on
			c.exact = c.servers[1-c.struck]
			c.front.set(c.exact)
			return
		}
		c.servers[c.struck].start()
		c.front.set(c.servers...)
	case theDatabase:
		must(c.t, c.cluster.Start())
	case theStorage:
		c.place.start()
	}
}

// hear asks for every session while storage cannot be reached: what is only there is answered with 503, which says so.
func (c *campaign) hear() {
	for _, f := range c.files {
		code, said := c.exact.get("/api/sessions/" + f.session + "/raw")
		told := code == http.StatusServiceUnavailable && strings.Contains(string(said), "cold storage")
		if !told && code != http.StatusOK && code != http.StatusNotFound && code != http.StatusConflict {
			c.made.Wrong++
			c.t.Errorf("%s without storage: %d %.200s", f.session, code, said)
		}
	}
}

// await waits for something that is asked for often.
func (c *campaign) await(what string, come func() bool) {
	c.t.Helper()
	for end := time.Now().Add(8 * time.Minute); !come(); pass(2 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("it does not happen that %s; %d left of round %d; %s", what, c.task.left(c), c.made.Rounds+c.made.Late, c.inside())
		}
	}
}

// inside is what the store has, for a test that failed.
func (c *campaign) inside() string {
	var b strings.Builder
	for _, q := range []string{`SELECT count(*) FROM lines`, `SELECT CAST(coalesce(sum(lines), 0) AS bigint) FROM blocks`,
		`SELECT count(*) FROM blocks WHERE length(data) > 0`, `SELECT count(*) FROM cold_objects WHERE state = 0`,
		`SELECT count(*) FROM cold_objects WHERE state = 1`, `SELECT count(*) FROM cold_objects WHERE state = 2`,
		`SELECT count(*) FROM leases`, `SELECT count(*) FROM retired`, `SELECT count(*) FROM streams WHERE retired > 0`,
		`SELECT count(*) FROM streams`} {
		fmt.Fprintf(&b, "\n%s: %d", q, c.number(q))
	}
	return b.String()
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// rareWord is a word that few texts of conversations have.
var rareWord = regexp.MustCompile(` [0-9a-f]{8} `)

// questions are asked of what is derived: sessions, tokens, texts, and what happened when.
func (c *campaign) questions() []string {
	c.t.Helper()
	all := []string{"/api/sessions?limit=1000", "/api/usage?by=session", "/api/usage?by=day,model"}
	for i, f := range c.files {
		if i%4 > 0 {
			continue
		}
		words := rareWord.FindAllString(string(c.read(f.path)), -1)
		all = append(all, "/api/sessions/"+f.session+"/timeline?limit=1000",
			"/api/search?limit=100&q="+url.QueryEscape(words[c.rng.IntN(len(words))]))
	}
	return all
}

// answer is what the server says, without what two servers do not share.
func (w *world) answer(at string) string {
	w.t.Helper()
	code, body := w.exact.get(at)
	var v any
	err := json.Unmarshal(body, &v)
	kit.Require(w.t, err == nil && code == http.StatusOK, "%s: %d %.300s, %v", at, code, body, err)
	text := kit.Try(json.MarshalIndent(same(v), "", " ")).Must(w.t)
	return string(text)
}

// same removes names and times of one server's own from an answer, and brings its lists into one order.
func same(v any) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(key string, _ any) bool {
			return slices.Contains([]string{"machine", "host", "user", "epoch", "path", "url", "first_received", "last_received",
				"last_active", "next"}, key)
		})
		for key, part := range v {
			v[key] = same(part)
		}
	case []any:
		for i := range v {
			v[i] = same(v[i])
		}
		slices.SortFunc(v, func(a, b any) int {
			x, y := fmt.Sprint(a), fmt.Sprint(b)
			return map[bool]int{true: -1, false: 1}[x < y]
		})
	}
	return v
}
