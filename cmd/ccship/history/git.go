// Package history asks git what a commit adds, who last changed a line, and which commits a name stands for. It runs
// the program git, changes nothing but notes when it is asked to, and fetches nothing.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/ccship/ccship/daemon/control"
)

// Repo is a work tree.
type Repo struct {
	Top string // its folder
	// Mask returns a text with its secrets replaced, line by line as long as before; nil: nothing is secret.
	Mask func(text string) string
}

// Open finds the work tree that a folder is in.
func Open(ctx context.Context, dir string) (*Repo, error) {
	top, err := (&Repo{Top: dir}).git(ctx, "rev-parse", "--show-toplevel")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, control.NewError("no_git", "git is not installed", "install git: `ccship why` asks it about history")
	}
	if err != nil {
		return nil, control.Usage(dir+" is in no git repository", "run it in one")
	}
	return &Repo{Top: strings.TrimRight(top, "\r\n")}, nil
}

// git runs git and returns what it prints. No setting of the user's changes the form of that.
func (r *Repo) git(ctx context.Context, args ...string) (string, error) {
	all := append([]string{"-C", r.Top, "-c", "core.quotePath=false", "-c", "log.showSignature=false", "--no-pager",
		"--literal-pathspecs"}, args...)
	cmd := exec.CommandContext(ctx, "git", all...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(problem.String()), "\n")
		return "", fmt.Errorf("git %s: %s: %w", args[0], text, err)
	}
	return string(out), nil
}

// patch returns the arguments that make git print changes in the one form that is read here.
func patch() []string {
	return []string{"-p", "-U0", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/",
		"--dst-prefix=b/",
		"--diff-algorithm=myers", "--submodule=short"}
}
