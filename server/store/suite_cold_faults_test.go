package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/audit"
	"github.com/ccship/ccship/server/store"
)

// dumpOf is dump of a session that is not kept open.
func dumpOf(t *testing.T, st full, session string) []string {
	t.Helper()
	snap := kit.Try(st.Open(t.Context(), server.Ref{SessionID: session})).Must(t)
	defer snap.Close()
	return dump(t, snap, 0)
}

var errStep = errors.New("the step fails")

// coldSteps: whichever step of moving fails, nothing is lost, and a later pass ends what was begun.
func (s suite) coldSteps(t *testing.T) {
	var mu sync.Mutex
	var failing string
	seen := map[string]int{}
	st, dir := s.onFolder(t, store.Opening{Step: func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[name]++; name == failing {
			return errStep
		}
		return nil
	}})
	content := bytes.Repeat([]byte("file "), 1000)
	var want [][]string
	sum := ""
	for i, step := range []string{"mark place", "note object", "write object", "read object back", "drop what is cold",
		"dropped what is cold", "give object up", "remove object", "remove note of object"} {
		name := fmt.Sprint("s", i)
		lines := prose(0, 300, 1000)
		put(t, st, batch(name, lines...))
		want = append(want, listed(lines))
		if i == 0 {
			sum = upload(t, st, 0, name, "a.txt", content)
		}
		if i >= 6 {
			put(t, st, batch("gone", prose(0, 300, 1000)...)) // so that something is to be removed
			cool(t, st)
			kit.Try(st.Forget(t.Context(), server.Scope{All: true}, "gone", 0, start)).Must(t)
			s.query(t, st, `DELETE FROM forgotten RETURNING 0`)
		}
		mu.Lock()
		failing = step
		mu.Unlock()
		seal(t, st, endOfTime)
		_, err := st.Cool(t.Context(), endOfTime)
		kit.Require(t, errors.Is(err, errStep), "step %q did not fail: %v", step, err)
		mu.Lock()
		failing = ""
		mu.Unlock()
		for j := range want {
			got := dumpOf(t, st, fmt.Sprint("s", j))
			kit.Require(t, slices.Equal(got, want[j]), "after %q failed session %d has %d lines", step, j, len(got))
		}
		// As if the process had died there, long ago.
		s.age(t, st)
		cool(t, st)
		found := audited(t, st)
		kit.Require(t, len(found) <= 0 && blobContent(t, st, sum) == string(content), "after %q failed: %q", step, found)
		if n := s.query(t, st, `SELECT count(*) FROM cold_objects`); int(n) != len(inFolder(t, dir)) || s.local(t, st) != 0 ||
			s.query(t, st, `SELECT count(*) FROM cold_objects WHERE state <> 1`) != 0 {
			t.Fatalf("after %q failed and all is done, %d objects are noted and %d are there", step, n, len(inFolder(t, dir)))
		}
	}
}

// coldDown: while the location does not answer, lines are stored and read; what is there is ErrCold.
func (s suite) coldDown(t *testing.T) {
	st, dir := s.onFolder(t, store.Opening{})
	all := prose(0, 300, 1000)
	put(t, st, batch("s", all...))
	sum := upload(t, st, 0, "s", "a.txt", []byte("content"))
	cool(t, st)
	st = s.reopen(t, st)
	away := dir + ".away"
	kit.Must(t, os.Rename(dir, away))
	kit.Must(t, os.WriteFile(dir, nil, 0o600)) // a file in its place: nothing works
	put(t, st, batch("new", object(0, "{}")))
	kit.Equal(t, "a new line can't be read", len(dumpOf(t, st, "new")), 1)
	snap := kit.Try(st.Open(t.Context(), server.Ref{SessionID: "s"})).Must(t)
	none := func(server.Line) error { return nil }
	for range 2 {
		kit.Err(t, "cold lines", server.ErrCold)(nil, snap.Lines(t.Context(), server.Span{To: 9}, none))
	}
	kit.Should(t, snap.Close())
	kit.Err(t, "a line that has to be compared with a cold one", server.ErrCold)(nil, st.Put(t.Context(), batch("s", object(3, "other"))))
	kit.Has(t, "a cold file", blobContent(t, st, sum), server.ErrCold.Error())
	kit.Err(t, "moving", server.ErrCold)(st.Cool(t.Context(), endOfTime))
	is, err := st.Cold(t.Context())
	kit.Check(t, err == nil && errors.Is(is.Err, server.ErrCold), "its state: %+v, %v", is, err)
	kit.Err(t, "the audit", server.ErrCold)(audit.Run(t.Context(), st, func(f audit.Finding) { t.Errorf("found %+v", f) }, func(audit.Progress) {}))
	kit.Must(t, os.Remove(dir))
	kit.Must(t, os.Rename(away, dir))
	st = s.reopen(t, st) // it would be asked again after some seconds
	put(t, st, batch("s", all...))
	kit.Equal(t, "lines that can be read after it is back", dump(t, openSession(t, st, "s"), 0), listed(all))
	cool(t, st)
	found := audited(t, st)
	kit.Check(t, len(found) <= 0, "after it is back: %q", found)
}

