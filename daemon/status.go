package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/delivery"
	"github.com/ccship/ccship/daemon/remote"
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
			Bytes: stats.Bytes, ReadBytes: stats.ReadBytes, Lines: stats.Lines, Unfinished: stats.Unfinished,
			Vanished: stats.Vanished, Rewinds: stats.Rewinds, Malformed: usage.Malformed, Oversize: usage.Oversize,
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

// Metrics writes the daemon's figures in Prometheus' text format.
func (d *Daemon) Metrics(w io.Writer) {
	s := d.Status(context.Background())
	metric := func(name, kind, help string, value any) {
		fmt.Fprintf(w, "# HELP ccship_%s %s\n# TYPE ccship_%s %s\nccship_%s %v\n", name, help, name, kind, name, value)
	}
	metric("files_tracked", "gauge", "Transcripts on disk.", s.Files.Tracked)
	metric("files_excluded", "gauge", "Transcripts whose project has opted out.", s.Files.Excluded)
	metric("files_vanished", "gauge", "Remembered transcripts that are no longer on disk.", s.Files.Vanished)
	metric("disk_bytes", "gauge", "Bytes of transcripts on disk.", s.Files.Bytes)
	metric("read_bytes", "gauge", "Of those, bytes behind the cursors.", s.Files.ReadBytes)
	metric("rewinds_total", "counter", "Rewinds found since start.", s.Files.Rewinds)
	metric("malformed_lines", "gauge", "Lines on disk that are no JSON.", s.Files.Malformed)
	metric("oversize_lines", "gauge", "Lines on disk that are longer than line_cap.", s.Files.Oversize)
	metric("masked_secrets_total", "counter", "Secrets masked in lines.", s.Files.Masked)
	metric("outbox_batches", "gauge", "Batches not acknowledged.", s.Outbox.Batches)
	metric("outbox_entries", "gauge", "Entries not acknowledged.", s.Outbox.Entries)
	metric("outbox_bytes", "gauge", "Their uncompressed bytes.", s.Outbox.Bytes)
	metric("outbox_stored_bytes", "gauge", "Compressed bytes in outbox and dead letters, as outbox_cap counts them.",
		s.Outbox.Stored)
	metric("dead_letters", "gauge", "Entries the server refuses for what they are.", s.Outbox.Dead)
	metric("withheld_entries", "gauge", "Entries a plain server did not get.", s.Outbox.Withheld)
	metric("sent_entries_total", "counter", "Entries acknowledged since start.", s.Sent.Entries)
	metric("sent_bytes_total", "counter", "Their uncompressed bytes.", s.Sent.Bytes)
	metric("requests_total", "counter", "Requests acknowledged since start.", s.Sent.Requests)
	metric("derived_lines_total", "counter", "Lines folded into what sessions mean since start.",
		d.derive.Stats().FoldedLines)
	metric("sessions_in_memory", "gauge", "Transcripts whose meaning is held in memory.", d.derive.Stats().Cached)
	metric("paused", "gauge", "Whether the user has paused sending.", map[bool]int{true: 1}[s.Pause != nil])
	metric("resident_bytes", "gauge", "Resident memory of the daemon.", s.Process.RSS)
	metric("cpu_seconds_total", "counter", "CPU time used by the daemon.", s.Process.CPUSeconds)
	metric("state_file_bytes", "gauge", "Size of the state file.", s.Process.StateFile)
	items, withheld, gone := int64(0), int64(0), int64(0)
	for _, srv := range s.Servers {
		items, withheld, gone = items+srv.Items, withheld+srv.Unwanted, gone+srv.Gone
	}
	metric("sent_items_total", "counter", "Checkpoints, document changes and files acknowledged since start.", items)
	metric("withheld_items_total", "counter", "Those withheld since start from servers that do not take them.", withheld)
	metric("gone_files_total", "counter", "Files that changed or went away before they were sent, since start.", gone)
	fmt.Fprint(w, "# HELP ccship_server_ok Whether a server accepts what is sent to it.\n# TYPE ccship_server_ok gauge\n")
	for url, ok := range serversOK(s.Servers) {
		fmt.Fprintf(w, "ccship_server_ok{server=%q} %d\n", url, ok)
	}
}

// serversOK is 1 for every address that accepts what is sent to it, whichever key opens it, else 0.
func serversOK(servers []control.Server) map[string]int {
	ok := map[string]int{}
	for _, srv := range servers {
		if before, seen := ok[srv.URL]; srv.State == "ok" && (!seen || before == 1) {
			ok[srv.URL] = 1
		} else {
			ok[srv.URL] = 0
		}
	}
	return ok
}

