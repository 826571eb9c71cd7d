//go:build unix

package e2e

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// shipped is a world with one transcript of n lines of 4 KB that is on the server already.
func shipped(w *world, seed uint64, n int) (c *conversation, path string) {
	w.t.Helper()
	c = newConversation(seed, w.cwd())
	path = w.path("-work-shop", c.session+".jsonl")
	w.add(path, c.even(n, 4000))
	w.startAndSync()
	w.same(c.session, path)
	return c, path
}

// aloneShipped is shipped in a world of its own.
func aloneShipped(t *testing.T, seed uint64, n int) (w *world, c *conversation, path string) {
	w = aloneWorld(t)
	c, path = shipped(w, seed, n)
	return w, c, path
}

// rewound checks the end of every rewind: the file as it is now, and for ccship-server the file as it was.
func rewound(w *world, stream, path string, before []byte) {
	w.t.Helper()
	w.same(stream, path)
	if w.exact != nil {
		w.earlier(stream, 0, before)
		n := w.generations(stream)
		kit.Check(w.t, n >= 2, "%d generations, want the rewind to have opened a second", n)
	}
	w.verified()
}

func TestShrinkThenGrow(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 1, 150)
		before, sent := w.read(path), w.sent()
		w.keepLines(path, 140)
		more := c.even(5, 4000)
		w.addAndSync(path, more)
		w.within(sent, len(more))
		rewound(w, c.session, path, before)
	})
}

func TestRenameOverShorter(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 2, 120)
		before, sent := w.read(path), w.sent()
		more := c.even(20, 4000)
		replacement := append(bytes.Clone(firstLines(before, 50)), more...)
		must(t, os.WriteFile(path+".compact.tmp.0a1b2c3d", replacement, 0o600))
		must(t, os.Rename(path+".compact.tmp.0a1b2c3d", path))
		w.sync()
		w.within(sent, len(more))
		rewound(w, c.session, path, before)
	})
}

func TestForkWithTheSameHead(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 3, 60)
		fork, forkPath := w.conversation(1003)
		w.addAndSync(forkPath, append(bytes.Clone(firstLines(w.read(path), 30)), fork.even(20, 4000)...))
		w.same(c.session, path)
		w.proven(fork.session, forkPath)
	})
}

// TestRegrownPastTheOffset is the change that a look at the size alone never sees.
func TestRegrownPastTheOffset(t *testing.T) {
	change := func(w *world, c *conversation, path string) (changed int) {
		w.keepLines(path, 100)
		more := c.even(60, 6000)
		w.add(path, more)
		return len(more)
	}
	t.Run("daemon paused", func(t *testing.T) {
		onBoth(t, func(t *testing.T, w *world) {
			c, path := shipped(w, 4, 150)
			before, sent := w.read(path), w.sent()
			w.d.Pause()
			changed := change(w, c, path)
			w.d.Resume()
			w.sync()
			w.within(sent, changed)
			rewound(w, c.session, path, before)
		})
	})
	t.Run("daemon stopped", func(t *testing.T) {
		onBoth(t, func(t *testing.T, w *world) {
			c, path := shipped(w, 5, 150)
			before := w.read(path)
			w.d.MustStop(w.t)
			changed := change(w, c, path)
			w.startAndSync()
			w.within(0, changed)
			rewound(w, c.session, path, before)
		})
	})
}

// TestEditFarBehind changes bytes in the middle of the file; size, end and the bytes before the offset stay.
func TestEditFarBehind(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		c, path := shipped(w, 6, 150)
		before, sent := w.read(path), w.sent()
		edited := bytes.Clone(before)
		at := len(firstLines(before, 100)) + bytes.Index(edited[len(firstLines(before, 100)):], []byte("cart"))
		copy(edited[at:], "CART")
		f := kit.Try(os.OpenFile(path, os.O_WRONLY, 0)).Must(t)
		kit.Try(f.WriteAt(edited[at:at+4], int64(at))).Must(t)
		must(t, f.Close())
		w.sync()
		w.within(sent, len(before)-len(firstLines(before, 100)))
		rewound(w, c.session, path, before)
	})
}

// TestPureShrink: no line follows, yet ccship-server learns where the file ends now.
func TestPureShrink(t *testing.T) {
	w, c, path := aloneShipped(t, 7, 150)
	before := w.read(path)
	w.keepLines(path, 90)
	want := w.read(path)
	eventually(t, "ccship-server has the shorter file", 30*time.Second, func() bool {
		return bytes.Equal(w.exact.raw(c.session, ""), want)
	})
	rewound(w, c.session, path, before)
}

func TestManyRewinds(t *testing.T) {
	w, c, path := aloneShipped(t, 8, 50)
	history := [][]byte{w.read(path)}
	for _, keep := range []int{45, 20, 48, 1} {
		w.keepLines(path, min(keep, bytes.Count(w.read(path), []byte("\n"))-1))
		w.addAndSync(path, c.even(30, 4000))
		history = append(history, w.read(path))
	}
	w.same(c.session, path)
	for i, content := range history {
		w.earlier(c.session, i, content)
	}
	w.verified()
}

func TestStateLostOrCorrupt(t *testing.T) {
	damage := map[string]func(path string) error{
		"lost": os.Remove,
		"corrupt": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i := range data {
				data[i] ^= 0x5a
			}
			return os.WriteFile(path, data, 0o600)
		},
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			w, c, path := aloneShipped(t, 9, 80)
			before := w.read(path)
			w.keepLines(path, 40)
			w.addAndSync(path, c.even(10, 4000))
			middle, epoch := w.read(path), w.exact.digest(c.session).Epoch
			w.d.MustStop(w.t)
			must(t, hurt(stateFile(w.home)))
			w.add(path, c.even(3, 4000))
			w.startAndSync()
			w.proven(c.session, path)
			for gen, content := range [][]byte{before, middle} {
				got := w.exact.raw(c.session, generation(gen)+"&epoch="+epoch)
				kit.Check(t, bytes.Equal(got, content), "generation %d of the earlier epoch: %s", gen, firstDifference(got, content))
			}
			kit.Check(t, name != "corrupt" || len(w.status().Notices) != 0, "status says nothing of the corrupt state file")
		})
	}
}
