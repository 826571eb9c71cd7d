package tail

// Walk calls found for every transcript below a root that is not empty, as a Tailer would follow it, but without an ID:
// each file and each folder once, what has a real name before what a link leads to. Of two copies of a session each has
// Copy 0. It calls failed for every folder that cannot be listed; a root that does not exist is empty.
func Walk(root string, found func(File), failed func(dir string, err error)) {
	dir := cleanPath(root)
	w := walk{found: found, failed: failed, seen: map[place]bool{}}
	w.list(&folder{path: dir, root: &rootState{Root: Root{Dir: dir}}})
	for len(w.links) > 0 {
		links := w.links
		w.links = nil
		for _, l := range links {
			w.entry(l.d, &l.e)
		}
	}
}

// walk is a Walk on its way.
type walk struct {
	found  func(File)
	failed func(dir string, err error)
	seen   map[place]bool
	links  []linkedFolder // links whose turn comes when everything with a real name is seen
}

// fresh reports whether a file or folder is seen for the first time, as far as the system distinguishes them.
func (w *walk) fresh(s Stat) bool {
	again := s.known() && w.seen[s.place()]
	w.seen[s.place()] = true
	return !again
}

func (w *walk) list(d *folder) {
	entries, self, err := listFolder(nil, d.path, d.level == rootLevel || d.link, d.wants)
	if err != nil {
		if !notExist(err) {
			w.failed(d.path, err)
		}
		return
	}
	if !w.fresh(self) {
		return
	}
	for i := range entries {
		if e := &entries[i]; e.link {
			w.links = append(w.links, linkedFolder{d: d, e: *e})
		} else {
			w.entry(d, e)
		}
	}
}

func (w *walk) entry(d *folder, e *entry) {
	path := joinPath(d.path, e.name)
	switch {
	case d.link && e.foreign:
	case e.kind == regular:
		if kind, name, ok := d.transcript(e.name); ok && e.stat.Size > 0 && w.fresh(e.stat) {
			w.found(File{Kind: kind, Path: path, Root: d.root.Dir, Name: name, Stat: e.stat})
		}
	case e.kind == directory:
		if l, ok := d.below(e.name); ok && d.depth < maxDepth {
			w.list(d.child(e.name, l, e.link))
		}
	}
}

// child returns a folder below this one, which it does not change.
func (d *folder) child(name string, l level, link bool) *folder {
	s := &folder{
		path: joinPath(d.path, name), root: d.root, parent: d, level: l, depth: d.depth + 1, session: d.session,
		link: d.link || link,
	}
	if l == sessionLevel {
		s.session = name
	}
	return s
}
