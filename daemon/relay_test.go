package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

const (
	sessionA = "0a0a0a0a-0000-4000-8000-000000000001"
	sessionB = "0b0b0b0b-0000-4000-8000-000000000002"
)

// record is a line as Claude Code writes it, in short.
func record(cwd string, n int) string {
	return fmt.Sprintf(`{"type":"user","cwd":%q,"sessionId":%q,"n":%d}`+"\n", cwd, sessionA, n)
}

func records(cwd string, from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString(record(cwd, n))
	}
	return b.String()
}

// TestDelivers follows files of every kind to the streams they are to be.
func TestDelivers(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{ // path → stream
		"-p/" + sessionA + ".jsonl":                                 sessionA,
		"-p/" + sessionA + "/subagents/agent-a1.jsonl":              sessionA + "/agent-a1",
		"-p/" + sessionA + "/subagents/workflows/r1/agent-a2.jsonl": sessionA + "/agent-a2",
		"-p/agent-old1.jsonl":                                       sessionA + "/agent-old1",
		"../history.jsonl":                                          "history",
	}
	for path := range files {
		w.write(path, records("/home/kim/shop", 0, 5))
	}
	r := w.deliver()
	kit.Require(t, r.Done, "sync: %+v", r)
	for path, stream := range files {
		if stream == "history" {
			stream = w.historyStream()
		}
		want, _ := os.ReadFile(filepath.Join(w.root, path))
		kit.Equal(t, fmt.Sprintf("%s: bytes under %q, the file has %d", path, stream, len(want)),
			w.server.newest(stream), string(want))
	}
	v := w.verify()
	kit.Check(t, v.Equal && v.Proven && v.Files == len(files), "verify: %+v", v)
}

func (w *world) historyStream() string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	for name := range w.server.streams {
		if strings.HasPrefix(name, "history-") {
			return name
		}
	}
	return ""
}

// TestOneNameTwoFiles keeps two live files with one session id apart, also over a restart.
func TestOneNameTwoFiles(t *testing.T) {
	w := newWorld(t)
	w.write("-new/"+sessionA+".jsonl", records("/home/kim/new", 0, 50))
	w.startWith("-old/"+sessionA+".jsonl", records("/home/kim/old", 0, 2))
	w.restart()
	w.write("-new/"+sessionA+".jsonl", records("/home/kim/new", 50, 55))
	w.send("-old/"+sessionA+".jsonl", records("/home/kim/old", 2, 4))
	kit.Equal(t, "the larger file's stream has bytes", w.server.newest(sessionA), records("/home/kim/new", 0, 55))
	kit.Equal(t, "the other one's stream has bytes", w.server.newest(sessionA+"~2"), records("/home/kim/old", 0, 4))
}

// TestOptOut queues nothing of a project that has opted out, and everything once it has not any more.
func TestOptOut(t *testing.T) {
	w := newWorld(t)
	project := t.TempDir()
	config := filepath.Join(project, ".codetracker", "config.json")
	kit.WriteFile(t, config, `{"conversation_tracking":{"enabled":false}}`)
	w.write("-p/"+sessionA+".jsonl", records(project, 0, 5))
	w.write("-q/"+sessionB+".jsonl", records("/home/kim/other", 0, 5))
	r := w.deliver()
	kit.Check(t, r.Done, "sync with an opted-out project: %+v", r)
	got := w.server.newest(sessionA)
	kit.Require(t, got == "", "the server has %d bytes of a project that opted out", len(got))
	s := w.status()
	kit.Check(t, s.Files.Excluded == 1, "status counts %d excluded files, want 1", s.Files.Excluded)
	v := w.verify()
	kit.Check(t, v.Equal && v.ExcludedFiles == 1, "verify: %+v", v)
	kit.Must(t, os.Remove(config))
	w.until("the project's lines arrive", func() bool { return w.server.newest(sessionA) == records(project, 0, 5) })
}

