package document

// Identity tells folders apart. Zero where the system has no numbers for them.
type Identity struct{ Device, Inode uint64 }

// Identity is that of the folder, links resolved.
func (f *Folder) Identity() Identity { return identityOf(f.self) }
