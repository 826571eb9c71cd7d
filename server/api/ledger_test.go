package api_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
)

// writes is a daemon that keeps a ledger: it sends what it knows and learns from each answer.
type writes struct {
	r           *rig
	incarnation string
	store       string
	count       string
	token       string
	version     string
}

type conflict struct {
	Error struct {
		Code   string `json:"code"`
		Stream *struct {
			Epoch            string `json:"epoch"`
			Generation, Line int64
		} `json:"stream"`
	} `json:"error"`
}

func (d *writes) post(path, body string) (int, conflict) {
	d.r.t.Helper()
	req := kit.Try(http.NewRequest(http.MethodPost, d.r.http.URL+path, strings.NewReader(body))).Must(d.r.t)
	req.Header.Set("X-API-Key", d.r.key)
	req.Header.Set("Ccship-Writer", strings.TrimSpace(d.incarnation+" "+d.count+" "+d.store+" "+d.token))
	resp := kit.Try(http.DefaultClient.Do(req)).Must(d.r.t)
	defer resp.Body.Close()
	var c conflict
	kit.Must(d.r.t, json.NewDecoder(resp.Body).Decode(&c))
	if resp.StatusCode == http.StatusOK {
		parts := strings.Split(resp.Header.Get("Ccship-Ledger"), " ")
		d.store, d.count, d.token = parts[0], parts[1], parts[2]
		d.version = resp.Header.Get("Ccship-Server")
	}
	return resp.StatusCode, c
}

// TestLedger: a write carries its writer's state; one that does not match is refused with what the client needs.
func TestLedger(t *testing.T) {
	r := newRig(t, func(s *api.Server) { s.Version = "1.2.3" })
	a := &writes{r: r, incarnation: "a", count: "0"}
	status, _ := a.post("/api/conversations", piece{lines: objects("x", 0, 3)}.body("s"))
	kit.Require(t, status == http.StatusOK && a.count == "1", "%d, ledger %+v", status, a)
	kit.Equal(t, "the answer to a write is of version", a.version, "1.2.3")
	status, c := (&writes{r: r, incarnation: "b", count: "0"}).post("/api/conversations", piece{lines: objects("x", 0, 3)}.body("s"))
	kit.Check(t, status == http.StatusConflict && c.Error.Code == "writer_behind", "a new state: %d %+v", status, c)
	status, c = a.post("/api/conversations", piece{lines: objects("y", 1, 2), first: 1}.body("s"))
	kit.Check(t, status == http.StatusConflict && c.Error.Code == "other_bytes" && c.Error.Stream != nil &&
		c.Error.Stream.Line == 1, "other bytes: %d %+v", status, c)
	for _, header := range []string{"", "a", "a x", "a 1 s t u", "a 1 s $", "a -1", "ä 1", strings.Repeat("a", 65) + " 1"} {
		bad := &writes{r: r, incarnation: header}
		status, c := bad.post("/api/conversations", piece{lines: objects("x", 3, 4)}.body("t"))
		kit.Check(t, header == "" || status == http.StatusBadRequest && c.Error.Code == "bad_header", "%q: %d %+v", header, status, c)
	}
	var l struct {
		Store, Writer string
		Count         int64
		Changed       []struct {
			SessionID string `json:"session_id"`
			Count     int64
		}
	}
	r.getJSON("/api/ledger?machine=m1", &l)
	kit.Check(t, l.Store == a.store && l.Count == 2 && len(l.Changed) == 2 && l.Changed[0].SessionID == "s", "ledger %+v", l)
}

// TestCopy: a clone under a name of its own gets the lines that both have, without sending them.
func TestCopy(t *testing.T) {
	r := newRig(t)
	a := &writes{r: r, incarnation: "a", count: "0"}
	a.post("/api/conversations", piece{lines: objects("x", 0, 10)}.body("s"))
	a.post("/api/conversations", piece{gen: 1, rewound: 4, first: 4, lines: objects("y", 4, 8)}.body("s"))
	clone := &writes{r: r, incarnation: "b", count: "0"}
	body := fmt.Sprintf(`{"from_machine":"m1","to_machine":"m2","host":"laptop (2)","epoch":"e","lines":%d}`, 6)
	status, c := clone.post("/api/sessions/s/copy", body)
	kit.Require(t, status == http.StatusOK && clone.count != "0", "%d %+v", status, c)
	want := r.raw("s", "?machine=m1")
	got := r.raw("s", "?machine=m2")
	kit.Equal(t, "copied of "+want, got, strings.Join(strings.SplitAfter(want, "\n")[:6], ""))
	status, c = clone.post("/api/sessions/none/copy", body)
	kit.Check(t, status == http.StatusNotFound, "an unknown session: %d %+v", status, c)
	status, c = clone.post("/api/sessions/s/copy", `{"from_machine":"m1","to_machine":"m1","epoch":"e","lines":1}`)
	kit.Check(t, status == http.StatusBadRequest, "onto itself: %d %+v", status, c)
}

