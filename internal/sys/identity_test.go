package sys

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestChange: a changed name is kept, the former one is known, and hosts are numbered.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadIdentity(dir)
	if err != nil || first.Name == "" || first.Former != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	for _, suffix := range []string{" (2)", " (3)"} {
		was, _ := LoadIdentity(dir)
		kit.Must(t, ChangeIdentity(dir))
		now, err := LoadIdentity(dir)
		if err != nil || now.Name == was.Name || len(now.Name) != 32 || now.Former != was.Name || now.Host != first.Host+suffix {
			t.Errorf("%+v after %+v, %v", now, was, err)
		}
	}
	kit.Must(t, os.WriteFile(filepath.Join(dir, identityFile), []byte("{"), 0o600))
	if _, err := LoadIdentity(dir); err == nil {
		t.Error("a damaged file passes for a name")
	}
}
