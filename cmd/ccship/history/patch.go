package history

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ccship/ccship/daemon/control"
)

// Target is what a user asks about: lines of a file, or commits.
type Target struct {
	File     string // as seen from the working directory; "" when commits are asked about
	From, To int    // its lines, from 1; To 0: to the end
	Name     string // of a commit, a range of commits or a pull request
}

var (
	fileLines   = regexp.MustCompile(`^(.+):(\d+)(?:[-,](\d+))?$`)
	pullRequest = regexp.MustCompile(`^(?:#|pr/|[Pp][Rr] ?#?)(\d+)$|` +
		`/(?:pull|pulls|pull-requests|merge_requests)/(\d+)(?:[/?#].*)?$`)
)

// ParseTarget reads FILE:LINE, FILE:A-B, FILE, COMMIT, A..B, and the number (#12) or address of a pull request.
func ParseTarget(dir, text string) (Target, error) {
	if m := fileLines.FindStringSubmatch(text); m != nil && isFile(dir, m[1]) {
		t := Target{File: m[1], From: number(m[2], 0), To: number(m[3], number(m[2], 0))}
		if t.From < 1 || t.To < t.From {
			return t, control.Usage("there are no lines "+text, "lines count from 1: FILE:10 or FILE:10-20")
		}
		return t, nil
	}
	if isFile(dir, text) {
		return Target{File: text, From: 1}, nil
	}
	return Target{Name: text}, nil
}

