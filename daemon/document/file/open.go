package file

import (
	"io/fs"
	"os"
)

// OpenFile is an open file of a known size. The caller closes it.
type OpenFile struct {
	*os.File
	info fs.FileInfo
}

// Size is how many bytes the file had when it was opened.
func (f *OpenFile) Size() int64 { return f.info.Size() }

// OpenToSend opens a file that is to be sent: a regular one below root that guard lets through (nil: all), whatever
// the links on the way lead to by now.
func OpenToSend(root, name string, guard Guard) (*OpenFile, error) {
	folder, err := OpenFolder(root)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	folder.Guard = guard
	f, info, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	return &OpenFile{f, info}, nil
}
