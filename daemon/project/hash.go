package project

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash is the project_hash of the wire: what the credentials of a trusted project say, else the SHA-256 in hex of its
// git remote, else of its working directory, else of the name of the folder its transcripts lie in. p is what Find said
// of cwd. The hash decides whom a session is shared with, so credentials that may have come with a cloned repository
// do not choose it.
func Hash(cwd, folder string, p Policy, trusted []string) string {
	text := folder
	switch {
	case p.ProjectHash != "" && Trusted(p.Dir, trusted):
		return p.ProjectHash
	case p.Remote != "":
		text = p.Remote
	case cwd != "":
		text = cwd
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
