package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestGoldenRequests takes the requests that the client's end of the wire is pinned to: bodies (.json) or whole
// requests (.http).
func TestGoldenRequests(t *testing.T) {
	names, err := filepath.Glob("../../e2e/testdata/wire/*")
	must(t, err)
	names = slices.DeleteFunc(names, func(name string) bool {
		ext := filepath.Ext(name)
		return ext != ".json" && ext != ".http"
	})
	if len(names) == 0 {
		t.Fatal("no golden request in e2e/testdata/wire")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			body, encoding := golden(t, name)
			takeGolden(t, body, encoding)
		})
	}
}

// golden reads a golden request: its body as sent, and that body's encoding.
func golden(t *testing.T, name string) (body []byte, encoding string) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	if filepath.Ext(name) == ".json" {
		return b, ""
	}
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	must(t, err)
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/api/conversations") {
		t.Skip("not an ingest request")
	}
	if body, err = io.ReadAll(req.Body); err != nil {
		t.Fatal(err)
	}
	return body, req.Header.Get("Content-Encoding")
}

func takeGolden(t *testing.T, body []byte, encoding string) {
	t.Helper()
	r := newRig(t)
	a := r.do("POST", "/api/conversations", map[string]string{"Content-Encoding": encoding}, bytes.NewReader(body))
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if encoding == "zstd" {
		d, err := zstd.NewReader(nil)
		must(t, err)
		defer d.Close()
		if body, err = d.DecodeAll(body, nil); err != nil {
			t.Fatal(err)
		}
	} else if encoding != "" {
		return // taken; what it holds is another golden's business
	}
	var req struct {
		SessionID string `json:"session_id"`
		Entries   []any
		Ccship    *struct {
			Machine, Epoch string
			Generation     int64
			EOFNewline     bool `json:"eof_newline"`
		}
	}
	must(t, json.Unmarshal(body, &req))
	if n := r.count("lines"); n != len(req.Entries) {
		t.Errorf("%d lines stored of %d entries", n, len(req.Entries))
	}
	d := r.digest(req.SessionID, "")
	if x := req.Ccship; x != nil && (d.Machine != x.Machine || d.Epoch != x.Epoch ||
		d.Generations[0].Generation != x.Generation || d.Generations[0].EOFNewline != x.EOFNewline) {
		t.Errorf("stored as %+v", d)
	}
	if a := r.get("/api/sessions/" + url.PathEscape(req.SessionID) + "/raw?partial=1"); a.status != 200 {
		t.Errorf("raw: %d %s", a.status, a.body)
	}
}
