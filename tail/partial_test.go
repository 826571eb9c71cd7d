package tail

import (
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

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
