//go:build !linux && !darwin

package file

import "io/fs"

// StampOf returns the stamp in the metadata of a file.
func StampOf(info fs.FileInfo) Stamp {
	return Stamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

func identityOf(fs.FileInfo) Identity { return Identity{} }
