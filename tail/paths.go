package tail

import "path/filepath"

// cleanPath returns the form in which paths are compared.
func cleanPath(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return filepath.Clean(p)
}

// splitPath splits a path into its folder and its last element. Both share the path's bytes.
func splitPath(p string) (dir, base string) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == filepath.Separator || p[i] == '/' {
			if i == 0 {
				return p[:1], p[1:]
			}
			return p[:i], p[i+1:]
		}
	}
	return ".", p
}

// joinPath is filepath.Join for a clean folder and a single name.
func joinPath(dir, name string) string {
	if len(dir) > 0 && (dir[len(dir)-1] == filepath.Separator || dir[len(dir)-1] == '/') {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}
