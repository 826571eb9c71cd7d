//go:build unix

package e2e

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/server/store/lines"
	"github.com/ccship/ccship/state/kv"
	"github.com/ccship/ccship/transcript/planted"
)

// incompressible is n bytes of records that no compression makes much smaller.
func incompressible(cwd string, n int) []byte {
	rng := rand.New(rand.NewPCG(7, 7))
	var data []byte
	for len(data) < n {
		data = fmt.Appendf(data, `{"type":"user","cwd":%q,"message":{"content":"`, cwd)
		for range 400 {
			data = fmt.Appendf(data, "%016x", rng.Uint64())
		}
		data = append(data, "\"}}\n"...)
	}
	return data
}

// TestOutboxFull: at the cap reading stops, status says so, and it goes on by itself.
func TestOutboxFull(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.configure("outbox_cap = \"2MiB\"\n")
		w.env = append(w.env, "GOMAXPROCS=2") // as many read at once
		w.gate.set(refuse(503))
		streams := map[string]string{}
		content := incompressible(w.cwd(), 1<<20)
		for i := range 24 {
			c, path := w.conversation(uint64(800 + i))
			w.add(path, content)
			streams[c.session] = path
		}
		w.start()
		s := w.until("status says full", func(s status) bool { return s.State == "full" })
		// Each worker may have had its turn, of a megabyte or so, when the cap was reached.
		kit.Check(t, s.Files.ReadBytes < s.Files.Bytes && s.Outbox.Stored <= 8<<20,
			"%d of %d bytes were read, %d are stored: reading went on beyond the cap", s.Files.ReadBytes, s.Files.Bytes, s.Outbox.Stored)
		w.gate.set(nil)
		w.sync()
		for stream, path := range streams {
			w.same(stream, path)
		}
		if s := w.status(); s.State == "full" || s.Outbox.Entries != 0 {
			t.Errorf("afterwards the state is %q with %d entries waiting", s.State, s.Outbox.Entries)
		}
		w.verified()
	})
}

// TestNoServerYet: without a server nothing is queued; with one everything is sent.
func TestNoServerYet(t *testing.T) {
	w := aloneWorld(t)
	url := w.url
	w.url = ""
	c, path := w.conversation(81)
	w.add(path, c.even(20, 1500))
	w.start()
	s := w.until("status says that there is no server", func(s status) bool { return s.State == "no_server" && s.Files.Tracked == 1 })
	kit.Check(t, s.Outbox.Entries == 0, "%d entries are queued without a server", s.Outbox.Entries)
	w.d.MustStop(w.t)
	w.url = url
	w.startAndSync()
	w.proven(c.session, path)
}

// TestServerChanged: another server gets every line from the first one on.
func TestServerChanged(t *testing.T) {
	w, c, path := aloneShipped(t, 82, 20)
	w.d.MustStop(w.t)
	other := plainWorld(t)
	other.plain.key = w.key
	w.url = other.url
	w.startAndSync()
	for _, wrong := range objectsMissing(w.read(path), other.plain.lines(c.session)) {
		t.Error(wrong)
	}
}

// TestHistory goes to servers that speak the extension, and to no other.
func TestHistory(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		history := fmt.Sprintf(`{"display":"fix it","pastedContents":{},"timestamp":1787216400101,"project":%q,"sessionId":"x"}`+"\n", w.cwd())
		must(t, os.WriteFile(w.dir+"/.claude/history.jsonl", []byte(history), 0o600))
		c, path := shipped(w, 83, 10)
		w.proven(c.session, path)
		if w.plain != nil {
			names := w.plain.names()
			kit.Check(t, len(names) == 1, "a plain server got the sessions %v", names)
			return
		}
		code, body := w.exact.get("/api/sessions")
		kit.Check(t, code == 200 && contains(`"history-`, string(body)), "ccship-server has no history: %d %s", code, body)
	})
}

// markVersion makes a state file one of another schema.
func markVersion(t *testing.T, file string, version byte) {
	t.Helper()
	db := kit.Try(bbolt.Open(file, 0o600, &bbolt.Options{NoFreelistSync: true})).Must(t)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket([]byte(kv.BucketMeta))
		return errors.Join(meta.Put([]byte("schema"), []byte{0, 0, 0, version}), kv.SumRows(tx))
	}))
	must(t, db.Close())
}

// TestStateOfAnotherVersion is refused and left as it is, so that going back to the other program loses nothing.
func TestStateOfAnotherVersion(t *testing.T) {
	w, c, path := aloneShipped(t, 84, 20)
	w.d.MustStop(w.t)
	file := stateFile(w.home)
	ours := w.read(file)
	for version, says := range map[byte]string{0x63: "run the newer ccship", 1: "everything is then sent anew"} {
		must(t, os.WriteFile(file, ours, 0o600))
		markVersion(t, file, version)
		other := w.read(file)
		p := w.launch(kit.Program(t, "ccship"), "run")
		eventually(t, "the daemon refuses the state", time.Minute, p.Ended)
		kit.Equal(t, fmt.Sprintf("version %d: exit", version), p.Code(), 1)
		said := p.Log.String()
		kit.Check(t, contains(says, said) && contains("hint: ", said), "version %d: it said %q; want a line on the version, and a hint", version, said)
		kit.Check(t, bytes.Equal(w.read(file), other), "version %d: the state file was changed", version)
	}
	must(t, os.WriteFile(file, ours, 0o600))
	w.add(path, c.even(1, 900))
	w.startAndSync()
	w.entriesSent(1)
	w.verified()
}

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
