package store_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/server"
	"github.com/ccship/ccship/server/store"
	"github.com/ccship/ccship/server/store/lines"
)

// blockOverRows: an import that begins among lines which came one by one replaces those that differ, and keeps what they
// replace.
func (s suite) blockOverRows(t *testing.T) {
	st := s.open(t)
	var first []server.Line
	for i := range int64(10) {
		first = append(first, object(i, fmt.Sprintf(`{"alone":%d}`, i)))
		put(t, st, batch("s", first[i]))
	}
	imported := prose(5, 300, 1000)
	imported[2] = first[7] // the same again
	put(t, st, batch("s", imported...))
	want := slices.Concat(first[:5], imported)
	for range 2 {
		opened(t, st, "s", func(snap server.Snapshot) {
			kit.Equal(t, "lines", dump(t, snap, 0), listed(want))
			kit.Equal(t, "replaced", len(replacedOf(t, snap)), 4)
			n, _, err := snap.Count(t.Context(), server.Span{To: 999})
			kit.Check(t, n == 305 && err == nil, "%d lines are counted: %v", n, err)
			kit.Equal(t, "bytes are counted", snap.Session().Bytes, size(want))
		})
		seal(t, st, endOfTime)
	}
	found := audited(t, st)
	kit.Check(t, len(found) <= 0, "%v", found)
}

// coldReadBack: what the place does not give back as it was written stays in the database.
func (s suite) coldReadBack(t *testing.T) {
	for name, hurt := range map[string]func(path string) error{
		"lost":    os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 100) },
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"longer":  func(path string) error { return appendTo(path, "x") },
		"changed": func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 4
			return os.WriteFile(path, b, 0o600)
		},
	} {
		dir, hurting := "", true
		st, at := s.onFolder(t, store.Opening{Step: func(step string) error {
			if step != "read object back" || !hurting {
				return nil
			}
			for _, path := range inFolder(t, dir) {
				kit.Should(t, hurt(path))
			}
			return nil
		}})
		dir = at
		all := prose(0, 300, 1000)
		put(t, st, batch("s", all...))
		sum := upload(t, st, 0, "s", "a.txt", []byte("content"))
		seal(t, st, endOfTime)
		before := s.local(t, st)
		kit.Err(t, name+": moving ends with", server.ErrCold)(st.Cool(t.Context(), endOfTime))
		kit.Equal(t, name+": bytes left in the database", s.local(t, st), before)
		st = s.again(t, st, store.Opening{})
		got := dumpOf(t, st, "s")
		kit.Check(t, slices.Equal(got, listed(all)) && blobContent(t, st, sum) == "content", "%s: %d lines can be read", name, len(got))
		hurting = false
		cool(t, st)
		now := s.local(t, st)
		kit.Check(t, now == 0 && len(audited(t, st)) <= 0, "%s: moved at last, %d bytes are left", name, now)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// retireMeanwhile: between choosing lines and removing them one is masked, or replaced, or the session goes on. What was
// not read is not removed, and no hash of other bytes is kept.
func (s suite) retireMeanwhile(t *testing.T) {
	if s.with == nil {
		t.Skip("the steps of lines as they come, and of what is cold, are those")
	}
	secret, other := `{"key":"`+needle+`"}`, `{"key":"something else of it"}`
	for name, c := range map[string]struct {
		do   func(st full)
		now  string // what line 150 is then
		kept bool   // the session is running
	}{
		"masked": {func(st full) {
			opened(t, st, "s", func(snap server.Snapshot) {
				mask(t, st, &server.Masking{Stream: snap.Session().ID, Lines: []protocol.LineMask{lineMask(t, snap, 150, secret)}})
			})
		}, masked(secret), false},
		"replaced": {func(st full) { put(t, st, batch("s", object(150, other))) }, other, false},
		"goes on": {func(st full) {
			b := generationOf("s", 1, 100, server.Writer{}, object(300, "new"))
			b.Received = later.Add(-time.Hour)
			put(t, st, b)
		}, secret, true},
	} {
		do := func(full) {}
		var st full
		st = s.with(t, store.Opening{Step: func(step string) error {
			if now := do; step == "retire" {
				do = func(full) {}
				now(st)
			}
			return nil
		}})
		all := prose(0, 200, 900)
		all[150] = object(150, secret)
		put(t, st, batch("s", all...))
		put(t, st, generationOf("s", 1, 100, server.Writer{}, prose(100, 50, 800)...))
		addRule(t, st, server.RetentionRule{What: server.RetireGenerations, Age: day})
		do = c.do
		for range 2 { // the second one sees what there is
			_, err := st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later})
			kit.Require(t, err == nil, "%s: %v", name, err)
			var sum []byte
			opened(t, st, "s", func(snap server.Snapshot) {
				kit.Must(t, snap.Retired(t.Context(), server.Span{To: 999}, true, func(r *server.RetiredRun) error {
					for _, l := range r.Lines {
						if l.Index == 150 {
							sum = slices.Clone(l.SHA256)
						}
					}
					return nil
				}))
				left := slices.Contains(dump(t, snap, 0), "150:object:"+c.now)
				kit.Check(t, (sum != nil || left) && (!c.kept || left) && (sum == nil ||
					slices.Equal(sum, lines.RetiredHash([]byte(c.now)))),
					"%s: line 150 is there: %v; retired: %v, with the hash of other bytes", name, left, sum != nil)
			})
		}
		left := len(linesOf(t, st, "s", 0))
		kit.Check(t, c.kept || left == 100, "%s: %d lines are left of the first generation", name, left)
	}
}

