package document

import (
	"io"
	"io/fs"
	"os"
)

// openFile is an open file of a known size. The caller closes it.
type openFile struct {
	file    *os.File
	content io.ReaderAt // what is sent of the file
	info    fs.FileInfo
}

// ReadAt reads what is sent of the file.
func (f *openFile) ReadAt(p []byte, offset int64) (int, error) { return f.content.ReadAt(p, offset) }

// Close closes the file.
func (f *openFile) Close() error { return f.file.Close() }

// Size returns how many bytes the file had when it was opened.
func (f *openFile) Size() int64 { return f.info.Size() }

// openToSend opens a regular file below root that guard permits (nil: all), for reading through mask (nil: unmasked).
// It checks the open file itself, because links on the way may have changed.
func openToSend(root, name string, guard guard, mask mask) (*openFile, error) {
	folder, err := openFolder(root)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	folder.Guard = guard
	f, info, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	open := &openFile{file: f, content: f, info: info}
	if mask != nil {
		open.content = mask(name, f, info.Size())
	}
	return open, nil
}
