package daemon

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/state"
)

// former says whether lines go to a destination no more: it is neither the user's own server nor one that a trusted
// project names. What was queued for it still goes there.
func (d *Daemon) former(dest string) bool {
	_, dir, projects := strings.Cut(dest, "#")
	if !projects {
		return dest != d.dests.ownServer()
	}
	return !project.Trusted(dir, d.router.Rules().TrustedProjects)
}

// formerServers are those for which rows wait.
func (d *Daemon) formerServers(usage state.Usage) []control.FormerServer {
	byURL := map[string]control.FormerServer{}
	for dest, w := range usage.ByDest {
		if w.Batches > 0 && d.former(dest) {
			f := byURL[urlOf(dest)]
			byURL[urlOf(dest)] = control.FormerServer{URL: urlOf(dest), Batches: f.Batches + w.Batches, Entries: f.Entries + w.Entries}
		}
	}
	var list []control.FormerServer
	for _, f := range byURL {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b control.FormerServer) int { return strings.Compare(a.URL, b.URL) })
	return list
}

// DropServer removes what waits for a server that lines go to no more, with its dead letters.
func (d *Daemon) DropServer(ctx context.Context, req control.DropServerRequest) (control.DropServerResult, error) {
	a := control.DropServerResult{SchemaVersion: control.SchemaVersion, Server: req.Server}
	url, err := config.NormalizeURL(req.Server)
	if err != nil {
		return a, wireError(err)
	}
	var dests []string
	for _, dest := range d.db.KnownDestinations() {
		if !project.SameServer(urlOf(dest), url) {
			continue
		}
		if !d.former(dest) {
			return a, control.Usage("lines go to "+url+": what waits for it is not given up",
				"`ccship exclude add` leaves projects out, `ccship outbox drop` removes dead letters")
		}
		dests = append(dests, dest)
	}
	dropped, err := d.db.DropDestinations(ctx, dests)
	if err != nil {
		return a, err
	}
	if a.Rows, a.Entries, a.Letters = dropped.Rows, dropped.Entries, dropped.Dead; dropped.Rows+dropped.Dead == 0 {
		return a, control.Usage("nothing waits for "+url, "`ccship outbox list` names the servers")
	}
	d.log.Info("what waited for a former server was given up", "server", url, "rows", a.Rows, "entries", a.Entries)
	return a, nil
}
