package file

import (
	"io/fs"
	"syscall"
)

// StampOf returns the stamp in the metadata of a file.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.ChangeTime, s.Inode = st.Ctim.Nano(), st.Ino
	}
	return s
}

func identityOf(info fs.FileInfo) (id Identity) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Device, id.Inode = st.Dev, st.Ino
	}
	return id
}
