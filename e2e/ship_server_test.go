//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/pgtest"
)

// shipServer is a running ccship-server with a database and a key of its own.
type shipServer struct {
	home *home
	proc *kit.Process
	url  *url.URL
	key  string
	at   string // where it keeps everything; "": in a database file of its own

	version string   // of its program; "": none
	flags   []string // further ones of serve
}

func newShipServer(h *home) *shipServer {
	h.t.Helper()
	return newShipServerAt(h, "")
}

// newShipServerAt is a server with another store.
func newShipServerAt(h *home, at string) *shipServer {
	h.t.Helper()
	s := &shipServer{home: h, at: at}
	out := h.runProgram(kit.Program(h.t, "ccship-server"), "key", "create", "--name", "e2e", "--store", s.store())
	s.key = strings.TrimSpace(out.stdout)
	kit.Require(h.t, out.code == 0 && s.key != "" && !strings.ContainsAny(s.key, " \n"),
		"key create: exit %d, stdout %q, stderr %q", out.code, out.stdout, out.stderr)
	s.start()
	return s
}

func (s *shipServer) database() string { return filepath.Join(s.home.dir, "server", "server.db") }

func (s *shipServer) store() string {
	if s.at != "" {
		return s.at
	}
	return "sqlite:" + s.database()
}

// start runs the server on a free port and waits for it.
func (s *shipServer) start() {
	s.home.t.Helper()
	program := kit.Try(kit.BuildAs("ccship-server", s.version)).Must(s.home.t)
	flags := append([]string{"serve", "--listen", "127.0.0.1:0", "--store", s.store()}, s.flags...)
	s.proc = s.home.launch(program, flags...)
	base := kit.Try(s.proc.Listening()).Must(s.home.t)
	u := kit.Try(url.Parse(base)).Must(s.home.t)
	s.url = u
}

// handler passes requests on to the server, unchanged in both directions.
func (s *shipServer) handler() http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(s.url) },
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8},
		ErrorLog:  log.New(io.Discard, "", 0), // a killed client is no news
	}
	return proxy
}

// get asks the server itself, past the gate.
func (s *shipServer) get(path string) (int, []byte) {
	s.home.t.Helper()
	r := kit.Try(http.NewRequest(http.MethodGet, s.url.String()+path, nil)).Must(s.home.t)
	r.Header.Set("X-API-Key", s.key)
	answer, err := http.DefaultClient.Do(r)
	kit.Require(s.home.t, err == nil, "GET %s: %v", path, err)
	defer answer.Body.Close()
	body := kit.Try(io.ReadAll(answer.Body)).Must(s.home.t)
	return answer.StatusCode, body
}

// raw is a stream's file as the server has it; nil when it has none. query narrows it to a generation or an epoch.
func (s *shipServer) raw(stream, query string) []byte {
	s.home.t.Helper()
	code, body := s.get("/api/sessions/" + url.PathEscape(stream) + "/raw" + query)
	if code != http.StatusOK {
		s.home.t.Logf("raw of %s%s: %d %s", stream, query, code, body)
		return nil
	}
	return body
}

// digest is what the server says of a stream.
type digest struct {
	SessionID   string `json:"session_id"`
	Machine     string `json:"machine"`
	Epoch       string `json:"epoch"`
	Generations []struct {
		Generation int64  `json:"generation"`
		RewoundTo  int64  `json:"rewound_to"`
		Lines      int64  `json:"lines"`
		Bytes      int64  `json:"bytes"`
		SHA256     string `json:"sha256"`
	} `json:"generations"`
}

func (s *shipServer) digest(stream string) digest {
	s.home.t.Helper()
	code, body := s.get("/api/sessions/" + url.PathEscape(stream) + "/digest")
	kit.Require(s.home.t, code == http.StatusOK, "digest of %s: %d %s", stream, code, body)
	var d digest
	must(s.home.t, json.Unmarshal(body, &d))
	return d
}

// generation is the query for one generation's view.
func generation(n int) string { return fmt.Sprintf("?generation=%d", n) }

// talk writes one conversation as Claude Code does, with what a conversation means: a tree of messages, the tokens of
// each answer, tool calls with their results, compactions. Every method answers the lines it adds.
type talk struct {
	session, cwd string
	model        string
	leaf         string // uuid the next record hangs off; "" for the beginning
	n            int    // records so far
	clock        time.Time
}

func newTalk(session, cwd string) *talk {
	return &talk{session: session, cwd: cwd, model: "claude-opus-4-5", clock: time.Date(2026, 8, 20, 9, 0, 0, 0, time.UTC)}
}

func (c *talk) uuid() string {
	c.n++
	return fmt.Sprintf("%s-%012d", c.session[:23], c.n)
}

// record is a line of the message tree.
func (c *talk) record(members map[string]any) []byte {
	c.clock = c.clock.Add(time.Second)
	id := c.uuid()
	line := map[string]any{
		"parentUuid": nil, "isSidechain": false, "uuid": id, "timestamp": c.clock.Format("2006-01-02T15:04:05.000Z"),
		"userType": "external", "entrypoint": "cli", "cwd": c.cwd, "sessionId": c.session, "version": "2.1.235", "gitBranch": "main",
	}
	if c.leaf != "" {
		line["parentUuid"] = c.leaf
	}
	for name, value := range members {
		line[name] = value
	}
	c.leaf = id
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

func (c *talk) prompt(text string) []byte {
	return c.record(map[string]any{
		"type": "user", "promptSource": "typed", "origin": map[string]any{"kind": "human"},
		"message": map[string]any{"role": "user", "content": text},
	})
}

// answer is one of the model's, with so many tokens in use.
func (c *talk) answer(tokens int, blocks ...map[string]any) []byte {
	return c.record(map[string]any{
		"type": "assistant", "requestId": fmt.Sprintf("req_%s_%d", c.session[:8], c.n),
		"message": map[string]any{
			"model": c.model, "id": fmt.Sprintf("msg_%s_%d", c.session[:8], c.n), "type": "message", "role": "assistant",
			"content": blocks, "stop_reason": "end_turn", "stop_sequence": nil,
			"usage": map[string]any{
				"input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens - 1000, "output_tokens": 50,
			},
		},
	})
}

func (c *talk) says(tokens int, text string) []byte {
	return c.answer(tokens, map[string]any{"type": "text", "text": text})
}

// calls is an answer that calls a tool, and returns gives its result.
func (c *talk) calls(tokens int, id, tool string, input map[string]any) []byte {
	return c.answer(tokens, map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input})
}

func (c *talk) returns(id, output string, failed bool) []byte {
	return c.record(map[string]any{
		"type": "user", "toolUseResult": output,
		"message": map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed},
		}},
	})
}

// turn is a prompt and its answer.
func (c *talk) turn(tokens int, prompt, answer string) []byte {
	return bytes.Join([][]byte{c.prompt(prompt), c.says(tokens, answer)}, nil)
}

// compact is the boundary of an automatic compaction and its summary.
func (c *talk) compact(before, after int) []byte {
	last := c.leaf
	c.leaf = ""
	boundary := c.record(map[string]any{
		"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": last, "level": "info",
		"compactMetadata": map[string]any{"trigger": "auto", "preTokens": before, "postTokens": after, "durationMs": 41200},
	})
	summary := c.record(map[string]any{
		"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
		"message": map[string]any{"role": "user", "content": "This session is being continued from a previous conversation."},
	})
	return append(boundary, summary...)
}

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
