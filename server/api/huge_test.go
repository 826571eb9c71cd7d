package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/server"
)

// sink counts the bytes of an answer and keeps none.
type sink struct {
	header http.Header
	code   int
	bytes  int
}

func (s *sink) Header() http.Header  { return s.header }
func (s *sink) WriteHeader(code int) { s.code = code }
func (s *sink) Write(b []byte) (int, error) {
	s.bytes += len(b)
	return len(b), nil
}

// TestHugeLineTakesFewCopies: answers with a line of 30 MB take a few copies of it at most, and those that want no more
// than its length next to none, whether it lies in a row or in a block.
func TestHugeLineTakesFewCopies(t *testing.T) {
	r := newRig(t)
	const size = 30 << 20
	huge := fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","content":[%s{"type":"text","text":"end"}]}}`,
		strings.Repeat(`{"type":"text","text":"x"},`, size/27))
	b := &server.Batch{Owner: 1, Received: time.Now(), Head: server.Head{SessionID: "s", Machine: "m", Epoch: "e", EndLine: 3, EOFNewline: true}}
	for i, l := range []string{`{"a":1}`, huge, `{"b":2}`} {
		b.Lines = append(b.Lines, server.Line{Index: int64(i), Kind: server.Object, Raw: []byte(l)})
	}
	must(t, r.store.Put(t.Context(), b))
	r.waitDerived()
	for _, when := range []string{"row", "block"} {
		for query, most := range map[string]struct{ bytes, allocated int }{
			"entries?after=0":  {len(huge), 3 * size},
			"entries?most=100": {200, 16 << 20},
			"raw":              {len(huge), 7 * size / 2},
		} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/sessions/s/"+query, nil)
			req.Header.Set("X-API-Key", r.key)
			w := &sink{header: http.Header{}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.http.Config.Handler.ServeHTTP(w, req)
			runtime.ReadMemStats(&after)
			took := int(after.TotalAlloc - before.TotalAlloc)
			t.Logf("%s, %s: %d bytes, %d MiB allocated", when, query, w.bytes, took>>20)
			if took > most.allocated && !racing() || w.bytes < most.bytes || w.code > http.StatusOK {
				t.Errorf("%s, %s: answers %d with %d bytes and allocates %d MiB", when, query, w.code, w.bytes, took>>20)
			}
		}
		var page struct {
			Entries []struct {
				Line   int64          `json:"line_index"`
				Record map[string]any `json:"record"`
				Bytes  int            `json:"bytes"`
			} `json:"entries"`
		}
		r.getJSON("/api/sessions/s/entries?most="+strconv.Itoa(len(huge)-1), &page)
		if e := page.Entries; len(e) != 3 || e[0].Record == nil || e[1].Record != nil || e[1].Bytes != len(huge) || e[2].Record == nil {
			t.Errorf("%s: entries of at most one byte less than the longest: %d, %+v", when, len(e), e)
		}
		if _, err := r.store.Seal(context.Background(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// racing reports whether the race detector looks on: buffers that are put back are dropped at random then.
func racing() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// TestReplacedIsBounded: of a line that was replaced over and over, a page has some bytes, and the lengths of the others.
func TestReplacedIsBounded(t *testing.T) {
	r := newRig(t)
	const size, times = 1 << 20, 9
	for i := range times {
		r.post(fmt.Sprintf(`{"session_id":"s","project_hash":"ph","entries":[{"line_index":0,"n":%d,"text":%q}]}`, i, strings.Repeat("x", size)))
	}
	var page struct {
		Entries []struct {
			Line   int64          `json:"line_index"`
			Record map[string]any `json:"record"`
			Bytes  int            `json:"bytes"`
		} `json:"entries"`
		Next *int64 `json:"next"`
	}
	r.getJSON("/api/sessions/s/entries?replaced=1", &page)
	whole := 0
	for _, e := range page.Entries {
		if e.Record != nil {
			whole++
		} else if e.Bytes < size {
			t.Errorf("neither a record nor its length: %+v", e)
		}
	}
	if len(page.Entries) != times-1 || whole != 3 || page.Next != nil {
		t.Errorf("%d replaced ones, %d of them whole, next %v", len(page.Entries), whole, page.Next)
	}
}
