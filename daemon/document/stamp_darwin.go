package document

import (
	"io/fs"
	"syscall"
)

// stampOf returns the stamp in the metadata of a file.
func stampOf(info fs.FileInfo) fileStamp {
	s := fileStamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ChangeTime, s.Inode = st.Ctimespec.Nano(), st.Ino
	}
	return s
}

func identityOf(info fs.FileInfo) (id identity) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Device, id.Inode = uint64(st.Dev), st.Ino
	}
	return id
}
