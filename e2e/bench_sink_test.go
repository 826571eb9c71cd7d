//go:build unix

package e2e

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// sink is the cheapest server there can be: it takes everything and keeps nothing.
type sink struct{ posts, bytes atomic.Int64 }

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	s.posts.Add(1)
	s.bytes.Add(n)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"success":true}`)
}

// sheet is the table that the benchmarks print together.
type sheet struct {
	mu   sync.Mutex
	rows []string
}

func (s *sheet) add(promise, what, figure, limit string) {
	kit.Locked(&s.mu, func() {
		s.rows = append(s.rows, fmt.Sprintf("| %-2s | %-58s | %-28s | %-20s |", promise, what, figure, limit))
	})
}

func (s *sheet) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("\n| %-2s | %-58s | %-28s | %-20s |\n|----|%s|%s|%s|\n%s\n\n", "", "measured", "median", "promised",
		strings.Repeat("-", 60), strings.Repeat("-", 30), strings.Repeat("-", 22), strings.Join(s.rows, "\n"))
}

// quantile is the value below which a part p of the values lies; it sorts them.
func quantile[T int64 | float64](values []T, p float64) T {
	slices.Sort(values)
	return values[min(int(p*float64(len(values))), len(values)-1)]
}

func median[T int64 | float64](values []T) T { return quantile(values, 0.5) }

// history writes transcripts of n bytes in all and returns what it wrote.
func history(h *home, n, each int) (written int64) {
	for i := 0; written < int64(n); i++ {
		c := newConversation(uint64(9000+i), h.cwd())
		data := c.megabytes(min(each, n-int(written)))
		h.add(h.path(fmt.Sprintf("-work-%d", i%7), c.session+".jsonl"), data)
		written += int64(len(data))
	}
	return written
}

// mega formats bytes.
func mega(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// benchWorld is a home before the cheapest of servers.
func benchWorld(b *testing.B) (*world, *sink) {
	h := newHome(b)
	s := &sink{}
	w := &world{home: h}
	w.gate = newGate(b, s)
	h.url = w.gate.srv.URL
	return w, s
}

// copyCorpus copies the real conversations of CCSHIP_TEST=corpus=FOLDER and returns their size in bytes.
func copyCorpus(h *home) (written int64) {
	dir := kit.Setting("corpus", "")
	if dir == "" {
		return 0
	}
	must(h.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for n := range kit.SettingNumber("copies", 1) {
			h.add(h.path(fmt.Sprintf("-corpus-%d", n), filepath.Base(path)), data)
			written += int64(len(data))
		}
		return nil
	}))
	return written
}
