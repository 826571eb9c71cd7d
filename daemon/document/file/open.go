package file

import (
	"io"
	"io/fs"
	"os"
)

// OpenFile is an open file of a known size. The caller closes it.
type OpenFile struct {
	file    *os.File
	content io.ReaderAt // what is sent of the file
	info    fs.FileInfo
}

// ReadAt reads what is sent of the file.
func (f *OpenFile) ReadAt(p []byte, offset int64) (int, error) { return f.content.ReadAt(p, offset) }

// Close closes the file.
func (f *OpenFile) Close() error { return f.file.Close() }

// Size is how many bytes the file had when it was opened.
func (f *OpenFile) Size() int64 { return f.info.Size() }

// OpenToSend opens a file that is to be sent: a regular one below root that guard lets through (nil: all), read
// through mask (nil: as it is), whatever the links on the way lead to by now.
func OpenToSend(root, name string, guard Guard, mask Mask) (*OpenFile, error) {
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
	open := &OpenFile{file: f, content: f, info: info}
	if mask != nil {
		open.content = mask(name, f, info.Size())
	}
	return open, nil
}
