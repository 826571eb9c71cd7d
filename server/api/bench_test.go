package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// benchBody is a request of n entries like those of a real transcript: about 1.6 KB, a third of them escapes-rich.
func benchBody(session string, from, n int) []byte {
	prose := strings.Repeat(`The quick brown fox writes a test before the lazy dog reads it. `, 12)
	code := strings.Repeat(`if err != nil {\n\treturn fmt.Errorf(\"read %w\", err)\n}\n`, 12)
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"project_hash":"ph","session_id":%q,"entries":[`, session)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"line_index":%d,"parentUuid":"5f0c0b4e-7d0c-4b3e-8d9e-%012d","isSidechain":false,"type":"assistant",`+
			`"message":{"role":"assistant","content":[{"type":"text","text":"%s"},{"type":"tool_use","id":"toolu_%d",`+
			`"input":{"content":"%s"}}],"usage":{"input_tokens":4,"output_tokens":120}},"cwd":"/home/kim/shop"}`,
			from+i, from+i, prose, i, code)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// BenchmarkIngest is the whole way over HTTP to durable rows, one request after the other.
func BenchmarkIngest(b *testing.B) {
	for _, bc := range []struct {
		name    string
		entries int
		zstd    bool
	}{{"1entry", 1, false}, {"100entries", 100, false}, {"100entries-zstd", 100, true}} {
		b.Run(bc.name, func(b *testing.B) {
			r := newRig(b)
			b.SetBytes(int64(len(benchBody("s", 0, bc.entries))))
			enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
			if err != nil {
				b.Fatal(err)
			}
			header := map[string]string{}
			if bc.zstd {
				header["Content-Encoding"] = "zstd"
			}
			n := 0
			for b.Loop() {
				body := benchBody("s", n, bc.entries)
				if bc.zstd {
					body = enc.EncodeAll(body, nil)
				}
				n += bc.entries
				if a := r.do("POST", "/api/conversations", header, bytes.NewReader(body)); a.status != http.StatusOK {
					b.Fatal(string(a.body))
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}
