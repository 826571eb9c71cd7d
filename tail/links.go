package tail

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
)

// A symbolic link below a root is followed to a transcript, or to a folder, of the same user. Each file is read once,
// by device and inode, and so is each folder: what has a real name below a root keeps that one, and of several links to
// one place the one that was followed before counts, else the first by name. So no loop is entered: a link to a folder
// above it is another name of that one.

// Reasons why a name below a root is not followed.
const (
	whyMissing = "the target of this link does not exist"
	whyForeign = "the target of this link belongs to another user"
	whyKind    = "the target of this link is neither a file nor a folder"
	whyLoop    = "this link leads to itself"
	whyDeep    = "this folder is more than 12 folders below the projects folder"
	whyStray   = "this file is not named like a session and lies in no project folder"
)

// place identifies a file or folder, whatever its name.
type place struct{ device, inode uint64 }

func (s Stat) place() place { return place{s.Device, s.Inode} }

// linkedFolder is a link to a folder that is not followed yet.
type linkedFolder struct {
	d *folder
	l level
	e entry
}

// refuse records that a name in a folder is not followed. The caller holds mu.
func (p *listing) refuse(d *folder, e *entry, why string) {
	path := joinPath(d.path, e.name)
	e.why = why
	d.settled = false // what a link leads to changes without the folder
	if _, ok := p.t.table.refused[path]; !ok {
		p.t.log.Warn("not followed", "path", path, "reason", why)
	}
	p.t.table.refused[path] = why
}

// forgetRefused forgets what was not followed directly in a folder that is listed again, but not that it was logged
// when it is still there.
func (tb *table) forgetRefused(d *folder, entries []entry) {
	for path := range tb.refused {
		dir, name := splitPath(path)
		if dir == d.path && !slices.ContainsFunc(entries, func(e entry) bool { return e.name == name && e.why != "" }) {
			delete(tb.refused, path)
		}
	}
}

// followLinks lists the folders that links lead to, behind all others: what has a real name is known by then.
func (p *listing) followLinks(ctx context.Context) {
	for len(p.linked)+len(p.links) > 0 && ctx.Err() == nil {
		known, fresh := p.linked, p.links
		p.linked, p.links = nil, nil
		for _, s := range known {
			p.list(ctx, s, true)
		}
		p.t.mu.Lock()
		slices.SortFunc(fresh, func(a, b linkedFolder) int {
			x, y := joinPath(a.d.path, a.e.name), joinPath(b.d.path, b.e.name)
			return cmp.Or(-compareBool(p.remembered(x), p.remembered(y)), cmp.Compare(x, y))
		})
		p.t.mu.Unlock()
		for i := range fresh {
			c := &fresh[i]
			t := p.t
			t.mu.Lock()
			if c.d.subs[c.e.name] != nil || p.folderAt(c.e.stat) != nil {
				c.d.settled = false // another name of a folder that is followed: as long as that one is there
				t.mu.Unlock()
				continue
			}
			s := p.addFolder(c.d, c.l, &c.e)
			t.mu.Unlock()
			p.list(ctx, s, true)
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// remembered reports whether a file at or below the path is known.
func (p *listing) remembered(path string) bool {
	if p.paths == nil {
		p.paths = map[string]struct{}{}
		for _, f := range p.t.table.byID {
			k := f.view()
			for at := k.File.Path; len(at) > len(k.File.Root); at, _ = splitPath(at) {
				p.paths[at] = struct{}{}
			}
		}
	}
	_, ok := p.paths[path]
	return ok
}

// folderAt returns the folder that is followed at a place; nil: there is none.
func (p *listing) folderAt(st Stat) *folder {
	if p.folders == nil {
		p.folders = map[place]*folder{}
		for _, links := range []bool{false, true} {
			for _, d := range p.t.table.folders {
				if at := d.self.place(); d.link == links && !d.alias && !d.root.alias && d.self.known() && p.folders[at] == nil {
					p.folders[at] = d
				}
			}
		}
	}
	return p.folders[st.place()]
}

// fileAt returns the file on disk at a place; nil: none is followed there.
func (p *listing) fileAt(st Stat) *file {
	if p.files == nil {
		p.files = map[place]*file{}
		for _, f := range p.t.table.byID {
			if f.folder != nil {
				p.files[f.glance().seen.place()] = f
			}
		}
	}
	return p.files[st.place()]
}

// enter reports whether to list a folder that a link leads to: it still belongs to the user, and is not followed under
// another name.
func (p *listing) enter(d *folder) bool {
	e, err := look(d.path)
	t := p.t
	t.mu.Lock()
	defer t.mu.Unlock()
	allowed := err == nil && e.kind == directory && !e.foreign
	if allowed {
		at := p.folderAt(e.stat)
		d.alias = at != nil && at != d
		if !d.alias {
			p.folders[e.stat.place()] = d
			return true
		}
	}
	d.listing = p.number
	t.unwatch(d)
	switch {
	case !allowed:
		t.hint(d.path) // gone, or not the user's any more: to be seen from its parent
	case p.folders[e.stat.place()].watched: // the system has one watch for both names
		_ = t.scan.watcher.Add(p.folders[e.stat.place()].path)
	}
	return false
}

// sameTarget reports whether two paths lead to one file.
func sameTarget(a, b string) bool {
	x, errA := filepath.EvalSymlinks(a)
	y, errB := filepath.EvalSymlinks(b)
	return errA == nil && errB == nil && x == y
}

// watchLink watches a transcript behind a link, because the folder's events do not report writes to it. Only the main
// loop calls it.
func (t *Tailer) watchLink(path string, st Stat) {
	if t.scan.watcher == nil || t.scan.noWatches || t.scan.links[path] == st.place() {
		return
	}
	t.unwatchLink(path)
	if t.scan.watches.Load() >= maxWatches || t.scan.watcher.Add(path) != nil {
		return // listings find what changes
	}
	if t.scan.links == nil {
		t.scan.links = map[string]place{}
	}
	t.scan.links[path] = st.place()
	t.scan.watches.Add(1)
}

func (t *Tailer) unwatchLink(path string) {
	if _, ok := t.scan.links[path]; ok {
		_ = t.scan.watcher.Remove(path) // it may have ended with the file
		delete(t.scan.links, path)
		t.scan.watches.Add(-1)
	}
}

// unwatchLinks ends the watches of links that are gone. The caller holds mu.
func (t *Tailer) unwatchLinks() {
	for path := range t.scan.links {
		dir, name := splitPath(path)
		if d := t.table.folders[dir]; d == nil || d.files[name] == nil {
			t.unwatchLink(path)
		}
	}
}

// notFollowed lists the links and folders that are not followed, each with the reason, and the files that are named
// *.jsonl but are no transcripts. The caller holds mu.
func (tb *table) notFollowed() (all, stray []string) {
	for path, why := range tb.refused {
		if why == whyStray {
			stray = append(stray, path)
		} else {
			all = append(all, path+": "+why)
		}
	}
	slices.Sort(all)
	slices.Sort(stray)
	return all, stray
}
