package tail

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// rewinds are ways to change what was read already. Each is tried while the tailer runs, and while it does not.
var rewinds = []struct {
	name    string
	before  string
	change  func(w *world)
	changed int64 // bytes that may be sent again, but for what the distance of marks costs
	same    bool  // nothing of the past changed: no new generation
}{
	{name: "shrink by 10 of 150 lines, then 5 more", before: lines("a", 150, 900), changed: 5 * 900, change: func(w *world) {
		w.must(os.Truncate(w.path("p/a.jsonl"), int64(len(lines("a", 140, 900)))))
		w.add("p/a.jsonl", lines("b", 5, 900))
	}},
	{name: "pure shrink", before: lines("a", 2000, 500), change: func(w *world) {
		w.must(os.Truncate(w.path("p/a.jsonl"), int64(len(lines("a", 1900, 500)))))
	}},
	{name: "renamed over, same head, shorter", before: lines("a", 500, 700), changed: 20 * 700, change: func(w *world) {
		w.replace("p/a.jsonl", lines("a", 300, 700)+lines("b", 20, 700))
	}},
	{name: "renamed over, a suffix", before: lines("a", 500, 700), changed: 400 * 700, change: func(w *world) {
		w.replace("p/a.jsonl", lines("a", 500, 700)[len(lines("a", 100, 700)):])
	}},
	{name: "renamed over, equal", before: lines("a", 500, 700), same: true, change: func(w *world) {
		w.replace("p/a.jsonl", lines("a", 500, 700))
	}},
	{name: "renamed over, equal and grown", before: lines("a", 500, 700), same: true, changed: 700, change: func(w *world) {
		w.replace("p/a.jsonl", lines("a", 500, 700)+lines("b", 1, 700))
	}},
	{name: "cut and grown past the old end", before: lines("a", 3000, 400), changed: 200 * 400, change: func(w *world) {
		w.write("p/a.jsonl", lines("a", 2900, 400)+lines("b", 200, 400))
	}},
	{name: "last line rewritten, smaller", before: lines("a", 50, 500), changed: 400, change: func(w *world) {
		w.write("p/a.jsonl", lines("a", 49, 500)+lines("b", 1, 400))
	}},
	{name: "last line rewritten, equal size", before: lines("a", 50, 500), changed: 500, change: func(w *world) {
		w.write("p/a.jsonl", lines("a", 49, 500)+lines("b", 1, 500))
	}},
	{name: "last line rewritten, larger", before: lines("a", 50, 500), changed: 600, change: func(w *world) {
		w.write("p/a.jsonl", lines("a", 49, 500)+lines("b", 1, 600))
	}},
	{name: "emptied", before: lines("a", 50, 500), change: func(w *world) { w.write("p/a.jsonl", "") }},
	{name: "emptied and written anew", before: lines("a", 50, 500), changed: 70 * 500, change: func(w *world) {
		w.write("p/a.jsonl", lines("b", 70, 500))
	}},
	{name: "long lines", before: strings.Repeat(lines("a", 1, 200<<10)+lines("s", 3, 100), 8), changed: 300 << 10, change: func(w *world) {
		w.write("p/a.jsonl", strings.Repeat(lines("a", 1, 200<<10)+lines("s", 3, 100), 7)+lines("c", 1, 300<<10))
	}},
	{name: "deleted and made again", before: lines("a", 50, 500), changed: 70 * 500, change: func(w *world) {
		w.must(os.Remove(w.path("p/a.jsonl")))
		w.write("p/a.jsonl", lines("b", 70, 500))
	}},
	{name: "older state restored without newline, then appended to", before: lines("a", 50, 500), changed: 600, change: func(w *world) {
		w.write("p/a.jsonl", strings.TrimSuffix(lines("a", 45, 500), "\n")+lines("b", 1, 100))
	}},
}

