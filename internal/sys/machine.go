package sys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// MachineName is what servers call this user on this machine: a keyed hash of the system's machine id and the user id.
// It survives the loss of the state and reveals neither id. A system without a machine id gets a random one, stored in
// stateDir.
func MachineName(stateDir string) (string, error) {
	id := systemID()
	if id == "" {
		var err error
		if id, err = persistedID(filepath.Join(stateDir, "machine-id")); err != nil {
			return "", err
		}
	}
	uid := "?"
	if u, err := user.Current(); err == nil {
		uid = u.Uid
	}
	mac := hmac.New(sha256.New, []byte(id))
	fmt.Fprintf(mac, "ccship machine %s", uid)
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// persistedID reads the random id next to the state, made at the first call.
func persistedID(path string) (string, error) {
	if b, err := os.ReadFile(path); err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	id := rand.Text()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep machine id: %w", err)
	}
	return id, nil
}