// retireKept: while rules look for what keeps a session and remove it, nobody can set a star, a link or a hold.
func (s suite) retireKept(t *testing.T) {
	if s.with == nil {
		t.Skip("the steps of lines as they come, and of what is cold, are those")
	}
	var st full
	var ann server.User
	looks := 0
	st = s.with(t, store.Opening{Step: func(step string) error {
		if step != "retire what nothing keeps" {
			return nil
		}
		looks++
		stream := idOf(t, st, "s")
		for name, keep := range map[string]func(context.Context) error{
			"star": func(ctx context.Context) error {
				return st.SetMark(ctx, ann.ID, server.Mark{Stream: stream, Star: true})
			},
			"link": func(ctx context.Context) error {
				_, err := st.AddShareLink(ctx, server.ShareLink{Stream: stream, By: ann, Created: later, Until: later.Add(day)})
				return err
			},
			"hold": func(ctx context.Context) error {
				_, err := st.AddHold(ctx, server.Hold{Session: "s", By: "ann", Why: "a case", At: later})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			kit.Check(t, keep(ctx) != nil, "a %s is set between the look for it and the end", name)
			cancel()
		}
		return nil
	}})
	ann = addUser(t, st, "ann", server.Owner)
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	put(t, st, batch("s", prose(0, 20, 500)...), func(b *server.Batch) { b.Owner = ann.ID })
	_, err := st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later})
	kit.Check(t, err == nil && looks != 0, "after %d looks: %v", looks, err)
	left := len(dumpOf(t, st, "s"))
	kit.Check(t, left <= 0, "%d lines are left", left)
}

