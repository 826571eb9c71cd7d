//go:build unix

package e2e

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/transcript/planted"
)

// serverTool runs ccship-server on the world's store.
func (w *world) serverTool(want int, args ...string) outcome {
	w.t.Helper()
	out := w.runProgram(kit.Program(w.t, "ccship-server"), append(args, "--store", w.exact.store())...)
	kit.Require(w.t, out.code == want, "ccship-server %v: %+v", args, out)
	return out
}

// stored waits until every secret can be read in the files of the server. One look may miss some: the server moves text
// from its log to its database meanwhile.
func (s *secrets) stored(w *world) {
	w.t.Helper()
	eventually(w.t, "all secrets are in files of the server", time.Minute, func() bool { return len(s.inFiles(w)) >= len(s.needles) })
}

// inFiles are the secrets in the files of the server, and in the lines that it has packed meanwhile.
func (s *secrets) inFiles(w *world) []string {
	w.t.Helper()
	db := kit.Try(sql.Open("sqlite", w.exact.database()+"?_pragma=busy_timeout(60000)")).Must(w.t)
	defer db.Close()
	tx := kit.Try(db.Begin()).Must(w.t)
	var all []byte
	packed(w.t, tx, func(_ [4]int64, l *lines.Line) { all = append(append(all, l.Raw...), '\n') })
	must(w.t, tx.Rollback())
	files := kit.Try(filepath.Glob(filepath.Join(filepath.Dir(w.exact.database()), "*"))).Must(w.t)
	for _, file := range files {
		text, _ := os.ReadFile(file) // an error: it was removed meanwhile
		all = append(all, text...)
	}
	return s.in(all)
}

// TestServerMasks: what a server masked by itself is the same to the daemon, counted apart, and never comes back: not by
// a repair, a resend, a rewind, or a lost state.
func TestServerMasks(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, "CCSHIP_REDACT=off", asRows)
	s := &secrets{t, rand.New(rand.NewPCG(9, 9)), map[string]string{}}
	c, path := w.conversation(78)
	w.add(path, c.even(3, 500))
	n := 0
	for _, place := range slices.Sorted(maps.Keys(secretLines)) {
		for _, kind := range slices.Sorted(maps.Keys(planted.Kinds())) {
			if n++; n%4 == 0 {
				w.add(path, fmt.Appendf(nil, "%s,\"uuid\":\"%08d\",\"sessionId\":%q,\"cwd\":%q}\n",
					secretLines[place](s.plant(kind, place)), n, c.session, w.cwd()))
			}
		}
	}
	lines := strings.Count(string(w.read(path)), "\n")
	w.startAndSync()
	w.keepLines(path, lines-5)
	w.addAndSync(path, c.even(2, 500))
	s.stored(w)
	w.serverTool(0, "forget", "--lines")
	w.serverTool(0, "forget", "--lines", "--yes")
	w.scrubbed(s)
	clean := func(when string) {
		t.Helper()
		w.sync()
		found := s.inFiles(w)
		kit.Check(t, len(found)*50 <= len(s.needles), "%s: %d of %d secrets are in files of the server: %q", when, len(found), len(s.needles), found)
		w.look("masked by the server: ", 0, "verify")
	}
	clean("masked")
	w.look("", 0, "verify", "--deep")
	generations := w.generations(c.session)
	w.look("", 0, "verify", "--repair")
	kit.Equal(t, "a repair made generations", w.generations(c.session), generations)
	w.look("", 0, "verify", "--repair", c.session, "--from-start")
	clean("sent again")
	w.keepLines(path, lines-8)
	w.add(path, c.even(2, 500))
	clean("rewound")
	w.d.MustStop(t)
	must(t, os.RemoveAll(w.state()))
	w.start()
	clean("a lost state")
	w.look("", 0, "verify", "--deep")
	w.env = append(w.env, "CCSHIP_REDACT=on")
	w.d.MustStop(t)
	w.start()
	clean("masked by the daemon too")
	w.look("every line as the rules in force mask it", 0, "redact", "apply")
}

// TestForgetOld: secrets of every kind were sent in the clear, wherever they can be. Once masking is on, nothing of them
// is in the server's files, the history of rewound lines is still there, and the lines are as they are sent now.
func TestForgetOld(t *testing.T) {
	w := aloneWorld(t)
	w.env = append(w.env, "CCSHIP_REDACT=off", asRows)
	s := &secrets{t, rand.New(rand.NewPCG(3, 3)), map[string]string{}}
	c, path, documents := secretSession(w, s)
	w.startAndSync()
	for _, name := range documents {
		w.look("", 0, "link", "add", filepath.Join(w.cwd(), name), "--session", c.session)
	}
	w.look("", 0, "checkpoint", "create", "--session", c.session, "--summary", "we use "+s.plant("github", "a checkpoint"))
	w.sync()
	first := w.exact.raw(c.session, "")
	w.keepLines(path, 200)
	w.addAndSync(path, c.even(2, 500))
	must(t, os.WriteFile(filepath.Join(w.cwd(), documents[0]), []byte("without\n"), 0o600)) // its version stays
	w.look("", 0, "link", "add", filepath.Join(w.cwd(), documents[0]), "--session", c.session)
	w.sync()
	s.stored(w)
	w.d.MustStop(t)
	w.env = append(w.env, "CCSHIP_REDACT=on")
	w.startAndSync()
	w.look("add --yes to have that masked in place", 0, "redact", "apply", "--forget-old")
	s.stored(w) // a dry run masks nothing
	generations := w.generations(c.session)
	w.look("masked there", 0, "redact", "apply", "--forget-old", "--yes")
	w.look("stored nothing in the clear", 0, "redact", "apply", "--forget-old", "--yes")
	w.sync()
	w.scrubbed(s)
	w.look("", 0, "verify")
	w.look("", 0, "verify", "--deep")
	kit.Equal(t, "lines were sent again: generations", w.generations(c.session), generations)
	w.sameShape(w.exact.raw(c.session, generation(0)), first)
	s.none("the log", []byte(w.d.Log.String()))
	w.env = append(w.env, "CCSHIP_REDACT=off")
	w.d.MustStop(t)
	w.startAndSync()
	w.look("", 0, "verify", "--deep")
}

// scrubbed waits until no secret is in the files of the server, but for one in fifty that the rules do not find.
func (w *world) scrubbed(s *secrets) {
	w.t.Helper()
	var found []string
	kit.Check(w.t, kit.Within(8*time.Minute, func() bool { found = s.inFiles(w); return len(found)*50 <= len(s.needles) }),
		"%d of %d secrets are in files of the server: %q", len(found), len(s.needles), found)
}

// TestForgetOldPlain: a server that speaks only the base protocol cannot mask, and the command says so.
func TestForgetOldPlain(t *testing.T) {
	w := alonePlain(t)
	w.env = append(w.env, "CCSHIP_REDACT=on")
	c := newConversation(79, w.cwd())
	w.add(w.path("-work-shop", c.session+".jsonl"), c.even(3, 500))
	w.startAndSync()
	for _, flags := range [][]string{nil, {"--yes"}} {
		w.look("speaks only the base protocol and cannot mask", 0, append([]string{"redact", "apply", "--forget-old"}, flags...)...)
	}
}
