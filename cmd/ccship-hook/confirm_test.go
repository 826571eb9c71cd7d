package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
)

// lending is a daemon that lends a text to hooks. It notes what hooks confirm, and after how many requests on the same
// connection.
type lending struct {
	strict bool // it is of a version that knows no working directory of a hook

	confirmed chan string
}

func (l *lending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connection{}).(*int)
	*conn++
	if r.URL.Path == "/v1/init" && r.URL.Query().Get("confirm") == "true" {
		_ = json.NewEncoder(w).Encode(control.Init{SchemaVersion: 1, Text: initText, Receipt: "r-0"})
		return
	}
	var req control.PendingRequest
	switch err := json.NewDecoder(r.Body).Decode(&req); {
	case err != nil || req.Session != "s-1":
	case l.strict && req.Cwd != "":
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"code":"usage","message":"read request: json: unknown field \"cwd\""}`)
	case req.Receipt != "":
		l.confirmed <- fmt.Sprintf("%s in request %d", req.Receipt, *conn)
		_, _ = io.WriteString(w, `{"schema_version":1,"text":"","notices":0}`)
	case req.Confirm && (l.strict || req.Cwd == "/home/kim/shop"):
		_ = json.NewEncoder(w).Encode(control.Pending{SchemaVersion: 1, Text: noticeText, Notices: 1, Receipt: "r-1"})
	}
}

// connection is the key of the number of requests that came over a connection.
type connection struct{}

// TestHookConfirms: a hook confirms what it has printed before it ends: the daemon then knows of one that did not.
func TestHookConfirms(t *testing.T) {
	for _, c := range []struct {
		event  string
		strict bool
		want   string
	}{
		{"user-prompt-submit", false, "r-1 in request 2"},
		{"session-start", false, "r-0 in request 2"},
		{"post-tool-use", true, "r-1 in request 3"},
	} {
		l := &lending{strict: c.strict, confirmed: make(chan string, 9)}
		got := hookTells(t, serving(t, l), strings.NewReader(newInput), nil, c.event)
		kit.Check(t, strings.HasSuffix(got, `"}}`), "%s prints %q", c.event, got)
		kit.Equal(t, fmt.Sprintf("%s confirms", c.event), received(t, l.confirmed), c.want)
	}
}

// TestHookPrintsBeforeItConfirms: a hook whose confirmation is not heard has printed, and ends.
func TestHookPrintsBeforeItConfirms(t *testing.T) {
	deaf := func(w http.ResponseWriter, r *http.Request) {
		var req control.PendingRequest
		if json.NewDecoder(r.Body).Decode(&req) == nil && req.Receipt == "" {
			_ = json.NewEncoder(w).Encode(control.Pending{SchemaVersion: 1, Text: noticeText, Notices: 1, Receipt: "r-1"})
			return
		}
		<-r.Context().Done()
	}
	kit.Has(t, "it prints", hookTells(t, answering(t, deaf), strings.NewReader(newInput), nil, "pre-tool-use"), noticeText)
}