// TestNoCwd holds a file back until a record names its working directory, and not for ever.
func TestNoCwd(t *testing.T) {
	w := newWorld(t)
	w.start()
	head := "{\"type\":\"mode\",\"mode\":\"normal\"}\n"
	w.write("-late/"+sessionA+".jsonl", head)
	w.write("-late/"+sessionA+".jsonl", record("/home/kim/late", 1))
	w.send("-never/"+sessionB+".jsonl", head)
	for session, want := range map[string]string{sessionA: head + record("/home/kim/late", 1), sessionB: head} {
		w.until("the lines of "+session+" arrive", func() bool { return w.server.newest(session) == want })
	}
}

// TestProjectServer follows a project's own server only once the user trusts the project, with the project's key, and
// leaves out what its earlier hook has sent.
func TestProjectServer(t *testing.T) {
	w := newWorld(t)
	theirs := newMemServer()
	theirs.announces = false
	web := httptest.NewServer(theirs)
	defer web.Close()
	project := t.TempDir()
	for name, text := range map[string]string{
		"config.json":              fmt.Sprintf(`{"server_url":%q}`, web.URL),
		"credentials.json":         `{"api_key":"theirs","current_project_hash":"h4sh"}`,
		"cache/last_snapshot.json": fmt.Sprintf(`{"files":{},"transcript":{"session_id":%q,"last_sent_line":2}}`, sessionA),
	} {
		path := filepath.Join(project, ".codetracker", name)
		kit.WriteFile(t, path, text)
	}
	w.startWith("-p/"+sessionA+".jsonl", records(project, 0, 5))
	kit.Equal(t, "not trusted: the user's server has bytes, want all", w.server.newest(sessionA), records(project, 0, 5))
	kit.Check(t, len(w.status().Advice) != 0, "not trusted: status says nothing")
	w.stop()
	w.cfg.TrustedProjects = []string{project}
	w.startWith("-q/"+sessionB+".jsonl", records(project, 0, 3))
	theirs.mu.Lock()
	defer theirs.mu.Unlock()
	kit.Check(t, slices.Contains(theirs.keys, "theirs") && !slices.Contains(theirs.keys, ""),
		"the project's server was shown the keys %q", theirs.keys)
	kit.Check(t, theirs.hashes[sessionB] == "h4sh",
		"project_hash %q, want the one in the credentials", theirs.hashes[sessionB])
	kit.Equal(t, "a session that moved to the project's server: lines", len(theirs.streams[sessionA][0].lines), 5)
}

// TestProjectHashNeedsTrust: a project_hash decides whom a session is shared with, so the one in a project's folder
// counts once the user trusts that folder, also when the project names the user's own server.
func TestProjectHashNeedsTrust(t *testing.T) {
	w := newWorld(t)
	project := t.TempDir()
	dir := filepath.Join(project, ".codetracker")
	kit.Must(t, os.MkdirAll(dir, 0o700))
	for name, text := range map[string]string{
		"config.json":      fmt.Sprintf(`{"server_url":%q}`, w.cfg.ServerURL),
		"credentials.json": `{"api_key":"theirs","current_project_hash":"h4sh"}`,
	} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	hash := func(session string) string {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return w.server.hashes[session]
	}
	w.startWith("-p/"+sessionA+".jsonl", records(project, 0, 2))
	got := hash(sessionA)
	kit.Check(t, got != "" && got != "h4sh", "not trusted: project_hash %q, want one that the repository does not choose", got)
	if !slices.ContainsFunc(w.status().Advice, func(a control.Advice) bool {
		return strings.Contains(a.Text, "project_hash") && strings.Contains(a.Text, project)
	}) {
		t.Errorf("not trusted: status does not name the project_hash: %+v", w.status().Advice)
	}
	w.stop()
	w.cfg.TrustedProjects = []string{project}
	w.startWith("-p/"+sessionB+".jsonl", records(project, 0, 2))
	kit.Equal(t, "trusted: project_hash", hash(sessionB), "h4sh")
}