// oneFails: a stream that cannot be packed or moved keeps no other from it.
func (s suite) oneFails(t *testing.T) {
	failing := ""
	st, _ := s.onFolder(t, store.Opening{Step: func(name string) error {
		if name == failing {
			failing = "" // the next stream's goes well
			return errStep
		}
		return nil
	}})
	for _, name := range []string{"a", "b", "c"} {
		put(t, st, batch(name, prose(0, 7, 1000)...))
	}
	failing = "write blocks"
	kit.Err(t, "packed", errStep)(st.Seal(t.Context(), endOfTime))
	kit.Equal(t, "streams that are not packed", s.query(t, st, `SELECT count(DISTINCT stream) FROM lines`), 1)
	seal(t, st, endOfTime)
	failing = "note object"
	kit.Err(t, "moved", errStep)(st.Cool(t.Context(), endOfTime))
	kit.Equal(t, "streams that are moved", s.query(t, st, `SELECT count(DISTINCT stream) FROM blocks WHERE object <> ''`), 2)
	cool(t, st)
	kit.Equal(t, "streams that are moved in the end", s.query(t, st, `SELECT count(DISTINCT stream) FROM blocks WHERE object <> ''`), 3)
}

// manyFail: what fails for all streams is tried for each, and told of some.
func (s suite) manyFail(t *testing.T) {
	failing, tried := "", 0
	st, _ := s.onFolder(t, store.Opening{Step: func(name string) error {
		if name != failing {
			return nil
		}
		tried++
		return errStep
	}})
	const streams = 30
	for i := range streams {
		put(t, st, batch(fmt.Sprint("s", i), prose(0, 7, 100)...))
	}
	check := func(err error) {
		t.Helper()
		kit.Check(t, errors.Is(err, errStep) && strings.Count(err.Error(), "\n") < 12 && tried == streams,
			"%d of %d were tried: %v", tried, streams, err)
		failing, tried = "", 0
	}
	failing = "write blocks"
	_, err := st.Seal(t.Context(), endOfTime)
	check(err)
	seal(t, st, endOfTime)
	failing = "note object"
	_, err = st.Cool(t.Context(), endOfTime)
	check(err)
}

// coldLarge: an object has no more than it should, but for its last block, however large blocks are: what does not fit
// into memory could not be masked.
func (s suite) coldLarge(t *testing.T) {
	st, _ := s.onFolder(t, store.Opening{})
	const size, lines = 400 << 10, 12
	var all []server.Line
	for i := range int64(lines) {
		b := make([]byte, size*3/4)
		rand.NewChaCha8([32]byte{byte(i)}).Read(b)
		all = append(all, object(i, `{"image":"`+base64.StdEncoding.EncodeToString(b)+`"}`))
	}
	put(t, st, batch("s", all...))
	cool(t, st)
	n := s.query(t, st, `SELECT max(size) FROM cold_objects`)
	kit.Check(t, n <= 1<<20+size, "an object has %d bytes", n)
	kit.Equal(t, "bytes in the database", s.local(t, st), 0)
	kit.Equal(t, "lines can be read", dumpOf(t, st, "s"), listed(all))
}

// retireResumed: a session that goes on while rules are applied keeps its agents too, though nothing came for those.
func (s suite) retireResumed(t *testing.T) {
	if s.with == nil {
		t.Skip("the steps of lines as they come, and of what is cold, are those")
	}
	var st full
	var once sync.Once
	st = s.with(t, store.Opening{Step: func(step string) error {
		if step == "retire" {
			once.Do(func() {
				put(t, st, batch("s", object(1, "new")), func(b *server.Batch) { b.Received = later.Add(-time.Hour) })
			})
		}
		return nil
	}})
	put(t, st, batch("s/agent-1", object(0, "{}")), func(b *server.Batch) { b.Head.Parent = "s" })
	put(t, st, batch("s", object(0, "{}")))
	addRule(t, st, server.RetentionRule{What: server.RetireSessions, Age: day})
	report := kit.Try(st.Retire(t.Context(), server.RetireOptions{By: "ann", Now: later})).Must(t)
	kit.Equal(t, "was taken", len(report.Counts), 0)
	kit.Equal(t, "streams count as dropped", s.query(t, st, `SELECT count(*) FROM streams WHERE retired > 0`), 0)
	kit.Equal(t, "lines of the agent", len(linesOf(t, st, "s/agent-1", 0)), 1)
}
