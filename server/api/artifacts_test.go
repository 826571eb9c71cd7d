package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
)

// artifact is a request with artifacts: the head, then rest.
func artifact(session, rest string) string {
	return fmt.Sprintf(`{"project_hash":"ph","session_id":%q,"ccship":{"v":1,"machine":"m1","host":"h","epoch":"e1","path":"p/s.jsonl",`+
		`"cwd":"/w","project":"w","parent_session_id":null},%s}`, session, rest)
}

// linked is an event with a content that comes with it.
func linked(path string, version int, content string) string {
	name, _ := json.Marshal(path)
	return fmt.Sprintf(`{"path":%s,"change":"linked","by":"user","added_at":"2026-11-21T00:00:00Z","at":"2026-11-21T00:00:%02dZ","version":%d,`+
		`"size":%d,"sha256":"%x","encoding":"base64","content":%q}`, name, version%60, version, len(content), sha256.Sum256([]byte(content)),
		base64.StdEncoding.EncodeToString([]byte(content)))
}

func (r *rig) putDocument(session string, events ...string) {
	r.t.Helper()
	r.send("POST", "/api/documents", artifact(session, `"events":[`+strings.Join(events, ",")+`]`), 200)
}

const aCheckpoint = `{"id":"cp-1","session_id":"s","tokens_used":80,"token_budget":100,"trigger_type":"auto_80","context_hash":"c",` +
	`"summary":"<b>half</b>","active_files":["a.go"],"created_at":"2026-11-21T00:00:00Z","generation":0,"line":1}`

func documentURL(session, path string) string {
	return "/api/sessions/" + url.PathEscape(session) + "/documents/" + url.PathEscape(path)
}

// sendBlob uploads a file in chunks.
func (r *rig) sendBlob(session, name, content string) (sum string) {
	r.t.Helper()
	sum = fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	about := artifact(session, fmt.Sprintf(`"size":%d,"media_type":"text/plain","name":%q`, len(content), name))
	at := decode[struct {
		Offset   int
		Complete bool
	}](r.t, r.send("POST", "/api/blobs/"+sum+"/start", about, 200))
	for !at.Complete && at.Offset < len(content) {
		chunk := content[at.Offset:min(at.Offset+1<<20, len(content))]
		at.Offset = decode[struct{ Offset int }](r.t,
			r.send("PUT", fmt.Sprintf("/api/blobs/%s?offset=%d", sum, at.Offset), chunk, 200)).Offset
	}
	r.send("POST", "/api/blobs/"+sum+"/end", about, 200)
	return sum
}

// everyArtifactCall makes every call about artifacts, with success.
func (r *rig) everyArtifactCall() {
	r.t.Helper()
	r.send("POST", "/api/checkpoints", artifact("s", `"checkpoints":[`+aCheckpoint+`]`), 200)
	r.putDocument("s", linked("docs/a.md", 1, "# A"))
	sum := r.sendBlob("s", "tool-results/t.txt", "result")
	r.send("POST", "/api/sessions/s/documents", `{"path":"b.md"}`, 202)
	r.send("DELETE", "/api/sessions/s/documents", `{"path":"docs/a.md"}`, 202)
	for _, path := range []string{
		"/api/checkpoints?session=s&limit=1", "/api/checkpoints/cp-1", "/api/sessions/s/checkpoints", "/api/sessions/s/documents",
		documentURL("s", "docs/a.md") + "?version=1", documentURL("s", "docs/a.md") + "/versions", "/api/sessions/s/blobs",
		"/api/blobs/" + sum, "/api/sessions/s/link-requests", "/api/link-requests?machine=m1",
	} {
		r.send("GET", path, "", 200)
	}
}

// TestGoldenArtifacts takes the requests that the client's end of the wire is pinned to.
func TestGoldenArtifacts(t *testing.T) {
	r := newRig(t)
	read := func(name string) string {
		b := kit.Try(os.ReadFile(filepath.Join("../../e2e/testdata/wire/artifacts", name))).Must(t)
		return string(b)
	}
	r.send("POST", "/api/checkpoints", read("checkpoints.json"), 200)
	r.send("POST", "/api/documents", read("documents.json"), 200)
	content := "thirteen byte"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	r.send("POST", "/api/blobs/"+sum+"/start", read("blob_start.json"), 200)
	r.send("PUT", "/api/blobs/"+sum+"?offset=0", content, 200)
	r.send("POST", "/api/blobs/"+sum+"/end", read("blob_end.json"), 200)
	var a struct {
		Checkpoints []struct{ ID, Summary string }
		Documents   []struct {
			Path     string
			Deleted  bool
			Versions int
		}
	}
	agent := "/api/sessions/" + url.PathEscape("1c0e5a52-0000-4000-8000-000000000001/agent-a0b1")
	r.getJSON(agent+"/checkpoints", &a)
	r.getJSON(agent+"/documents", &a)
	kit.Check(t, len(a.Checkpoints) == 2 && a.Checkpoints[1].Summary == "half < way & on" && len(a.Documents) == 1 &&
		a.Documents[0].Deleted && a.Documents[0].Versions == 2, "%+v", a)
	got := r.get("/api/blobs/" + sum)
	kit.Check(t, string(got.body) == content, "%q", got.body)
}

