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
	"strconv"
	"strings"
	"sync"
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

// TestServerScripts runs the real daemon against a server whose answers the scripts choose.
func TestServerScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "server"),
		UpdateScripts: os.Getenv("CCSHIP_UPDATE_GOLDEN") != "",
		Setup: func(env *testscript.Env) error {
			env.Setenv("LC_ALL", "C.UTF-8")
			moody := &moodyServer{asked: map[string]int{}, gone: make(chan struct{})}
			web := httptest.NewServer(moody)
			env.Values[moodyKey{}] = moody
			env.Setenv("CCSHIP_SERVER_URL", web.URL+"/ext")
			env.Defer(func() {
				close(moody.gone)
				web.Close()
			})
			return scriptHome(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
			"until":      until,
			"exitcode":   exitcode,
			"answers":    answers,
			"asked":      asked,
		},
	})
}

// moodyKey finds the moodyServer of a script.
type moodyKey struct{}

// moodyServer is takeOrAnnounce until a script wants other answers.
type moodyServer struct {
	gone chan struct{} // closed at the end

	mu     sync.Mutex
	status int    // 0: its own; guarded by mu
	after  string // Retry-After with it; guarded by mu
	mood   string // "silent": no answer, "cut": the connection ends; guarded by mu
	asked  map[string]int
}

func (s *moodyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.URL.Path]++
	status, after, mood := s.status, s.after, s.mood
	s.mu.Unlock()
	switch {
	case mood == "silent":
		select {
		case <-s.gone:
		case <-r.Context().Done():
		}
		return
	case mood == "cut":
		panic(http.ErrAbortHandler)
	case status != 0:
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		return
	case r.URL.Path == "/ext/api/me":
		w.Header().Set("Ccship-Protocol", "1")
		_, _ = fmt.Fprint(w, `{}`)
		return
	}
	r.Header.Set("X-API-Key", "ccs_fake") // every key is right
	takeOrAnnounce(w, r)
}

// answers changes what the server answers: ok, silent, cut, or STATUS [RETRY-AFTER].
func answers(ts *testscript.TestScript, neg bool, args []string) {
	s, _ := ts.Value(moodyKey{}).(*moodyServer)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.after, s.mood = 0, "", ""
	switch {
	case neg || len(args) == 0:
		ts.Fatalf("usage: answers ok | silent | cut | STATUS [RETRY-AFTER]")
	case args[0] == "silent", args[0] == "cut":
		s.mood = args[0]
	case args[0] != "ok":
		var err error
		s.status, err = strconv.Atoi(args[0])
		ts.Check(err)
		if len(args) > 1 {
			s.after = args[1]
		}
	}
}

// asked compares how often the server was asked for a path since the last time.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	s, _ := ts.Value(moodyKey{}).(*moodyServer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(args) != 2 {
		ts.Fatalf("usage: asked TIMES PATH")
	}
	got := fmt.Sprint(s.asked[args[1]])
	s.asked[args[1]] = 0
	if (got == args[0]) == neg {
		ts.Fatalf("asked for %s %s times, want %s", args[1], got, args[0])
	}
}
