package daemon

import (
	"strings"

	"github.com/ccship/ccship/daemon/config"
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
	"github.com/ccship/ccship/tail"
)

// rules is what the configuration says about where lines go. Immutable: another reading makes another one.
type rules struct {
	own     string          // normalised URL of the user's server, "" none
	trusted []string        // project folders whose own server is followed
	history bool            // history.jsonl is delivered
	max     int             // entries a request, unless the project says otherwise
	types   map[string]bool // record types that are left out
}

func newRules(c *config.Config) *rules {
	r := &rules{own: c.ServerURL, trusted: c.TrustedProjects, history: c.History, max: c.MaxEntriesPerRequest, types: map[string]bool{}}
	for _, t := range c.ExcludeTypes {
		r.types[t] = true
	}
	return r
}

// anyServer says whether lines could go anywhere at all.
func (d *desk) anyServer() bool {
	r := d.rules.Load()
	return r.own != "" || len(r.trusted) > 0
}

// route asks the project of a file whether it may be sent, and where to.
func (d *desk) route(f *state.Facts, r *rules) (project.Policy, string, tail.Result) {
	if f.Stream.Extended {
		if r.own == "" || !r.history {
			return project.Policy{}, "", tail.Result{Err: &optedOut{why: "no server for the prompt history"}}
		}
		return project.Policy{}, r.own, tail.Result{}
	}
	policy, err := d.finder.Find(f.Stream.Cwd)
	if err != nil {
		d.notice(f.Stream.Cwd, notice{err.Error(), "until that file can be read nothing of the project is sent"})
		return policy, "", tail.Result{Err: &optedOut{"held back: " + err.Error(), f.Stream.Cwd}}
	}
	if !policy.Enabled {
		return policy, "", tail.Result{Err: &optedOut{policy.Why, f.Stream.Cwd}}
	}
	url, why := project.Destination(policy, r.own, r.trusted)
	d.notice(f.Stream.Cwd, notice{why, "trusted_projects names the folders whose own server is followed"})
	if url == "" {
		return policy, "", tail.Result{Err: tail.ErrLater}
	}
	if url == r.own {
		return policy, url, tail.Result{}
	}
	_, key, err := outbox.NormalizeURL(url)
	if err != nil {
		d.notice(f.Stream.Cwd, notice{"the server_url of " + policy.Dir + " is not used: " + err.Error(), "mend .codetracker/config.json"})
		if r.own == "" {
			return policy, "", tail.Result{Err: tail.ErrLater}
		}
		return policy, r.own, tail.Result{}
	}
	return policy, projectKey(key, policy.Dir), tail.Result{}
}

// enabled says whether the project of a working directory may be sent.
func (d *desk) enabled(cwd string) bool {
	policy, _ := d.finder.Find(cwd)
	return policy.Enabled
}

// projectKey is the destination of a project's own server: its URL, and the folder whose credentials open it, since
// two projects may use one server with two keys.
func projectKey(url, dir string) string { return url + "#" + dir }

// isProjects says whether a destination is the server that the project itself names: the one an earlier hook sent to.
func (d *desk) isProjects(p project.Policy, dest string) bool {
	url, _, own := strings.Cut(dest, "#")
	return own || p.ServerURL != "" && project.SameServer(p.ServerURL, url)
}

// survey is what rules mean for the files that are known.
type survey struct {
	// again are to be delivered from line 0: their lines went to another server than they would now, or to one that
	// took them before it spoke the extension. A quiet file is not looked at by itself, so they must be found.
	again []tail.FileID
	out   map[tail.FileID]*optedOut // not to be delivered
}

// survey asks for every file what r means for it. speaks says which servers speak the extension.
func (d *desk) survey(facts map[tail.FileID]state.Facts, r *rules, speaks func(dest string) bool) survey {
	s := survey{out: map[tail.FileID]*optedOut{}}
	for id, f := range facts {
		if !f.Decided {
			continue
		}
		if d.graves.has(f.Stream.SessionID) {
			s.out[id] = &optedOut{why: forgottenWhy}
			continue
		}
		_, dest, result := d.route(&f, r)
		if out, ok := result.Err.(*optedOut); ok {
			s.out[id] = out
		}
		elsewhere := result.Err == nil && f.Dest != "" && dest != f.Dest
		if elsewhere || result.Err == nil && (f.Plain || f.Withheld > 0) && speaks(f.Dest) {
			s.again = append(s.again, id)
		}
	}
	return s
}