// coldPast: a prompt history that can't be read fails no search that finds none of its sessions.
func (s suite) coldPast(t *testing.T) {
	st, dir := s.onFolder(t, store.Opening{})
	h := object(0, fmt.Sprintf(`{"display":"an alpaca","timestamp":%d,"project":"/p","sessionId":"gone"}`, start.UnixMilli()))
	put(t, st, batch("history~m", h))
	cool(t, st)
	put(t, st, batch("s", object(0, says("prompt", "fix the llama"))))
	for name, task := range lease(t, st) {
		l := object(0, says("prompt", "fix the llama"))
		if name != "s" {
			l = h
		}
		save(t, st, task, server.Derivation{Texts: said(l, start)})
	}
	st = s.reopen(t, st)
	kit.Must(t, os.Rename(dir, dir+".away"))
	kit.Must(t, os.WriteFile(dir, nil, 0o600))
	r, err := st.Rank(t.Context(), all, server.RankQuery{Query: server.ParseQuery("llama -alpaca", start.Add(time.Hour)), Limit: 3, Each: 3})
	kit.Check(t, err == nil && len(r.List) == 1 && r.List[0].SessionID == "s", "%+v, %v", r.List, err)
}

// coldDamage: an object that is lost or changed is named, by the lines in it.
func (s suite) coldDamage(t *testing.T) {
	t.Run("while it is moved", s.coldReadBack)
	for name, hurt := range map[string]func(path string) error{
		"lost": os.Remove,
		"cut":  func(path string) error { return os.Truncate(path, 100) },
		"changed": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 4
			return os.WriteFile(path, b, 0o600)
		},
	} {
		st, dir := s.onFolder(t, store.Opening{})
		all := prose(0, 300, 1000)
		all[7] = object(7, `{"key":"`+needle+`"}`)
		put(t, st, batch("s", all...))
		cool(t, st)
		st = s.reopen(t, st)
		kit.Must(t, hurt(inFolder(t, dir)[0]))
		found := audited(t, st)
		kit.Check(t, len(found) != 0 && strings.HasPrefix(found[0], "s: lines 1 to ") &&
			strings.HasSuffix(found[len(found)-1], " to 300 are damaged"), "%s: found %q", name, found)
		put(t, st, batch("s", all...)) // sent again
		kit.Equal(t, name+": sent again lines can be read", dump(t, openSession(t, st, "s"), 0), listed(all))
		s.sentAgain(t, st, all)
	}
}

// sentAgain: lines that came again for a damaged block are masked, and go, like any others.
func (s suite) sentAgain(t *testing.T, st full, all []server.Line) {
	t.Helper()
	opened(t, st, "s", func(snap server.Snapshot) {
		mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 7, string(all[7].Raw))}})
	})
	got := dumpOf(t, st, "s")
	kit.Check(t, !strings.Contains(strings.Join(got, "\n"), needle) && len(got) == len(all),
		"%d lines, and the masked one can be read", len(got))
	put(t, st, generationOf("s", 1, 290, server.Writer{}, prose(290, 10, 100)...))
	addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: time.Hour})
	kit.Try(st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later})).Must(t)
	opened(t, st, "s", func(snap server.Snapshot) {
		lines, _, err := snap.Count(t.Context(), server.Span{From: 0, To: 290})
		kit.Must(t, err)
		kit.Equal(t, "lines that the view shows", lines, 290)
	})
	kit.Equal(t, "lines that went", s.query(t, st, `SELECT CAST(coalesce(sum(lines), 0) AS bigint) FROM retired`), 10)
}

