package project

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ccship/ccship/outbox"
)

// Destination returns the server that gets a project's lines ("" for none), and why that may surprise ("" if it does
// not). own is the user's server ("" for none). Projects in or below the trusted folders may name a server of their
// own. A project that is not trusted never decides where lines go: its file may have come with a cloned repository.
func Destination(p Policy, own string, trusted []string) (dest, why string) {
	switch {
	case !p.Enabled && p.Dir == "":
		return "", "opted out"
	case !p.Enabled:
		return "", "opted out in " + p.path(configName)
	case Trusted(p.Dir, trusted) && p.ServerURL != "" && !SameServer(p.ServerURL, own):
		return p.ServerURL, p.Advice
	case Trusted(p.Dir, trusted):
		return own, p.Advice
	case p.ServerURL == "" || SameServer(p.ServerURL, own):
		return own, cmp.Or(p.Advice, hashAdvice(p))
	case own == "":
		return "", fmt.Sprintf("the project in %s has the server %s, which is not followed until the folder is in "+
			"trusted_projects; "+
			"there is no other server", p.Dir, p.ServerURL)
	}
	return own, fmt.Sprintf("the project in %s has the server %s, which is not followed until the folder is in "+
		"trusted_projects; "+
		"its lines go to %s", p.Dir, p.ServerURL, own)
}

// hashAdvice says that the project_hash in a project's credentials is ignored; "" when they have none.
func hashAdvice(p Policy) string {
	if p.ProjectHash == "" {
		return ""
	}
	return fmt.Sprintf("the project in %s has a project_hash in its credentials, which is not followed until "+
		"the folder is in trusted_projects", p.Dir)
}

// DestinationKey returns the name of a trusted project's server in the state: its URL, and the folder whose credentials
// open it, because two projects may use one server with two keys. The user's own server has only its URL as name.
func DestinationKey(url, dir string) string { return url + "#" + dir }

// SplitDestination splits the name of a destination. ofProject is false for a server that no project named.
func SplitDestination(dest string) (url, dir string, ofProject bool) { return strings.Cut(dest, "#") }

// ServerURL returns the URL in the name of a destination.
func ServerURL(dest string) string {
	url, _, _ := SplitDestination(dest)
	return url
}

// Trusted reports whether the project in dir is in one of the trusted folders. It compares names as written: resolving
// links would let a repository link itself into a trusted folder.
func Trusted(dir string, trusted []string) bool {
	if dir == "" {
		return false
	}
	for _, t := range trusted {
		rel, err := filepath.Rel(fold(t), fold(dir))
		if err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// fold makes paths comparable where letter case does not matter.
func fold(path string) string {
	if runtime.GOOS == "windows" {
		return strings.ToLower(path)
	}
	return path
}

// SameServer reports whether two addresses are one, spelled differently.
func SameServer(a, b string) bool { return a != "" && spelling(a) == spelling(b) }

// spelling returns the normal form of an address; text that is not an address stays as it is.
func spelling(raw string) string {
	_, url, err := outbox.NormalizeURL(raw)
	if err != nil {
		return raw
	}
	return url
}

// Loopback reports whether a destination's address is on this machine.
func Loopback(dest string) bool {
	u, err := url.Parse(ServerURL(dest))
	if err != nil {
		return false
	}
	if u.Scheme == "unix" {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
