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

// OpenToSend opens a regular file below root that guard permits (nil: all), for reading through mask (nil: unmasked).
// It checks the open file itself, because links on the way may have changed.
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
