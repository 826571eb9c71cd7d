package delivery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/ccship/ccship/daemon/config"
)

// keyFile is a file with an API key. It is read again whenever it or its mode changes, so a new key needs no restart,
// and a key that others can read now is not used.
type keyFile struct {
	path     string
	optional bool // a missing file means a server without keys

	mu   sync.Mutex
	key  string      // guarded by mu
	when time.Time   // modification time when key was read; guarded by mu
	size int64       // guarded by mu
	mode os.FileMode // guarded by mu
}

// read returns the key in the file.
func (k *keyFile) read() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	st, statErr := os.Stat(k.path) // before reading: a file replaced in between is read again next time
	if statErr == nil && k.key != "" && st.ModTime().Equal(k.when) && st.Size() == k.size && st.Mode() == k.mode {
		return k.key, nil
	}
	key, err := config.ReadAPIKey(k.path)
	if k.optional && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if statErr == nil {
		k.key, k.when, k.size, k.mode = key, st.ModTime(), st.Size(), st.Mode()
	}
	return key, nil
}

// stamp changes whenever the file does.
func (k *keyFile) stamp() string {
	st, err := os.Stat(k.path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.ModTime().UnixNano(), st.Size(), st.Mode())
}
