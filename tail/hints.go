package tail

import "context"

// manyHints is the number of changed names above which listing the folder is cheaper.
const manyHints = 32

// hint records that something happened at a path. The caller holds mu.
func (t *Tailer) hint(path string) {
	t.requests.hints[path] = struct{}{}
	ring(t.wake)
}

// scanHints checks the paths where something happened.
func (t *Tailer) scanHints(ctx context.Context, hints map[string]struct{}) {
	byFolder := map[*folder][]string{}
	t.mu.Lock()
	for path := range hints {
		dir, name := splitPath(path)
		if d := t.table.folders[dir]; d != nil && !d.root.alias {
			byFolder[d] = append(byFolder[d], name)
		}
	}
	t.mu.Unlock()
	if len(byFolder) == 0 {
		return
	}
	p := t.newListing(false)
	for d, names := range byFolder {
		if len(names) > manyHints {
			p.list(ctx, d, false)
			continue
		}
		for _, name := range names {
			p.listName(ctx, d, name)
		}
	}
	p.finish(ctx)
}

// listName does for one name what list does for a folder.
func (p *listing) listName(ctx context.Context, d *folder, name string) {
	path := joinPath(d.path, name)
	e, err := look(path)
	e.name = name
	t := p.t
	t.mu.Lock()
	f, s := d.files[name], d.subs[name]
	switch {
	case err != nil && notExist(err) || err == nil && e.kind == other:
		delete(t.table.refused, path)
		if p.noteAbsent(f, s); err == nil && e.why != "" && d.wants(name) {
			p.refuse(d, &e, e.why)
		}
		s = nil
	case err != nil:
		s = nil
	default:
		delete(t.table.refused, path)
		if f != nil && e.kind != regular || s != nil && e.kind != directory {
			p.noteAbsent(f, s)
		}
		s, _ = p.entry(d, &e)
	}
	t.mu.Unlock()
	if s != nil {
		p.list(ctx, s, true)
	}
}

func (p *listing) noteAbsent(f *file, s *folder) {
	if f != nil {
		p.missing = append(p.missing, f)
	}
	if s != nil {
		p.missingFolders = append(p.missingFolders, s)
	}
}
