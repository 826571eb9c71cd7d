package project

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// findGit returns the normalised remote of dir's git repository, and the folder that its work trees share; "" without a
// repository or remote. Configuration that is permanently unreadable counts as missing; an error means that a retry can
// help.
func findGit(dir string) (remote, gitDir string, err error) {
	for top := range upwards(dir) {
		gitDir, text, err := readGitConfig(top)
		if err != nil {
			return "", "", err
		}
		if gitDir != "" {
			return normalizeRemote(pickRemote(parseGitConfig(text)), top), gitDir, nil
		}
	}
	return "", "", nil
}

// readGitConfig reads the configuration of the repository whose work tree starts at top. gitDir is "" if there is none.
func readGitConfig(top string) (gitDir string, text []byte, err error) {
	gitDir = filepath.Join(top, ".git")
	info, err := os.Stat(gitDir)
	if err == nil && !info.IsDir() {
		gitDir, err = followGitFile(gitDir)
	}
	if err == nil {
		gitDir, err = commonDir(gitDir)
	}
	if err == nil {
		text, err = readFile(filepath.Join(gitDir, "config"), maxFile)
	}
	if err != nil {
		if absent(err) || permanent(err) {
			err = nil
		}
		return "", nil, err
	}
	return gitDir, text, nil
}

// followGitFile reads the .git file of a linked work tree or a submodule: "gitdir: <path>".
func followGitFile(path string) (string, error) {
	text, err := readFile(path, maxFile)
	if err != nil {
		return "", err
	}
	target, ok := bytes.CutPrefix(text, []byte("gitdir:"))
	if !ok {
		return "", fs.ErrNotExist
	}
	return below(filepath.Dir(path), target), nil
}

// commonDir returns the folder that all work trees of a linked work tree's repository share.
func commonDir(gitDir string) (string, error) {
	text, err := readFile(filepath.Join(gitDir, "commondir"), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	return below(gitDir, text), nil
}

// below resolves a path as git writes it into a file.
func below(dir string, written []byte) string {
	path := filepath.FromSlash(string(bytes.TrimSpace(written)))
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// remote is one [remote "name"] section.
type remote struct{ name, url string }

// pickRemote takes origin, else the first.
func pickRemote(remotes []remote) string {
	for _, r := range remotes {
		if r.name == "origin" {
			return r.url
		}
	}
	if len(remotes) > 0 {
		return remotes[0].url
	}
	return ""
}

// parseGitConfig returns the remotes that have a url in a git configuration file (git-config(1), "Syntax"). If a remote
// has several urls, git fetches from the first. Lines that it does not understand are skipped.
func parseGitConfig(text []byte) []remote {
	var remotes []remote
	section, name := "", ""
	for len(text) > 0 {
		var line string
		line, text = cutConfigLine(text)
		line = strings.TrimLeft(line, " \t\r")
		if strings.HasPrefix(line, "[") {
			section, name, line = parseSection(line)
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section != "remote" || !strings.EqualFold(strings.TrimSpace(key), "url") {
			continue
		}
		if url := parseConfigValue(value); url != "" {
			remotes = append(remotes, remote{name, url})
		}
	}
	return remotes
}

// cutConfigLine takes a line off text, together with the lines that a trailing backslash joins to it.
func cutConfigLine(text []byte) (line string, rest []byte) {
	var b strings.Builder
	for {
		part, rest, found := bytes.Cut(text, []byte("\n"))
		part = bytes.TrimSuffix(part, []byte("\r"))
		slashes := len(part) - len(bytes.TrimRight(part, `\`))
		if !found || slashes%2 == 0 {
			b.Write(part)
			return b.String(), rest
		}
		b.Write(part[:len(part)-1])
		text = rest
	}
}

// parseSection reads [section "subsection"], or the older [section.subsection], and returns what follows it.
func parseSection(line string) (section, name, rest string) {
	head := line[1:]
	quote, end := strings.IndexByte(head, '"'), strings.IndexByte(head, ']')
	if end < 0 {
		return "", "", ""
	}
	if quote < 0 || end < quote {
		section, name, _ = strings.Cut(head[:end], ".")
		return strings.ToLower(strings.TrimSpace(section)), strings.ToLower(name), head[end+1:]
	}
	section = strings.ToLower(strings.TrimSpace(head[:quote]))
	var b strings.Builder
	for i := quote + 1; i < len(head); i++ {
		switch c := head[i]; {
		case c == '\\' && i+1 < len(head):
			i++
			b.WriteByte(head[i])
		case c == '"':
			_, rest, _ = strings.Cut(head[i:], "]")
			return section, b.String(), rest
		default:
			b.WriteByte(c)
		}
	}
	return "", "", ""
}

// parseConfigValue removes quotes, escapes, comments and surrounding space from a value.
func parseConfigValue(s string) string {
	var b strings.Builder
	quoted, end := false, 0 // end is behind the last byte that is not trailing space
	s = strings.TrimLeft(s, " \t")
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			quoted = !quoted
			continue
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			end = b.Len()
			continue
		case (c == '#' || c == ';') && !quoted:
			return b.String()[:end]
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			end = b.Len()
		}
	}
	return b.String()[:end]
}
