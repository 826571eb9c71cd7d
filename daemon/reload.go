package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/route"
	"github.com/ccship/ccship/state"
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
