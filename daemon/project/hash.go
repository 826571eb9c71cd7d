package project

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash is the project_hash of the wire: what the project's credentials say, else the SHA-256 in hex of its git
// remote, else of its working directory, else of the name of the folder its transcripts lie in. p is what Find said
// of cwd.
func Hash(cwd, folder string, p Policy) string {
	text := folder
	switch {
	case p.ProjectHash != "":
		return p.ProjectHash
	case p.Remote != "":
		text = p.Remote
	case cwd != "":
		text = cwd
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
