package daemon

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/tail"
)

// extensionAnnounced delivers files again that a server took before it spoke the extension.
func (d *Daemon) extensionAnnounced(dest string) {
	d.mu.Lock()
	d.announced[dest] = true
	d.mu.Unlock()
	d.rereadPlain(context.Background())
}

// rereadPlain delivers every file again whose lines a server took before it spoke the extension. The next check retries
// failures.
func (d *Daemon) rereadPlain(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.announced) == 0 {
		return
	}
	facts, err := d.db.Files.Routings(ctx)
	if err != nil {
		d.log.Warn("cannot find the files to deliver again, trying later", "err", err)
		return
	}
	var ids []tail.FileID
	for id, f := range facts {
		if d.announced[f.Dest] && (f.Plain || f.Withheld > 0) {
			ids = append(ids, id)
		}
	}
	d.log.Info("server speaks the extension now: files are delivered again", "files", len(ids))
	clear(d.announced)
	d.tailer.Reread(ids...)
}

// checkInterval is the time between two checks of things that change without an event: the clock, key files, projects.
const checkInterval = 2 * time.Second

// housekeeping checks what can change without an event, until ctx is done.
func (d *Daemon) housekeeping(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	seen := surroundings{wall: time.Now().Round(0), mono: time.Now(), keys: d.servers.KeyStamps(), moved: math.MinInt64}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.cfg.Hangup:
			d.reloadUnattended(ctx)
		case <-tick.C:
			d.check(ctx, &seen)
		}
	}
}

// reloadUnattended reloads when no caller waits for the answer. Log and status show the result.
func (d *Daemon) reloadUnattended(ctx context.Context) { _, _ = d.Reload(ctx) }

// surroundings is what the last check found.
type surroundings struct {
	wall, mono time.Time
	keys       string    // stamps of the key files
	config     string    // stamp of the configuration file; it is read once it has stayed the same for a check
	homes      time.Time // when conversations elsewhere were looked for
	moved      int64     // bytes read and sent when memory was last given back; math.MinInt64 before the first time
}

func (d *Daemon) check(ctx context.Context, seen *surroundings) {
	now := time.Now()
	const jump = 10 * time.Second
	if slept := now.Round(0).Sub(seen.wall) - now.Sub(seen.mono); slept > jump || slept < -jump {
		d.log.Info("clock jumped: trying again at once", "by", slept.Round(time.Second))
		d.servers.Retry(false)
	}
	seen.wall, seen.mono = now.Round(0), now
	if keys := d.servers.KeyStamps(); keys != seen.keys {
		seen.keys = keys
		d.servers.Retry(true)
	}
	if err := d.pause.Expire(ctx); err != nil {
		d.log.Warn("cannot end the pause yet", "err", err)
	}
	if stamp := config.Stamp(d.conf.Load().Path); stamp == seen.config && stamp != *d.lastRead.Load() {
		d.reloadUnattended(ctx)
	} else {
		seen.config = stamp
	}
	d.rereadPlain(ctx)
	if d.router.ExclusionEnded() {
		d.tailer.Wake()
	}
	d.tailer.Reread(d.router.History.Readmitted()...)
	d.giveBack(seen)
	if now.Sub(seen.homes) > time.Hour {
		seen.homes = now
		d.lookElsewhere()
	}
}

// giveBack returns the memory of an import to the system once the import is over: an idle daemon does not need it.
func (d *Daemon) giveBack(seen *surroundings) {
	stats, usage := d.tailer.Stats(), d.db.Outbox.Usage()
	if stats.UnreadBytes > 0 || usage.Batches > 0 {
		return
	}
	const large = 4 << 20
	_, sent := d.servers.List(usage)
	moved := stats.ReadBytes + sent.Bytes
	if seen.moved == math.MinInt64 || moved > seen.moved+large ||
		d.memoryUsed.Swap(false) || d.derive.Freed() || d.attachments.Freed() {
		seen.moved = moved
		debug.FreeOSMemory()
	}
}
