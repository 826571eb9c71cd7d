//go:build unix

package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// BenchmarkConversation is what the first page of a session of 5 MB costs the server, compressed answers and the client
// of the test left out: the first time, and again. The CPU counts of a busy machine count too; its times do not. With
// CCSHIP_TEST=session=FILE it is the session of that file.
func BenchmarkConversation(b *testing.B) {
	lines := longSession(5 << 20)
	if path := kit.Setting("session", ""); path != "" {
		raw, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		lines = strings.Split(strings.TrimSpace(string(raw)), "\n")
	}
	page := sessionPath(tourID, "")
	cost := func(b *testing.B, s *site) {
		began := spent(b)
		size := len(s.get(b, page))
		b.ReportMetric(float64((spent(b)-began).Microseconds())/1000, "cpu-ms")
		b.ReportMetric(float64(size)/1000, "page-kB")
	}
	b.Run("first", func(b *testing.B) {
		s := loggedIn(b)
		s.put(b, head(tourID), lines...)
		b.ResetTimer()
		cost(b, s)
	})
	b.Run("again", func(b *testing.B) {
		s := loggedIn(b)
		s.put(b, head(tourID), lines...)
		s.get(b, page)
		b.ResetTimer()
		began := spent(b)
		for b.Loop() {
			s.get(b, page)
		}
		b.ReportMetric(float64((spent(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms")
	})
}

// spent is the CPU that this process has used.
func spent(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// longSession is a session of about n bytes in which files are read: their code is coloured.
func longSession(n int) (lines []string) {
	code := "// Total adds up what is in the cart.\nfunc (c *Cart) Total(zone string) (int64, error) {\n\tif len(c.items) == 0 {\n\t\treturn 0, errEmpty\n\t}\n\tsum := int64(0)\n" +
		"\tfor _, x := range c.items { // each has its own tax\n\t\tsum += x.Price*int64(x.Count) + tax(x, \"shop\", 0.19)\n\t}\n\treturn sum, nil\n}\n\n"
	add := func(size *int, record map[string]any) {
		raw, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		lines, *size = append(lines, string(raw)), *size+len(raw)+1
	}
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for size, i := 0, 0; size < n; i++ {
		message := func(kind string, content any) {
			at = at.Add(3 * time.Second)
			add(&size, map[string]any{"type": kind, "uuid": fmt.Sprint("u", len(lines)), "timestamp": at.Format(time.RFC3339Nano), "cwd": "/home/kim/shop",
				"message": map[string]any{"role": kind, "id": fmt.Sprint("m", len(lines)), "model": "claude-opus-4-8", "content": content}})
		}
		if i%10 == 0 {
			message("user", fmt.Sprintf("Go on with part %d: **read** the cart and say what is wrong", i))
		}
		id := fmt.Sprintf("toolu_%06d", i)
		message("assistant", []any{map[string]any{"type": "text", "text": "I look at `cart.go` first, then at its test:\n\n- totals\n- taxes"},
			map[string]any{"type": "tool_use", "id": id, "name": "Read", "input": map[string]any{"file_path": "/home/kim/shop/cart.go"}}})
		message("user", []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": strings.Repeat(code, 20)}})
	}
	return lines
}
