package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// contract asks a daemon as any program may: over HTTP, without the client of package control.
type contract struct {
	t    *testing.T
	http *http.Client
}

func (w *world) contract() *contract {
	return &contract{t: w.t, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", w.cfg.Socket)
		},
	}}}
}

// call makes a request: documents and lines have a version, lists are never null, a refusal says what to do.
func (c *contract) call(method, path, body string, code int) []byte {
	c.t.Helper()
	what := method + " " + path
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	kit.Must(c.t, err)
	res := kit.Try(c.http.Do(req)).Must(c.t)
	defer res.Body.Close()
	kit.Check(c.t, res.StatusCode == code, "%s: %s, want %d", what, res.Status, code)
	text := kit.Try(io.ReadAll(res.Body)).Must(c.t)
	var refusal control.Error
	switch last := bytes.TrimSpace(text[bytes.LastIndexByte(bytes.TrimSpace(text), '\n')+1:]); {
	case code != http.StatusOK:
		kit.Check(c.t, json.Unmarshal(text, &refusal) == nil && refusal.Code != "" && refusal.Message != "" && refusal.Hint != "",
			"%s: %s", what, text)
	case strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain"):
	case !bytes.Contains(last, []byte(`"schema_version":1`)), bytes.Contains(last, []byte(":null")):
		c.t.Errorf("%s: %s", what, last)
	}
	return text
}

// TestContract asks for everything that the socket offers, and for some things that it does not.
func TestContract(t *testing.T) {
	w := newFileWorld(t)
	w.picky(t, "poison")
	w.set("server_url", strconv.Quote(w.cfg.ServerURL))
	w.load()
	out := t.TempDir()
	tracked(t, out, "config.json", `{"conversation_tracking":{"enabled":false}}`)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5)+"not json\n")
	w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 2))
	w.startWith("-q/"+sessionB+".jsonl", records(out, 0, 5))
	w.send("-p/"+sessionA+".jsonl", `{"type":"user","text":"poison"}`+"\n"+`{"type":"user","text":"fine"}`+"\n")
	c := w.contract()
	c.call("GET", "/v1/status", "", 200)
	c.call("GET", "/v1/sessions", "", 200)
	c.call("GET", "/v1/sessions?limit=1&offset=1&project=/home", "", 200)
	c.call("GET", "/v1/sessions?limit=all", "", 400)
	c.call("POST", "/v1/verify", `{"session":"`+sessionA[:8]+`","timeout":"5s"}`, 200)
	c.call("POST", "/v1/verify", `{"timeout":"soon"}`, 400)
	c.call("POST", "/v1/verify", `{"timeout":"5s","repair":true}`, 200)
	c.call("POST", "/v1/resend", `{"all":true}`, 200)
	c.call("POST", "/v1/redact/apply", `{"dry_run":true}`, 200)
	c.call("POST", "/v1/resend", `{"session":"never-was"}`, 400)
	c.call("POST", "/v1/sync", `{"wait":true,"timeout":"5s"}`, 200)
	c.call("POST", "/v1/sync", ``, 200)
	c.call("POST", "/v1/sync", `{"patience":true}`, 400)
	var dead struct{ Letters []struct{ ID string } }
	err := json.Unmarshal(c.call("GET", "/v1/outbox/dead", "", 200), &dead)
	kit.Require(t, err == nil && len(dead.Letters) == 1, "dead letters: %+v %v", dead, err)
	c.call("POST", "/v1/pause", `{"for":"soon"}`, 400)
	c.call("POST", "/v1/pause", `{"for":"1h"}`, 200)
	c.call("POST", "/v1/outbox/dead/retry", fmt.Sprintf(`{"ids":[%q]}`, dead.Letters[0].ID), 200)
	c.call("POST", "/v1/outbox/dead/retry", `{"ids":["1-1"]}`, 404)
	c.call("GET", "/v1/outbox", "", 200)
	c.call("GET", "/v1/outbox?offset=-1", "", 400)
	c.call("GET", "/v1/status", "", 200)
	c.call("POST", "/v1/flush", "", 200)
	c.call("POST", "/v1/resume", "", 200)
	c.call("POST", "/v1/outbox/dead/drop", `{"all":true}`, 200)
	c.call("POST", "/v1/outbox/drop", `{"server":"`+w.cfg.ServerURL+`"}`, 400)
	c.call("GET", "/v1/messages?limit=5&session="+sessionA, "", 200)
	c.call("GET", "/v1/messages", "", 400)
	c.call("GET", "/v1/messages?session=never-was", "", 404)
	c.call("DELETE", "/v1/messages?session="+sessionA, "", 200)
	c.call("POST", "/v1/checkpoints", `{"session":"`+sessionA+`","trigger":"pre_heavy","port_id":"p"}`, 200)
	c.call("POST", "/v1/checkpoints", `{"session":"`+sessionA+`","trigger":"auto_80"}`, 400)
	c.call("GET", "/v1/checkpoints?session="+sessionA, "", 200)
	c.call("GET", "/v1/checkpoints?session=never-was", "", 404)
	c.call("GET", "/v1/checkpoint?id=cp-none", "", 404)
	c.call("GET", "/v1/checkpoint", "", 400)
	c.call("PUT", "/v1/budget", `{"session":"`+sessionA+`","limit":90000}`, 200)
	c.call("PUT", "/v1/budget", `{"limit":90000}`, 400)
	c.call("GET", "/v1/budget", "", 200)
	c.call("GET", "/v1/budget?session="+sessionA, "", 200)
	document := `{"session":"` + sessionB + `","path":".codetracker/config.json"}`
	c.call("POST", "/v1/documents", document, 200)
	c.call("POST", "/v1/documents", `{"session":"`+sessionB+`","path":"nothing"}`, 400)
	c.call("GET", "/v1/documents?session="+sessionB, "", 200)
	c.call("GET", "/v1/documents", "", 400)
	c.call("GET", "/v1/documents?session=never-was", "", 404)
	c.call("DELETE", "/v1/documents", document, 200)
	c.call("DELETE", "/v1/documents", document, 400)
	c.call("POST", "/v1/documents/answer", `{"action":"link","path":"a.md"}`, 200)
	c.call("POST", "/v1/documents/answer", `{"action":"read","path":"a.md"}`, 400)
	c.call("GET", "/v1/init?session="+sessionB+"&cwd=/home/kim", "", 200)
	c.call("GET", "/v1/init?session=new", "", 400)
	c.call("POST", "/v1/pending", `{"session":"`+sessionA+`","event":"Stop"}`, 200)
	c.call("POST", "/v1/forget", `{"session":"`+sessionA+`"}`, 200)
	c.call("POST", "/v1/forget", `{"session":"never-was"}`, 404)
	c.call("GET", "/v1/exclude", "", 200)
	w.set("line_cap", `"1KiB"`)
	w.set("history", "false")
	c.call("POST", "/v1/reload", "", 200)
	c.call("GET", "/v1/status", "", 200)
	c.call("GET", "/metrics", "", 200)
}
