package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ccship/ccship/e2e/kit"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/protocol"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
	"github.com/ccship/ccship/transcript"
)

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
