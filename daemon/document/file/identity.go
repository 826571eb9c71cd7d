package file

// Identity identifies a folder. It is zero where the system has no such numbers.
type Identity struct{ Device, Inode uint64 }

// Identity returns the identity of the folder, links resolved.
func (f *Folder) Identity() Identity { return identityOf(f.self) }