// TestKindsAnnounced: a daemon learns what is taken from any answer.
func TestKindsAnnounced(t *testing.T) {
	r := newRig(t)
	for _, a := range []answer{r.get("/healthz"), r.do("POST", "/api/conversations", nil, strings.NewReader(piece{lines: objects("a", 0, 1)}.body("s")))} {
		kit.Check(t, a.status == 200 && a.header.Get("Ccship-Accept") == "checkpoints, documents, blobs", "%d %v",
			a.status, a.header)
	}
}

// TestBlobWire: an upload as a client sees it.
func TestBlobWire(t *testing.T) {
	r := newRig(t)
	content := "0123456789"
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	at := "/api/blobs/" + sum
	about := artifact("s", `"size":10,"media_type":"text/html","name":"tool-results/t.html"`)
	r.send("PUT", at+"?offset=0", "x", 404)
	kit.Equal(t, "started", string(r.send("POST", at+"/start", about, 200).body), `{"offset":0,"complete":false}`+"\n")
	r.send("PUT", at, "x", 400)
	r.send("PUT", at+"?offset=-1", "x", 400)
	kit.Has(t, "the answer", string(r.send("PUT", at+"?offset=4", "x", 409).body), `"offset":0,`)
	r.send("PUT", at+"?offset=0", content+"x", 400)
	r.send("PUT", at+"?offset=0", strings.Repeat("x", 1<<20+1), 413)
	kit.Equal(t, "a part", string(r.send("PUT", at+"?offset=0", content[:4], 200).body), `{"offset":4}`+"\n")
	kit.Has(t, "the answer", string(r.send("POST", at+"/end", about, 409).body), `"offset":4,`)
	r.send("GET", at, "", 404)
	kit.Equal(t, "compressed", r.do("PUT", at+"?offset=4", map[string]string{"Content-Encoding": "zstd"}, bytes.NewReader(zstdOf(t, []byte("wrong!")))).status, 200)
	kit.Has(t, "the answer", string(r.send("POST", at+"/end", about, 409).body), `"offset":0,`, `"wrong_hash"`)
	r.sendBlob("s", "tool-results/t.html", content)
	kit.Equal(t, "started again", string(r.send("POST", at+"/start", about, 200).body), `{"offset":10,"complete":true}`+"\n")
	r.send("POST", at+"/start", strings.Replace(about, `"size":10`, `"size":11`, 1), 400)
	var list []struct {
		SHA256, Name string
		Size         int
	}
	r.getJSON("/api/sessions/s/blobs", &list)
	kit.Check(t, len(list) == 1 && list[0].SHA256 == sum && list[0].Name == "tool-results/t.html" && list[0].Size == 10, "%+v", list)
	long := strings.Repeat("긴 결과 ", 300_000)
	got := r.get("/api/blobs/" + r.sendBlob("s", "tool-results/long.txt", long))
	kit.Check(t, string(got.body) == long && got.header.Get("Content-Type") == "text/plain; charset=utf-8",
		"%d bytes as %s", len(got.body), got.header.Get("Content-Type"))
}

