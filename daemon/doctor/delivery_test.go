package doctor

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/protocol"
)

func TestServer(t *testing.T) {
	w := newWorld(t)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(takeAll))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		name      string
		serve     http.HandlerFunc
		url       string // "" is the world's
		level     Level
		text, fix string
	}{
		{"rejects the key", refuse(401), "", Fail, "rejects the API key", "key create"},
		{"is in trouble", refuse(503), "", Fail, "cannot answer right now (503", "log"},
		{"has moved", refuse(308), "", Fail, "redirects to", "use that address"},
		{"something else", http.NotFound, "", Fail, "does not accept conversations (404", "check the address"},
		{"a plain server", takePlain, "", Note, "plain server: lines are acknowledged, not proven", ""},
		{"unknown authority", takeAll, secure.URL, Fail, "certificate signed by unknown authority", "trust the authority"},
		{"http where https is meant", takeAll, "https://" + w.web.Listener.Addr().String(), Fail, "HTTP response to HTTPS client", "`ccship config server_url http://127.0.0.1"},
		{"nobody there", takeAll, gone.URL, Fail, "refused", "start the server"},
		{"none set", takeAll, "-", Warn, "no server is set", "`ccship setup`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			w.serve(c.serve)
			w.opts.Config.ServerURL = w.web.URL
			switch c.url {
			case "":
			case "-":
				w.opts.Config.ServerURL = ""
			default:
				w.opts.Config.ServerURL = c.url
			}
			w.wants(w.examine(), "server", c.level, c.text, c.fix)
		})
	}
}

// What only the network, or years, can bring about.
func TestServerExplained(t *testing.T) {
	for words, fix := range map[string]string{
		"dial tcp: lookup x: no such host": "DNS",
		"tls: failed to verify certificate: x509: certificate has expired or is not yet valid": "renew the server's certificate",
		"x509: certificate is valid for a, not b":                                              "use the name in its certificate",
		"something else": "its own hint",
	} {
		err := &control.Error{Code: control.CodeUnreachable, Message: words, Hint: "its own hint"}
		f := unusable(t.Context(), "https://x", probed{err: err})
		kit.Check(t, f.Level == Fail && f.Text == words && strings.Contains(f.Fix, fix), "%+v", f)
	}
}

// TestMasking says whether secrets are masked, and by which setting.
func TestMasking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proves := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == protocol.SameHostPath {
			protocol.AnswerSameHost(rw, r)
			return
		}
		takeAll(rw, r)
	}
	for _, c := range []struct {
		mode, url string
		serve     http.HandlerFunc
		level     Level
		text      string
	}{
		{"auto", "", takeAll, OK, "secrets are masked: http"},
		{"auto", "", proves, OK, "proves that it is on this machine (redact is auto)"},
		{"auto", "", takePlain, Note, "are not masked for http"},
		{"auto", "https://ccship.invalid", takeAll, OK, "secrets are masked before"},
		{"on", "", proves, OK, "secrets are masked before"},
		{"off", "", takeAll, Note, "redact is off"},
	} {
		w.serve(c.serve)
		w.opts.Config.ServerURL, w.opts.Config.Redact = cmp.Or(c.url, w.web.URL), c.mode
		r := w.examine()
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.ID == "masking" && f.Level == c.level && strings.Contains(f.Text, c.text) && (f.Fix != "") == (f.Level == Note)
		}) {
			t.Errorf("redact = %s, %s: want %s %q in %+v", c.mode, c.url, c.level, c.text, r.Findings)
		}
	}
}

// A server whose daemon's owner has set none here: that of the daemon counts.
func TestServerOfTheDaemon(t *testing.T) {
	w := synced(t)
	w.opts.Config.ServerURL = ""
	w.silent(w.examine(), "server")
}

