package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/cmd/ccship/show"
	"github.com/ccship/ccship/cmd/ccship/term"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/e2e/kit"
)

// hostileText sets the clipboard, clears the screen, turns letters around, hides some, and begins a line of its own.
const hostileText = "T\x1b]52;c;aGk=\x07\x1b[2J\u009b2J\u202egnp.exe\u2066\U000e0041\r\nINJECTED \x7f\x1b[8m"

// hostile fills every member of a value that can hold a text with hostileText; every flag is set to flag.
func hostile(v reflect.Value, flag bool, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)))
		return
	case json.RawMessage:
		text, _ := json.Marshal(map[string]string{hostileText: hostileText})
		v.Set(reflect.ValueOf(json.RawMessage(text)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostileText)
	case reflect.Bool:
		v.SetBool(flag)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(3)
	case reflect.Uint64, reflect.Uint32, reflect.Uint:
		v.SetUint(3)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		hostile(v.Elem(), flag, depth)
	case reflect.Slice:
		if depth < 6 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			hostile(v.Index(0), flag, depth+1)
			hostile(v.Index(1), !flag, depth+1)
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		hostile(value, flag, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(hostileText).Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				hostile(v.Field(i), flag, depth)
			}
		}
	}
}

func hostileAnswer(of any, flag bool) any {
	v := reflect.New(reflect.TypeOf(of)).Elem()
	hostile(v, flag, 0)
	return v.Interface()
}

