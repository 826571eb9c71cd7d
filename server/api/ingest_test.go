package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/api"
	"github.com/ccship/ccship/server/auth"
)

const bare = `{"project_hash":"p","session_id":"s","entries":[{"line_index":0,"type":"user"},{"line_index":1,"n":1}]}`

func zstdOf(t *testing.T, b []byte) []byte {
	t.Helper()
	e := kit.Try(zstd.NewWriter(nil)).Must(t)
	return e.EncodeAll(b, nil)
}

func gzipOf(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	kit.Try(w.Write(b)).Must(t)
	kit.Must(t, w.Close())
	return out.Bytes()
}

func TestBareClient(t *testing.T) {
	r := newRig(t)
	a := r.do("POST", "/api/conversations", map[string]string{"Content-Type": "application/json"}, strings.NewReader(bare))
	kit.Require(t, a.status == 200 && strings.TrimSpace(string(a.body)) == `{"success":true,"entries_stored":2}`,
		"%d %s", a.status, a.body)
	r.post(bare) // again changes nothing, and is counted all the same
	got, want := r.raw("s", ""), "{\"type\":\"user\"}\n{\"n\":1}\n"
	kit.Require(t, got == want, "raw %q, want %q", got, want)
	// Blank and malformed lines are numbered but not sent.
	r.post(`{"session_id":"s","entries":[{"line_index":3,"n":3},{"line_index":1,"n":"new"}]}`)
	got, want = r.raw("s", ""), "{\"type\":\"user\"}\n{\"n\":\"new\"}\n\n{\"n\":3}\n"
	kit.Require(t, got == want, "raw %q, want %q", got, want)
	r.post(`{"session_id":"none","entries":[]}`)
	r.send("GET", "/api/sessions/none", "", 404)
}

func TestAnnouncedEverywhere(t *testing.T) {
	r := newRig(t)
	for path, status := range map[string]int{"/healthz": 200, "/api/sessions": 401, "/api/nothing": 401, "/nothing": 404} {
		a := r.do("GET", path, map[string]string{"X-API-Key": ""}, nil)
		kit.Check(t, a.status == status && a.header.Get("Ccship-Protocol") == "1" &&
			a.header.Get("Accept-Encoding") == "zstd, gzip", "%s: %d %v", path, a.status, a.header)
	}
}

// refused is a request and the answer it gets.
type refused struct {
	header map[string]string
	body   string
	status int
	code   string
}

func refusedBodies() map[string]refused {
	ext := func(members string) string {
		return `{"session_id":"s","entries":[],"ccship":{"v":1,"machine":"m","epoch":"e"` + members + `}}`
	}
	return map[string]refused{
		"no key":             {map[string]string{"X-API-Key": ""}, bare, 401, "unauthorized"},
		"wrong key":          {map[string]string{"X-API-Key": "ccs_00"}, bare, 401, "unauthorized"},
		"not JSON":           {nil, "hello", 400, "bad_json"},
		"empty":              {nil, "", 400, "bad_json"},
		"array":              {nil, "[]", 400, "bad_json"},
		"cut":                {nil, bare[:len(bare)-4], 400, "bad_json"},
		"more behind":        {nil, bare + "{}", 400, "bad_json"},
		"no session":         {nil, `{"entries":[]}`, 400, "bad_request"},
		"empty session":      {nil, `{"session_id":"","entries":[]}`, 400, "bad_request"},
		"session a number":   {nil, `{"session_id":1,"entries":[]}`, 400, "bad_request"},
		"session control":    {nil, `{"session_id":"a\u0000b","entries":[]}`, 400, "bad_request"},
		"no entries":         {nil, `{"session_id":"s"}`, 400, "bad_request"},
		"entries an object":  {nil, `{"session_id":"s","entries":{}}`, 400, "bad_request"},
		"entries twice":      {nil, `{"session_id":"s","entries":[],"entries":[]}`, 400, "bad_json"},
		"entry a string":     {nil, `{"session_id":"s","entries":["x"]}`, 400, "bad_entry"},
		"entry not JSON":     {nil, `{"session_id":"s","entries":[{"line_index":1,"a":nope}]}`, 400, "bad_entry"},
		"other not JSON":     {nil, `{"x":nope,"session_id":"s","entries":[]}`, 400, "bad_json"},
		"no line_index":      {nil, `{"session_id":"s","entries":[{"a":1}]}`, 400, "bad_entry"},
		"negative":           {nil, `{"session_id":"s","entries":[{"line_index":-1}]}`, 400, "bad_entry"},
		"fraction":           {nil, `{"session_id":"s","entries":[{"line_index":1.5}]}`, 400, "bad_entry"},
		"index a string":     {nil, `{"session_id":"s","entries":[{"line_index":"1"}]}`, 400, "bad_entry"},
		"index too large":    {nil, `{"session_id":"s","entries":[{"line_index":9007199254740993}]}`, 400, "bad_entry"},
		"bad base64":         {nil, `{"session_id":"s","entries":[{"line_index":1,"type":"ccship.opaque","encoding":"base64","data":"%"}]}`, 400, "bad_entry"},
		"extension a number": {nil, `{"session_id":"s","entries":[],"ccship":1}`, 400, "bad_extension"},
		"version 2":          {nil, `{"session_id":"s","entries":[],"ccship":{"v":2}}`, 400, "bad_extension"},
		"no machine":         {nil, `{"session_id":"s","entries":[],"ccship":{"v":1,"epoch":"e"}}`, 400, "bad_extension"},
		"negative gen":       {nil, ext(`,"generation":-1`), 400, "bad_extension"},
		"bad edge":           {nil, ext(`,"edges":[[1,""]]`), 400, "bad_extension"},
	}
}