// TestDocumentsInert: no browser makes anything of a document's content, whatever it and its name are.
func TestDocumentsInert(t *testing.T) {
	r := newRig(t)
	for name, content := range map[string]string{
		"evil.html": "<script>alert(1)</script>", "evil.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
		"a\"; filename=evil.html": "<html>", "문서/회의록.md": "한글", "bin.html": "\x00<html>\xff", "latin.html": "<p>\xe9</p>",
		"empty.html": "", "..%2fx.html": "<html>", "<img src=x onerror=alert(1)>": "x", "a.md/versions": "x",
		strings.Repeat("x", 4000): "x",
	} {
		r.putDocument("s", linked(name, 1, content))
		a := r.get(documentURL("s", name))
		h := a.header
		if a.status != 200 || string(a.body) != content {
			t.Errorf("%.60q: %d %q", name, a.status, a.body)
			continue
		}
		media := h.Get("Content-Type")
		kit.Check(t, (media == "text/plain; charset=utf-8" || media == "application/octet-stream") &&
			(!strings.Contains(content, "\x00") && utf8.ValidString(content) || media == "application/octet-stream"),
			"%.60q is sent as %q", name, media)
		kit.Check(t, h.Get("X-Content-Type-Options") == "nosniff" &&
			strings.HasPrefix(h.Get("Content-Disposition"), "attachment") &&
			strings.Contains(h.Get("Content-Security-Policy"), "sandbox") && h.Get("Ccship-Version") == "1" &&
			h.Get("Cache-Control") == "private, no-store", "%.60q: %v", name, h)
		kit.Check(t, strings.Count(h.Get("Content-Disposition"), "filename") <= 1 ||
			strings.Contains(h.Get("Content-Disposition"), `\"`), "a name breaks out: %s", h.Get("Content-Disposition"))
	}
	for _, path := range []string{"../s", "%00", "..\x00", "no.md"} {
		a := r.get("/api/sessions/s/documents/" + url.PathEscape(path))
		kit.Check(t, a.status != 200, "%q: %d %s", path, a.status, a.body)
	}
	r.putDocument("s", `{"path":"evil.html","change":"deleted","by":"other","at":"2026-11-21T01:00:00Z","version":2,"size":9,"sha256":"`+
		fmt.Sprintf("%x", sha256.Sum256([]byte("<script>alert(1)</script>")))+`"}`)
	kit.Has(t, "a deleted document", string(r.send("GET", documentURL("s", "evil.html"), "", 404).body), "no_content")
}

// TestArtifactRoles: who may not ship sends nothing, whose the session is not sees nothing, and another one's stays as it is.
func TestArtifactRoles(t *testing.T) {
	owner := newRig(t)
	ann, bob, eve := owner.person("ann", server.Member), owner.person("bob", server.Member), owner.person("eve", server.Viewer)
	ann.post(piece{lines: objects("a", 0, 2)}.body("s"))
	ann.everyArtifactCall()
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("result")))
	body := artifact("s", `"checkpoints":[],"events":[],"size":1,"name":"t"`)
	for _, path := range []string{"/api/checkpoints", "/api/documents", "/api/blobs/" + sum + "/start", "/api/blobs/" + sum + "/end"} {
		eve.send("POST", path, body, 403)
		owner.as("nobody's").send("POST", path, body, 401)
	}
	eve.send("PUT", "/api/blobs/"+sum+"?offset=0", "x", 403)
	eve.send("GET", "/api/link-requests?machine=m1", "", 403)
	eve.send("POST", "/api/sessions/s/documents", `{"path":"b.md"}`, 403)
	paths := []string{"/api/checkpoints/cp-1", "/api/sessions/s/checkpoints", "/api/sessions/s/documents", documentURL("s", "docs/a.md"),
		documentURL("s", "docs/a.md") + "/versions", "/api/sessions/s/blobs", "/api/blobs/" + sum, "/api/sessions/s/link-requests"}
	for _, path := range paths {
		bob.send("GET", path, "", 404)
		owner.send("GET", path, "", 200)
	}
	bob.send("POST", "/api/sessions/s/documents", `{"path":"b.md"}`, 404)
	kit.Equal(t, "bob is asked", string(bob.get("/api/link-requests?machine=m1").body), `{"link_requests":[]}`+"\n")
	// Bob sends to a session of that name: it is his own.
	bob.putDocument("s", linked("docs/a.md", 1, "bob's"))
	kit.Equal(t, "ann's document is", string(ann.get(documentURL("s", "docs/a.md")).body), "# A")
	// Shared without documents, then with.
	ann.send("POST", "/api/shares", `{"with":"eve","project":"ph"}`, 201)
	for _, path := range paths {
		want := 404
		if strings.Contains(path, "checkpoints") || strings.Contains(path, "blobs") {
			want = 200
		}
		eve.send("GET", path, "", want)
	}
	ann.send("POST", "/api/shares", `{"with":"eve","project":"ph","documents":true}`, 201)
	for _, path := range paths {
		eve.send("GET", path, "", 200)
	}
	ann.send("POST", "/api/shares", `{"with":"bob","project":"ph","documents":true}`, 201)
	bob.send("DELETE", "/api/sessions/s/documents?machine=m1", `{"path":"docs/a.md"}`, 202) // of his own
	owner.send("POST", "/api/sessions/s/documents", `{"path":"../x"}`, 400)
	owner.send("POST", "/api/sessions/no/documents", `{"path":"x"}`, 404)
}