// coldMeanwhile: lines are stored, replaced, masked, forgotten and read while two servers move them.
func (s suite) coldMeanwhile(t *testing.T) {
	st, dir := s.onFolder(t, store.Opening{})
	ctx, cancel := context.WithCancel(t.Context())
	var movers, writers sync.WaitGroup
	for range 2 {
		movers.Go(func() {
			for ctx.Err() == nil {
				_, err := st.Seal(ctx, endOfTime)
				if err == nil {
					_, err = st.Cool(ctx, endOfTime)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all := prose(0, 200, 1000)
	for w := range 4 {
		writers.Go(func() {
			name := fmt.Sprint("s", w)
			for range 3 { // the same again and again
				for i := 0; i < len(all); i += 20 {
					if err := st.Put(t.Context(), batch(name, all[i:i+20]...)); err != nil {
						t.Error(err)
						return
					}
				}
				lines := prose(0, 200, 1000)
				err := st.Put(t.Context(), batch(name+"gone", lines...))
				kit.Check(t, err == nil || errors.Is(err, server.ErrForgotten), "%v", err)
				_, err = st.Forget(t.Context(), server.Scope{All: true}, name+"gone", 0, start)
				kit.Check(t, err == nil || errors.Is(err, server.ErrNotFound), "%v", err)
			}
		})
	}
	writers.Wait()
	cancel()
	movers.Wait()
	cool(t, st)
	for w := range 4 {
		kit.Equal(t, fmt.Sprintf("stream %d has lines", w), dump(t, openSession(t, st, fmt.Sprint("s", w)), 0), listed(all))
	}
	s.age(t, st)
	kit.Must(t, st.Sweep(t.Context()))
	n := s.query(t, st, `SELECT count(*) FROM cold_objects`)
	kit.Check(t, int(n) == len(inFolder(t, dir)) && len(audited(t, st)) == 0,
		"%d objects are noted, %d are there", n, len(inFolder(t, dir)))
}

// age makes all objects old: what a process that died left behind is removed then.
func (s suite) age(t *testing.T, st full) {
	t.Helper()
	if s.query(t, st, `SELECT count(*) FROM cold_objects`) > 0 {
		s.query(t, st, `UPDATE cold_objects SET at = 0 RETURNING 0`)
	}
}

// TestColdSwept: what a batch is compared with may leave cold storage while it is brought from there.
func TestColdSwept(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "user")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secretsecret")
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "server.db")
	other := openWith(t, path, store.Opening{Blocks: folderURL(dir)})
	all := prose(0, 300, 1000)
	put(t, other, batch("s", all...))
	cool(t, other)
	var once sync.Once
	bucket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/bucket/")
		if !strings.HasSuffix(name, "/store") {
			once.Do(func() {
				_, err := other.Return(t.Context(), start, endOfTime, func(server.Returned) {})
				kit.Should(t, err)
			})
		}
		w.Header().Set("ETag", `"x"`)
		http.ServeFile(w, r, filepath.Join(dir, filepath.FromSlash(name)))
	}))
	t.Cleanup(bucket.Close)
	st := openWith(t, path, store.Opening{Blocks: "s3://bucket?lookup=path&region=us-east-1&endpoint=" + bucket.URL})
	put(t, st, batch("s", object(3, "other")))
	all[3] = object(3, "other")
	kit.Equal(t, "lines", dumpOf(t, st, "s"), listed(all))
	kit.Equal(t, "objects are left", len(inFolder(t, dir)), 0)
}

// coldDoubt: an object that was moved by a try whose answer was lost, and of which a block was given up before the next
// try, is not removed while another block uses it.
func (s suite) coldDoubt(t *testing.T) {
	var st full
	var once sync.Once
	st, dir := s.onFolder(t, store.Opening{Step: func(name string) error {
		if name == "drop what is cold" {
			once.Do(func() {
				s.query(t, st, `UPDATE blocks SET object = (SELECT id FROM cold_objects), size = length(data),
data = substr(data, 1, 0) RETURNING 0`)
				s.query(t, st, `UPDATE cold_objects SET state = 2 RETURNING 0`)
			})
		}
		return nil
	}})
	all := prose(0, 100, 1000)
	put(t, st, batch("s", all...))
	cool(t, st)
	kit.Equal(t, "lines", dumpOf(t, st, "s"), listed(all))
	kit.Must(t, st.Sweep(t.Context()))
	kit.Equal(t, "lines that are back", dumpOf(t, s.reopen(t, st), "s"), listed(all))
	kit.Equal(t, "objects are left", len(inFolder(t, dir)), 0)
}