func refusedEncodings(t *testing.T) map[string]refused {
	bomb := bytes.Repeat([]byte{' '}, 8<<20)
	return map[string]refused{
		"brotli":      {map[string]string{"Content-Encoding": "br"}, bare, 415, "unsupported_encoding"},
		"two codings": {map[string]string{"Content-Encoding": "gzip, zstd"}, bare, 415, "unsupported_encoding"},
		"not zstd":    {map[string]string{"Content-Encoding": "zstd"}, bare, 400, "bad_encoding"},
		"not gzip":    {map[string]string{"Content-Encoding": "gzip"}, bare, 400, "bad_encoding"},
		"cut zstd":    {map[string]string{"Content-Encoding": "zstd"}, string(zstdOf(t, []byte(bare))[:40]), 400, "bad_encoding"},
		"large":       {nil, string(bomb[:70<<10]), 413, "too_large"},
		"zstd bomb":   {map[string]string{"Content-Encoding": "zstd"}, string(zstdOf(t, bomb)), 413, "too_large"},
		"gzip bomb":   {map[string]string{"Content-Encoding": "gzip"}, string(gzipOf(t, bomb)), 413, "too_large"},
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, func(s *api.Server) { s.MaxBody = 64 << 10 })
	cases := refusedBodies()
	maps.Copy(cases, refusedEncodings(t))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := r.do("POST", "/api/conversations", c.header, strings.NewReader(c.body))
			var e struct {
				Error struct{ Code, Message string }
			}
			err := json.Unmarshal(a.body, &e)
			kit.Require(t, err == nil, "%d %q: %v", a.status, a.body, err)
			kit.Check(t, a.status == c.status && e.Error.Code == c.code && e.Error.Message != "", "%d %s, want %d %s",
				a.status, a.body, c.status, c.code)
		})
	}
	var list struct{ Sessions []any }
	r.getJSON("/api/sessions", &list)
	kit.Check(t, len(list.Sessions) == 0, "refused requests left %d sessions", len(list.Sessions))
}

func TestRevokedKey(t *testing.T) {
	r := newRig(t)
	kit.Try(r.store.RevokeKey(t.Context(), "test", time.Now())).Must(t)
	r.send("GET", "/api/sessions", "", 401)
}

func TestEncodings(t *testing.T) {
	r := newRig(t)
	var frames []byte // as the client sends it: every piece of the body a frame of its own
	for _, part := range []string{`{"project_hash":"p","session_id":"z","entries":[`, `{"line_index":0,"a":1}`, `,`,
		`{"line_index":1,"b":2}`, `]}`} {
		frames = append(frames, zstdOf(t, []byte(part))...)
	}
	plain := []byte(strings.Replace(bare, `"s"`, `"g"`, 1))
	half := len(plain) / 2
	for _, c := range []struct {
		session, encoding string
		body              []byte
		want              string
	}{
		{"z", "zstd", frames, "{\"a\":1}\n{\"b\":2}\n"},
		{"g", "gzip", append(gzipOf(t, plain[:half]), gzipOf(t, plain[half:])...), "{\"type\":\"user\"}\n{\"n\":1}\n"},
		{"s", "identity", []byte(bare), "{\"type\":\"user\"}\n{\"n\":1}\n"},
	} {
		// A reader of unknown length is sent chunked.
		a := r.do("POST", "/api/conversations", map[string]string{"Content-Encoding": c.encoding},
			io.MultiReader(bytes.NewReader(c.body)))
		kit.Require(t, a.status == 200, "%s: %d %s", c.encoding, a.status, a.body)
		kit.Equal(t, c.encoding, r.raw(c.session, ""), c.want)
	}
}