func TestClock(t *testing.T) {
	w := newWorld(t)
	for by, text := range map[time.Duration]string{time.Hour: "behind the server's", -time.Hour: "ahead of the server's"} {
		w.serve(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			takeAll(rw, r)
		})
		w.wants(w.examine(), "clock", Warn, text, "the clock")
	}
	w.serve(func(rw http.ResponseWriter, r *http.Request) { // no more than clocks may differ
		rw.Header().Set("Date", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))
		takeAll(rw, r)
	})
	w.silent(w.examine(), "clock")
	w.write(".claude/projects/-p/tomorrow.jsonl", "{}\n", -24*time.Hour)
	w.wants(w.examine(), "clock", Warn, "1 transcript was changed in the future", "the clock")
}

// What the daemon meets and this process does not, and the other way round.
func TestDelivery(t *testing.T) {
	w := newWorld(t)
	broken := func(rw http.ResponseWriter, r *http.Request) { // only the daemon's own requests
		if r.URL.Path == "/api/conversations" {
			rw.Header().Set("Ccship-Protocol", "1")
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		takeAll(rw, r)
	}
	w.serve(broken)
	w.start()
	state := func(want string) func(control.Status) bool {
		return func(s control.Status) bool { return len(s.Servers) == 1 && s.Servers[0].State == want }
	}
	w.status("it is tried again", state("retrying"))
	r := w.examine()
	f := w.wants(r, "delivery", Warn, "cannot deliver to "+w.web.URL+" (server error), although it works from here", "`ccship sync --wait`")
	kit.Check(t, f.Safe && f.Detail != "", "%+v", f)
	w.serve(takeAll)
	w.fixed(r, "delivery")
	w.serve(refuse(401))
	w.write(".claude/projects/-p/b.jsonl", `{"type":"user","cwd":"/p"}`+"\n", 0)
	w.status("it is refused", state("refused"))
	r = w.examine()
	w.silent(r, "delivery") // the server's own finding says it
	w.wants(r, "server", Fail, "rejects the API key", "key create")
	w.opts.Config.ServerURL = "" // another one than this shell's
	w.wants(w.examine(), "delivery", Fail, "refused key", "`ccship setup` asks for it")
}

// A server that nothing is sent to for a reason of its own: the finding says the reason, and what to do about it.
func TestDeliveryStopped(t *testing.T) {
	w := newWorld(t)
	w.serve(takeAll)
	w.start()
	w.status("the server is there", func(s control.Status) bool { return len(s.Servers) == 1 })
	x := newExam(t.Context(), w.opts)
	real := x.daemon()
	x.daemon = func() reached {
		s := &real.status.Servers[0]
		s.State, s.Kind, s.Detail, s.Hint = "refused", "", "two databases answer in turn at this address", "let one database answer"
		return real
	}
	f := checkDelivery(t.Context(), x)
	want := Finding{Level: Fail, Text: "the daemon does not deliver to " + w.web.URL + ": two databases answer in turn at this address",
		Fix: "let one database answer"}
	kit.Check(t, len(f) == 1 && f[0].Level == want.Level && f[0].Text == want.Text && f[0].Fix == want.Fix && !f[0].Safe,
		"%+v, want %+v", f, want)
}

func TestPauseAndOutbox(t *testing.T) {
	w := synced(t)
	client := control.Dial(w.opts.Config.Socket)
	w.must(client.Pause(t.Context(), control.PauseRequest{For: "90m"}))
	w.write(".claude/projects/-p/b.jsonl", `{"type":"user","cwd":"/p"}`+"\n", 0)
	w.status("a line waits", func(s control.Status) bool { return s.Outbox.Entries == 1 })
	r := w.examine()
	f := w.wants(r, "pause", Warn, "you paused delivery", "`ccship unpause`")
	kit.Check(t, !f.Safe && strings.Contains(f.Text, "it resumes in 1 h 2"), "%+v", f)
	w.silent(r, "outbox")
	x := newExam(t.Context(), w.opts)
	x.now = x.now.Add(2 * time.Hour) // as it is then
	f = checkOutbox(t.Context(), x)[0]
	kit.Check(t, f.Level == Warn && strings.HasPrefix(f.Text, "1 entry waits, the oldest for 2 h ") && !f.Safe && f.Fix == "`ccship unpause`", "while it is paused: %+v", f)
	w.must(client.Resume(t.Context()))
	w.sync()
	r = w.examine()
	w.silent(r, "pause")
	w.silent(r, "outbox")
}

// An outbox that waits for an hour is tried again; one that fills up is reported before reading stops, and then.
func TestOutbox(t *testing.T) {
	w := newWorld(t)
	w.serve(refuse(503))
	w.write(".config/ccship/config.toml", fmt.Sprintf("server_url = %q\nhead_room = \"1\"\noutbox_cap = \"9000\"\n", w.web.URL), 0)
	w.load()
	w.start()
	w.status("a line waits", func(s control.Status) bool { return s.Outbox.Entries == 1 })
	x := newExam(t.Context(), w.opts)
	x.now = x.now.Add(2 * time.Hour)
	f := checkOutbox(t.Context(), x)[0]
	kit.Check(t, f.Level == Warn && f.Safe && f.Fix == "`ccship sync --wait`", "%+v", f)
	for i := 0; ; i++ { // what cannot be compressed
		text := fmt.Sprintf("%x", noise(i, 400))
		w.write(fmt.Sprintf(".claude/projects/-p/n%d.jsonl", i), `{"type":"user","cwd":"/p","text":"`+text+`"}`+"\n", 0)
		w.status("it is read", func(s control.Status) bool { return s.Files.ReadBytes == s.Files.Bytes || s.State == "full" })
		r := w.examine()
		if found := of(r, "outbox"); len(found) == 1 && found[0].Level == Fail {
			w.wants(r, "outbox", Fail, "the outbox is full: reading has stopped", "outbox_cap")
			break
		} else if len(found) == 1 && (found[0].Level != Warn || !strings.Contains(found[0].Text, "% full; reading stops when it is full")) {
			t.Errorf("%+v", found)
		} else if i > 100 {
			t.Fatal("it is never full")
		}
	}
}

// noise is bytes that look random.
func noise(seed, n int) []byte {
	b, x := make([]byte, n), uint32(seed*2654435761+1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func TestDeadWithheldExcluded(t *testing.T) {
	w := newWorld(t)
	w.serve(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "poison") {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		takePlain(rw, r)
	})
	w.start()
	w.sync()
	w.write(".claude/projects/-p/b.jsonl", `{"type":"user","cwd":"/p"}`+"\n"+`{"type":"poison"}`+"\nno object\n", 0)
	w.write("q/.ccshipignore", "", 0)
	w.write(".claude/projects/-q/c.jsonl", `{"type":"user","cwd":"`+filepath.ToSlash(w.home)+`/q"}`+"\n", 0)
	w.sync()
	r := w.examine()
	w.wants(r, "dead_letters", Warn, "rejects 1 entry", "`ccship outbox retry --all`")
	w.wants(r, "withheld", Note, "1 entry was withheld", "")
	w.wants(r, "excluded", Note, "1 transcript is left out", "`ccship exclude`")
	w.silent(r, "advice")
	kit.Check(t, r.OK, "%+v", r)
}

// What the daemon says of a project is passed on.
func TestNotices(t *testing.T) {
	w := newWorld(t)
	w.write("p/.codetracker/config.json", `{"server_url":"http://127.0.0.1:1"}`, 0)
	w.write(".claude/projects/-p/b.jsonl", `{"type":"user","cwd":"`+filepath.ToSlash(w.home)+`/p"}`+"\n", 0)
	w.start()
	w.status("it is noticed", func(s control.Status) bool { return len(s.Advice) > 0 })
	found := of(w.examine(), "advice")
	kit.Check(t, len(found) == 1 && found[0].Level == Warn && strings.Contains(found[0].Text, "127.0.0.1:1"), "%+v", found)
}

func TestRetention(t *testing.T) {
	const day = 24 * time.Hour
	w := newWorld(t)
	old := w.write(".claude/projects/-p/old.jsonl", `{"type":"user","cwd":"/p"}`+"\n"+`{"type":"assistant"}`, 27*day)
	t.Run("without a daemon", func(t *testing.T) {
		w.t = t
		f := w.wants(w.examine(), "retention", Warn, "1 session will be deleted by Claude Code within 7 days; the daemon is not running, so it is unknown", "start the daemon")
		kit.Check(t, strings.Contains(f.Detail, old) &&
			(strings.Contains(f.Detail, "in 2 d ") || strings.Contains(f.Detail, "in 3 d ")),
			"%+v", f)
		w.opts.Days = 1
		w.silent(w.examine(), "retention")
		w.opts.Days = 7
	})
	w.start()
	w.sync()
	t.Run("delivered", func(t *testing.T) { // its last line has no end, and stays behind the cursor
		w.t = t
		w.status("the last line is delivered", func(s control.Status) bool { return s.Sent.Entries >= 3 })
		w.silent(w.examine(), "retention")
	})
	client := control.Dial(w.opts.Config.Socket)
	w.must(client.Pause(t.Context(), control.PauseRequest{}))
	waits := func(name string, age time.Duration, entries int64) string {
		path := w.write(name, `{"type":"user","cwd":"/p","sessionId":"old"}`+"\n", age)
		w.status("a line waits", func(s control.Status) bool { return s.Outbox.Entries == entries })
		return path
	}
	t.Run("agents go with their session", func(t *testing.T) {
		w.t = t
		waits(".claude/projects/-p/old/subagents/agent-1.jsonl", 27*day, 1)
		f := w.wants(w.examine(), "retention", Warn, "1 session will be deleted by Claude Code within 7 days and is not yet on the server", "`ccship unpause`")
		kit.Check(t, !f.Safe && strings.Contains(f.Detail, old), "%+v", f)
	})
	t.Run("overdue", func(t *testing.T) {
		w.t = t
		waits(".claude/projects/-p/young.jsonl", 3*day, 2)
		late := waits(".claude/projects/-p/late.jsonl", 31*day, 3)
		f := w.wants(w.examine(), "retention", Fail, "2 sessions will be deleted by Claude Code within 7 days and are not yet on the server", "`ccship unpause`")
		kit.Check(t, strings.Contains(f.Detail, "any time now: "+late+" (cleanupPeriodDays is 30, by default)"), "%+v", f)
		settings := w.write(".claude/settings.json", `{"cleanupPeriodDays":9}`, 0)
		f = w.wants(w.examine(), "retention", Fail, "3 sessions", "unpause")
		kit.Check(t, strings.Contains(f.Detail, "cleanupPeriodDays is 9, "+settings), "%+v", f)
		w.write(".claude/settings.json", `{"cleanupPeriodDays":90}`, 0)
		w.silent(w.examine(), "retention")
		w.write(".claude/settings.json", `{}`, 0)
	})
	w.must(client.Resume(t.Context()))
	w.sync()
	w.silent(w.examine(), "retention")
}

// Without a server nothing is read, and what goes is lost.
func TestRetentionUnread(t *testing.T) {
	w := newWorld(t)
	w.write(".claude/projects/-p/a.jsonl", `{"type":"user","cwd":"/p"}`+"\n", 40*24*time.Hour)
	w.write(".config/ccship/config.toml", "", 0)
	w.load()
	w.start()
	w.status("it is found", func(s control.Status) bool { return s.Files.Tracked == 1 })
	w.wants(w.examine(), "retention", Fail, "1 session will be deleted", "`ccship setup`")
}
