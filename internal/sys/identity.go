package sys

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Identity is how servers know this user on this machine.
type Identity struct {
	Name   string   `json:"name"`
	Host   string   `json:"host"`             // shown to people
	Former []string `json:"former,omitempty"` // the names before, the last one first
}

// identityFile holds the identity of a machine that took a name of its own.
const identityFile = "machine.json"

// LoadIdentity returns the identity: the one that Change chose, or else Name and the system's host name.
func LoadIdentity(stateDir string) (Identity, error) {
	text, err := ReadOwn(filepath.Join(stateDir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		name, err := MachineName(stateDir)
		host, _ := os.Hostname()
		return Identity{Name: name, Host: host}, err
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read machine name: %w", err)
	}
	var id Identity
	if err := json.Unmarshal(text, &id); err != nil || id.Name == "" {
		return Identity{}, fmt.Errorf("read machine name: %s is damaged; remove it", filepath.Join(stateDir, identityFile))
	}
	return id, nil
}

// ChangeIdentity gives this machine a new name, because another one uses the name it has: a clone, or a second daemon
// with a state of its own. It keeps the former ones and numbers the host, as in "laptop (2)".
func ChangeIdentity(stateDir string) error {
	was, err := LoadIdentity(stateDir)
	if err != nil {
		return err
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	next := Identity{
		Name: hex.EncodeToString(random), Host: numbered(was.Host), Former: slices.Insert(was.Former, 0, was.Name),
	}
	text, err := json.Marshal(next)
	if err == nil {
		err = WriteFile(filepath.Join(stateDir, identityFile), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("store machine name: %w", err)
	}
	return nil
}

// numbered returns a host's name with the next number.
func numbered(host string) string {
	base, rest, ok := strings.Cut(host, " (")
	var n int
	if ok {
		if _, err := fmt.Sscanf(rest, "%d)", &n); err != nil {
			base, n = host, 0
		}
	}
	return fmt.Sprintf("%s (%d)", base, max(n, 1)+1)
}