// TestConcurrentRepeats sends the same requests many times at once: one of each is stored, nothing is superseded.
func TestConcurrentRepeats(t *testing.T) {
	r := newRig(t)
	var bodies []string
	for i := range 10 {
		bodies = append(bodies, piece{first: int64(i), lines: []string{fmt.Sprintf(`{"n":%d}`, i)}}.body("s"))
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for _, b := range bodies {
				kit.Gives(t, "status", 200)(r.try(b))
			}
		})
	}
	wg.Wait()
	want := ""
	for i := range 10 {
		want += fmt.Sprintf("{\"n\":%d}\n", i)
	}
	kit.Equal(t, "raw", r.raw("s", ""), want)
	kit.Equal(t, "rows superseded by themselves", r.count("superseded"), 0)
}

// FuzzIngest sends anything to the handler, with a real store behind it. Whatever comes, the answer is one of the
// protocol's, and what is acknowledged is there.
func FuzzIngest(f *testing.F) {
	names := kit.Try(filepath.Glob("../../e2e/testdata/wire/*.json")).Must(f)
	for _, name := range names {
		b := kit.Try(os.ReadFile(name)).Must(f)
		f.Add(b, "")
	}
	f.Add([]byte(bare), "gzip")
	f.Add([]byte("\x28\xb5\x2f\xfd"), "zstd")
	f.Add([]byte(piece{gen: 1, rewound: 3, lines: []string{"{}"}}.body("s/agent-1")), "")
	r := newRig(f)
	s := api.New(r.store, auth.New(r.store, discard()), server.NewHub(r.store))
	s.MaxBody = 1 << 20
	h := s.Handler()
	f.Fuzz(func(t *testing.T, body []byte, encoding string) {
		req := httptest.NewRequest(http.MethodPost, "/api/conversations", bytes.NewReader(body))
		req.Header.Set("X-API-Key", r.key)
		req.Header.Set("Content-Encoding", encoding)
		res := httptest.NewRecorder()
		h.ServeHTTP(res, req)
		switch res.Code {
		case http.StatusOK:
		case http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			return
		default:
			t.Fatalf("%d %s", res.Code, res.Body)
		}
		if encoding == "" {
			checkStored(t, r, body, res.Body.Bytes())
		}
	})
}

// checkStored looks for what was acknowledged.
func checkStored(t *testing.T, r *rig, body, answer []byte) {
	var sent struct {
		SessionID string `json:"session_id"`
		Ccship    *struct{ Machine, Epoch string }
	}
	if json.Unmarshal(body, &sent) != nil {
		return
	}
	var stored struct {
		Success bool
		Entries int `json:"entries_stored"`
	}
	if err := json.Unmarshal(answer, &stored); err != nil || !stored.Success {
		t.Fatalf("answer %s, %v", answer, err)
	}
	if stored.Entries == 0 && sent.Ccship == nil {
		return
	}
	snap, err := r.store.View(t.Context(), server.Scope{All: true}, server.Ref{SessionID: sent.SessionID})
	kit.Require(t, err == nil, "session %q was acknowledged: %v", sent.SessionID, err)
	kit.Must(t, snap.Close())
}

// refusedArtifact is a request that is not taken.
type refusedArtifact struct {
	path, body string
	status     int
	code       string
}