// TestReplaced: what an older client overwrote can be read.
func TestReplaced(t *testing.T) {
	r := newRig(t)
	r.post(piece{lines: objects("first", 0, 3)}.body("s"))
	r.post(piece{lines: objects("second", 1, 2), first: 1}.body("s"))
	var page struct {
		Entries []struct {
			LineIndex int64 `json:"line_index"`
			Record    json.RawMessage
		}
	}
	r.getJSON("/api/sessions/s/entries?replaced=1", &page)
	kit.Check(t, len(page.Entries) == 1 && page.Entries[0].LineIndex == 1 &&
		strings.Contains(string(page.Entries[0].Record), "first"), "replaced %+v", page)
}

// TestClientBeforeTheLedger: a client of the version before the ledger delivers lines, more of them, and a rewind, each
// request twice, as after a lost answer. Then it is updated, and goes on with the same state.
func TestClientBeforeTheLedger(t *testing.T) {
	const session, dir = "11111111-1111-4111-8111-111111111111", "../../e2e/testdata/wire-before-ledger/"
	line := func(n, word string) string {
		cwd := ""
		if n == "1" {
			cwd = `"sessionId":"` + session + `","cwd":"/w",`
		}
		return `{"type":"user","uuid":"u` + n + `",` + cwd + `"message":{"role":"user","content":"` + word + "\"}}\n"
	}
	first, rewound := line("1", "one")+line("2", "two")+line("3", "three"), line("1", "one")+line("4", "four")
	r := newRig(t)
	var last []byte
	for _, step := range []struct{ file, now string }{
		{"1.json", line("1", "one") + line("2", "two")}, {"2.json", first}, {"3.json", ""}, {"4.json", rewound},
	} {
		body := kit.Try(os.ReadFile(dir + step.file)).Must(t)
		for range 2 {
			a := r.do("POST", "/api/conversations", nil, bytes.NewReader(body))
			kit.Require(t, a.status == 200 && strings.Contains(string(a.body), `"success":true`), "%s: %d %s", step.file, a.status, a.body)
		}
		kit.Equal(t, "after "+step.file, r.raw(session, ""), step.now)
		last = body
	}
	kit.Equal(t, "the generation before", r.raw(session, "?generation=0"), first)
	d := &writes{r: r, incarnation: "a", count: "0"}
	next := strings.NewReplacer(`"line":0},"to":{"offset":203,"line":2}`, `"line":2},"to":{"offset":280,"line":3}`,
		`"offset":0,`, `"offset":203,`).Replace(string(last))
	next = next[:strings.Index(next, `[{`)] + `[{"line_index":2,"type":"user","uuid":"u5"}]` + next[strings.Index(next, `,"ccship"`):]
	if status, c := d.post("/api/conversations", next); status != http.StatusConflict || c.Error.Code != "writer_behind" {
		t.Errorf("the first write after the update: %d %+v", status, c)
	}
	var at struct {
		Store string
		Count int64
	}
	r.getJSON("/api/ledger?machine=000102030405060708090a0b0c0d0e0f&since=0", &at)
	d.store, d.count = at.Store, strconv.FormatInt(at.Count, 10)
	status, c := d.post("/api/conversations", next)
	kit.Check(t, status == http.StatusOK, "and once it knows the ledger: %d %+v", status, c)
	kit.Equal(t, "then", r.raw(session, ""), rewound+`{"type":"user","uuid":"u5"}`+"\n")
}

