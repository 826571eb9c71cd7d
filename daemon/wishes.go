package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/remote"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

const (
	askSeldom = time.Minute     // for wishes, of a server that takes documents
	askOften  = 5 * time.Second // while a session is being written: somebody may be looking at it
	oftenFor  = 30 * time.Second
	askTime   = 20 * time.Second // for an answer
	mostDone  = 1000             // wishes that are remembered as done
)

// wishes does what people ask for in the viewers of servers: that a document is linked, or not any more. A server can
// have a link made only if it is on this machine, or the user allows it: it could ask for any file of a project.
type wishes struct {
	documents *documents
	log       *slog.Logger
	machine   string
	dests     func() []string // that take documents
	reader    func(dest string) *remote.Client
	allowed   func() bool // option viewer_links

	written atomic.Int64 // when a session was, in Unix milliseconds
	bell    chan struct{}

	mu    sync.Mutex
	heard map[string]bool // servers that said there are some; guarded by mu

	done map[string]bool // of run alone: by server and id, answered but not heard by the server yet
}

func newWishes(x *documents, log *slog.Logger) *wishes {
	return &wishes{documents: x, log: log, bell: make(chan struct{}, 1), heard: map[string]bool{}, done: map[string]bool{}}
}

// wireWishes makes what does wishes. Nothing runs yet.
func (d *Daemon) wireWishes() {
	w := newWishes(d.documents, d.log)
	w.machine, w.reader = d.origin.Machine, d.dests.reader
	w.allowed = func() bool { return d.conf.Load().ViewerLinks }
	w.dests = func() (list []string) {
		if d.pause.Load() != nil {
			return nil // nothing is sent, a question neither
		}
		for dest := range d.dests.drainers() {
			if d.dests.takes(dest, outbox.Documents) {
				list = append(list, dest)
			}
		}
		return list
	}
	d.wishes = w
}

// hear is told that a server has wishes. It does not block.
func (w *wishes) hear(dest string) {
	w.mu.Lock()
	w.heard[dest] = true
	w.mu.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// run asks for wishes until ctx is done.
func (w *wishes) run(ctx context.Context) error {
	tick := time.NewTicker(askOften)
	defer tick.Stop()
	last := time.Now()
	for {
		var dests []string
		select {
		case <-ctx.Done():
			return nil
		case <-w.bell:
			w.mu.Lock()
			for dest := range w.heard {
				dests = append(dests, dest)
			}
			clear(w.heard)
			w.mu.Unlock()
		case now := <-tick.C:
			busy := now.Sub(time.UnixMilli(w.written.Load())) < oftenFor
			if !busy && now.Sub(last) < askSeldom {
				continue
			}
			last, dests = now, w.dests()
		}
		for _, dest := range dests {
			w.ask(ctx, dest)
		}
	}
}

// ask fetches a server's wishes and does them. What fails is asked for again.
func (w *wishes) ask(ctx context.Context, dest string) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	list, err := w.reader(dest).LinkRequests(asking, w.machine)
	if err != nil {
		w.log.Debug("cannot ask for wishes", "server", urlOf(dest), "err", err)
		return
	}
	for _, wish := range list {
		key := dest + " " + wish.ID
		if wish.ID == "" || w.done[key] {
			continue
		}
		if err := w.do(ctx, dest, wish); err != nil {
			w.log.Debug("a wish is done later", "server", urlOf(dest), "session", wish.SessionID, "err", err)
			continue
		}
		if len(w.done) >= mostDone {
			clear(w.done) // doing one twice does no harm
		}
		w.done[key] = true
	}
}

// do does one wish, or refuses it; nil once the answer is on its way.
func (w *wishes) do(ctx context.Context, dest string, wish remote.LinkRequest) error {
	x := w.documents
	s, err := x.locate(ctx, wish.SessionID)
	if err != nil {
		return err
	}
	if s.dest != dest || s.file == 0 || !x.sends(s) {
		return errors.New("nothing of the session goes to that server now")
	}
	l := linkage{session: s.session, path: wish.Path, by: byViewer, line: -1, wish: wish.ID}
	switch {
	case !wish.Link:
		err = x.unlink(ctx, l)
	case w.allowed() || loopback(dest):
		err = x.link(ctx, l)
	default:
		err = control.BadDocument("this machine obeys links only from a server of its own; viewer_links = true in its configuration allows them",
			"")
	}
	no, ok := errors.AsType[*control.Error](refused(err))
	if !ok {
		return err
	}
	w.log.Info("a wish is refused", "server", urlOf(dest), "session", s.session, "path", wish.Path, "link", wish.Link, "err", no.Message)
	x.work.Lock()
	defer x.work.Unlock()
	p := paper{Document: state.Document{Session: s.session, Path: wish.Path}}
	return x.publish(ctx, s, &news{paper: p, change: refusedChange, by: byViewer, line: -1, wish: wish.ID, reason: no.Message})
}

// loopback says whether a destination is on this machine.
func loopback(dest string) bool {
	u, err := url.Parse(urlOf(dest))
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
