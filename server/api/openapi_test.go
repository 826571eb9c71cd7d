package api

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.yaml.in/yaml/v3"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/auth"
)

// TestOpenAPIRoutes checks that every route is described, and that every description has its route.
func TestOpenAPIRoutes(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	kit.Must(t, yaml.Unmarshal(openapiYAML, &doc))
	var described []string
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	served := []string{"GET /healthz", "GET /metrics", "GET /here", "GET /api/proof"}
	for _, r := range (&Server{}).routes() {
		if r.pattern != "/api/" { // which answers 404
			served = append(served, r.pattern)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	kit.Check(t, slices.Equal(described, served), "described %q\nserved    %q", described, served)
}

// SetLinkRequestsStale sets how long it is believed whether link requests wait.
func SetLinkRequestsStale(s *Server, d time.Duration) { s.linkCache.stale = d }

// SetBeat sets the time between heartbeats, and has keys checked whenever a piece of a body is read.
func SetBeat(s *Server, d time.Duration) { s.beat, s.recheck = d, 0 }

// TestPartsOfStore: each part of the API asks for few methods of the store.
func TestPartsOfStore(t *testing.T) {
	parts := []reflect.Type{reflect.TypeFor[auth.Store]()}
	for field := range reflect.TypeFor[stores]().Fields() {
		parts = append(parts, field.Type)
	}
	for _, part := range parts {
		n := part.NumMethod()
		kit.Check(t, n <= 15 && n != 0, "%v has %d methods, at most 15", part, n)
	}
}

// answer asks a handler over a connection, without undoing what it compresses.
func answer(t *testing.T, h http.Handler, accept string) (*http.Response, string) {
	t.Helper()
	server := httptest.NewServer(compressAnswers(h))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	kit.Must(t, err)
	if accept != "" {
		req.Header.Set("Accept-Encoding", accept)
	}
	resp := kit.Try((&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(req)).Must(t)
	defer resp.Body.Close()
	var body io.Reader = resp.Body
	switch resp.Header.Get("Content-Encoding") {
	case "gzip":
		body, err = gzip.NewReader(resp.Body)
	case "zstd":
		body, err = zstd.NewReader(resp.Body)
	}
	kit.Must(t, err)
	text := kit.Try(io.ReadAll(body)).Must(t)
	return resp, string(text)
}

func TestAnswers(t *testing.T) {
	long := strings.Repeat("a line of a page\n", 500)
	for name, test := range map[string]struct {
		kind, accept, text string
		compressed         string
	}{
		"page":             {"text/html; charset=utf-8", "gzip, deflate, br, zstd", long, "zstd"},
		"page for curl":    {"text/html; charset=utf-8", "gzip", long, "gzip"},
		"JSON":             {"application/json", "gzip", long, "gzip"},
		"lines":            {"application/x-ndjson", "gzip", long, "gzip"},
		"nobody asked":     {"text/html", "", long, ""},
		"not wanted":       {"text/html", "gzip;q=0, identity", long, ""},
		"short":            {"text/html", "gzip", "short", ""},
		"image":            {"image/png", "gzip", long, ""},
		"file":             {"application/octet-stream", "gzip", long, ""},
		"events":           {"text/event-stream", "gzip", long, ""},
		"nothing declared": {"", "gzip", "\x00\x01" + long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp, text := answer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				_, _ = io.WriteString(w, test.text)
			}), test.accept)
			kit.Equal(t, "compressed with", resp.Header.Get("Content-Encoding"), test.compressed)
			kit.Equal(t, fmt.Sprint("bytes arrived, want ", len(test.text)), text, test.text)
			kit.Check(t, test.compressed == "" || strings.Contains(resp.Header.Get("Vary"), "Accept-Encoding"),
				"a cache is not told that the answer depends on Accept-Encoding")
		})
	}
}

// TestEventsFlow: an event reaches its reader before the answer ends.
func TestEventsFlow(t *testing.T) {
	read := make(chan struct{})
	server := httptest.NewServer(compressAnswers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		kit.Should(t, http.NewResponseController(w).Flush())
		select {
		case <-read:
		case <-r.Context().Done():
			t.Error("the reader left before the event arrived")
		}
	})))
	defer server.Close()
	req := kit.Try(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)).Must(t)
	req.Header.Set("Accept-Encoding", "gzip")
	resp := kit.Try(http.DefaultClient.Do(req)).Must(t)
	defer resp.Body.Close()
	kit.Try(io.ReadFull(resp.Body, make([]byte, len("data: 1\n\n")))).Must(t)
	close(read)
	kit.Try(io.Copy(io.Discard, resp.Body)).Must(t) // a body that is closed at once ends the request first
}
