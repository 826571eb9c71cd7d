//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ccship/ccship/e2e/kit"
)

// world is a home and the server its lines go to, behind a gate.
type world struct {
	*home
	gate  *gate
	plain *plainServer // one of the two is set
	exact *shipServer
	d     *kit.Process
}

// onBoth runs a case against a server that knows only the base protocol and against ccship-server.
func onBoth(t *testing.T, run func(t *testing.T, w *world)) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) { t.Parallel(); run(t, plainWorld(t)) })
	t.Run("ccship-server", func(t *testing.T) { t.Parallel(); run(t, exactWorld(t)) })
}

func plainWorld(t testing.TB) *world {
	h := newHome(t)
	w := &world{home: h, plain: newPlainServer(t, h.key)}
	w.gate = newGate(t, w.plain)
	h.url = w.gate.srv.URL
	return w
}

func exactWorld(t testing.TB) *world {
	h := newHome(t)
	w := &world{home: h, exact: newShipServer(h)}
	h.writeKey(w.exact.key)
	w.gate = newGate(t, w.exact.handler())
	h.url = w.gate.srv.URL
	return w
}

// aloneWorld is exactWorld for a test that runs in parallel with others.
func aloneWorld(t *testing.T) *world { t.Parallel(); return exactWorld(t) }

func alonePlain(t *testing.T) *world {
	t.Parallel()
	return plainWorld(t)
}

func aloneHome(t *testing.T) *home {
	t.Parallel()
	return newHome(t)
}

// conversation is one in a project, and its transcript, which is not there yet.
func (w *world) conversation(seed uint64) (*conversation, string) {
	c := newConversation(seed, w.cwd())
	return c, w.path("-work-shop", c.session+".jsonl")
}

// talk is a conversation with meaning in a project, and its transcript, which is not there yet.
func (w *world) talk(session string) (*talk, string) {
	return newTalk(session, w.cwd()), w.path("-work-shop", session+".jsonl")
}

// aloneTalk is a talk that a daemon waits for, in a world of its own.
func aloneTalk(t *testing.T, session string) (*world, *talk, string) {
	w := aloneWorld(t)
	w.start()
	c, path := w.talk(session)
	return w, c, path
}

// start runs the daemon.
func (w *world) start() { w.t.Helper(); w.d = w.daemon() }

// sync waits until everything on disk is acknowledged.
func (w *world) sync() {
	w.t.Helper()
	out := w.ccship("sync", "--wait", "--timeout", "5m")
	kit.Require(w.t, out.code == 0, "not everything is acknowledged: sync --wait: exit %d\n%s%s", out.code, out.stdout, out.stderr)
}

func (w *world) startAndSync() { w.t.Helper(); w.start(); w.sync() }

func (w *world) addAndSync(path string, data []byte) { w.t.Helper(); w.add(path, data); w.sync() }

// derived waits until a search for the words finds the sessions: the server derives after it has acknowledged. The
// words are of what was written last.
func (w *world) derived(words string, sessions ...string) {
	w.t.Helper()
	eventually(w.t, "the server has derived "+words, 8*time.Minute, func() bool {
		found := w.ccship("search", words).stdout
		return !slices.ContainsFunc(sessions, func(id string) bool { return !strings.Contains(found, id[:8]) })
	})
}

// sent is how many bytes were acknowledged since the daemon started.
func (w *world) sent() int64 { w.t.Helper(); return w.status().Sent.Bytes }

// within holds what was sent since before to the promise: what changed and 128 KiB.
func (w *world) within(before int64, changed int) {
	w.t.Helper()
	again := w.sent() - before
	kit.Check(w.t, again <= int64(changed)+128<<10, "%d bytes were sent for a change of %d, more than 128 KiB above it", again, changed)
}

// same demands that the server has a stream's file: a plain server each JSON object at its line, ccship-server the
// file to the last byte.
func (w *world) same(stream, path string) {
	w.t.Helper()
	w.holds(stream, w.read(path))
}

// proven is same, and `ccship verify` agrees.
func (w *world) proven(stream, path string) {
	w.t.Helper()
	w.same(stream, path)
	w.verified()
}

func (w *world) syncVerified() {
	w.t.Helper()
	w.sync()
	w.verified()
}

func (w *world) syncProven(stream, path string) {
	w.t.Helper()
	w.sync()
	w.proven(stream, path)
}

// holds is same for content that is no longer on disk, or not yet changed there.
func (w *world) holds(stream string, content []byte) {
	w.t.Helper()
	if w.plain != nil {
		for _, wrong := range objectsMissing(content, w.plain.lines(stream)) {
			w.t.Errorf("%s: %s", stream, wrong)
		}
		return
	}
	got := w.exact.raw(stream, "")
	kit.Check(w.t, bytes.Equal(got, content), "%s: %s", stream, firstDifference(got, content))
}

// earlier demands that ccship-server still has an older generation of a stream.
func (w *world) earlier(stream string, gen int, content []byte) {
	w.t.Helper()
	if w.exact == nil {
		return
	}
	got := w.exact.raw(stream, generation(gen))
	kit.Check(w.t, bytes.Equal(got, content), "%s, generation %d: %s", stream, gen, firstDifference(got, content))
}

// generations is the number of generations ccship-server has of a stream.
func (w *world) generations(stream string) int { return len(w.exact.digest(stream).Generations) }

// verified demands that `ccship verify` finds nothing wrong.
func (w *world) verified() {
	w.t.Helper()
	out := w.ccship("verify")
	kit.Check(w.t, out.code == 0, "verify: exit %d\n%s%s", out.code, out.stdout, out.stderr)
}

// objectsMissing compares the JSON objects of a file with a plain server's lines; at most five words on it.
func objectsMissing(content []byte, lines map[int64][]byte) []string {
	var wrong []string
	whole := bytes.Split(content, []byte("\n"))
	for i, line := range whole[:len(whole)-1] { // what follows the last newline is no line yet
		object := bytes.Trim(line, " \t\r")
		if !isObject(object) {
			continue
		}
		got, there := lines[int64(i)]
		switch {
		case !there:
			wrong = append(wrong, fmt.Sprintf("line %d is missing", i))
		case !bytes.Equal(got, object):
			wrong = append(wrong, fmt.Sprintf("line %d: %s", i, firstDifference(got, object)))
		}
	}
	return slices.Clip(wrong[:min(len(wrong), 5)])
}

// isObject says whether a line is one JSON object, and so goes to a plain server: one without a line_index of its own,
// which would be there twice.
func isObject(line []byte) bool {
	return len(line) > 0 && line[0] == '{' && json.Valid(line) && utf8.Valid(line) && !bytes.Contains(line, []byte(`"line_index"`))
}

// firstDifference describes where two contents part.
func firstDifference(got, want []byte) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	if n == len(got) && n == len(want) {
		return "equal"
	}
	excerpt := func(b []byte) string { return fmt.Sprintf("%.60q", b[min(n, len(b)):]) }
	line := bytes.Count(want[:min(n, len(want))], []byte("\n"))
	return fmt.Sprintf("%d bytes, want %d; they part at byte %d (line %d): %s, want %s", len(got), len(want), n, line, excerpt(got), excerpt(want))
}

// contains says whether any of the texts contains part.
func contains(part string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}
