package api_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ccship/ccship/internal/sys"
)

// here asks for the proof that the server is on this machine, as a client of this user does, and as another one.
func (r *rig) here() {
	r.t.Helper()
	dir, err := sys.UserFolder()
	must(r.t, err)
	id := strings.Repeat("0", 32)
	path := filepath.Join(dir, "ccship-here-"+id)
	must(r.t, os.WriteFile(path, make([]byte, 32), 0o600))
	defer os.Remove(path)
	for id, status := range map[string]int{id: 200, strings.Repeat("1", 32): 404} {
		if a := r.get("/here?id=" + id); a.status != status {
			r.t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
}
