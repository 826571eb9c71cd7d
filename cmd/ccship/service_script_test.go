package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ccship/ccship/e2e/kit"
)

// TestServiceScripts runs the verbs around the service against a fake systemd, and setup against a real HTTP server.
func TestServiceScripts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the service is systemd's in these scripts")
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "service"),
		UpdateScripts: os.Getenv("CCSHIP_UPDATE_GOLDEN") != "",
		Setup: func(env *testscript.Env) error {
			known := filepath.Join(env.WorkDir, "systemd")
			web := httptest.NewServer(http.HandlerFunc(takeOrAnnounce))
			env.Setenv("USER", "kim")
			env.Setenv("FAKE_SYSTEMD", known)
			env.Setenv("FAKE_LINGER", "yes")
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Setenv("SERVER", web.URL)
			env.Defer(func() {
				kit.FakeSystemd{Dir: known, Unit: "ccship.service"}.Stop()
				web.Close()
			})
			if err := errors.Join(scriptHome(env), os.MkdirAll(known, 0o700)); err != nil {
				return err
			}
			return filepath.WalkDir(env.WorkDir, func(path string, _ fs.DirEntry, err error) error {
				now := time.Now() // which need not be the time of the disk
				return errors.Join(err, os.Chtimes(path, now, now))
			})
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
			"until":      until,
			"exitcode":   exitcode,
			"aged":       aged,
			"mode":       mode,
			"killed":     killed,
			"fill":       fill,
		},
	})
}

// takeOrAnnounce is a plain server; below /ext it says that it speaks the extension.
func takeOrAnnounce(w http.ResponseWriter, r *http.Request) {
	path, below := strings.CutPrefix(r.URL.Path, "/ext")
	r.URL.Path = path
	if below {
		w.Header().Set("Ccship-Protocol", "1")
	}
	if strings.HasPrefix(path, "/elsewhere") {
		http.NotFound(w, r)
		return
	}
	if path == "/api/sessions" && r.Header.Get("X-API-Key") == "ccs_fake" {
		_, _ = fmt.Fprint(w, `{"sessions":[]}`)
		return
	}
	take(w, r)
}

// aged sets a file's time so many days back.
func aged(ts *testscript.TestScript, neg bool, args []string) {
	var days int
	if _, err := fmt.Sscan(args[1], &days); err != nil || neg {
		ts.Fatalf("usage: aged FILE DAYS")
	}
	when := time.Now().AddDate(0, 0, -days)
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), when, when))
}

// mode compares a file's permissions.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); neg || got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// killed kills the service's daemon as kill -9 does.
func killed(ts *testscript.TestScript, _ bool, _ []string) {
	s := kit.FakeSystemd{Dir: ts.Getenv("FAKE_SYSTEMD"), Unit: "ccship.service"}
	p, err := os.FindProcess(s.PID())
	ts.Check(err)
	ts.Check(p.Kill())
	if !kit.Within(hung, func() bool { return s.PID() == 0 }) {
		ts.Fatalf("it is never gone")
	}
}

// fill puts the server's address where a file says SERVER, and without its scheme where it says HOST.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	path, server := ts.MkAbs(args[0]), ts.Getenv("SERVER")
	host := strings.TrimPrefix(server, "http://")
	ts.Check(os.WriteFile(path, []byte(strings.NewReplacer("SERVER", server, "HOST", host).Replace(ts.ReadFile(args[0]))), 0o600))
}
