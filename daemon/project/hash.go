package project

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
)

// Hash returns the project_hash of the wire: the one in a trusted project's credentials, else the SHA-256 in hex of its
// git remote, else of its working directory (of a worktree, its repository), else of the name of the folder that holds
// its transcripts. p is the result of Find for cwd. The hash decides who can see a session, so credentials that may
// have come with a cloned repository do not choose it.
func Hash(cwd, folder string, p Policy, trusted []string) string {
	text := folder
	switch {
	case p.ProjectHash != "" && Trusted(p.Dir, trusted):
		return p.ProjectHash
	case p.Remote != "":
		text = p.Remote
	case cwd != "":
		text = cmp.Or(p.Repository, cwd)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
