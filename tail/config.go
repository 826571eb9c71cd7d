package tail

import (
	"log/slog"
	"runtime"
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