// refusals are requests of which one thing is wrong.
func refusals() map[string]refusedArtifact {
	event := func(members string) string {
		return artifact("s", `"events":[`+linked("ok.md", 1, "ok")+`,{"at":"2026-11-21T00:00:00Z","version":1,"by":"user",`+members+`}]`)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("x")))
	documents, checkpoints, start := "/api/documents", "/api/checkpoints", "/api/blobs/"+sum+"/start"
	return map[string]refusedArtifact{
		"no JSON":             {documents, `{"session_id"`, 400, "bad_json"},
		"no head":             {documents, `{"session_id":"s","events":[]}`, 400, "bad_extension"},
		"no session":          {documents, strings.Replace(artifact("s", `"events":[]`), `"session_id":"s"`, `"session_id":""`, 1), 400, "bad_request"},
		"another version":     {documents, strings.Replace(artifact("s", `"events":[]`), `"v":1`, `"v":2`, 1), 400, "bad_extension"},
		"no epoch":            {documents, strings.Replace(artifact("s", `"events":[]`), `"epoch":"e1"`, `"epoch":""`, 1), 400, "bad_extension"},
		"no events":           {documents, artifact("s", `"x":1`), 400, "bad_request"},
		"no checkpoints":      {checkpoints, artifact("s", `"events":[]`), 400, "bad_request"},
		"above":               {documents, event(`"path":"../x","change":"linked"`), 400, "bad_item"},
		"inside and above":    {documents, event(`"path":"a/../../x","change":"linked"`), 400, "bad_item"},
		"from the root":       {documents, event(`"path":"/etc/passwd","change":"linked"`), 400, "bad_item"},
		"NUL":                 {documents, event(`"path":"a\u0000b","change":"linked"`), 400, "bad_item"},
		"not clean":           {documents, event(`"path":"a//b","change":"linked"`), 400, "bad_item"},
		"5 KB path":           {documents, event(`"path":"` + strings.Repeat("x", 5000) + `","change":"linked"`), 400, "bad_item"},
		"unknown change":      {documents, event(`"path":"a","change":"renamed"`), 400, "bad_item"},
		"negative version":    {documents, event(`"path":"a","change":"linked","version":-1`), 400, "bad_item"},
		"no time":             {documents, artifact("s", `"events":[{"path":"a","change":"linked"}]`), 400, "bad_item"},
		"year 12345":          {documents, event(`"path":"a","change":"linked","added_at":"0001-02-03T00:00:00Z"`), 400, "bad_item"},
		"another hash":        {documents, event(`"path":"a","change":"linked","size":1,"content":"y","sha256":"` + sum + `"`), 400, "bad_item"},
		"another size":        {documents, event(`"path":"a","change":"linked","size":2,"content":"x","sha256":"` + sum + `"`), 400, "bad_item"},
		"no hash":             {documents, event(`"path":"a","change":"linked","size":1,"content":"x"`), 400, "bad_item"},
		"capitals in a hash":  {documents, event(`"path":"a","change":"linked","sha256":"` + strings.ToUpper(sum) + `"`), 400, "bad_item"},
		"no base64":           {documents, event(`"path":"a","change":"linked","size":1,"encoding":"base64","content":"?","sha256":"` + sum + `"`), 400, "bad_item"},
		"unknown encoding":    {documents, event(`"path":"a","change":"linked","size":1,"encoding":"utf-7","content":"x","sha256":"` + sum + `"`), 400, "bad_item"},
		"content and blob":    {documents, event(`"path":"a","change":"linked","size":1,"content":"x","sha256":"` + sum + `","blob":"` + sum + `"`), 400, "bad_item"},
		"2 MiB inline":        {documents, event(`"path":"a","change":"linked","content":"` + strings.Repeat("x", 2<<20) + `"`), 413, "too_large"},
		"9 MiB":               {documents, artifact("s", `"events":[],"x":"`+strings.Repeat("x", 9<<20)+`"`), 413, "too_large"},
		"10001 items":         {documents, artifact("s", `"events":[`+strings.Repeat(`{},`, 10_000)+`{}]`), 413, "too_large"},
		"checkpoint no id":    {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `"cp-1"`, `""`, 1)+`]`), 400, "bad_item"},
		"checkpoint below 0":  {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `"tokens_used":80`, `"tokens_used":-1`, 1)+`]`), 400, "bad_item"},
		"checkpoint no time":  {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `"created_at"`, `"x"`, 1)+`]`), 400, "bad_item"},
		"a huge summary":      {checkpoints, artifact("s", `"checkpoints":[`+strings.Replace(aCheckpoint, `half`, strings.Repeat("x", 70_000), 1)+`]`), 400, "bad_item"},
		"1 GB declared":       {start, artifact("s", `"size":1073741824,"name":"tool-results/t"`), 413, "too_large"},
		"a negative size":     {start, artifact("s", `"size":-1,"name":"tool-results/t"`), 400, "bad_request"},
		"a name above":        {start, artifact("s", `"size":1,"name":"../t"`), 400, "bad_request"},
		"a hash that is none": {"/api/blobs/xyz/start", artifact("s", `"size":1,"name":"t"`), 400, "bad_item"},
	}
}

// TestArtifactsRefused: what is not right is refused whole, with a status that says whether to try again.
func TestArtifactsRefused(t *testing.T) {
	r := newRig(t)
	for name, c := range refusals() {
		t.Run(name, func(t *testing.T) {
			a := r.do("POST", c.path, nil, strings.NewReader(c.body))
			kit.Check(t, a.status == c.status && strings.Contains(string(a.body), `"`+c.code+`"`), "%d %.300s", a.status,
				a.body)
		})
	}
	kit.Equal(t, "rows of what was refused", r.count("streams")+r.count("documents")+r.count("blobs"), 0)
	bomb := zstdOf(t, bytes.Repeat([]byte{' '}, 64<<20))
	for path, method := range map[string]string{"/api/documents": "POST", fmt.Sprintf("/api/blobs/%x?offset=0", sha256.Sum256(nil)): "PUT"} {
		a := r.do(method, path, map[string]string{"Content-Encoding": "zstd"}, bytes.NewReader(bomb))
		kit.Check(t, a.status == 413, "%s: a bomb: %d %.200s", path, a.status, a.body)
	}
}
