package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

const (
	sessionC = "0c0c0c0c-0000-4000-8000-000000000003"
	sessionD = "0d0d0d0d-0000-4000-8000-000000000004"
)

// silent says that nothing passed a part of a session's budget, and that no one is notified.
func (w *world) silent(session string) {
	w.t.Helper()
	kit.Equal(w.t, session, w.triggers(session), "")
	p := w.handed(session)
	kit.Check(w.t, p.Notices == 0, "%s is told %q", session, p.Text)
}

// A copy of a transcript is no news, whatever was made from its ids. What is written behind the copy is.
func TestCopiedTranscriptIsHistory(t *testing.T) {
	for name, copied := range map[string]func(lines string) string{
		"as it was":          func(lines string) string { return lines },
		"under a new id":     func(lines string) string { return strings.ReplaceAll(lines, sessionA, sessionB) },
		"from its middle on": func(lines string) string { return strings.ReplaceAll(lines[len(lines)*2/3:], sessionA, sessionB) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := kit.Chat{Session: sessionA}
			old := a.Turn(20_000)
			for range 400 { // beyond what is looked at of the beginning
				old += a.Prompt(strings.Repeat("word ", 100))
			}
			w.write(transcriptOf(sessionA), old)
			w.watching()
			fresh := a.Turn(30_000) + a.Turn(139_000)
			w.send(transcriptOf(sessionA), fresh)
			got := w.triggers(sessionA)
			kit.Require(t, got == "auto_80@139000", "the original has %q", got)
			text := copied(old + fresh)
			text = text[strings.Index(text, `{"`):]
			w.send(transcriptOf(sessionB), text)
			w.silent(sessionB)
			b := kit.Chat{Session: sessionB, Leaf: a.Leaf, N: a.N}
			w.send(transcriptOf(sessionB), b.Turn(140_000))
			w.silent(sessionB)
			w.send(transcriptOf(sessionB), b.Turn(152_000))
			kit.Equal(t, "what goes on has", w.triggers(sessionB), "auto_90@152000")
			w.allPending(sessionB, 1)
		})
	}
}

// A copy may be of the middle of another transcript: of what follows a compaction, up to an earlier answer.
func TestCopyOfAMiddle(t *testing.T) {
	w := newWorld(t)
	a := kit.Chat{Session: sessionA}
	var long [2]string
	for i := range long {
		for range 500 {
			long[i] += a.Prompt(strings.Repeat("word ", 100))
		}
		if i == 0 {
			a.Leaf = ""
			long[i] += a.Compaction()
		}
	}
	middle := a.Turn(139_000)
	w.write(transcriptOf(sessionA), long[0]+middle+long[1])
	w.watching()
	w.send(transcriptOf(sessionB), strings.ReplaceAll(middle, sessionA, sessionB))
	w.silent(sessionB)
}

// A copy that arrives piece by piece is one to its end.
func TestCopiedInPieces(t *testing.T) {
	w := watchingWorld(t)
	a := kit.Chat{Session: sessionA}
	var lines []string
	for _, tokens := range []int64{20_000, 40_000, 139_000, 152_000} {
		lines = append(lines, a.Turn(tokens))
		w.send(transcriptOf(sessionA), lines[len(lines)-1])
	}
	prompt, answer, _ := strings.Cut(lines[0], "\n")
	for _, text := range append([]string{prompt + "\n", answer}, lines[1:]...) {
		w.send(transcriptOf(sessionB), strings.ReplaceAll(text, sessionA, sessionB))
	}
	w.silent(sessionB)
	b := kit.Chat{Session: sessionB, Leaf: a.Leaf, N: a.N}
	w.send(transcriptOf(sessionB), b.Compaction()+b.Turn(140_000))
	kit.Equal(t, "what goes on has", w.triggers(sessionB), "compact@160000 auto_80@140000")
}

// What lies in a file that was written long before it came is history.
func TestOldFileMovedIn(t *testing.T) {
	w := watchingWorld(t)
	a := kit.Chat{Session: sessionA}
	path := filepath.Join(t.TempDir(), "old")
	kit.Must(t, os.WriteFile(path, []byte(a.Turn(139_000)), 0o600))
	old := time.Now().Add(-time.Hour)
	kit.Must(t, os.Chtimes(path, old, old))
	kit.Must(t, os.MkdirAll(filepath.Join(w.root, "-home-kim-shop"), 0o700))
	kit.Must(t, os.Rename(path, filepath.Join(w.root, transcriptOf(sessionA))))
	w.sync()
	w.silent(sessionA)
	w.send(transcriptOf(sessionA), a.Turn(152_000))
	kit.Equal(t, "what goes on has", w.triggers(sessionA), "auto_90@152000")
}

// Another session's lines in a transcript are not watched; a file that is not named after a session has no others.
func TestLinesOfAnotherSession(t *testing.T) {
	w := watchingWorld(t)
	c, d := kit.Chat{Session: sessionC}, kit.Chat{Session: sessionD}
	w.send(transcriptOf(sessionC), c.Turn(20_000))
	w.send(transcriptOf(sessionC), d.Turn(152_000))
	w.silent(sessionC)
	w.send("-home-kim-shop/weird name.jsonl", d.Turn(139_000))
	kit.Equal(t, "a file with a name of its own has", w.triggers("weird name"), "auto_80@139000")
}

// Sessions that are new next to others fire, also when all of their first lines are there at once.
func TestNewSessionsAreNoCopies(t *testing.T) {
	w := watchingWorld(t)
	for _, session := range []string{sessionA, sessionB, sessionC} {
		c := kit.Chat{Session: session}
		w.send(transcriptOf(session), c.Turn(20_000)+c.Turn(139_000))
		w.send(transcriptOf(session), c.Turn(152_000))
		kit.Equal(t, session, w.triggers(session), "auto_80@139000 auto_90@152000")
	}
}
