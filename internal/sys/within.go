package sys

import "path/filepath"

// Within reports whether a path is a folder, or lies below it. It compares names: links are not followed.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