// TestStolenKey: an owner revokes a stolen owner's key, and reads what ended with it.
func TestStolenKey(t *testing.T) {
	first := newRig(t)
	first.person("bob", server.Viewer)
	boss := first.person("boss", server.Owner)
	type made struct{ Key, URL, Secret string }
	first.post(piece{lines: objects("a", 0, 3)}.body("s"))

	first.send("POST", "/api/users", `{"name":"eve","role":"owner"}`, http.StatusCreated)
	eve := first.as(decode[made](t, first.send("POST", "/api/keys", `{"name":"eves","user":"eve"}`, http.StatusCreated)).Key)
	eve.send("PATCH", "/api/users/bob", `{"role":"member"}`, 200)
	eve.send("POST", "/api/shares", `{"owner":"owner","with":"bob","project":"ph"}`, http.StatusCreated)
	link := decode[made](t, eve.send("POST", "/api/sessions/s/share-links", `{"expires":"1h"}`, http.StatusCreated))
	_, secret, _ := strings.Cut(link.URL, "/s/")
	_, ticket, _ := strings.Cut(decode[made](t, eve.send("POST", "/api/tickets", `{}`, http.StatusCreated)).URL, "ticket=")
	access := auth.New(first.store, discard())
	_, err := access.CheckShareLink(t.Context(), "r", secret)
	kit.Require(t, err == nil, "link %q: %v", link.URL, err)

	type ended struct {
		Keys, Users     []string
		Logins, Tickets int
		Links           int `json:"share_links"`
		Reset           []struct{ Name, Role string }
		Shares          []struct{ Owner, With, Project string }
	}
	got := decode[struct{ Ended ended }](t, boss.send("DELETE", "/api/keys/test", "", 200)).Ended
	want := ended{Keys: []string{"eves"}, Users: []string{"eve"}, Tickets: 1, Links: 1}
	want.Reset = append(want.Reset, struct{ Name, Role string }{"bob", "viewer"})
	want.Shares = append(want.Shares, struct{ Owner, With, Project string }{"owner", "bob", "w"})
	kit.Equal(t, "ended", got, want)
	for _, r := range map[string]*rig{"the key": first, "eve's": eve} {
		r.send("GET", "/api/me", "", http.StatusUnauthorized)
	}
	kit.Err(t, "the link", server.ErrNotFound)(access.CheckShareLink(t.Context(), "r", secret))
	kit.Err(t, "the one-time link", auth.ErrUnauthorized)(access.LoginWithTicket(t.Context(), "r", ticket))
	kit.Equal(t, "sessions", boss.sessionsOf(""), "owner:s")
}

// TestProofOfNewKey: a key works at once, also when the server has just looked for another one that it did not know.
func TestProofOfNewKey(t *testing.T) {
	r := newRig(t)
	ask := func(key string, want int) {
		t.Helper()
		hash, nonce := auth.HashKey(key), rand.Text()
		q := url.Values{"key": {protocol.KeyID(hash)}, "nonce": {nonce}, "proof": {protocol.ClientProof(hash, nonce)}}
		r.send("GET", "/api/proof?"+q.Encode(), "", want)
	}
	for _, name := range []string{"ann", "ben"} {
		ask("a key of nobody, before "+name+"'s", 401)
		ask(r.person(name, server.Member).key, 200)
	}
}

// proof asks for the proof that the server knows a key, as a client that knows it and as clients that do not.
func (r *rig) proof(key string) {
	r.t.Helper()
	hash, nonce := auth.HashKey(key), rand.Text()
	ask := func(id, nonce, proof string) string {
		return "/api/proof?" + url.Values{"key": {id}, "nonce": {nonce}, "proof": {proof}}.Encode()
	}
	a := r.get(ask(protocol.KeyID(hash), nonce, protocol.ClientProof(hash, nonce)))
	var said protocol.KeyProof
	err := json.Unmarshal(a.body, &said)
	kit.Check(r.t, err == nil && a.status == 200 && said.Store != "" && said.Proof == protocol.ServerProof(hash, nonce, said.Store),
		"the server does not prove to know the key: %d %s %v", a.status, a.body, err)
	for what, path := range map[string]string{
		"a wrong proof":        ask(protocol.KeyID(hash), nonce, protocol.ServerProof(hash, nonce, said.Store)),
		"another nonce":        ask(protocol.KeyID(hash), rand.Text(), protocol.ClientProof(hash, nonce)),
		"no nonce":             ask(protocol.KeyID(hash), "", protocol.ClientProof(hash, "")),
		"an unknown key":       ask(strings.Repeat("0", 32), nonce, protocol.ClientProof(hash, nonce)),
		"nothing but the name": ask(protocol.KeyID(hash), nonce, ""),
	} {
		a := r.get(path)
		kit.Check(r.t, a.status == 401 && strings.Contains(string(a.body), protocol.CodeUnknownKey) &&
			!strings.Contains(string(a.body), "proof\":"), "%s: %d %s", what, a.status, a.body)
	}
}