func TestRewind(t *testing.T) {
	for _, r := range rewinds {
		for _, while := range []string{"running", "stopped"} {
			t.Run(r.name+"/"+while, func(t *testing.T) {
				w := newWorld(t)
				w.write("p/a.jsonl", r.before)
				sent := w.startWith("p/a.jsonl").sent
				if while == "stopped" {
					w.stop()
				}
				r.change(w)
				if while == "stopped" {
					w.start()
				}
				w.sync()
				k := w.main("p/a.jsonl")
				// A change in several writes may be seen in its middle, and is then two.
				got, limit := k.sent-sent, r.changed+2*markGap
				kit.Check(t, got <= limit || while != "stopped", "%d bytes sent again, not %d at the most", got, limit)
				kit.Equal(t, fmt.Sprint("generation ", k.Cursor.Generation), (k.Cursor.Generation == 0), r.same)
				kit.Check(t, while != "stopped" || k.Cursor.Generation <= 1, "generation %d after one change", k.Cursor.Generation)
			})
		}
	}
}

func TestRewindOfALargeFileSendsLittle(t *testing.T) {
	w := newWorld(t)
	const size = 12 << 20
	body := lines("a", size/1000, 1000)
	w.write("p/a.jsonl", body)
	sent := w.startWith("p/a.jsonl").sent
	w.stop()
	at := int64(len(body) - 5*1000 - 20)
	f := kit.Try(os.OpenFile(w.path("p/a.jsonl"), os.O_WRONLY, 0)).Must(w.t)
	_ = kit.Try(f.WriteAt([]byte("YY"), at)).Must(w.t)
	w.must(f.Close())
	w.start()
	w.sync()
	k := w.main("p/a.jsonl")
	got, limit := k.sent-sent, int64(len(body))-at+2*markGap
	kit.Check(t, got <= limit && k.Cursor.Generation == 1, "%d bytes sent again in generation %d, limit %d", got, k.Cursor.Generation, limit)
}

// edit changes one byte far behind the cursor and sets size and mtime back to what they were.
func edit(w *world, rel string, at int64) {
	w.t.Helper()
	st := kit.Try(os.Stat(w.path(rel))).Must(w.t)
	f := kit.Try(os.OpenFile(w.path(rel), os.O_WRONLY, 0)).Must(w.t)
	_ = kit.Try(f.WriteAt([]byte{'Z'}, at)).Must(w.t)
	w.must(f.Close())
	w.must(os.Chtimes(w.path(rel), st.ModTime(), st.ModTime()))
}

func TestEditFarBehindTheAnchor(t *testing.T) {
	for name, size := range map[string]int{"small": 300, "beyond what is checked at once": maxSharedProof/1000 + 500} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.follow("p/a.jsonl", lines("a", size, 1000))
			edit(w, "p/a.jsonl", 150)
			kit.Equal(t, "generation", w.main("p/a.jsonl").Cursor.Generation, 1)
		})
	}
}

func TestEditTogetherWithAnAppend(t *testing.T) {
	for _, way := range []string{"scrub", "sync", "restart"} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			if way != "scrub" {
				w.cfg.ScrubAfter = time.Hour
			}
			w.follow("p/a.jsonl", lines("a", 300, 1000))
			w.stop()
			edit(w, "p/a.jsonl", 150)
			w.add("p/a.jsonl", lines("b", 1, 1000))
			w.start()
			switch way {
			case "sync":
				w.sync()
				kit.Equal(t, "generation", w.mem.named("a")[0].Cursor.Generation, 1)
			case "restart":
				w.until("the new line arrives", func() bool { return w.mem.named("a")[0].Cursor.Line > 300 })
				w.stop()
				w.cfg.ScrubAfter = time.Millisecond
				w.start()
			}
			w.main("p/a.jsonl")
		})
	}
}

