package try

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/ccship/ccship/daemon/control"
)

// serverName is the file name of the server's program.
func serverName() string {
	if runtime.GOOS == "windows" {
		return "ccship-server.exe"
	}
	return "ccship-server"
}

// findServer is the path of ccship-server: beside this program, whose links are followed, or on PATH.
func findServer() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find ccship-server: %w", err)
	}
	beside := []string{self}
	if real, err := filepath.EvalSymlinks(self); err == nil && real != self {
		beside = append(beside, real)
	}
	for _, program := range beside {
		path := filepath.Join(filepath.Dir(program), serverName())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return lookPath(filepath.Dir(self))
}

// lookPath finds the server on PATH. beside is where it was looked for before.
func lookPath(beside string) (string, error) {
	path, err := exec.LookPath(serverName())
	if err != nil {
		return "", control.Failed(serverName()+" is neither in "+beside+" nor on PATH",
			"put it beside ccship; `make build` builds both")
	}
	return path, nil
}
