package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// soakEnv is how long TestSoak lasts; without it the test is skipped.
const soakEnv = "CCSHIP_SOAK"

// sample is what one look at a running daemon shows.
type sample struct {
	Seconds    float64 `json:"s"`
	RSS        int64   `json:"rss"`
	Anon       int64   `json:"anon"`
	Files      int64   `json:"files"`
	Goroutines int64   `json:"goroutines"`
	State      int64   `json:"state"`
}

// soak is a whole run: what was done, and what was seen.
type soak struct {
	Minutes  float64  `json:"minutes"`
	Lines    int      `json:"lines"`
	Rewinds  int      `json:"rewinds"`
	Outages  int      `json:"outages"`
	Asked    int      `json:"asked"`
	Sessions int      `json:"sessions"`
	Samples  []sample `json:"samples"`
}

// TestSoak has sixty sessions written without a pause for a long time, with rewinds, outages and questions in between,
// and demands that what the daemon uses does not grow. One hour of it is what months of use write.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv(soakEnv))
	if err != nil {
		t.Skip(soakEnv + " says how long, as 1h or 30m")
	}
	out := &kit.Outcome{}
	r := newRoom(t, out, 60)
	r.start()
	s := &soak{Sessions: len(r.talks)}
	began := time.Now()
	for next := time.Duration(0); time.Since(began) < length; {
		r.soakStep(s)
		if time.Since(began) >= next {
			s.Samples = append(s.Samples, r.look(time.Since(began)))
			next += max(length/240, time.Second)
		}
	}
	s.Minutes = time.Since(began).Minutes()
	r.over()
	r.proof()
	for _, grown := range s.grown() {
		t.Error(grown)
	}
	text, err := json.Marshal(s)
	kit.Must(t, err)
	kit.Must(t, os.WriteFile(filepath.Join("../../docs", "soak.json"), append(text, '\n'), 0o644))
	kit.Must(t, os.WriteFile(filepath.Join("../../docs", "soak.svg"), []byte(s.plot()), 0o644))
	t.Logf("%.0f minutes, %d lines, %d rewinds, %d outages", s.Minutes, s.Lines, s.Rewinds, s.Outages)
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
		verbs := [][]string{{"status"}, {"doctor"}, {"verify"}, {"sessions", "list"}, {"outbox", "list"}, {"reload"}, {"sync"}}
		r.ccship(verbs[r.rng.IntN(len(verbs))]...)
		s.Asked++
	default:
		c.add(r, 1)
		s.Lines++
	}
	kit.Pass(4 * time.Millisecond)
}

// look measures the daemon from outside, and asks it for its goroutines.
func (r *room) look(at time.Duration) sample {
	r.t.Helper()
	pid := r.d.Cmd.Process.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	kit.Must(r.t, err)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	kit.Must(r.t, err)
	s := sample{Seconds: at.Seconds(), RSS: field(status, "VmRSS:") << 10, Anon: field(status, "RssAnon:") << 10, Files: int64(len(files))}
	if info, err := os.Stat(filepath.Join(r.state(), "state.db")); err == nil {
		s.State = info.Size()
	}
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", r.dir+"/run/s")
		}}}
	answer, err := client.Get("http://ccship/debug/pprof/goroutine?debug=1")
	kit.Must(r.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	kit.Must(r.t, err)
	s.Goroutines = field(text, "goroutine profile: total")
	return s
}

// field is the number behind a name in a table of lines.
func field(table []byte, name string) int64 {
	for line := range strings.Lines(string(table)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // 0 when there is none
			return n
		}
	}
	return 0
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
	return quantile(values, 0.5)
}

// plot is the samples as a picture: one band for each thing that is watched.
func (s *soak) plot() string {
	const width, band, left = 760, 90, 110
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width+left+90, band*len(watched)+50)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="8" y="20" font-weight="bold">The daemon, %.0f minutes: `+
		`%d sessions, %d lines, %d rewinds, %d outages</text>`+"\n", s.Minutes, s.Sessions, s.Lines, s.Rewinds, s.Outages)
	end := s.Samples[len(s.Samples)-1].Seconds
	for i, w := range watched {
		top, bottom := 36+i*band, 36+i*band+band-22
		var most float64
		for _, x := range s.Samples {
			most = max(most, w.of(x))
		}
		var points []string
		for _, x := range s.Samples {
			points = append(points, fmt.Sprintf("%.1f,%.1f", left+x.Seconds/max(end, 1)*width, float64(bottom)-w.of(x)/max(most, 1)*float64(bottom-top)))
		}
		fmt.Fprintf(&b, `<text x="8" y="%d">%s</text><line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#ccc"/>`+"\n", bottom-20, w.name, left, left+width, bottom, bottom)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#2457a6" stroke-width="1.3" points="%s"/>`+"\n", strings.Join(points, " "))
		fmt.Fprintf(&b, `<text x="%d" y="%d">%.0f %s</text><text x="%d" y="%d" fill="#777">0</text>`+"\n", left+width+6, top+10, most, w.unit, left+width+6, bottom)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#777">0 min</text><text x="%d" y="%d" fill="#777" text-anchor="end">%.0f min</text></svg>`+"\n",
		left, 36+len(watched)*band, left+width, 36+len(watched)*band, end/60)
	return b.String()
}

// TestSoakSeesGrowth: the check of a soak must see what grows.
func TestSoakSeesGrowth(t *testing.T) {
	t.Parallel()
	s := &soak{}
	for i := range 90 {
		s.Samples = append(s.Samples, sample{RSS: 30e6, Anon: 20e6, Files: 20, Goroutines: int64(40 + i), State: 17e6})
	}
	if got := s.grown(); len(got) != 1 || !strings.Contains(got[0], "goroutines") {
		t.Errorf("%q", got)
	}
	s.Samples = slices.Repeat([]sample{{RSS: 30e6, Goroutines: 40, State: 17e6}}, 90)
	if got := s.grown(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	for i := range 40 { // one long backlog
		s.Samples[50+i].State = 28e6
	}
	if got := s.grown(); len(got) != 0 {
		t.Errorf("a step: %q", got)
	}
	for i := range 15 {
		s.Samples[75+i].State = 40e6
	}
	if got := s.grown(); len(got) != 1 || !strings.Contains(got[0], "state file") {
		t.Errorf("a state file that goes on growing: %q", got)
	}
}
