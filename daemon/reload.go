package daemon

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Reload reads the configuration again and applies what may change while the daemon runs. If the file has a mistake,
// everything stays as it was, and status reports it.
func (d *Daemon) Reload(ctx context.Context) (control.ReloadResult, error) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	defer d.manager.Reloading()()
	now := d.conf.Load()
	stamp := config.Stamp(now.Path)
	defer func() {
		d.lastRead.Store(&stamp)
		d.servers.RetryWithheldKey()
	}()
	next, err := now.Reread()
	if err != nil {
		e := wireError(err)
		d.badConfig.Store(&control.Advice{Kind: "config", Text: "the configuration is not applied: " + e.Message,
			Hint: e.Hint})
		d.log.Warn("the configuration is not applied", "err", err)
		return control.ReloadResult{}, e
	}
	changed, restart := now.Changes(&next)
	if err := d.apply(ctx, now, &next, changed); err != nil {
		return control.ReloadResult{}, err
	}
	d.badConfig.Store(nil)
	d.needRestart.Store(&restart)
	if len(changed)+len(restart) > 0 {
		d.log.Info("configuration read again", "changed", changed, "restart", restart)
	}
	return control.ReloadResult{SchemaVersion: control.SchemaVersion, Config: next.Path, Changed: changed,
		Restart: restart}, nil
}

// apply puts a configuration in force. Only opening a server and reading the masking rules can fail; then nothing has
// changed.
func (d *Daemon) apply(ctx context.Context, now, next *config.Config, changed []string) error {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(changed, n) })
	}
	if next.ServerURL != "" {
		if err := d.servers.Open(next.ServerURL); err != nil {
			return err
		}
	}
	if has("redact", "redact_rules", "server_url", "trusted_projects") {
		if err := d.masking.Configure(next); err != nil {
			return err
		}
	}
	next.ApplyLogLevel()
	if has("outbox_cap", "head_room", "compact_above") {
		d.db.SetLimits(state.Limits{Cap: next.OutboxCap, HeadRoom: next.HeadRoom, CompactAbove: next.CompactAbove})
	}
	if has("server_url", "api_key_file") {
		d.servers.SetOwn(next)
	}
	d.router.SetRules(rulesOf(next))
	d.conf.Store(next)
	if has("roots", "history") {
		d.tailer.SetRoots(tailRoots(*next))
	}
	if err := d.reroute(ctx); err != nil {
		// The rules hold for every new line. Only quiet files wait for the next listing.
		d.log.Warn("cannot find the files that the new configuration concerns", "err", err)
	}
	d.router.ExclusionEnded()
	d.tailer.Wake()
	d.lookElsewhere()
	if len(changed) > 0 {
		d.servers.Retry(has("server_url", "api_key_file"))
	}
	return nil
}

// reroute applies the rules in force to the known files.
func (d *Daemon) reroute(ctx context.Context) error {
	again, err := d.router.Reroute(ctx)
	d.tailer.Reread(again...)
	return err
}

// rulesOf returns the rules of a configuration.
func rulesOf(c *config.Config) route.Rules {
	r := route.Rules{
		OwnServer: c.ServerURL, TrustedProjects: c.TrustedProjects, History: c.History, MaxEntries: c.MaxEntriesPerRequest,
		ExcludeTypes: map[string]bool{}, ExcludeProjects: c.ExcludeProjects,
	}
	for _, t := range c.ExcludeTypes {
		r.ExcludeTypes[t] = true
	}
	return r
}

// wireError turns a mistake in the configuration into an error of the socket.
func wireError(err error) *control.Error {
	e := control.Failed(err.Error(), "`ccship doctor` shows where")
	if c, ok := errors.AsType[*config.Error](err); ok {
		e.Code, e.Message, e.Hint = control.CodeConfig, c.Message, c.Hint
	}
	if known, ok := errors.AsType[*control.Error](err); ok {
		return known
	}
	return e
}

// configAdvice returns what a person should know about the configuration.
func (d *Daemon) configAdvice() (out []control.Advice) {
	if n := d.badConfig.Load(); n != nil {
		out = append(out, *n)
	}
	if names := d.needRestart.Load(); names != nil && len(*names) > 0 {
		out = append(out, control.Advice{Kind: "restart", Text: "restart needed for: " + strings.Join(*names, ", "),
			Hint: "ccship service restart"})
	}
	return out
}

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
	if now.Sub(seen.homes) > 10*time.Minute {
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

// backgroundJobs does work that may be late and may take long, until ctx is done: it tells servers to forget sessions,
// and asks them which lines rewrites removed from transcripts.
func (d *Daemon) backgroundJobs(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	const wait = time.Minute // after a server could not be reached
	var notBefore time.Time
	for {
		select {
		case <-ctx.Done():
			return d.rewrites.Store(context.WithoutCancel(ctx), time.Now())
		case <-tick.C:
		}
		now := time.Now()
		if err := d.rewrites.Store(ctx, now); err != nil {
			d.log.Warn("cannot store the list of rewrites; retrying", "err", err)
		}
		if now.Before(notBefore) {
			continue
		}
		if errors.Join(d.forgetter.Settle(ctx, now.Round(0)), d.counter.Count(ctx, now)) != nil {
			notBefore = time.Now().Add(wait)
		}
	}
}
