//go:build !linux && !darwin

package document

import (
	"io/fs"

	"github.com/ccship/ccship/state/projection"
)

// stampOf returns the stamp in the metadata of a file.
func stampOf(info fs.FileInfo) projection.Stamp {
	return projection.Stamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

func identityOf(fs.FileInfo) projection.Folder { return projection.Folder{} }
