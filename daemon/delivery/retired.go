package delivery

import (
	"context"
	"slices"
	"strings"

	"github.com/ccship/ccship/daemon/control"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// Retired reports whether a destination gets no new lines: it is neither the user's own server nor one that a trusted
// project names. What was queued for it is still sent.
func (s *Servers) Retired(dest string) bool {
	_, dir, ofProject := project.SplitDestination(dest)
	if !ofProject {
		return dest != s.Own()
	}
	return !s.Owner.TrustsProject(dir)
}

// RetiredServers returns the retired servers with waiting rows.
func (s *Servers) RetiredServers(usage state.Usage) (list []control.RetiredServer) {
	byURL := map[string]control.RetiredServer{}
	for dest, waiting := range usage.ByDest {
		if waiting.Batches > 0 && s.Retired(dest) {
			f := byURL[project.ServerURL(dest)]
			f.URL, f.Batches, f.Entries = project.ServerURL(dest), f.Batches+waiting.Batches, f.Entries+waiting.Entries
			byURL[f.URL] = f
		}
	}
	for _, f := range byURL {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b control.RetiredServer) int { return strings.Compare(a.URL, b.URL) })
	return list
}

// DropServer removes what waits for a retired server, with its dead letters.
func (s *Servers) DropServer(ctx context.Context, req control.DropServerRequest) (control.DropServerResult, error) {
	a := control.DropServerResult{SchemaVersion: control.SchemaVersion, Server: req.Server}
	_, url, err := outbox.NormalizeURL(req.Server)
	if err != nil {
		return a, control.NewError(control.CodeConfig, err.Error(), hintURL)
	}
	var dests []string
	for _, dest := range s.State.Outbox.KnownDestinations() {
		if !project.SameServer(project.ServerURL(dest), url) {
			continue
		}
		if !s.Retired(dest) {
			return a, control.Usage("lines still go to "+url+": what waits for it is not dropped",
				"`ccship exclude` leaves projects out, `ccship outbox drop` removes dead letters")
		}
		dests = append(dests, dest)
	}
	dropped, err := s.State.Outbox.DropDestinations(ctx, dests)
	if err != nil {
		return a, err
	}
	a.Rows, a.Entries, a.Letters = dropped.Rows, dropped.Entries, dropped.Dead
	if dropped.Rows+dropped.Dead == 0 {
		return a, control.Usage("nothing waits for "+url, "`ccship outbox list` names the servers")
	}
	s.Log.Info("what waited for a retired server was dropped", "server", url, "rows", a.Rows, "entries", a.Entries)
	return a, nil
}