const (
	settling    = 3 * time.Second // a rewrite may take this long; servers are asked about it later
	longestWait = 5 * time.Minute // between two requests about a rewrite that the server has not derived yet
)

// files are the transcripts on disk; *tail.Tailer is one.
type files interface {
	File(id tail.FileID) (tail.Tracked, bool)
}

// servers are the destinations.
type servers interface {
	// Protocol returns what a server speaks, as in outbox.Health; "" for a server that gets nothing.
	Protocol(dest string) string
	// Reader returns a client of a server's reading API, never nil.
	Reader(dest string) *remote.Client
}

// rewriteCounter finds out how many lines rewrites took out.
type rewriteCounter struct {
	Rewrites *rewrites
	Files    files
	Servers  servers
	Origin   outbox.Origin
}

// Count counts the rewrites that are due, as far as servers can be asked now. An error means that one cannot be asked:
// wait before the next call. That one is not asked about further rewrites: others are.
func (c *rewriteCounter) Count(ctx context.Context, now time.Time) error {
	var errs []error
	failed := map[string]bool{}
	for _, x := range c.Rewrites.due(now) {
		dest, lines, known, err := c.lost(ctx, x, now, failed)
		if err != nil {
			failed[dest] = true
			errs = append(errs, fmt.Errorf("count the lines of a rewrite: %w", err))
		} else if known {
			c.Rewrites.counted(x, lines)
		}
	}
	return errors.Join(errs...)
}

// lost returns how many lines a rewrite took out of its file, and which server it asks; known is false while that is
// not known. It does not ask servers that failed.
func (c *rewriteCounter) lost(ctx context.Context, x rewrite, now time.Time, failed map[string]bool) (
	dest string, lines int64, known bool, err error,
) {
	t, ok := c.Files.File(x.File)
	if !ok || t.Gone != 0 {
		return "", 0, true, nil // the file is gone as a whole
	}
	f, ok, err := c.Rewrites.db.Files.Routing(ctx, x.File)
	if err != nil || !ok {
		return "", 0, !ok, err
	}
	if c.Rewrites.db.Outbox.QueuedEntries(x.File) > 0 || failed[f.Dest] {
		return f.Dest, 0, false, nil
	}
	switch c.Servers.Protocol(f.Dest) {
	case "plain": // keeps no generations: only the sizes can be compared
		return f.Dest, max(0, x.To-t.Cursor.Line), true, nil
	case "ccship":
		lines, known, err = c.ask(ctx, &f, x, now)
	}
	return f.Dest, lines, known, err
}

// ask asks the server what a rewrite took out.
func (c *rewriteCounter) ask(ctx context.Context, f *state.Routing, x rewrite, now time.Time) (
	lines int64, known bool, err error,
) {
	drops, lagging, err := c.Servers.Reader(f.Dest).Drops(ctx, x.Session)
	switch {
	case remote.Is(err, control.CodeUnreachable), remote.Is(err, control.CodeRefusedKey):
		return 0, false, err
	case err != nil: // it accepts lines, but derives nothing from them
		return 0, true, nil //nolint:nilerr // there is no count, and asking again gives none
	case lagging:
		c.Rewrites.postpone(x, now)
		return 0, false, nil
	}
	for _, d := range drops {
		if d.Session.Machine == c.Origin.Machine && d.Epoch == c.Origin.EpochOf(&f.Stream) &&
			d.Generation == int64(x.Next) {
			return d.Lines, true, nil
		}
	}
	return 0, true, nil
}

// due returns a copy of the rewrites to ask about now.
func (l *rewrites) due(now time.Time) (list []rewrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if x.Lines == 0 && now.Sub(x.At) >= settling && !now.Before(x.askAt) {
			list = append(list, x)
		}
	}
	return list
}

// postpone delays a rewrite that the server has not derived yet, twice as long each time.
func (l *rewrites) postpone(x rewrite, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.list, x); i >= 0 {
		x := &l.list[i]
		x.wait = min(max(2*x.wait, settling), longestWait)
		x.askAt = now.Add(x.wait)
	}
}

// counted records how many lines a rewrite took out. A rewrite that took out none is removed.
func (l *rewrites) counted(x rewrite, lines int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.list, x)
	if i < 0 {
		return
	}
	l.dirty = true
	if l.list[i].Lines = lines; lines == 0 {
		l.list = slices.Delete(l.list, i, i+1)
	}
}
