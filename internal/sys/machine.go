package sys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// MachineName returns what servers call this user on this machine: a keyed hash of the system's machine id and the user
// id. It survives the loss of the state and reveals neither id. A system without a machine id gets a random one, stored
// in stateDir.
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
	if b, err := ReadOwn(path); err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	id := rand.Text()
	f, err := OpenOwn(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err == nil {
		_, err = f.WriteString(id + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return "", fmt.Errorf("keep machine id: %w", err)
	}
	return id, nil
}
