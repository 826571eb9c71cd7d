package doctor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/internal/service"
)

// exam is one examination. Facts that several checks need are fetched once, when the first check needs them.
type exam struct {
	o         Options
	now       time.Time
	daemon    func() reached
	service   func() managed
	server    func() probed
	retention func() retention
}

// reached is the daemon, or why it cannot be reached.
type reached struct {
	client *control.Client // nil: no daemon answered
	status control.Status
	socket string // its path
	took   time.Duration
	err    error // of the configured socket
}

// managed is the service manager's answer.
type managed struct {
	status service.Status
	err    error
}

// probed is the server's answer.
type probed struct {
	kind  delivery.Probed
	keyed bool // the request carried a key
	err   error
}

// retention is what Claude Code keeps and deletes below the roots.
type retention struct {
	config.Retention
	err error // of the first folder that cannot be read
}

func newExam(ctx context.Context, o Options) *exam {
	x := &exam{o: o, now: time.Now()}
	x.daemon = sync.OnceValue(func() reached { return reach(ctx, &o) })
	x.service = sync.OnceValue(func() managed {
		if o.Service == nil {
			return managed{status: service.Status{Manager: service.None}}
		}
		st, err := o.Service.Status(ctx)
		return managed{st, err}
	})
	x.server = sync.OnceValue(func() probed { return probe(ctx, o) })
	x.retention = sync.OnceValue(func() retention {
		d, err := config.Expiring(x.roots(), time.Duration(o.Days)*24*time.Hour, x.now)
		return retention{d, err}
	})
	return x
}

// wedgedTime is how long a daemon may take to answer before it counts as hung.
const wedgedTime = time.Second

// reach finds the daemon. The error is the first socket's, unless a later one accepts connections and does not answer.
func reach(ctx context.Context, o *Options) reached {
	r := reached{err: control.ErrNotRunning}
	for i, path := range o.Sockets {
		client, begun := control.Dial(path), time.Now()
		asked, cancel := context.WithTimeout(ctx, wedgedTime+o.patience)
		status, err := client.Status(asked)
		cancel()
		if err == nil {
			took := time.Since(begun)
			return reached{client: client, status: withProbes(ctx, o, client, status), socket: path, took: took}
		}
		if i == 0 || errors.Is(r.err, control.ErrNotRunning) && codeOf(err) == control.CodeNoAnswer {
			r.socket, r.err = path, err
		}
	}
	return r
}

// probedTime is how long the daemon's probes of its servers may take.
const probedTime = 1500 * time.Millisecond

// withProbes returns the status after the daemon has probed the servers that were silent for a while. The daemon's
// result counts: it may use another network or key than this process.
func withProbes(ctx context.Context, o *Options, client *control.Client, status control.Status) control.Status {
	ctx, cancel := context.WithTimeout(ctx, probedTime+o.patience)
	defer cancel()
	if probed, err := control.StatusOf(ctx, client, control.StatusQuery{Probe: control.ProbeWait}); err == nil {
		return probed
	}
	return status
}

// probe asks the configured server. It asks nothing if no server is set or the configuration is broken.
func probe(ctx context.Context, o Options) probed {
	if o.Config.ServerURL == "" || o.ConfigErr != nil {
		return probed{}
	}
	key, err := config.ReadAPIKey(o.Config.APIKeyFile)
	keyed := err == nil // if not, checkKey reports it
	kind, err := delivery.Probe(ctx, delivery.CandidateOf(&o.Config, o.Config.ServerURL, key))
	return probed{kind, keyed, err}
}

// roots returns the folders that the daemon reads; without a daemon, the configured ones.
func (x *exam) roots() []string {
	if w := x.daemon().status.Watch; w != nil && len(w.Roots) > 0 {
		return w.Roots
	}
	return x.o.Config.Roots
}

// installed says whether a service is installed.
func (x *exam) installed() bool { return x.service().err == nil && x.service().status.Installed }

// managedDaemon says whether the daemon that answers is the service's.
func (x *exam) managedDaemon() bool {
	d, st := x.daemon(), x.service().status
	return d.client != nil && x.installed() && st.Running && (st.PID == 0 || st.PID == d.status.PID)
}

// codeOf returns the code of a *control.Error; "" for other errors.
func codeOf(err error) string {
	if known, ok := errors.AsType[*control.Error](err); ok {
		return known.Code
	}
	return ""
}

// explained turns an error into a finding; its hint becomes the fix.
func explained(level Level, err error) Finding {
	f := Finding{Level: level, Text: err.Error()}
	if known, ok := errors.AsType[*control.Error](err); ok {
		f.Text, f.Fix = known.Message, known.Hint
	} else if config, ok := errors.AsType[*config.Error](err); ok {
		f.Text, f.Fix = config.Message, config.Hint
	}
	return f
}

// fine returns the finding of a check that found no problem.
func fine(text string) []Finding { return []Finding{{Level: OK, Text: text}} }
