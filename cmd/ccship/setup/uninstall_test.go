package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestFileSize(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "12345", "b/c": "123"} {
		path := filepath.Join(dir, name)
		kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	all, one, none := fileSize(dir), fileSize(filepath.Join(dir, "a")), fileSize(filepath.Join(dir, "x"))
	kit.Check(t, all == 8 && one == 5 && none == 0, "%d %d %d", all, one, none)
}
