package sys

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

// TestChange: a changed name is kept, the former ones are known, and hosts are numbered.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadIdentity(dir)
	kit.Require(t, err == nil && first.Name != "" && first.Former == nil, "%+v, %v", first, err)
	for _, suffix := range []string{" (2)", " (3)"} {
		was, _ := LoadIdentity(dir)
		kit.Must(t, ChangeIdentity(dir))
		now, err := LoadIdentity(dir)
		kit.Check(t, err == nil && now.Name != was.Name && len(now.Name) == 32 && slices.Equal(now.Former, append([]string{was.Name}, was.Former...)) && now.Host == first.Host+suffix,
			"%+v after %+v, %v", now, was, err)
	}
	kit.Must(t, os.WriteFile(filepath.Join(dir, identityFile), []byte("{"), 0o600))
	_, err = LoadIdentity(dir)
	kit.Check(t, err != nil, "a damaged file passes for a name")
}
