package tail

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Config says what a Tailer follows, and how. The zero value of every field except Roots is its default.
type Config struct {
	Roots []Root
	// Watch is "auto" (events, but polling on darwin, where each watched file costs a descriptor), "events" or "poll".
	Watch string
	// Local reports whether the system sends an event of every change in a folder; nil: it never does.
	Local func(dir string) bool
	// Cap is the longest line delivered, in bytes without its newline; default 64 MiB. Longer ones become Oversize.
	Cap int64
	// Quiet is how long a last line without newline must be unchanged before it is delivered provisionally; default 2 s.
	Quiet time.Duration
	// ScanActive is how often folders that changed in the last two minutes are listed; default 2 s.
	ScanActive time.Duration
	// ScanAll is how often everything is listed; default 60 s.
	ScanAll time.Duration
	// PollInterval takes ScanActive's place while there are no events; default 1 s.
	PollInterval time.Duration
	// ScrubAfter is how long a changed file must be quiet before all of its marks are checked again; default 30 s.
	ScrubAfter time.Duration
	// TurnBytes is how much of one file is read before the next file's turn; default 1 MiB.
	TurnBytes int64
	// Workers is how many goroutines may read what was there before the start; one more serves what is written now.
	// Default max(2, GOMAXPROCS).
	Workers int
	Log     *slog.Logger
}

// Root is a projects folder. It may not exist yet, and may be a symbolic link; for links inside it see links.go.
type Root struct {
	Dir string
	// History is the path of a history.jsonl to follow as a transcript of its own; "" none.
	History string
}

const (
	// activeFor is how long a folder counts as active after a change in it, and a file as live after one of its own.
	activeFor = 2 * time.Minute
	// goneFor is how long listings must have missed a vanished file before it is forgotten. It is time in which the
	// program ran: a clock that was set forward forgets nothing.
	goneFor = 45 * 24 * time.Hour
	// spaceEvery is how often the sink is asked for space again when it had none.
	spaceEvery = time.Second
)

func (c Config) withDefaults() Config {
	orDuration := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orDuration(&c.Quiet, 2*time.Second)
	orDuration(&c.ScanActive, 2*time.Second)
	orDuration(&c.ScanAll, time.Minute)
	orDuration(&c.PollInterval, time.Second)
	orDuration(&c.ScrubAfter, 30*time.Second)
	if c.Cap <= 0 {
		c.Cap = 64 << 20
	}
	if c.TurnBytes <= 0 {
		c.TurnBytes = 1 << 20
	}
	if c.Workers <= 0 {
		c.Workers = max(2, runtime.GOMAXPROCS(0))
	}
	if c.Local == nil {
		c.Local = func(string) bool { return false }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// wantsEvents reports whether to ask the system for change events at all.
func (c Config) wantsEvents() bool {
	return c.Watch == "events" || c.Watch != "poll" && runtime.GOOS != "darwin"
}

// clock notices that the clock on the wall and the monotonic one went apart: the machine slept, or the user set the
// time. Timers stand still while a machine sleeps, so whatever was due is overdue by then.
type clock struct {
	Wall time.Time
	Mono time.Duration
}

// jumpLimit is how far the clocks may drift apart between two looks.
const jumpLimit = 5 * time.Second

// Jump answers by how much the wall clock jumped since the last call, 0 when it did not.
func (c *clock) Jump(wall time.Time, mono time.Duration) time.Duration {
	d := wall.Sub(c.Wall) - (mono - c.Mono)
	c.Wall, c.Mono = wall, mono
	if d > jumpLimit || d < -jumpLimit {
		return d
	}
	return 0
}

// pacer limits a rate of bytes; after a rest it allows a burst of one second's.
type pacer struct {
	Rate int64 // a second
	next time.Duration
}

// Delay returns how long to wait after n more bytes.
func (p *pacer) Delay(now time.Duration, n int) time.Duration {
	p.next = max(p.next, now-time.Second) + time.Duration(n)*time.Second/time.Duration(p.Rate)
	return p.next - now
}

// level is the kind of a folder, which decides what it may contain.
type level uint8

const (
	rootLevel    level = iota // holds project folders
	projectLevel              // holds main transcripts, older agents' transcripts and session folders
	sessionLevel              // below a project folder: a session's, or one into which a user moved transcripts
	agentsLevel               // subagents and all folders below it: holds agents' transcripts
	historyLevel              // the folder of a history.jsonl: of interest only for that file
)

const (
	suffix      = ".jsonl"
	agentPrefix = "agent-"
	agentsName  = "subagents"
	journalName = "journal.jsonl" // what a workflow's agents were asked: each agent's transcript repeats it
	maxDepth    = 12              // folders below a root
)

// stemOf returns the name of a *.jsonl file without its suffix. Temporary files of Claude Code's garbage collection
// (<id>.jsonl.compact.tmp.<hex>) and hidden files are none.
func stemOf(name string) (stem string, ok bool) {
	stem, ok = strings.CutSuffix(name, suffix)
	return stem, ok && stem != "" && stem[0] != '.' && !strings.Contains(stem, ".compact.tmp.")
}

// transcript returns which transcript a file of this name in the folder is, if it is one. Directly in a project folder
// every *.jsonl file is a session's; elsewhere only one that is named like a session.
func (d *folder) transcript(name string) (kind Kind, called string, ok bool) {
	stem, ok := stemOf(name)
	agent := strings.HasPrefix(stem, agentPrefix)
	switch {
	case !ok:
	case d.level == historyLevel:
		return History, stem, name == d.history
	case agent && d.level == agentsLevel:
		return Agent, d.session + "/" + stem, true
	case agent:
		return Agent, stem, true
	case d.level == projectLevel || namesSession(stem):
		return Main, stem, true
	}
	return 0, "", false
}

// stray reports whether a file of this name in the folder may hold lines although it is no transcript.
func (d *folder) stray(name string) bool {
	_, jsonl := stemOf(strings.ToLower(name))
	_, _, is := d.transcript(name)
	return jsonl && !is && d.level != historyLevel && (d.level != agentsLevel || name != journalName)
}

// namesSession reports whether a name begins with a UUID, as those of sessions and of their copies do.
func namesSession(stem string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(stem) < len(form) {
		return false
	}
	for i := range form {
		hex := strings.IndexByte("0123456789abcdefABCDEF", stem[i]) >= 0
		if form[i] == 'x' && !hex || form[i] != 'x' && stem[i] != form[i] {
			return false
		}
	}
	return true
}

// below returns the level of a subfolder of this name, if it is of interest: it may hold transcripts. The name may
// still be a file's, so it refuses names that look like those of the files next to transcripts. tool-results holds
// output of tools, which is delivered as attachments.
func (d *folder) below(name string) (l level, ok bool) {
	switch ext := filepath.Ext(name); {
	case d.level == historyLevel, name == ".git", ext == ".json", ext == ".txt", ext == ".md":
		return 0, false
	case d.level == rootLevel:
		return projectLevel, true
	case d.level == projectLevel:
		return sessionLevel, true
	case d.level == sessionLevel && name != agentsName:
		return sessionLevel, name != "tool-results"
	}
	return agentsLevel, true
}

// wants reports whether a name in the folder is worth a question to the file system.
func (d *folder) wants(name string) bool {
	if d.level == historyLevel {
		return name == d.history
	}
	_, ok := d.below(name)
	return ok
}

// key returns what the file is looked up by when it turns up elsewhere. Every prompt history has the same Name and
// stays where it is, so its path is its key.
func (f *File) key() string {
	if f.Kind == History {
		return f.Path
	}
	return f.Name
}
