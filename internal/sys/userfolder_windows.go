package sys

import (
	"io/fs"
	"os"
	"path/filepath"
)

// UserFolder returns a folder of this machine that only this user can use: the same for all processes of the user.
func UserFolder() (string, error) { return ownFolder(filepath.Join(os.TempDir(), "ccship")) }

func private(fs.FileInfo) bool { return true }
