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
	name := filepath.Base(gitDir)
	if name == ".git" {
		name = filepath.Base(filepath.Dir(gitDir))
	}
	return Repository{commit, strings.TrimSuffix(name, ".git")}, nil
}

// ID is its name on the wire.
func (r Repository) ID() string {
	sum := sha256.Sum256([]byte(r.Commit + "\n" + r.Name))
	return hex.EncodeToString(sum[:])
}