func isFile(dir, name string) bool {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// maxCommits is how many commits one question may be about.
const maxCommits = 500

// Commits returns the commits that a name stands for, the oldest first, without merges.
func (r *Repo) Commits(ctx context.Context, name string) ([]string, error) {
	neither := control.Usage(name+" is neither a file here nor a commit",
		"FILE:LINE, FILE:A-B, a commit, A..B, or #12 for a pull request")
	if strings.HasPrefix(name, "-") { // git would take it for an option
		return nil, neither
	}
	if m := pullRequest.FindStringSubmatch(name); m != nil {
		return r.pullRequest(ctx, m[1]+m[2])
	}
	if strings.Contains(name, "..") {
		return r.list(ctx, name)
	}
	out, err := r.git(ctx, "rev-list", "--no-walk", "--parents", name+"^{commit}", "--")
	if err != nil {
		if _, err := strconv.Atoi(name); err == nil {
			return r.pullRequest(ctx, name)
		}
		return nil, neither
	}
	commit := strings.Fields(out)
	if len(commit) > 2 {
		return r.list(ctx, commit[1]+".."+commit[0]) // a merge: what it brought
	}
	return commit[:1], r.Whole(ctx, commit[0])
}

func (r *Repo) list(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.git(ctx, slices.Concat([]string{"rev-list", "--reverse", "--no-merges"}, args, []string{"--"})...)
	if err != nil {
		return nil, control.Usage(strings.Join(args, " ")+" is no range of commits here", "A..B, both commits of this clone")
	}
	list := strings.Fields(out)
	if len(list) > maxCommits {
		return nil, control.Usage(strconv.Itoa(len(list))+" commits are too many",
			"ask about at most "+strconv.Itoa(maxCommits))
	}
	return list, nil
}

// pullRequest finds the commits of a pull request in the clone: by the commit that merged it, by a ref that was
// fetched, or by the commit that it was squashed to.
func (r *Repo) pullRequest(ctx context.Context, n string) ([]string, error) {
	merged, err := r.git(ctx, "log", "--all", "--merges", "-1", "--format=%P %H", "-E",
		"--grep=(pull request #|merge request [^ ]*!|Merge PR #|\\(#)"+n+"([^0-9]|$)")
	if p := strings.Fields(merged); err == nil && len(p) > 2 {
		return r.list(ctx, p[0]+".."+p[len(p)-1])
	}
	refs, err := r.git(ctx, "for-each-ref", "--format=%(refname)")
	if err != nil {
		return nil, err
	}
	for _, ref := range strings.Fields(refs) {
		if isRefOf(ref, n) {
			return r.branch(ctx, ref)
		}
	}
	squashed, err := r.git(ctx, "log", "--all", "-20", "--format=%H %s", "-F", "--grep=(#"+n+")")
	for _, l := range strings.Split(squashed, "\n") {
		if commit, subject, ok := strings.Cut(l, " "); err == nil && ok && strings.HasSuffix(subject, "(#"+n+")") {
			return []string{commit}, nil
		}
	}
	return nil, control.Usage("pull request "+n+" is not in this clone", r.fetching(ctx, n))
}

func isRefOf(ref, n string) bool {
	for _, form := range []string{"/pull/" + n + "/head", "/pr/" + n, "/pull/" + n, "/merge-requests/" + n + "/head",
		"/pr/" + n + "/head"} {
		if strings.HasSuffix(ref, form) {
			return true
		}
	}
	return false
}

// branch returns the commits of a ref that the main branch does not have; when it has them all, those since it left it.
func (r *Repo) branch(ctx context.Context, ref string) ([]string, error) {
	for _, base := range []string{"refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master",
		"refs/heads/main", "refs/heads/master", "HEAD"} {
		if _, err := r.git(ctx, "rev-parse", "--verify", "--quiet", base); err != nil {
			continue
		}
		list, err := r.list(ctx, ref, "^"+base)
		if err != nil || len(list) > 0 {
			return list, err
		}
		break
	}
	return r.list(ctx, ref, "--max-count=1")
}

// fetching returns the command that brings a pull request.
func (r *Repo) fetching(ctx context.Context, n string) string {
	remote := "origin"
	if list, err := r.git(ctx, "remote"); err == nil {
		if names := strings.Fields(list); len(names) > 0 && !slices.Contains(names, remote) {
			remote = names[0]
		}
	}
	address, err := r.git(ctx, "remote", "get-url", remote)
	ref := "refs/pull/" + n + "/head"
	if err == nil && strings.Contains(address, "gitlab") {
		ref = "refs/merge-requests/" + n + "/head"
	}
	return "`git fetch " + remote + " " + ref + ":" + ref + "`, then ask again"
}

// line is a line of a file.
type line struct {
	number int // from 1
	text   string
}

// change is what a patch says of a file.
type change struct {
	path, old      string // "" of one that is not there
	added, removed []line
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// changes reads a patch without context.
func changes(text string) (out []change) {
	var c *change
	var from, to, minus, plus int // the numbers of the next lines, and how many come
	for _, l := range strings.Split(text, "\n") {
		switch {
		case minus > 0 && strings.HasPrefix(l, "-"):
			c.removed = append(c.removed, line{from, l[1:]})
			from, minus = from+1, minus-1
		case plus > 0 && strings.HasPrefix(l, "+"):
			c.added = append(c.added, line{to, l[1:]})
			to, plus = to+1, plus-1
		case strings.HasPrefix(l, "diff --git "):
			out = append(out, change{})
			c, minus, plus = &out[len(out)-1], 0, 0
		case c == nil:
		case strings.HasPrefix(l, "--- "):
			c.old = pathIn(l[4:], "a/")
		case strings.HasPrefix(l, "+++ "):
			c.path = pathIn(l[4:], "b/")
		case strings.HasPrefix(l, "@@ "):
			if m := hunkHead.FindStringSubmatch(l); m != nil {
				from, minus, to, plus = number(m[1], 0), number(m[2], 1), number(m[3], 0), number(m[4], 1)
			}
		}
	}
	return out
}

func number(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return otherwise
	}
	return n
}

// pathIn returns a path as git writes it in a patch; "" for /dev/null.
func pathIn(text, prefix string) string {
	text = strings.TrimRight(text, "\t\r") // git marks the end of a name that has spaces
	if strings.HasPrefix(text, `"`) {
		if plain, err := strconv.Unquote(text); err == nil {
			text = plain
		}
	}
	name, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return ""
	}
	return name
}

var generatedMark = regexp.MustCompile(`^(//|#|/\*|--|<!--).*(Code generated .*DO NOT EDIT|@generated)`)

// generated reports whether programs write a file: they lock versions, or the file says so.
func generated(c change) bool {
	name := path.Base(c.path)
	locks := []string{"go.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
		"Cargo.lock", "poetry.lock", "uv.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock", "mix.lock", "flake.lock"}
	if slices.Contains(locks, name) {
		return true
	}
	for _, end := range []string{".pb.go", "_pb2.py", ".min.js", ".min.css", ".snap", ".map"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return slices.ContainsFunc(c.added[:min(len(c.added), 20)],
		func(l line) bool { return generatedMark.MatchString(l.text) })
}
