//go:build unix

package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

// coldStatus is what the tests read of `ccship-server status --json`.
type coldStatus struct {
	Cold *struct {
		Place    string
		Objects  int64
		Bytes    int64
		Pending  int64
		Left     int64   `json:"sessions_left"`
		Since    *string `json:"left_since"`
		Unpacked int64   `json:"unpacked_lines"`
		Oldest   *string `json:"oldest_unpacked"`
	}
}

// serverStatus asks the server's program about its store.
func (w *world) serverStatus() (s coldStatus) {
	w.t.Helper()
	out := w.runProgram(kit.Program(w.t, "ccship-server"), "status", "--json", "--store", w.exact.store())
	if err := json.Unmarshal([]byte(out.stdout), &s); err != nil {
		w.t.Fatalf("status --json: %v: %+v", err, out)
	}
	return s
}

// TestVerifyDeepInColdStorage: the daemon's machine proves lines that left the database as it proves others, sees when
// an object of theirs is gone or has other bytes, and brings them back. The server's status says what is where.
func TestVerifyDeepInColdStorage(t *testing.T) {
	w := aloneWorld(t)
	if s := w.serverStatus(); s.Cold != nil {
		t.Errorf("a server without cold storage has %+v", s.Cold)
	}
	place := filepath.Join(w.dir, "cold")
	w.exact.proc.MustStop(t)
	w.exact.flags = []string{"--blocks", "file://" + place, "--cold-after", "1s"}
	w.exact.start()
	c, path := shipped(w, 81, 400)
	eventually(t, "status names cold storage", time.Minute, func() bool {
		s := w.serverStatus()
		return s.Cold != nil && s.Cold.Place == "file://"+place
	})
	cold := func(sessions int64) {
		t.Helper()
		eventually(t, "lines of so many sessions are in cold storage", 5*time.Minute, func() bool {
			s := w.serverStatus().Cold
			if s == nil {
				return false
			}
			packed := s.Left == 0 && s.Since == nil || s.Unpacked > 0 && s.Oldest != nil // what is not packed stays for minutes
			return s.Objects >= sessions && s.Pending == 0 && s.Bytes > 0 && packed
		})
	}
	cold(1)
	object := ""
	must(t, filepath.WalkDir(place, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Base(filepath.Dir(path))[0] == 's' {
			object = path
		}
		return err
	}))
	past := newConversation(82, w.cwd()) // with lines that only the server still has
	rewound := w.path("-work-shop", past.session+".jsonl")
	w.addAndSync(rewound, past.even(200, 1500))
	w.keepLines(rewound, 100)
	w.addAndSync(rewound, past.even(60, 1500))
	cold(2)
	w.look("", 0, "verify", "--deep")
	w.same(c.session, path)
	w.same(past.session, rewound)
	whole := w.read(object)
	bad := append([]byte(nil), whole...)
	bad[len(bad)/2] ^= 1
	for _, damage := range map[string]func() error{
		"an object that is gone":          func() error { return os.Remove(object) },
		"an object that has another byte": func() error { return os.WriteFile(object, bad, 0o600) },
	} {
		must(t, damage())
		w.exact.proc.MustStop(t)
		w.exact.start() // with nothing of it in memory
		w.look("line", 1, "verify", "--deep")
		must(t, os.WriteFile(object, whole, 0o600))
	}
	w.exact.proc.MustStop(t)
	must(t, os.Remove(object))
	w.exact.start()
	w.look("", 0, "verify", "--deep", "--repair")
	w.look("", 0, "verify", "--deep")
	w.same(c.session, path)
}
