package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestStarting: health says why, everything else is refused for now, and the listener then serves another.
func TestStarting(t *testing.T) {
	ln := kit.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	s := &startingServer{Version: "v", Log: slog.New(slog.DiscardHandler)}
	stop := kit.Try(s.Run(ln)).Must(t)
	base := "http://" + ln.Addr().String()
	var said health
	if a, body := ask(t, base+"/base/healthz", ""); a.StatusCode != http.StatusServiceUnavailable || json.Unmarshal(body, &said) != nil ||
		said != (health{false, "v", "starting", first}) {
		t.Errorf("health: %d %s", a.StatusCode, body)
	}
	s.Say("the schema is updated")
	a, body := ask(t, base+"/api/conversations", `{"session_id":"s","entries":[]}`)
	kit.Check(t, a.StatusCode == http.StatusServiceUnavailable && a.Header.Get("Retry-After") == retryAfter &&
		a.Header.Get("Ccship-Protocol") == "1" && strings.Contains(string(body), "the schema is updated") &&
		!strings.Contains(string(body), "success"),
		"a request: %d %v %s", a.StatusCode, a.Header, body)
	kit.Must(t, stop())
	real := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})}
	defer real.Close()
	answer := make(chan int, 1)
	go func() { // comes before there is anybody to serve it
		a, _ := ask(t, base+"/", "")
		answer <- a.StatusCode
	}()
	go func() { _ = real.Serve(ln) }()
	kit.Equal(t, "the real server answers", <-answer, http.StatusNoContent)
}

func ask(t *testing.T, url, body string) (*http.Response, []byte) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r := kit.Try(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))).Must(t)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return &http.Response{}, nil
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	kit.Check(t, err == nil, "%v", err)
	return a, b
}
