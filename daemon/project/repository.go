package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
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
	sum := sha256.Sum256([]byte(r.Commit + "\n" + r.Name))
	return hex.EncodeToString(sum[:])
}
