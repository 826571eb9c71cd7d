package tail

import (
	"errors"
	"io/fs"
	"os"
)

// entryType is the type of a directory entry.
type entryType uint8

const (
	other entryType = iota // pipes, devices, links that are not followed: never read
	regular
	directory
)

// entry is one name of a listing. Of a link that is followed it has the stat and the kind of the target.
type entry struct {
	name    string
	stat    Stat
	kind    entryType
	link    bool
	foreign bool   // it belongs to another user
	why     string // why a link is not followed; "" for all others
}

// statEntry returns stat and type of what a path leads to, if it may be followed.
func statEntry(path string) (Stat, entryType, error) {
	e, err := look(path)
	return e.stat, e.kind, err
}

// faults lets tests inject file system errors. A nil func never fails.
type faults struct {
	list  func(path string) error
	open  func(path string) error
	read  func(path string) error // after reading, before confirm
	watch func(path string) error
	event func(path string) error // an error takes the event's place
}

func (f *faults) on(hook func(string) error, path string) error {
	if hook == nil {
		return nil
	}
	return hook(path)
}

func (t *Tailer) list(into []entry, d *folder) ([]entry, Stat, error) {
	if err := t.faults.on(t.faults.list, d.path); err != nil {
		return into, Stat{}, err
	}
	if d.level == historyLevel {
		return listOne(into, d.path, d.history)
	}
	return listFolder(into, d.path, d.level == rootLevel || d.link, d.wants)
}

// listOne lists a single name of a folder.
func listOne(into []entry, dir, name string) ([]entry, Stat, error) {
	e, err := look(joinPath(dir, name))
	if err == nil {
		e.name = name
		return append(into, e), Stat{}, nil
	}
	if !notExist(err) {
		return into, Stat{}, err
	}
	if _, err := os.Stat(dir); err != nil {
		return into, Stat{}, err
	}
	return into, Stat{}, nil
}

func (t *Tailer) open(path string) (*handle, error) {
	if err := t.faults.on(t.faults.open, path); err != nil {
		return nil, err
	}
	return openHandle(path)
}

// sameFile reports whether two stats belong to one file, as far as inodes tell; without inodes it returns true.
func (s Stat) sameFile(o Stat) bool { return s.Device == o.Device && s.Inode == o.Inode }

// known reports whether the system gives the file an identity.
func (s Stat) known() bool { return s.Inode != 0 || s.Device != 0 }

func notExist(err error) bool { return errors.Is(err, fs.ErrNotExist) || notFolder(err) }
