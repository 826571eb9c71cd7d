package document

import (
	"io/fs"
	"syscall"

	"github.com/ccship/ccship/state/projection"
)

// stampOf returns the stamp in the metadata of a file.
func stampOf(info fs.FileInfo) projection.Stamp {
	s := projection.Stamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ChangeTime, s.Inode = st.Ctimespec.Nano(), st.Ino
	}
	return s
}

func identityOf(info fs.FileInfo) (id projection.Folder) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Device, id.Inode = uint64(st.Dev), st.Ino
	}
	return id
}
