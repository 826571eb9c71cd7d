package document

// identity identifies a folder. It is zero where the system has no such numbers.
type identity struct{ Device, Inode uint64 }

// Identity returns the identity of the folder, links resolved.
func (f *folder) Identity() identity { return identityOf(f.self) }
