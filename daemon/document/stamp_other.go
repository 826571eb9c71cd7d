//go:build !linux && !darwin

package document

import "io/fs"

// stampOf returns the stamp in the metadata of a file.
func stampOf(info fs.FileInfo) fileStamp {
	return fileStamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

func identityOf(fs.FileInfo) identity { return identity{} }
