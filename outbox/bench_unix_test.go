//go:build unix

package outbox

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// record is JSON much like a transcript's: prose, paths, ids.
func record(random *rand.Rand, line, size int) string {
	words := []string{"error", "return", "func", "the", "cart.go", "/work/shop/internal", "\\n\\t", "tests", "pass", "rounding", "of", "a"}
	var b strings.Builder
	fmt.Fprintf(&b, `{"line_index":%d,"parentUuid":"%016x-%016x","type":"assistant","text":"`, line, random.Uint64(), random.Uint64())
	for b.Len() < size {
		b.WriteString(words[random.IntN(len(words))])
		fmt.Fprintf(&b, " %x ", random.Uint32N(5000))
	}
	return b.String() + `"}`
}

// backlog is rows of about 340 KB, 100 entries each.
func backlog(rows int) (out []Batch) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		var entries []string
		for j := range 100 {
			entries = append(entries, record(random, i*100+j, 3400))
		}
		out = append(out, batchOf(Objects, i*100, entries...))
	}
	return out
}

// BenchmarkDrain delivers a backlog to a server that throws it away. MB/s are of entries; MB/cpu-s divides by the
// CPU time of the whole process, server included.
func BenchmarkDrain(b *testing.B) {
	for _, codings := range []string{"zstd", "gzip", ""} {
		b.Run("coding="+codings, func(b *testing.B) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Ccship-Protocol", "1")
				w.Header().Set("Accept-Encoding", codings)
				_, _ = io.WriteString(w, `{"success":true}`)
			}))
			defer web.Close()
			rows := backlog(50)
			r := rigOf(b, newServer(b), web.URL, nil)
			r.queue.learned = Learned{Took: true, Extension: true, Zstd: codings == "zstd", Gzip: codings == "gzip"}
			var raw int64
			for id := range uint64(8) {
				r.queue.add(conversation(id+1), rows...)
			}
			for i := range rows {
				raw += 8 * rows[i].Raw
			}
			r.start()
			r.drained()
			b.SetBytes(raw)
			cpu := cpuTime()
			for b.Loop() {
				for id := range uint64(8) {
					r.queue.add(conversation(id+1), rows...)
				}
				r.drainer.Wake()
				r.drained()
			}
			b.ReportMetric(float64(raw)*float64(b.N)/1e6/(cpuTime()-cpu).Seconds(), "MB/cpu-s")
		})
	}
}

func BenchmarkPack(b *testing.B) {
	row := backlog(1)[0]
	raw, err := (&codecs{}).Unpack(nil, row.row())
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{400, 3400, len(raw)} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := NewPacker()
			var out []byte
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				out = p.Pack(out[:0], raw[:n])
			}
			b.ReportMetric(float64(n)/float64(len(out)), "ratio")
		})
	}
}

func BenchmarkSplitEntries(b *testing.B) {
	row := backlog(1)[0]
	raw, err := (&codecs{}).Unpack(nil, row.row())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := splitEntries(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// cpuTime is what this process used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
