package project

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// normalizeRemote converts all forms of a repository's address to one: host/path, without scheme, user, port and
// ".git", the host in lower case. So clones over ssh and over https get the same name. An address on this machine's
// disk becomes file:///path; top is the work tree that it is relative to.
func normalizeRemote(address, top string) string {
	switch {
	case address == "":
		return ""
	case strings.Contains(address, "://"):
		return normalizeURL(address)
	}
	if host, p, ok := cutHost(address); ok {
		return join(host, p)
	}
	local := filepath.FromSlash(address)
	if !filepath.IsAbs(local) {
		local = filepath.Join(top, local)
	}
	return "file://" + trimRepo(path.Clean(slashed(local)))
}

func normalizeURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		// A password with odd characters is no reason to refuse the address: cut it by hand.
		_, rest, _ := strings.Cut(address, "://")
		host, p, _ := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		if name, port, ok := strings.Cut(host, ":"); ok && strings.Trim(port, "0123456789") == "" {
			host = name
		}
		return join(host, p)
	}
	if u.Scheme == "file" {
		return "file://" + trimRepo(path.Clean("/"+u.Path))
	}
	return join(u.Hostname(), u.Path)
}

// cutHost splits the scp-like form [user@]host:path. As in git, a colon after a slash does not count; neither does one
// after a single letter, which is a Windows drive.
func cutHost(address string) (host, p string, ok bool) {
	if strings.HasPrefix(address, "[") { // [host:port]:path, and [::1]:path
		inside, rest, found := strings.Cut(address[1:], "]:")
		host, port, _ := strings.Cut(inside, ":")
		if strings.Contains(port, ":") {
			host = inside
		}
		return afterUser(host), rest, found
	}
	if user, bracket, found := strings.Cut(address, "@["); found && !strings.ContainsAny(user, ":/") {
		return cutHost("[" + bracket)
	}
	host, p, ok = strings.Cut(address, ":")
	if !ok || len(host) < 2 || strings.ContainsAny(host, `/\`) {
		return "", "", false
	}
	return afterUser(host), p, true
}

func afterUser(host string) string { return host[strings.LastIndexByte(host, '@')+1:] }

func join(host, p string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch host { // ssh on the https port, for networks that block other ports
	case "ssh.github.com":
		host = "github.com"
	case "altssh.gitlab.com":
		host = "gitlab.com"
	case "altssh.bitbucket.org":
		host = "bitbucket.org"
	}
	return host + trimRepo(path.Clean("/"+p))
}

// trimRepo takes ".git" off the end of a clean path.
func trimRepo(p string) string { return strings.TrimSuffix(strings.TrimSuffix(p, ".git"), "/") }

// slashed returns a path of this system with slashes, with a leading one before a drive.
func slashed(p string) string {
	p = filepath.ToSlash(p)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return p
}