// TestChangedWhileRead changes the file between the reading of its lines and their proof.
func TestChangedWhileRead(t *testing.T) {
	const n = 200
	old := lines("a", n, 300)
	changes := map[string]func(w *world){
		"other lines of the same size": func(w *world) { w.write("p/a.jsonl", lines("b", n, 300)) },
		"same size, both ends the same": func(w *world) {
			w.write("p/a.jsonl", lines("a", n/2, 300)+lines("b", 1, 300)+lines("a", n, 300)[300*(n/2+1):])
		},
		"shorter":       func(w *world) { w.write("p/a.jsonl", lines("b", n/2, 300)) },
		"longer":        func(w *world) { w.write("p/a.jsonl", lines("b", 2*n, 300)) },
		"end rewritten": func(w *world) { w.write("p/a.jsonl", lines("a", n-1, 300)+lines("b", 5, 300)) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			changed := make(chan struct{})
			var once sync.Once
			w.prep = func(t *Tailer) {
				t.faults.read = func(string) error {
					once.Do(func() {
						change(w)
						close(changed)
					})
					return nil
				}
			}
			w.write("p/a.jsonl", old)
			w.start()
			<-changed
			k := w.main("p/a.jsonl")
			kit.Check(t, k.sent == int64(len(k.content)) && k.Cursor.Generation == 0, "sent %d of %d bytes, %+v", k.sent, len(k.content), k.Cursor)
		})
	}
}

// TestPastChangedWhileRead changes the bytes before the cursor, and appends, between the reading of new lines and their proof:
// nothing is delivered as what follows a past that is no more.
func TestPastChangedWhileRead(t *testing.T) {
	w := newWorld(t)
	const n = 50
	old := lines("a", n, 300)
	w.follow("p/a.jsonl", old)
	w.stop()
	w.add("p/a.jsonl", lines("b", n, 300))
	var once sync.Once
	w.prep = func(t *Tailer) {
		t.faults.read = func(string) error {
			once.Do(func() { w.write("p/a.jsonl", lines("a", n-1, 300)+lines("c", 1, 300)+lines("b", 2*n, 300)) })
			return nil
		}
	}
	w.mem.note = func(chunks []Chunk) {
		c := &chunks[0]
		kit.Check(t, c.From.Generation != 0, "delivered %+v to %+v", c.From, c.To)
	}
	w.start()
	w.until("all is read", func() bool { return w.mem.named("a")[0].Cursor.Line == 3*n })
	k := w.main("p/a.jsonl")
	kit.Check(t, k.Cursor.Generation == 1, "%+v", k.Cursor)
}

// TestPastBeforeTheAnchor: an edit before the last AnchorSize bytes, but after the last mark, is found before anything is
// read behind it.
func TestPastBeforeTheAnchor(t *testing.T) {
	w := newWorld(t)
	w.cfg.ScrubAfter = patience
	w.follow("p/a.jsonl", lines("a", 100, 300))
	w.stop()
	w.write("p/a.jsonl", lines("c", 1, 300)+lines("a", 100, 300)[300:]+lines("b", 1, 300))
	w.start()
	w.until("the new line arrives", func() bool { return w.mem.named("a")[0].Cursor.Line > 100 })
	k := w.mem.named("a")[0]
	kit.Check(t, k.Cursor.Generation == 1 && string(k.content) == string(w.read("p/a.jsonl")), "%+v", k.Cursor)
}

// TestWholeAgainWhileProved cuts a file and makes it whole again between the first look at its size and the proof of
// its past: nothing has changed, and nothing may be sent.
func TestWholeAgainWhileProved(t *testing.T) {
	w := newWorld(t)
	old := lines("a", 300, 1000)
	w.follow("p/a.jsonl", old)
	w.stop()
	w.write("p/a.jsonl", old[:len(old)/2])
	proved := make(chan struct{})
	var once sync.Once
	w.mem.asked = func() {
		once.Do(func() {
			w.write("p/a.jsonl", old)
			close(proved)
		})
	}
	w.start()
	<-proved
	w.sync()
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sent == int64(len(old)) && k.Cursor.Generation == 0, "sent %d of %d bytes, %+v", k.sent, len(old), k.Cursor)
}

