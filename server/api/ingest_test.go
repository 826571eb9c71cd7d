package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/ccship/ccship/server/api"
)

const bare = `{"project_hash":"p","session_id":"s","entries":[{"line_index":0,"type":"user"},{"line_index":1,"n":1}]}`

func zstdOf(t *testing.T, b []byte) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil)
	must(t, err)
	return e.EncodeAll(b, nil)
}

func gzipOf(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	return out.Bytes()
}

func TestBareClient(t *testing.T) {
	r := newRig(t)
	a := r.do("POST", "/api/conversations", map[string]string{"Content-Type": "application/json"}, strings.NewReader(bare))
	if a.status != 200 || strings.TrimSpace(string(a.body)) != `{"success":true,"entries_stored":2}` {
		t.Fatalf("%d %s", a.status, a.body)
	}
	r.post(bare) // again changes nothing, and is counted all the same
	if got, want := r.raw("s", ""), "{\"type\":\"user\"}\n{\"n\":1}\n"; got != want {
		t.Fatalf("raw %q, want %q", got, want)
	}
	// Blank and malformed lines are numbered but not sent.
	r.post(`{"session_id":"s","entries":[{"line_index":3,"n":3},{"line_index":1,"n":"new"}]}`)
	if got, want := r.raw("s", ""), "{\"type\":\"user\"}\n{\"n\":\"new\"}\n\n{\"n\":3}\n"; got != want {
		t.Fatalf("raw %q, want %q", got, want)
	}
	r.post(`{"session_id":"none","entries":[]}`)
	if a := r.get("/api/sessions/none"); a.status != 404 {
		t.Errorf("a request without entries made a session: %d", a.status)
	}
}

func TestAnnouncedEverywhere(t *testing.T) {
	r := newRig(t)
	for path, status := range map[string]int{"/healthz": 200, "/api/sessions": 401, "/api/nothing": 401, "/nothing": 404} {
		a := r.do("GET", path, map[string]string{"X-API-Key": ""}, nil)
		if a.status != status || a.header.Get("Ccship-Protocol") != "1" || a.header.Get("Accept-Encoding") != "zstd, gzip" {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
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
			if err := json.Unmarshal(a.body, &e); err != nil {
				t.Fatalf("%d %q: %v", a.status, a.body, err)
			}
			if a.status != c.status || e.Error.Code != c.code || e.Error.Message == "" {
				t.Errorf("%d %s, want %d %s", a.status, a.body, c.status, c.code)
			}
		})
	}
	var list struct{ Sessions []any }
	if r.getJSON("/api/sessions", &list); len(list.Sessions) != 0 {
		t.Errorf("refused requests left %d sessions", len(list.Sessions))
	}
}

func TestRevokedKey(t *testing.T) {
	r := newRig(t)
	if _, err := r.store.RevokeKey(t.Context(), "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	if a := r.get("/api/sessions"); a.status != 401 {
		t.Errorf("revoked key: %d", a.status)
	}
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
		if a.status != 200 {
			t.Fatalf("%s: %d %s", c.encoding, a.status, a.body)
		}
		if got := r.raw(c.session, ""); got != c.want {
			t.Errorf("%s: %q, want %q", c.encoding, got, c.want)
		}
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
				if status, err := r.try(b); err != nil || status != 200 {
					t.Errorf("status %d, %v", status, err)
				}
			}
		})
	}
	wg.Wait()
	want := ""
	for i := range 10 {
		want += fmt.Sprintf("{\"n\":%d}\n", i)
	}
	if got := r.raw("s", ""); got != want {
		t.Errorf("raw %q", got)
	}
	if n := r.count("superseded"); n != 0 {
		t.Errorf("%d rows superseded by themselves", n)
	}
}
