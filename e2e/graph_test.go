package e2e

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// module is the path every package of ours starts with.
const module = "github.com/ccship/ccship"

// node is one package of the import graph, as `go list -deps -json` tells it.
type node struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

// plan says who may import whom. A package of ours that is no key of Arrows has no place in the house; an outside
// module that is no key of Doors has no space.
type plan struct {
	Arrows map[string][]string // package → packages it may import
	Doors  map[string][]string // outside module (or standard package) → packages that may import it
	Apart  map[string][]string // binary → modules or packages that must not be linked into it
}

// breaches lists what in the graph goes against the plan, sorted.
func (p plan) breaches(graph []node) []string {
	owner := map[string]string{}
	for _, n := range graph {
		if n.Module != nil {
			owner[n.ImportPath] = n.Module.Path
		}
	}
	var found []string
	for _, n := range graph {
		room, ours := roomOf(n.ImportPath)
		if !ours {
			continue
		}
		if _, known := p.Arrows[room]; !known {
			found = append(found, fmt.Sprintf("%s has no place in the plan", room))
			continue
		}
		for _, path := range n.Imports {
			if breach := p.judge(room, path, owner[path]); breach != "" {
				found = append(found, breach)
			}
		}
	}
	for binary, modules := range p.Apart {
		found = append(found, linked(graph, owner, binary, modules)...)
	}
	sort.Strings(found)
	return slices.Compact(found)
}

// judge says what is wrong with one import, or nothing. mod is the module of path, "" for the standard library.
func (p plan) judge(room, path, mod string) string {
	if other, ours := roomOf(path); ours {
		if !slices.Contains(p.Arrows[room], other) {
			return fmt.Sprintf("%s must not import %s", room, other)
		}
		return ""
	}
	door := mod
	if mod == "" {
		door = path
	}
	rooms, listed := p.Doors[door]
	if !listed && mod == "" {
		return "" // the standard library is open where it is not listed
	}
	if !slices.Contains(rooms, room) {
		return fmt.Sprintf("%s must not use %s", room, door)
	}
	return ""
}

// linked lists the unwanted modules and packages in the closure of a binary.
func linked(graph []node, owner map[string]string, binary string, unwanted []string) []string {
	byPath := map[string]node{}
	for _, n := range graph {
		byPath[n.ImportPath] = n
	}
	var found []string
	seen := map[string]bool{}
	queue := []string{module + "/" + binary}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		for _, name := range unwanted {
			if path == name || owner[path] == name {
				found = append(found, fmt.Sprintf("%s links %s", binary, name))
			}
		}
		queue = append(queue, byPath[path].Imports...)
	}
	return found
}

// roomOf is a package's path inside the house; ours is false for everything from outside.
func roomOf(path string) (room string, ours bool) {
	room, ours = strings.CutPrefix(path, module+"/")
	return room, ours
}
