package protocol

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ccship/ccship/internal/sys"
)

// ProvenServers is a file with the addresses at which a server with the proof was seen. A server that answers there
// later must prove itself, whatever it claims to be. Processes may use the file at the same time: lines are only added.
type ProvenServers struct {
	Path string
}

// Has reports whether a server with the proof was seen at an address. A file that cannot be read may name it.
func (m ProvenServers) Has(server string) bool {
	text, err := sys.ReadOwn(m.Path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return server != "" && slices.Contains(strings.Split(string(text), "\n"), server)
}

// Add notes an address. The folder must exist.
func (m ProvenServers) Add(server string) error {
	if m.Has(server) {
		return nil
	}
	f, err := sys.OpenOwn(m.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("note the server: %w", err)
	}
	_, err = f.WriteString(server + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("note the server: %w", err)
	}
	return nil
}
