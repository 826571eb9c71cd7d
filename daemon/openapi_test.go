package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// contract is the OpenAPI document that a daemon serves, and which of its operations were used.
type contract struct {
	t        *testing.T
	http     *http.Client
	document map[string]any
	compiler *jsonschema.Compiler
	used     map[string]bool
}

const documentURL = "http://ccship/openapi.json"

func (w *world) contract() *contract {
	w.t.Helper()
	c := &contract{t: w.t, used: map[string]bool{}, compiler: jsonschema.NewCompiler(), http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", w.cfg.Socket)
		},
	}}}
	res, err := c.http.Get("http://localhost/v1/openapi")
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	doc, err := jsonschema.UnmarshalJSON(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	c.document = doc.(map[string]any)
	for _, s := range c.at("components", "schemas").(map[string]any) {
		s.(map[string]any)["additionalProperties"] = false // a member that is not described is a mistake here
	}
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource(documentURL, doc); err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (c *contract) at(path ...string) any {
	c.t.Helper()
	var v any = c.document
	for _, name := range path {
		members, ok := v.(map[string]any)
		if !ok || members[name] == nil {
			c.t.Fatalf("the document has no %s", strings.Join(path, " → "))
		}
		v = members[name]
	}
	return v
}

// matches holds a document to the schema at a position of the contract.
func (c *contract) matches(what string, text []byte, place ...string) {
	c.t.Helper()
	c.at(place...)
	for i := range place {
		place[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(place[i]))
	}
	schema, err := c.compiler.Compile(documentURL + "#/" + strings.Join(place, "/"))
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		c.t.Errorf("%s: %v\n%s", what, err, text)
	}
}

// call makes a request and holds its body and its answer to the contract.
func (c *contract) call(method, path, body string, code int) []byte {
	c.t.Helper()
	what := method + " " + path
	route, _, _ := strings.Cut(path, "?")
	op := []string{"paths", route, strings.ToLower(method)}
	c.used[op[2]+" "+route] = true
	if body != "" && code == http.StatusOK {
		c.matches(what+" (request)", []byte(body), append(op, "requestBody", "content", "application/json", "schema")...)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if res.StatusCode != code {
		c.t.Errorf("%s: %s, want %d", what, res.Status, code)
	}
	answer := append(op, "responses", "200", "content", kind, "schema")
	if res.StatusCode != http.StatusOK {
		answer = []string{"components", "schemas", "Error"}
	}
	switch kind {
	case "application/json":
		text, err := io.ReadAll(res.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		c.matches(what, text, answer...)
		return text
	case "application/x-ndjson":
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			c.matches(what, lines.Bytes(), slices.Clone(answer)...)
		}
	case "text/event-stream":
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				c.matches(what, []byte(data), slices.Clone(answer)...)
				break // it has no end
			}
		}
	default:
		c.at(answer...)
	}
	return nil
}

// TestContract holds real answers of every operation to the document that the daemon serves.
func TestContract(t *testing.T) {
	t.Parallel()
	w := newFileWorld(t)
	w.picky(t, "poison")
	w.set("server_url", strconv.Quote(w.cfg.ServerURL))
	w.load()
	out := t.TempDir()
	tracked(t, out, "config.json", `{"conversation_tracking":{"enabled":false}}`)
	w.write("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 5)+"not json\n")
	w.write("-p/"+sessionA+"/subagents/agent-a1.jsonl", records("/home/kim/shop", 0, 2))
	w.write("-q/"+sessionB+".jsonl", records(out, 0, 5))
	w.start()
	w.sync()
	w.write("-p/"+sessionA+".jsonl", `{"type":"user","text":"poison"}`+"\n"+`{"type":"user","text":"fine"}`+"\n")
	w.sync()
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
	if err := json.Unmarshal(c.call("GET", "/v1/outbox/dead", "", 200), &dead); err != nil || len(dead.Letters) != 1 {
		t.Fatalf("dead letters: %+v %v", dead, err)
	}
	c.call("POST", "/v1/pause", `{"for":"soon"}`, 400)
	c.call("POST", "/v1/pause", `{"for":"1h"}`, 200)
	c.call("POST", "/v1/outbox/dead/retry", fmt.Sprintf(`{"ids":[%q]}`, dead.Letters[0].ID), 200)
	c.call("POST", "/v1/outbox/dead/retry", `{"ids":["1-1"]}`, 404)
	c.call("GET", "/v1/outbox", "", 200)
	c.call("GET", "/v1/outbox?offset=-1", "", 400)
	c.call("GET", "/v1/status", "", 200)
	c.call("POST", "/v1/flush", "", 200)
	c.call("GET", "/v1/events", "", 200)
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
	c.call("POST", "/v1/exclude", `{"pattern":"/home/kim/*"}`, 200)
	c.call("POST", "/v1/exclude", `{"pattern":"shop"}`, 400)
	c.call("DELETE", "/v1/exclude?pattern=/home/kim/*", "", 200)
	c.call("DELETE", "/v1/exclude?pattern=/home/kim/*", "", 404)
	w.set("line_cap", `"1KiB"`)
	w.set("history", "false")
	c.call("POST", "/v1/reload", "", 200)
	c.call("GET", "/v1/status", "", 200)
	c.call("GET", "/v1/openapi", "", 200)
	c.call("GET", "/metrics", "", 200)
	for path, methods := range c.at("paths").(map[string]any) {
		for method := range methods.(map[string]any) {
			if !c.used[method+" "+path] {
				t.Errorf("%s %s was not tried", method, path)
			}
		}
	}
}
