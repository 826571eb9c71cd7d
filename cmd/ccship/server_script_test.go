package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

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
