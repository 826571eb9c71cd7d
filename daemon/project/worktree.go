package project

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
