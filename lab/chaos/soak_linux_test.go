package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/lab/bench/gauge"
	"github.com/ccship/ccship/lab/bench/table"
)

// sample is what one look at a running daemon shows.
type sample struct {
	RSS, Anon, Files, Goroutines, State int64
}

// soak is a whole run: what was done, and what was seen.
type soak struct {
	Lines, Rewinds, Outages int
	Samples                 []sample
}

// TestSoak has sixty sessions written without a pause for a long time, with rewinds, outages and questions in between,
// and demands that what the daemon uses does not grow. One hour of it is what months of use write.
func TestSoak(t *testing.T) {
	kit.OnlyInLab(t)
	length, err := time.ParseDuration(kit.Setting("for", map[bool]string{true: "1m", false: "1h"}[kit.IsQuick()]))
	kit.Must(t, err)
	out := &kit.Outcome{}
	r := newRoom(t, out, 60)
	r.start()
	s := &soak{}
	began := time.Now()
	for next := time.Duration(0); time.Since(began) < length; {
		r.soakStep(s)
		if time.Since(began) >= next {
			s.Samples = append(s.Samples, r.look())
			next += max(length/240, time.Second)
		}
	}
	r.over()
	r.proof()
	for _, grown := range s.grown() {
		t.Error(grown)
	}
	found := &table.Table{Title: fmt.Sprintf("The daemon in %s: %d lines, %d rewinds, %d outages", length, s.Lines, s.Rewinds, s.Outages)}
	for _, w := range watched {
		for i, name := range []string{"first third", "second third", "last third"} {
			for _, x := range s.Samples[i*len(s.Samples)/3 : (i+1)*len(s.Samples)/3] {
				found.Add(name, w.name, w.unit, w.of(x))
			}
		}
	}
	found.Print(os.Stdout)
}

// soakStep is a fraction of a second of a busy life.
func (r *room) soakStep(s *soak) {
	r.t.Helper()
	c := r.talks[r.rng.IntN(len(r.talks))]
	switch p := r.rng.IntN(1000); {
	case c.n > 400: // a long session is over; another one begins in its place
		kit.Must(r.t, os.Truncate(c.path, 0))
		c.n = 0
		c.add(r, 1)
		s.Rewinds++
	case p < 10:
		c.rewind(r)
		s.Rewinds++
	case p == 10:
		r.door.set(respond(503, "application/json", `{"error":{"code":"busy","message":"soak"}}`))
		for range 100 {
			r.write(1)
			kit.Pass(10 * time.Millisecond)
		}
		s.Lines += 100
		r.door.set(nil)
		s.Outages++
	case p == 11:
		verbs := [][]string{{"status"}, {"doctor"}, {"verify"}, {"list"}, {"outbox", "list"}, {"sync"}}
		r.ccship(verbs[r.rng.IntN(len(verbs))]...)
	default:
		c.add(r, 1)
		s.Lines++
	}
	kit.Pass(4 * time.Millisecond)
}

// look measures the daemon from outside, and asks it for its goroutines.
func (r *room) look() sample {
	r.t.Helper()
	pid := r.d.Cmd.Process.Pid
	use := kit.Try(gauge.Tree(pid)).Must(r.t)
	files := kit.Try(os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))).Must(r.t)
	s := sample{RSS: use.RSS, Anon: use.Anon, Files: int64(len(files))}
	if info, err := os.Stat(filepath.Join(r.state(), "state.db")); err == nil {
		s.State = info.Size()
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", r.dir+"/run/s")
		}}}
	answer := kit.Try(client.Get("http://ccship/debug/pprof/goroutine?debug=1")).Must(r.t)
	defer answer.Body.Close()
	text := kit.Try(io.ReadAll(answer.Body)).Must(r.t)
	s.Goroutines = gauge.Field(text, "goroutine profile: total")
	return s
}

// series is one of the things that must not grow.
type series struct {
	name  string
	of    func(sample) float64
	unit  string
	slack float64 // how much more the last third may be than the second, beyond a tenth
	steps bool    // it is as large as the most that was needed so far: only the halves of the last third are compared
}

var watched = []series{
	{"RSS", func(s sample) float64 { return float64(s.RSS) / 1e6 }, "MB", 6, false},
	{"RssAnon", func(s sample) float64 { return float64(s.Anon) / 1e6 }, "MB", 6, false},
	{"descriptors", func(s sample) float64 { return float64(s.Files) }, "", 4, false},
	{"goroutines", func(s sample) float64 { return float64(s.Goroutines) }, "", 10, false},
	{"state file", func(s sample) float64 { return float64(s.State) / 1e6 }, "MB", 4, true},
}

// grown names what grew: the median of the last third is well above that of the second.
func (s *soak) grown() (all []string) {
	third := len(s.Samples) / 3
	if third < 10 {
		return nil
	}
	for _, w := range watched {
		from, middle := third, 2*third
		if w.steps {
			from, middle = 2*third, len(s.Samples)-third/2
		}
		before, after := median(s.Samples[from:middle], w.of), median(s.Samples[middle:], w.of)
		if after > before*1.1+w.slack {
			all = append(all, fmt.Sprintf("%s grew from %.1f to %.1f %s", w.name, before, after, w.unit))
		}
	}
	return all
}

func median(samples []sample, of func(sample) float64) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	return table.Median(values)
}

// TestSoakSeesGrowth: the check of a soak must see what grows, and that one long backlog is a step.
func TestSoakSeesGrowth(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		grows string
		of    func(i int) sample
	}{
		{"", func(int) sample { return sample{RSS: 30e6, Goroutines: 40, State: 17e6} }},
		{"goroutines", func(i int) sample { return sample{RSS: 30e6, Goroutines: int64(40 + i), State: 17e6} }},
		{"", func(i int) sample { return sample{State: 17e6 + 11e6*int64(i/50)} }},
		{"state file", func(i int) sample { return sample{State: 17e6 + 23e6*int64(i/75)} }},
	} {
		s := &soak{}
		for i := range 90 {
			s.Samples = append(s.Samples, x.of(i))
		}
		got := s.grown()
		if x.grows == "" && len(got) > 0 || x.grows != "" && (len(got) != 1 || !strings.HasPrefix(got[0], x.grows)) {
			t.Errorf("%s: %q", x.grows, got)
		}
	}
}
