package doctor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/claude"
	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/service"
)

// exam is one examination. What several checks need is found out once, by whoever needs it first.
type exam struct {
	o         Options
	now       time.Time
	daemon    func() reached
	service   func() managed
	server    func() probed
	retention func() retention
}

// reached is the daemon, or why there is none.
type reached struct {
	client *control.Client // nil: none was reached
	status control.Status
	socket string // where
	took   time.Duration
	err    error // of the place where people expect it
}

// managed is what the service manager says.
type managed struct {
	status service.Status
	err    error
}

// probed is what the server says.
type probed struct {
	kind  delivery.Probed
	keyed bool // it was shown the key; false also where there is none to show
	err   error
}

// retention is what is in the roots.
type retention struct {
	claude.Retention
	err error // of the first folder that cannot be read
}

func newExam(ctx context.Context, o Options) *exam {
	x := &exam{o: o, now: time.Now()}
	x.daemon = sync.OnceValue(func() reached { return reach(ctx, o.Sockets) })
	x.service = sync.OnceValue(func() managed {
		if o.Service == nil {
			return managed{status: service.Status{Manager: service.None}}
		}
		st, err := o.Service.Status(ctx)
		return managed{st, err}
	})
	x.server = sync.OnceValue(func() probed { return probe(ctx, o) })
	x.retention = sync.OnceValue(func() retention {
		d, err := claude.Expiring(x.roots(), time.Duration(o.Days)*24*time.Hour, x.now)
		return retention{d, err}
	})
	return x
}

// wedgedTime is how long a daemon may take to answer before it counts as one that never does.
const wedgedTime = time.Second

// reach finds the daemon. The error of the first place counts, unless someone is at a later one who says nothing.
func reach(ctx context.Context, sockets []string) reached {
	r := reached{err: control.ErrNotRunning}
	for i, path := range sockets {
		client, begun := control.Dial(path), time.Now()
		asked, cancel := context.WithTimeout(ctx, wedgedTime)
		status, err := client.Status(asked)
		cancel()
		if err == nil {
			return reached{client: client, status: status, socket: path, took: time.Since(begun)}
		}
		if i == 0 || errors.Is(r.err, control.ErrNotRunning) && codeOf(err) == control.CodeNoAnswer {
			r.socket, r.err = path, err
		}
	}
	return r
}

// probe asks the user's own server. Without one, or without a configuration, nobody is asked.
func probe(ctx context.Context, o Options) probed {
	if o.Config.ServerURL == "" || o.ConfigErr != nil {
		return probed{}
	}
	key, err := config.ReadAPIKey(o.Config.APIKeyFile)
	keyed := err == nil // if not, checkKey says why
	kind, err := delivery.Probe(ctx, o.Config.ServerURL, key, "ccship/"+o.Version)
	return probed{kind, keyed, err}
}

// roots are the folders that are read: the daemon's own, for its configuration may be another.
func (x *exam) roots() []string {
	if w := x.daemon().status.Watch; w != nil && len(w.Roots) > 0 {
		return w.Roots
	}
	return x.o.Config.Roots
}

// installed says whether there is a service that could be started.
func (x *exam) installed() bool { return x.service().err == nil && x.service().status.Installed }

// managedDaemon says whether the daemon that was reached is the service's.
func (x *exam) managedDaemon() bool {
	d, st := x.daemon(), x.service().status
	return d.client != nil && x.installed() && st.Running && (st.PID == 0 || st.PID == d.status.PID)
}

// codeOf is the code of an error of ccship's own; "" of another.
func codeOf(err error) string {
	if known, ok := errors.AsType[*control.Error](err); ok {
		return known.Code
	}
	return ""
}

// explained makes a finding of an error, with what its hint says as the fix.
func explained(level Level, err error) Finding {
	f := Finding{Level: level, Text: err.Error()}
	if known, ok := errors.AsType[*control.Error](err); ok {
		f.Text, f.Fix = known.Message, known.Hint
	} else if config, ok := errors.AsType[*config.Error](err); ok {
		f.Text, f.Fix = config.Message, config.Hint
	}
	return f
}

// fine is the finding of a check that found nothing wrong.
func fine(text string) []Finding { return []Finding{{Level: OK, Text: text}} }