// hostileSocket is a daemon that answers everything with hostile texts; with fails, every answer is an error.
func hostileSocket(t *testing.T, flag, fails bool) string {
	t.Helper()
	answers := map[string]any{
		"/v1/status": control.Status{}, "/v1/sessions": control.Sessions{}, "/v1/sync": control.SyncResult{}, "/v1/pause": control.PauseState{},
		"/v1/resume": control.PauseState{}, "/v1/flush": control.FlushResult{}, "/v1/forget": control.ForgetResult{}, "/v1/outbox": control.OutboxList{},
		"/v1/outbox/dead": control.DeadLetters{}, "/v1/outbox/dead/retry": control.DeadResult{}, "/v1/outbox/dead/drop": control.DeadResult{},
		"/v1/outbox/drop": control.DropServerResult{}, "/v1/exclude": control.Excludes{}, "/v1/reload": control.ReloadResult{},
		"/v1/messages": control.Messages{}, "/v1/checkpoints": control.Checkpoints{}, "/v1/checkpoint": control.CheckpointAnswer{},
		"/v1/budget": control.Budgets{}, "/v1/documents": control.Documents{}, "/v1/verify": control.VerifyEvent{}, "/v1/init": control.Init{},
	}
	return answer(t, func(w http.ResponseWriter, r *http.Request) {
		answer := hostileAnswer(answers[r.URL.Path], flag)
		switch {
		case fails && r.URL.Path != "/v1/status":
			w.WriteHeader(http.StatusConflict)
			answer = hostileAnswer(control.Error{}, flag)
		case r.URL.Path == "/v1/verify":
			event, _ := answer.(control.VerifyEvent)
			event.Progress, event.Error = nil, nil
			answer = event
		case r.URL.Path == "/v1/messages" && r.Method == http.MethodDelete:
			answer = hostileAnswer(control.ClearResult{}, flag)
		case r.URL.Path == "/v1/checkpoints" && r.Method == http.MethodPost:
			answer = hostileAnswer(control.CheckpointAnswer{}, flag)
		case r.URL.Path == "/v1/budget" && r.Method == http.MethodPut:
			answer = hostileAnswer(control.Budget{}, flag)
		}
		if s, ok := answer.(control.Status); ok {
			s.PID, s.Running, s.SchemaVersion = 1, true, control.SchemaVersion
			answer = s
		}
		if s, ok := answer.(control.Sessions); ok {
			s.Next = 0 // or the command asks for ever
			answer = s
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// hostileServer is a server that answers what is read of it with hostile texts; with fails, every answer is an error.
func hostileServer(t *testing.T, flag, fails bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Ccship-Protocol", "1")
		session, _ := hostileAnswer(remote.Session{}, flag).(remote.Session)
		var answer any
		switch {
		case fails:
			w.WriteHeader(http.StatusConflict)
			answer = map[string]any{"error": map[string]string{"code": hostileText, "message": hostileText}}
		case r.URL.Path == "/api/search":
			answer = hostileAnswer(remote.Ranked{}, flag)
		case strings.HasSuffix(r.URL.Path, "/entries"):
			answer = map[string]any{"entries": []any{hostileAnswer(remote.Entry{}, flag)}}
		case r.URL.Path == "/api/sessions":
			answer = map[string]any{"sessions": []remote.Session{session}}
		default:
			answer = session
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// hostileCommands is every command that shows what another user wrote.
func hostileCommands() [][]string {
	return [][]string{
		{"status"}, {"status", "--line"}, {"sync", "--wait"}, {"verify"}, {"verify", "--deep"}, {"pause"}, {"unpause"}, {"sync"},
		{"outbox", "list"}, {"outbox", "list", "--dead"}, {"outbox", "retry", "3"}, {"outbox", "drop", "3"}, {"outbox", "drop", "--server", "http://old"},
		{"exclude"}, {"exclude", "/x"}, {"exclude", "--rm", "/x"},
		{"messages", "a"}, {"messages", "a", "--clear"}, {"checkpoint", "list"}, {"checkpoint", "list", "--session", "a"}, {"checkpoint", "show", "c"},
		{"checkpoint", "create", "--session", "a"}, {"checkpoint", "budget"}, {"checkpoint", "budget", "--session", "a"}, {"checkpoint", "budget", "--session", "a", "--set", "9000"},
		{"link", "list"}, {"link", "list", "--session", "a"}, {"link", "add", "a.md", "--session", "a"}, {"link", "rm", hostileText, "--session", "a"},
		{"forget", "a", "--yes"}, {"list"}, {"show", "T"}, {"list", "--lost"}, {"search", "x"}, {"restore", "T"},
		{"doctor"}, {"config"}, {hostileText}, {"status", "--" + hostileText}, {"__complete", "messages", ""},
		{"__complete", "link", "rm", ""},
	}
}

// TestHostileTexts: no field of a daemon or server steers the terminal or begins a line, and JSON has it exactly.
func TestHostileTexts(t *testing.T) {
	jsonHome(t)
	for _, fails := range []bool{false, true} {
		for _, flag := range []bool{false, true} {
			socket, server := hostileSocket(t, flag, fails), hostileServer(t, flag, fails)
			dir := t.TempDir()
			t.Setenv("HOME", dir)
			t.Setenv("CCSHIP_SERVER_URL", server)
			t.Chdir(dir)
			shown := 0
			for _, command := range hostileCommands() {
				args := append(slices.Clone(command), "--socket", socket, "--state-dir", filepath.Join(dir, "state"), "--roots", filepath.Join(dir, "projects"))
				if command[0] == "__complete" {
					args = slices.Concat(command[:2], args[len(command):], command[2:])
				}
				code, out, words := inProcess(t, args...)
				checkHarmless(t, command, out+"\n"+words)
				if strings.Contains(out+words, "INJECTED") {
					shown++
				}
				kit.Check(t, code != show.ExitUsage || !strings.Contains(words, "unknown") || strings.Contains(strings.Join(command, ""), hostileText),
					"%q is no command: %s", command, words)
				code, out, _ = inProcess(t, append(args, "--json")...)
				if code != show.ExitUsage && command[0] != "__complete" {
					checkExact(t, command, out)
				}
			}
			all := len(hostileCommands())
			kit.Check(t, shown >= all/2, "only %d of %d commands show the texts at all", shown, all)
		}
	}
}

// checkHarmless holds what a person sees to what may reach a terminal.
func checkHarmless(t *testing.T, command []string, shown string) {
	t.Helper()
	at := strings.IndexFunc(shown, func(r rune) bool { return r != '\n' && r != '\t' && term.Steers(r) })
	kit.Check(t, at < 0, "%q shows %q", command, shown[max(0, at-40):min(len(shown), at+40)])
	for line := range strings.Lines(shown) {
		kit.Check(t, !strings.HasPrefix(line, "INJECTED"), "%q: a text of somebody else begins a line: %q", command, line)
	}
}

// checkExact holds a JSON document to its source texts, and to what may reach a terminal.
func checkExact(t *testing.T, command []string, document string) {
	t.Helper()
	checkHarmless(t, command, document)
	var any any
	err := json.Unmarshal([]byte(document), &any)
	kit.Check(t, err == nil || document == "", "%q --json: %v in %.200q", command, err, document)
	if strings.Contains(document, "INJECTED") && !strings.HasPrefix(document, `{"code"`) { // an error is one line
		again, err := json.Marshal(any)
		kit.Require(t, err == nil && strings.Contains(string(again), "INJECTED"), "%v", err)
		want, _ := json.Marshal(hostileText)
		kit.Check(t, strings.Contains(string(again), strings.Trim(string(want), `"`)),
			"%q --json changes a text: %.300q", command, document)
	}
}

// TestHostileConfiguration: what is wrong with a configuration is reported without steering the terminal.
func TestHostileConfiguration(t *testing.T) {
	jsonHome(t)
	path := filepath.Join(t.TempDir(), "config.toml")
	for _, text := range []string{"server_url = \"" + "http://\u202e\u009b.example" + "\"\n", "\u202e = 1\n", "locale = \"\u009b2J\"\n", "roots = [\"/\u202ex\"]\n"} {
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		for _, command := range [][]string{{"doctor"}, {"config"}, {"config"}, {"status"}} {
			_, out, words := inProcess(t, append(command, "--config", path)...)
			checkHarmless(t, command, out+"\n"+words)
		}
	}
}