// TestLinkRequestsAnnounced: answers to the machine's daemon say that link requests wait, and to no other.
func TestLinkRequestsAnnounced(t *testing.T) {
	r := newRig(t, func(s *api.Server) { api.SetLinkRequestsStale(s, 20*time.Millisecond) })
	other := r.person("other", server.Member)
	r.post(piece{lines: objects("a", 0, 1)}.body("before"))
	r.post(piece{machine: "m2", epoch: "e", lines: objects("a", 0, 1)}.body("s"))
	asked := decode[struct{ ID, State, Host string }](t, r.send("POST", "/api/sessions/s/documents", `{"path":"문서.md"}`, 202))
	kit.Check(t, asked.State == "waiting" && asked.ID != "", "%+v", asked)
	body := func(machine string) string {
		return strings.Replace(artifact("s", `"events":[]`), `"machine":"m1"`, `"machine":"`+machine+`"`, 1)
	}
	says := func(who *rig, machine string) bool {
		lines := who.send("POST", "/api/conversations", piece{machine: machine, epoch: "e1"}.body("s"), 200)
		return lines.header.Get("Ccship-Link-Requests") == "1" && who.send("POST", "/api/documents", body(machine), 200).header.Get("Ccship-Link-Requests") == "1"
	}
	until := func(what string, want bool) { // at once, or when what was known is stale
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(5 * time.Minute); says(r, "m2") != want; <-tick.C {
			kit.Require(t, !time.Now().After(end), "%v", what)
		}
	}
	until("the daemon does not receive the link request", true)
	kit.Check(t, !says(r, "m1") && !says(other, "m2"), "another user receives it")
	var pending struct {
		LinkRequests []struct {
			ID, Path  string
			SessionID string `json:"session_id"`
			Link      bool
		} `json:"link_requests"`
	}
	r.getJSON("/api/link-requests?machine=m2", &pending)
	kit.Check(t, len(pending.LinkRequests) == 1 && pending.LinkRequests[0].ID == asked.ID &&
		pending.LinkRequests[0].SessionID == "s" && pending.LinkRequests[0].Path == "문서.md" &&
		pending.LinkRequests[0].Link, "%+v", pending)
	r.send("GET", "/api/link-requests", "", 400)
	done := strings.Replace(artifact("s", `"events":[`+strings.Replace(linked("문서.md", 1, "x"), `"by":"user"`, `"by":"viewer","link_request":"`+asked.ID+`"`, 1)+`]`),
		`"machine":"m1"`, `"machine":"m2"`, 1)
	r.send("POST", "/api/documents", done, 200)
	kit.Has(t, "link requests", string(r.get("/api/sessions/s/link-requests?machine=m2").body), `"state":"done"`)
	until("the daemon is called all the time", false)
}

// TestArtifactEvents: listeners receive events of artifacts that they may see.
func TestArtifactEvents(t *testing.T) {
	owner := newRig(t)
	ann, eve := owner.person("ann", server.Member), owner.person("eve", server.Viewer)
	ann.post(piece{lines: objects("a", 0, 1)}.body("s"))
	ann.send("POST", "/api/shares", `{"with":"eve","project":"ph"}`, 201)
	hers, mine := eve.listen("", nil), owner.listen("?session=s", nil)
	ann.putDocument("s", linked("a.md", 1, "x"))
	ann.send("POST", "/api/checkpoints", artifact("s", `"checkpoints":[`+aCheckpoint+`]`), 200)
	heard := func(e *ear, n int) (events []string) {
		for len(events) < n {
			if name, ok := strings.CutPrefix(<-e.lines, "event: "); ok {
				events = append(events, name)
			}
		}
		return events
	}
	kit.Equal(t, "the owner heard", heard(mine, 2), []string{"documents", "checkpoints"})
	kit.Equal(t, "eve heard", heard(hers, 1)[0], "checkpoints")
}

// TestArtifactsForgotten: an acknowledgement, so that a daemon goes on to what is wanted, and nothing is stored.
func TestArtifactsForgotten(t *testing.T) {
	r := newRig(t)
	r.everyArtifactCall()
	r.send("DELETE", "/api/sessions/s", "", 200)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("result")))
	about := artifact("s", `"checkpoints":[`+aCheckpoint+`],"events":[`+linked("a.md", 1, "x")+`],"size":6,"name":"tool-results/t"`)
	for _, path := range []string{"/api/checkpoints", "/api/documents", "/api/blobs/" + sum + "/start"} {
		kit.Has(t, path, string(r.send("POST", path, about, 200).body), `"forgotten":true`)
	}
	for _, table := range []string{"documents", "document_versions", "checkpoints", "blobs", "blob_chunks", "blob_refs", "link_requests", "artifact_epochs", "streams"} {
		kit.Equal(t, "rows in "+table, r.count(table), 0)
	}
	r.send("GET", "/api/sessions/s/documents", "", http.StatusNotFound)
}