// TestSentBefore leaves out the lines that an earlier hook sent to the project's own server.
func TestSentBefore(t *testing.T) {
	w := newWorld(t)
	w.server.announces = false
	project := t.TempDir()
	dir := filepath.Join(project, ".codetracker")
	kit.Must(t, os.MkdirAll(filepath.Join(dir, "cache"), 0o700))
	snapshot := fmt.Sprintf(`{"files":{},"transcript":{"session_id":%q,"last_sent_line":2}}`, sessionA)
	os.WriteFile(filepath.Join(dir, "config.json"), fmt.Appendf(nil, `{"server_url":%q}`, w.cfg.ServerURL), 0o600)
	os.WriteFile(filepath.Join(dir, "cache", "last_snapshot.json"), []byte(snapshot), 0o600)
	w.startWith("-p/"+sessionA+".jsonl", records(project, 0, 5))
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	lines := w.server.streams[sessionA][0].lines
	kit.Check(t, len(lines) == 2 && lines[3] != nil && lines[4] != nil,
		"the server got %d lines, want lines 3 and 4", len(lines))
}

// TestServerLearnsExtension gives a server everything again, the withheld lines too, once it speaks the extension.
func TestServerLearnsExtension(t *testing.T) {
	w := newWorld(t)
	w.server.announces = false
	text := record("/home/kim/shop", 0) + "not json\n" + record("/home/kim/shop", 1)
	w.write("-p/"+sessionA+".jsonl", text)
	r := w.deliver()
	kit.Check(t, r.Done && r.Withheld == 1, "sync with a plain server: %+v", r)
	plain := w.verify()
	kit.Check(t, !plain.Equal && !plain.Proven && len(plain.Differences) == 0 && found(plain, "withheld", 1, "config server_url"), "verify of a plain server: %+v", plain)
	w.server.with(func() { w.server.announces = true })
	w.write("-p/"+sessionA+".jsonl", record("/home/kim/shop", 2))
	want := text + record("/home/kim/shop", 2)
	w.until("the whole file is on the server", func() bool { return w.server.newest(sessionA) == want })
	v := w.verify()
	kit.Check(t, v.Equal && v.Proven, "verify once it speaks the extension: %+v", v)
}

// TestServerChanges reads everything again for another server, and leaves nothing behind for the old one.
func TestServerChanges(t *testing.T) {
	w := newWorld(t)
	text := records("/home/kim/shop", 0, 20)
	w.startWith("-p/"+sessionA+".jsonl", text)
	w.stop()
	second := newMemServer()
	web := httptest.NewServer(second)
	defer web.Close()
	w.cfg.ServerURL = web.URL
	w.start()
	w.until("the second server has the file", func() bool { return second.newest(sessionA) == text })
	r := w.verify()
	kit.Check(t, r.Equal, "verify: %+v", r)
}

// TestSecondRunSendsNothing is the promise of every restart.
func TestSecondRunSendsNothing(t *testing.T) {
	w := newWorld(t)
	w.startWith("-p/"+sessionA+".jsonl", records("/home/kim/shop", 0, 300))
	w.until("the first run has counted its entries", func() bool { return w.status().Sent.Entries == 300 })
	s := w.status()
	kit.Check(t, s.Outbox.Entries == 0, "first run: %d waiting", s.Outbox.Entries)
	w.stop()
	w.deliver()
	s = w.status()
	kit.Check(t, s.Sent.Entries == 0 && s.Sent.Requests == 0, "second run: %d entries in %d requests", s.Sent.Entries, s.Sent.Requests)
}

// pipes is a network inside one process: synctest's clock cannot run ahead of a real socket.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	down   atomic.Bool // dialling fails
	dials  atomic.Int64
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.dials.Add(1)
	if p.down.Load() {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// outage is the sending half of a daemon in fake time, on a real state.
type outage struct {
	t      *testing.T
	db     *state.DB
	net    *pipes
	server *memServer
	drain  *outbox.Drainer
	at     map[tail.FileID]tail.Cursor
	texts  map[tail.FileID]string
}

const outageDest = "http://server.invalid"

func newOutage(t *testing.T) *outage {
	db := kit.Try(state.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), HeadRoom: 1})).Must(t)
	o := &outage{
		t: t, db: db, server: newMemServer(),
		net:   &pipes{conns: make(chan net.Conn), closed: make(chan struct{})},
		at:    map[tail.FileID]tail.Cursor{},
		texts: map[tail.FileID]string{},
	}
	url, key, err := outbox.NormalizeURL(outageDest)
	kit.Must(t, err)
	d := outbox.Destination{Key: key, URL: url, APIKey: func() (string, error) { return "key", nil }}
	o.drain = outbox.NewDrainer(d, outbox.Origin{Machine: "m", Epoch: db.Epoch()}, db.Outbox, db.Outbox, nil)
	o.drain.Client = &http.Client{Transport: &http.Transport{DialContext: o.net.dial}}
	db.Listener = o
	return o
}

