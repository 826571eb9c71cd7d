package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Status answers from counters in memory. It reads no files except for the state's size and the process figures.
func (d *Daemon) Status(ctx context.Context) control.Status {
	begun := time.Now()
	stats, usage, conf := d.tailer.Stats(), d.db.Outbox.Usage(), d.conf.Load()
	s := control.Status{
		SchemaVersion: control.SchemaVersion, Running: true, Version: d.cfg.Version, Config: conf.Path,
		PID: os.Getpid(), StartedAt: d.started.UTC(), Pause: d.pause.Current(),
		Files: &control.Files{
			Tracked: stats.Tracked, Sessions: stats.Mains, Excluded: len(d.router.ExcludedOnDisk(d.tailer)),
			Bytes: stats.Bytes, ReadBytes: stats.ReadBytes, Lines: stats.Lines, Vanished: stats.Vanished,
			Rewinds: stats.Rewinds, Malformed: usage.Malformed, Oversize: usage.Oversize,
		},
		Outbox: &control.Outbox{
			Batches: usage.Batches, Entries: usage.Entries, Bytes: usage.Raw, Stored: usage.Stored,
			Cap: usage.Cap, OldestAt: delivery.TimeOrNil(usage.Oldest), Dead: usage.Dead, Withheld: usage.Withheld,
		},
		Watch: &control.Watch{
			Mode: stats.Watch, Reason: stats.WatchReason, Roots: conf.Roots, Unread: d.syncer.Unlisted(),
			Watches: stats.Watches, Limit: stats.WatchLimit, NotReadFiles: d.notRead(stats),
		},
		Process: processFigures(),
	}
	_, s.Files.Masked = d.masking.Counts()
	s.Process.StateFile = d.db.FileSize()
	s.Servers, s.Sent = d.servers.List(usage)
	s.Advice = d.advice(&s, stats, usage)
	s.State = d.overallState(&s, stats, usage)
	s.TookUS = time.Since(begun).Microseconds()
	return s
}

// advice returns what a person should know now, the most serious first.
func (d *Daemon) advice(s *control.Status, stats tail.Stats, usage state.Usage) []control.Advice {
	var out []control.Advice
	for _, n := range d.db.Advice() {
		out = append(out, control.Advice{Kind: n.Kind, Text: n.Text, Hint: n.Hint})
	}
	out = append(out, d.configAdvice()...)
	if s.Process.StateFile == 0 {
		out = append(out, control.Advice{Kind: "state_gone",
			Text: "the state folder is gone: " + d.cfg.StateDir + ". Nothing is lost while the transcripts stay on disk",
			Hint: "mount its disk, or make it again: the daemon writes its state there by itself; without, the next start " +
				"reads every transcript again"})
	}
	if n, full := fullAdvice(usage.Full); full {
		out = append(out, n)
	} else if stats.NotTaken != nil {
		out = append(out, notTakenAdvice(stats.NotTaken))
	}
	if s.Outbox.Dead > 0 {
		out = append(out, control.Advice{Kind: "dead_letters", Hint: "`ccship outbox list --dead` lists them",
			Text: "the server refuses some entries because of their content"})
	}
	for _, dir := range s.Watch.Unread {
		out = append(out, control.Advice{Kind: "unreadable", Text: "cannot list " + dir,
			Hint: "make it readable by this user"})
	}
	for _, file := range stats.Unreadable {
		out = append(out, control.Advice{Kind: "unreadable", Text: "cannot read " + file,
			Hint: "make it readable by this user"})
	}
	if links := stats.NotFollowed; len(links) > 0 {
		text := "not delivered: " + links[0]
		if len(links) > 1 {
			text += fmt.Sprintf(" (and %d links more)", len(links)-1)
		}
		out = append(out, control.Advice{Kind: "link_not_followed", Text: text,
			Hint: "replace the link by its target, or remove it"})
	}
	out = append(out, notReadAdvice(s.Watch)...)
	for _, f := range d.servers.RetiredServers(usage) {
		out = append(out, control.Advice{
			Kind: "retired_server", Text: f.URL + " is not your server any more, but batches still wait for it",
			Hint: "make it reachable, or drop them: `ccship outbox drop --server " + f.URL + " --yes`",
		})
	}
	out = append(out, d.clear.advice()...)
	out = append(out, d.rewrites.Advice()...)
	return append(out, d.router.Advice()...)
}

// fullAdvice explains why reading has stopped: the state's Usage.Full.
func fullAdvice(what string) (control.Advice, bool) {
	const safe = ": reading has stopped. Nothing is lost while the transcripts stay on disk"
	switch what {
	case "cap":
		return control.Advice{Kind: "full", Text: "the outbox is full" + safe,
			Hint: "make the server reachable, or raise outbox_cap"}, true
	case "disk":
		return control.Advice{Kind: "full", Text: "the disk is nearly full" + safe,
			Hint: "free disk space, or lower head_room"}, true
	}
	return control.Advice{}, false
}

// notTakenAdvice explains why nothing can be queued, although there seems to be space.
func notTakenAdvice(err error) control.Advice {
	a := control.Advice{Kind: "not_queued",
		Hint: "nothing to do, the daemon keeps trying; its log says more if this stays",
		Text: "lines cannot be queued: " + err.Error() + ". Nothing is lost while the transcripts stay on disk"}
	if errors.Is(err, syscall.ENOSPC) {
		a.Hint = "free disk space where the state is, or raise this user's quota"
	}
	return a
}

// overallState is Status.State.
func (d *Daemon) overallState(s *control.Status, stats tail.Stats, usage state.Usage) string {
	failing, refused := false, false
	for _, srv := range s.Servers {
		failing = failing || srv.State == outbox.StateRetrying && srv.Batches > 0
		probed := srv.Probe != nil && !srv.Probe.OK && srv.Batches == 0 // it refused only a probe
		refused = refused || srv.State == outbox.StateRefused && !probed
	}
	switch {
	case !d.router.AnyServer():
		return control.StateNoServer
	case s.Pause != nil:
		return control.StatePaused
	case usage.Full != "":
		return control.StateFull
	case refused:
		return control.StateRefused
	case failing:
		return control.StateRetrying
	case stats.Importing:
		return control.StateImporting
	case stats.UnreadFiles > len(stats.Unreadable):
		return control.StateReading
	case s.Outbox.Batches > 0:
		return control.StateSending
	}
	return control.StateWatching
}
