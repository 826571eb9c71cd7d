// Package doctor checks everything that ccship needs to work. It reports findings, each with its fix, and applies the
// fixes that are safe without asking. It does not know how findings are shown.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/internal/service"
)

// Level is how serious a finding is.
type Level string

// The levels, the most serious first.
const (
	Fail Level = "fail" // something does not work
	Warn Level = "warn" // it works, but something is missing or will fail later
	Note Level = "note" // good to know
	OK   Level = "ok"
)

// Finding is what one check found.
type Finding struct {
	ID     string `json:"id"` // of the check; several findings may have the same
	Level  Level  `json:"level"`
	Text   string `json:"text"`             // one line
	Detail string `json:"detail,omitempty"` // one line more
	Fix    string `json:"fix,omitempty"`    // how to fix it: a command between backticks, or words
	Safe   bool   `json:"safe,omitempty"`   // ApplyFixes applies Fix

	action *action // not nil if Safe
}

// Report is the result of an examination, the most serious findings first.
type Report struct {
	SchemaVersion int       `json:"schema_version"`
	Version       string    `json:"version"` // of the examining program
	OK            bool      `json:"ok"`      // nothing fails
	Failed        int       `json:"failed"`
	Warned        int       `json:"warned"`
	Findings      []Finding `json:"findings"`
	Fixes         []Fix     `json:"fixes,omitempty"` // applied before this examination
}

// Manager is the system's service manager, as a *service.Service drives it. Errors are *control.Error with a hint.
type Manager interface {
	Status(ctx context.Context) (service.Status, error)
	Current(st service.Status) (bool, error)
	Install(ctx context.Context, start bool) (service.Outcome, error)
	Start(ctx context.Context) error
	Restart(ctx context.Context) error
}

// Options say what to examine. Config, Sockets and Program are required.
type Options struct {
	// Config is the caller's configuration. If its file has a mistake, ConfigErr holds it, and Config has the values
	// without that file.
	Config    config.Config
	ConfigErr error
	Env       config.Env // the environment Config was read with; nil: this process's
	// Sockets are the paths where a daemon may listen, at least one, the configured one first. ForeignSocket is the one
	// that belongs to `ccship up`; "": none does.
	Sockets       []string
	ForeignSocket string
	Service       Manager // nil: the service is not checked
	Version       string  // of this program
	Program       string  // its path
	Days          int     // how far ahead to look for deletions by Claude Code
	Proc          string  // the kernel's proc file system; "" is /proc

	patience time.Duration // how much longer everything may take, for tests on a busy machine
}

// Limits of an examination: after timeLimit the checks' context ends; after graceTime more they are no longer waited
// for.
const (
	timeLimit = 2300 * time.Millisecond
	graceTime = 400 * time.Millisecond
)

// Examine runs every check concurrently, in less than three seconds, and changes nothing. A daemon that is not running
// is a finding. No content of a transcript is sent anywhere.
func Examine(ctx context.Context, o Options) Report {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	r := Report{SchemaVersion: control.SchemaVersion, Version: o.Version, Findings: examine(ctx, o)}
	for _, f := range r.Findings {
		switch f.Level {
		case Fail:
			r.Failed++
		case Warn:
			r.Warned++
		}
	}
	r.OK = r.Failed == 0
	return r
}

// result is what the check of one number found.
type result struct {
	check    int
	findings []Finding
}

func examine(ctx context.Context, o Options) []Finding {
	ctx, cancel := context.WithTimeout(ctx, timeLimit+o.patience)
	defer cancel()
	x, all := newExam(ctx, o), checks()
	results := make(chan result, len(all)) // buffered: a check stuck in a system call blocks nothing
	for i, c := range all {
		go func() { results <- result{i, c.run(ctx, x)} }()
	}
	found, late := make([][]Finding, len(all)), time.After(timeLimit+graceTime+2*o.patience)
	for range all {
		select {
		case r := <-results:
			found[r.check] = r.findings
			if r.findings == nil {
				found[r.check] = []Finding{} // distinguishes "no findings" from "no answer"
			}
			continue
		case <-late:
		}
		break
	}
	var out []Finding
	for i, c := range all {
		if found[i] == nil {
			out = append(out, Finding{ID: c.id, Level: Warn, Text: "this check did not finish in time",
				Detail: "the disk, the network or the service manager does not answer"})
		}
		for _, f := range found[i] {
			f.ID = cmp.Or(f.ID, c.id)
			if o.ConfigErr != nil && f.action != nil && f.action.phase != phaseFile {
				f.Safe, f.action = false, nil // a service must not be touched while its configuration is broken
			}
			out = append(out, f)
		}
	}
	levels := []Level{Fail, Warn, Note, OK}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
	})
	return out
}

// check examines one thing. Findings without an ID get the check's.
type check struct {
	id  string
	run func(ctx context.Context, x *exam) []Finding
}

// checks returns all checks, in the order in which findings of one level are shown.
func checks() []check {
	return []check{
		{"daemon", checkDaemon}, {"version", checkVersion}, {"service", checkService}, {"unit", checkUnit},
		{"linger", checkLinger},
		{"socket", checkSocket}, {"config", checkConfig}, {"key", checkKey}, {"environment", checkEnvironment},
		{"server", checkServer}, {"proxy", checkProxy}, {"clock", checkClock}, {"delivery", checkDelivery},
		{"outbox", checkOutbox}, {"dead_letters", checkDead}, {"pause", checkPause}, {"withheld", checkWithheld},
		{"masking", checkMasking}, {"retention", checkRetention}, {"roots", checkRoots}, {"elsewhere", checkElsewhere},
		{"records", checkRecords}, {"watch", checkWatch}, {"wsl", checkWSL}, {"excluded", checkExcluded},
		{"state", checkState}, {"disk", checkDisk}, {"recording", checkRecording}, {"hooks", checkHooks},
		{"advice", checkAdvice},
	}
}

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
