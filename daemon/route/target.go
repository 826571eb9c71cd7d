package route

import (
	"github.com/ccship/ccship/daemon/project"
	"github.com/ccship/ccship/outbox"
	"github.com/ccship/ccship/state"
)

// target is where the rules send the lines of a file.
type target struct {
	verdict   Verdict   // Take, Later or Excluded
	exclusion Exclusion // with Excluded
	dest      string    // with Take
	policy    project.Policy
}

// target asks the project of a file whether the file may be sent, and where to.
func (r *Router) target(f *state.Routing) target {
	rules := r.rules.Load()
	switch {
	case r.Tombstones.has(f.Stream.SessionID):
		return excluded(Forgotten, "")
	case f.Stream.Extended && (rules.OwnServer == "" || !rules.History):
		return excluded("no server for the prompt history", "")
	case f.Stream.Extended:
		return target{dest: rules.OwnServer}
	}
	cwd := f.Stream.Cwd
	policy, t := r.allowed(cwd)
	if t.verdict == Take && f.ParentCwd != "" && f.ParentCwd != cwd {
		_, t = r.allowed(f.ParentCwd) // an agent may work elsewhere: its session decides too
	}
	if t.verdict != Take {
		return t
	}
	dest, why := project.Destination(policy, rules.OwnServer, rules.TrustedProjects)
	r.advice.set(cwd, why, "trusted_projects names the folders whose own server and project_hash are followed")
	if dest != "" && dest != rules.OwnServer {
		if _, url, err := outbox.NormalizeURL(dest); err == nil {
			dest = project.DestinationKey(url, policy.Dir)
		} else {
			dest = rules.OwnServer
			r.advice.set(cwd, "the server_url of "+policy.Dir+" is not used: "+err.Error(), "correct .codetracker/config.json")
		}
	}
	if dest == "" {
		return target{verdict: Later, policy: policy}
	}
	return target{policy: policy, dest: dest}
}

// allowed asks the project of a working directory whether anything of it may be sent: Take or Excluded.
func (r *Router) allowed(cwd string) (project.Policy, target) {
	policy, err := r.projects.Find(cwd)
	switch {
	case err != nil:
		r.advice.set(cwd, err.Error(), "until that file can be read nothing of the project is sent")
		return policy, excluded(withheldWhy(err), cwd)
	case !policy.Enabled:
		return policy, excluded(policy.Why, cwd)
	}
	return policy, target{}
}

// Destination returns the server of a transcript's lines under the rules in force. It returns "" when they go nowhere;
// why is then the reason if they must stay on this machine.
func (r *Router) Destination(f *state.Routing) (dest, why string) {
	t := r.target(f)
	switch t.verdict {
	case Take:
		return t.dest, ""
	case Excluded:
		return "", t.exclusion.Why
	}
	return "", ""
}

func excluded(why, cwd string) target {
	return target{verdict: Excluded, exclusion: Exclusion{Why: why, Cwd: cwd}}
}

// withheldWhy returns why a project whose opt-out cannot be read is excluded.
func withheldWhy(err error) string { return "held back: " + err.Error() }

// namedByProject reports whether a destination is the server that the project itself names.
func (t *target) namedByProject() bool {
	url, _, own := project.SplitDestination(t.dest)
	return own || t.policy.ServerURL != "" && project.SameServer(t.policy.ServerURL, url)
}