func TestProvisional(t *testing.T) {
	const head, line = "{\"n\":0}\n", `{"n":1,"t":"é"}`
	tests := []struct {
		name       string
		then       func(w *world)
		provisions int
		sealed     int
		generation uint32
	}{
		{"newline comes", func(w *world) { w.add("p/a.jsonl", "\n") }, 1, 1, 0},
		{"newline comes with more", func(w *world) { w.add("p/a.jsonl", "\n{}\n{}\n") }, 1, 1, 0},
		{"glued to the next", func(w *world) { w.add("p/a.jsonl", "{\"n\":2}\n") }, 1, 0, 1},
		{"changed", func(w *world) { w.write("p/a.jsonl", head+`{"n":2,"t":"x"}`+"\n") }, 1, 0, 1},
		{"gone", func(w *world) { w.must(os.Truncate(w.path("p/a.jsonl"), int64(len(head)))) }, 1, 0, 1},
		{"gone with all before it", func(w *world) { w.must(os.Truncate(w.path("p/a.jsonl"), 0)) }, 1, 0, 1},
	}
	for _, tt := range tests {
		for _, while := range []string{"running", "stopped"} {
			t.Run(tt.name+"/"+while, func(t *testing.T) {
				w := newWorld(t)
				w.write("p/a.jsonl", head+line)
				w.start()
				w.until("the line comes without its newline", func() bool {
					k := w.mem.named("a")
					return len(k) == 1 && string(k[0].provisional) == line && k[0].Cursor.Offset == int64(len(head))
				})
				if while == "stopped" {
					w.stop()
				}
				tt.then(w)
				if while == "stopped" {
					w.start()
				}
				w.until("what follows arrives", func() bool { return w.mem.named("a")[0].provisional == nil })
				k := w.main("p/a.jsonl")
				// An in-place write may be seen empty in between, which is a rewind of its own.
				if k.sealed != tt.sealed || k.provisions != tt.provisions ||
					k.Cursor.Generation < tt.generation || while == "stopped" && k.Cursor.Generation != tt.generation {
					t.Errorf("sealed %d, provisional %d times, generation %d", k.sealed, k.provisions, k.Cursor.Generation)
				}
			})
		}
	}
}

func TestNotProvisional(t *testing.T) {
	for name, rest := range map[string]string{"half": `{"a":`, "no object": `"a"`, "number": "12", "blank": "  ", "two glued": "{}{}"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.follow("p/a.jsonl", "{}\n"+rest)
			w.until("it was tried", func() bool {
				w.tail.mu.Lock()
				defer w.tail.mu.Unlock()
				for _, f := range w.tail.table.byID {
					return f.partialTried
				}
				return false
			})
			k := w.mem.named("a")[0]
			kit.Check(t, k.provisions == 0, "%q came provisionally", k.provisional)
			w.add("p/a.jsonl", "\n")
			k = w.main("p/a.jsonl")
			kit.Check(t, k.Cursor.Line == 2 && k.Cursor.Generation == 0, "%+v", k.Cursor)
		})
	}
}

func TestProvisionalOnlyWhenQuiet(t *testing.T) {
	w := newWorld(t)
	w.cfg.Quiet = 10 * time.Minute
	w.write("p/a.jsonl", "{}")
	w.start()
	w.sync()
	w.add("p/a.jsonl", "\n")
	k := w.main("p/a.jsonl")
	kit.Check(t, k.provisions == 0 && k.sealed == 0, "came %d times provisionally", k.provisions)
}

func TestProvisionalLongLine(t *testing.T) {
	w := newWorld(t)
	w.cfg.TurnBytes = 64 << 10
	line := lines("long", 1, 300<<10)
	w.write("p/a.jsonl", "{}\n"+line[:len(line)-1])
	w.start()
	w.until("it comes without its newline", func() bool {
		k := w.mem.named("a")
		return len(k) == 1 && string(k[0].provisional) == line[:len(line)-1]
	})
	w.add("p/a.jsonl", "\n"+lines("more", 3, 100))
	k := w.main("p/a.jsonl")
	kit.Check(t, k.sealed == 1 && k.Cursor.Generation == 0, "sealed %d, %+v", k.sealed, k.Cursor)
}
