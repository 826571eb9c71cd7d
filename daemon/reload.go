package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// Reload reads the configuration again and takes over what may change while the daemon runs. After a mistake in it
// everything stays as it was, and status says so.
func (d *Daemon) Reload(ctx context.Context) (control.ReloadResult, error) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	defer d.tellReloading()()
	now := d.conf.Load()
	stamp := config.Stamp(now.Path)
	defer func() {
		d.lastRead.Store(&stamp)
		if d.dests.withheld.Swap(false) {
			d.dests.retry(true)
		}
	}()
	next, err := now.Reread()
	if err != nil {
		e := wireError(err)
		d.badConfig.Store(&notice{"the configuration is not taken over: " + e.Message, e.Hint})
		d.log.Warn("the configuration is not taken over", "err", err)
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
	return control.ReloadResult{SchemaVersion: control.SchemaVersion, Config: next.Path, Changed: changed, Restart: restart}, nil
}

// apply takes over a configuration. Only opening a server, for which nothing has happened yet, can fail.
func (d *Daemon) apply(ctx context.Context, now, next *config.Config, changed []string) error {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(changed, n) })
	}
	if next.ServerURL != "" {
		if err := d.dests.open(next.ServerURL); err != nil {
			return err
		}
	}
	next.ApplyLogLevel()
	if has("outbox_cap", "head_room", "compact_above") {
		d.db.SetLimits(state.Limits{Cap: next.OutboxCap, HeadRoom: next.HeadRoom, CompactAbove: next.CompactAbove})
	}
	if has("server_url", "api_key_file") {
		d.dests.setOwn(next.ServerURL, ownKeyFile(next))
	}
	d.desk.finder.Exclude(next.ExcludeProjects)
	d.desk.rules.Store(newRules(next))
	d.conf.Store(next)
	if has("roots", "history") {
		d.tailer.SetRoots(tailRoots(*next))
	}
	if err := d.reroute(ctx); err != nil {
		// The rules hold for every line that comes; only quiet files wait for the next look at all of them.
		d.log.Warn("cannot find the files to deliver again", "err", err)
	}
	d.relay.optOutEnded()
	d.tailer.Reread(d.desk.takeIncluded()...)
	d.tailer.Wake()
	if len(changed) > 0 {
		d.dests.retry(has("server_url", "api_key_file"))
	}
	return nil
}

// reroute finds what the rules in force mean for the files that are known: which are to be delivered again, which not
// at all.
func (d *Daemon) reroute(ctx context.Context) error {
	facts, err := d.db.LoadFacts(ctx)
	if err != nil {
		return err
	}
	speaks := map[string]bool{}
	for _, dest := range d.db.Destinations() {
		learned, err := d.db.Learned(ctx, dest)
		if err != nil {
			return fmt.Errorf("read what is known of %s: %w", dest, err)
		}
		speaks[dest] = learned.Extension
	}
	s := d.desk.survey(facts, d.desk.rules.Load(), func(dest string) bool { return speaks[dest] })
	included, err := d.typesIncluded(ctx)
	if err != nil {
		return err
	}
	if included {
		s.again = append(s.again, excludedTypes(facts)...)
	}
	d.relay.setExcluded(s.out)
	d.tailer.Reread(s.again...)
	return nil
}

// keptTypes is the name, in the state, of the types that are left out.
const keptTypes = "exclude_types"

// typesIncluded says whether lines are let through now that were left out by their type before.
func (d *Daemon) typesIncluded(ctx context.Context) (bool, error) {
	types := d.desk.rules.Load().types
	text, err := d.db.Remembered(ctx, keptTypes)
	if err != nil {
		return false, err
	}
	included := false
	for before := range strings.FieldsSeq(string(text)) {
		included = included || !types[before]
	}
	return included, d.db.Remember(ctx, keptTypes, []byte(strings.Join(slices.Sorted(maps.Keys(types)), " ")))
}

// excludedTypes names the files of which lines were left out by their type.
func excludedTypes(facts map[tail.FileID]state.Facts) (ids []tail.FileID) {
	for id, f := range facts {
		if f.Excluded > f.SentBefore && !f.Stream.Extended {
			ids = append(ids, id)
		}
	}
	return ids
}

// ownKeyFile is where the key of the user's own server is.
func ownKeyFile(c *config.Config) *keyFile {
	return &keyFile{path: c.APIKeyFile, optional: c.OriginOf("api_key_file") == config.FromDefault}
}

// wireError is a mistake in the configuration in the terms of the socket.
func wireError(err error) *control.Error {
	e := control.Failed(err.Error(), "`ccship config validate` says more")
	if c, ok := errors.AsType[*config.Error](err); ok {
		e.Code, e.Message, e.Hint = control.CodeConfig, c.Message, c.Hint
	}
	if known, ok := errors.AsType[*control.Error](err); ok {
		return known
	}
	return e
}

// configNotices are what a person should know of the configuration.
func (d *Daemon) configNotices() (out []control.Notice) {
	if n := d.badConfig.Load(); n != nil {
		out = append(out, control.Notice{Kind: "config", Text: n.text, Hint: n.hint})
	}
	if names := d.needRestart.Load(); names != nil && len(*names) > 0 {
		out = append(out, control.Notice{Kind: "restart", Text: "restart needed for: " + strings.Join(*names, ", "), Hint: "ccship restart"})
	}
	return out
}

// settled says whether the configuration in force is the one on disk.
func (d *Daemon) settled() bool {
	return d.badConfig.Load() == nil && config.Stamp(d.conf.Load().Path) == *d.lastRead.Load()
}