// write queues one more line of a file, as the relay would.
func (o *outage) write(id tail.FileID, n int) {
	o.t.Helper()
	line := fmt.Sprintf(`{"type":"user","n":%d}`, n)
	from, to := o.at[id], o.at[id]
	to.Offset, to.Line = to.Offset+int64(len(line)+1), to.Line+1
	entry := transcript.AppendEntry(nil, []byte(line), transcript.Scan([]byte(line)), from.Line)
	batch := outbox.Batch{
		Kind: outbox.Objects, Entries: 1, Raw: int64(len(entry)), Frame: outbox.NewPacker().Pack(nil, entry),
		From: protocol.Position{Offset: from.Offset, Line: from.Line}, To: protocol.Position{Offset: to.Offset, Line: to.Line},
	}
	facts := state.Routing{Dest: outageDest, Decided: true, Stream: outbox.Stream{ID: uint64(id), SessionID: fmt.Sprint("session-", id)}}
	step := state.Step{
		Prev: from, From: from, Routing: facts, Batches: []outbox.Batch{batch},
		Tracked: tail.Tracked{File: tail.File{ID: id, Path: fmt.Sprint("/p/", id)}, Cursor: to},
	}
	errs, err := o.db.Commit(o.t.Context(), []state.Step{step})
	kit.Require(o.t, err == nil && errs[0] == nil, "commit: %v %v", err, errs)
	o.at[id] = to
	o.texts[id] += line + "\n"
}

// TestDayWithoutServer keeps a server away for 24 hours in every way, with lines written all the while, and wants all
// of them there in order soon after it is back.
func TestDayWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		web := &http.Server{Handler: o.server}
		running.Go(func() { web.Serve(o.net) })
		running.Go(func() { o.drain.Run(ctx) })
		running.Go(func() { o.db.Run(ctx) })
		begun := time.Now()
		for n := range 24 * 6 {
			hour := n / 6
			o.net.down.Store(hour%3 == 0)
			kit.Locked(&o.server.mu, func() { o.server.status = []int{http.StatusServiceUnavailable, http.StatusBadGateway}[hour%2] })
			for id := tail.FileID(1); id <= 3; id++ {
				o.write(id, n)
			}
			<-time.After(10 * time.Minute)
		}
		kit.Equal(t, "entries acknowledged by a server that was away", o.drain.Health().Entries, 0)
		attempts := o.net.dials.Load()
		o.net.down.Store(false)
		o.server.with(func() { o.server.status = 0 })
		<-time.After(5*time.Second + time.Millisecond)
		synctest.Wait()
		for id, want := range o.texts {
			kit.Equal(t, fmt.Sprintf("session %d: the server has bytes", id), o.server.newest(fmt.Sprint("session-", id)), want)
		}
		u := o.db.Outbox.Usage()
		kit.Check(t, u.Batches == 0, "%d batches still wait", u.Batches)
		t.Logf("%v without a server: %d connections tried", time.Since(begun).Round(time.Hour), attempts)
		kit.Check(t, attempts >= 24 && attempts <= 24*3600/2, "%d connections tried in a day", attempts)
		cancel()
		web.Close()
		running.Wait()
		kit.Should(t, o.db.Close())
	})
}

// RowsQueued implements state.Listener.
func (o *outage) RowsQueued(string) { o.drain.Wake() }

// CapacityReturned implements state.Listener.
func (o *outage) CapacityReturned() {}
