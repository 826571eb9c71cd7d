package project

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Repository is what tells repositories without a remote apart: clones of one in folders of one name are the same one.
type Repository struct {
	Commit string // the first one
	Name   string // of its folder
}

// ReadRepository reads Policy.GitDir. Errors and costs are those of FirstCommit.
func ReadRepository(ctx context.Context, gitDir string) (Repository, error) {
	commit, err := FirstCommit(ctx, gitDir)
	if err != nil {
		return Repository{}, err
	}
	if base := filepath.Base(gitDir); strings.HasPrefix(base, ".") { // .git, .bare
		gitDir = filepath.Dir(gitDir)
	}
	return Repository{commit, strings.TrimSuffix(filepath.Base(gitDir), ".git")}, nil
}

// Top returns the folder that the repository of a working directory is called after: its main work tree or, where it is
// bare, the folder that people see of it, without ".git". "" where nothing is known of one, and of a submodule.
func (p Policy) Top() string {
	base := filepath.Base(p.GitDir)
	switch {
	case p.Repository != "":
		return p.Repository
	case p.GitDir != "" && strings.HasPrefix(base, "."):
		return filepath.Dir(p.GitDir)
	case strings.HasSuffix(base, ".git"):
		return strings.TrimSuffix(p.GitDir, ".git")
	}
	return ""
}

// ID is its name on the wire.
func (r Repository) ID() string {
	return hashOf(r.Commit + "\n" + r.Name)
}

// maxListed limits the folders next to a folder that is gone, and the work trees of a repository, that are looked at.
const maxListed = 1024

// findRepository returns the main work tree of the linked git work tree that dir lies in; "" if it lies in none. A
// work tree may be gone: one that Claude Code made is known by its place below the repository, one in .worktrees by its
// place below a repository that is there, and any other while the repository still lists it. An error means that a
// retry can help.
func findRepository(dir string, gone bool) (string, error) {
	place := string(filepath.Separator) + filepath.Join(".claude", "worktrees") + string(filepath.Separator)
	if repo, _, found := strings.Cut(dir, place); found && repo != "" {
		return repo, nil
	}
	around := ""
	for top := range upwards(dir) {
		info, err := os.Stat(filepath.Join(top, ".git"))
		if err != nil && absent(err) {
			continue
		}
		if err == nil && !info.IsDir() {
			return mainWorkTree(filepath.Join(top, ".git"))
		}
		if err == nil {
			around = top
		}
		break
	}
	if around != "" && strings.HasPrefix(dir, filepath.Join(around, ".worktrees")+string(filepath.Separator)) {
		return around, nil
	}
	if !gone {
		return "", nil
	}
	return lister(dir, around)
}

// lister returns the repository that lists a work tree which is gone, and in which dir was: the one around it, or one
// next to it. git forgets a work tree when it is removed with `git worktree remove`, and others after some months.
func lister(dir, around string) (string, error) {
	repos := []string{}
	if around != "" {
		repos = append(repos, around)
	}
	for parent := range upwards(dir) {
		names, err := listed(parent)
		if err != nil {
			return "", err
		}
		if names == nil {
			continue // gone too
		}
		for _, name := range names {
			if !ofOthers(parent) {
				repos = append(repos, filepath.Join(parent, name))
			}
		}
		break
	}
	for _, repo := range repos {
		trees := filepath.Join(repo, ".git", "worktrees")
		names, err := listed(trees)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			text, err := readFile(filepath.Join(trees, name, "gitdir"), maxFile)
			if err != nil && !absent(err) && !permanent(err) {
				return "", err
			}
			if tree := filepath.Dir(below(filepath.Join(trees, name), text)); err == nil &&
				strings.HasPrefix(dir+string(filepath.Separator), tree+string(filepath.Separator)) {
				return repo, nil
			}
		}
	}
	return "", nil
}

// ofOthers reports whether a folder has other people's homes or other disks in it: to look into each may mount them.
func ofOthers(dir string) bool {
	above := filepath.Dir(dir)
	return above == dir || filepath.Dir(above) == above &&
		slices.Contains([]string{"home", "Users", "mnt", "media", "net", "Volumes"}, filepath.Base(dir))
}

// listed returns the names of what lies in a folder, some at most; nil if it is gone or cannot be read. An error means
// that a retry can help.
func listed(dir string) ([]string, error) {
	info, err := os.Stat(dir) // to open a pipe could block for ever
	if err == nil && !info.IsDir() {
		return nil, nil
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(dir)
	}
	if err != nil {
		if absent(err) || permanent(err) {
			err = nil
		}
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxListed)
	if err != nil && !errors.Is(err, io.EOF) && !permanent(err) {
		return nil, err
	}
	slices.Sort(names)
	return append([]string{}, names...), nil
}

// mainWorkTree returns the main work tree of the repository that a .git file names; "" for a submodule, which is a
// repository of its own, and for a repository without a main work tree.
func mainWorkTree(gitFile string) (string, error) {
	gitDir, err := followGitFile(gitFile)
	if err == nil {
		_, err = os.Stat(filepath.Join(gitDir, "commondir"))
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || absent(err) || permanent(err) {
			err = nil
		}
		return "", err
	}
	common, err := commonDir(gitDir)
	if err != nil || filepath.Base(common) != ".git" {
		return "", err
	}
	return filepath.Dir(common), nil
}

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
